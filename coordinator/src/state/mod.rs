//! The StateContext: all that the cluster has agreed on.
//!
//! [`StateContext::apply`] is synchronous and pure: the log position and the time come with the command,
//! maps are ordered, nothing is drawn or looked up. So every member that applies the same log has the
//! same state, byte by byte, and a snapshot of one is the state of all. Each command that changes
//! something adds one to `cas`. A command that cannot be done is refused: that is an outcome like any
//! other, kept for retries, and changes nothing else.
//!
//! What follows from a change outside of the state comes out as [`Effect`]s, which are values; whoever
//! applies decides what to do with them.
//!
//! | file | what it is |
//! |---|---|
//! | [`bucket`], [`epoch_history`], [`index_record`], `requests` | the records that the state is made of |
//! | [`context`], `lookup`, [`placement`] | the state, and what is asked of it |
//! | [`effect`] | what a command comes to |
//! | `buckets`, `indexes` | DDL |
//! | `homes` | where the vbuckets of a bucket are kept |
//! | `epochs` | stability timestamps |
//! | `nodes` | registration, draining, removal |
//! | `moves` | moves of slices |
//! | `rollback` | what follows when a source has lost a piece of its history |
//! | `apply` | the way of a command to all of these |
//! | `snapshot`, `limits` | the state as bytes, and how large that may be |
//!
//! An index is `pending` until somebody builds it (CREATE INDEX itself, or BUILD INDEX), `backfill` until
//! the leader has seen every slice readable, then `maintenance`. Only then do its slices move.

mod apply;
pub mod bucket;
mod buckets;
mod checks;
pub mod context;
pub mod effect;
pub mod epoch_history;
mod epochs;
mod homes;
pub mod index_record;
mod indexes;
pub(crate) mod limits;
mod lookup;
mod moves;
mod nodes;
pub mod placement;
mod requests;
mod rollback;
mod snapshot;

pub use bucket::BucketState;
pub use context::StateContext;
pub use effect::Effect;
pub use epoch_history::EpochHistory;

#[cfg(test)]
pub(crate) mod tests;
