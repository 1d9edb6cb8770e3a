//! The follower of a bucket: keeps a subscription to the bucket's projector open, adds the
//! received mutations to the queue, applies epochs, and builds the indexes that join the stream.
//!
//! Dropping the task cancels it at any await. Mutations that were not applied are requested again
//! from the watermarks (the ends of the received mutations). After an error or a gap in the
//! stream the follower opens a new stream from the watermarks.
//!
//! The follower compares positions only within the stream's history, and first rolls back
//! mutations of any other history (`rollback`). If the source has purged history that a copy
//! needs, the copy is compared with a snapshot (`resync`).
//!
//! | file | contents |
//! |---|---|
//! | `run` | the loop: subscriptions, messages, epochs |
//! | `joins`, `builds`, `derive`, `resync`, `rollback` | operations on the follower's state |
//! | `follower` | the state |
//! | `transactions` | the changes of open transactions, for the late-commit store |
//! | `backfill`, `comparison` | separate tasks, which do not depend on the follower |
//! | `policy` | pure decisions, shared with the simulation of the cores |

mod backfill;
mod builds;
mod comparison;
mod derive;
mod follower;
mod joins;
pub mod policy;
mod resync;
mod rollback;
mod run;
mod transactions;

pub use follower::{FollowerStatus, grouping};
pub use run::spawn_follower;

#[cfg(test)]
mod abandoned_tests;
#[cfg(test)]
mod cluster;
#[cfg(test)]
mod commit_marker_tests;
#[cfg(test)]
mod failing_store_tests;
#[cfg(test)]
mod lost_tests;
#[cfg(test)]
mod played;
#[cfg(test)]
mod restore_tests;
#[cfg(test)]
mod transactions_tests;
