//! Follows one bucket: keeps a subscription to its projector open, feeds the mutation queue, applies
//! epochs, and builds the indexes that join the stream.
//!
//! The task is cancelled by dropping it: what it had not applied is asked for again from the
//! watermarks. After any error it opens a new stream, from the end of what was received; a hole or
//! `DropData` does the same.
//!
//! All that it compares with the stream's positions belongs to the stream's history: what does not is
//! given up first ([`rollback`]). A copy for which the history has been purged is compared with a snapshot
//! ([`resync`]).

mod backfill;
mod builds;
mod comparison;
mod follower;
mod joins;
pub mod policy;
mod resync;
mod rollback;
mod run;

pub use follower::{FollowerStatus, grouping};
pub use run::follow;

#[cfg(test)]
mod cluster;
#[cfg(test)]
mod played;
#[cfg(test)]
mod restore_tests;
