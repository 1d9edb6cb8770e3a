//! The StateContext: everything that the cluster has agreed on.
//!
//! [`StateContext::apply`] is synchronous and pure. The log position and the time come with the command, maps are
//! ordered, and nothing is random or looked up elsewhere. So every member that applies the same log has the same
//! state, byte by byte, and a snapshot of one member is the state of all. Each command that changes something
//! increments `cas`. An impossible command is refused. A refusal is an outcome like any other: it is kept for retries
//! and changes nothing else.
//!
//! Consequences outside of the state are returned as [`Effect`]s, which are plain values. The caller decides what to
//! do with them.
//!
//! | file | contents |
//! |---|---|
//! | [`bucket`], [`epoch_history`], [`index_record`], `requests` | the records that the state consists of |
//! | [`context`], `lookup`, [`placement`] | the state and the queries on it |
//! | [`effect`] | the result of a command |
//! | `buckets`, `indexes`, `checks` | DDL |
//! | `vbucket_owners` | the projectors of a bucket, and hand-overs of vbuckets |
//! | `copies` | the copies of an embedded bucket |
//! | `data_sets`, `partitions` | versioned data sets, and the projectors that load their versions |
//! | `epochs` | stability timestamps |
//! | `nodes`, `coordinators` | registration, draining, removal |
//! | `lost` | slices without a copy that is left, and indexers that are silent |
//! | `moves` | moves of slices |
//! | `open_source` | projectors that begin to serve an embedded bucket |
//! | `rollback` | the response to a source that has lost part of its history |
//! | `users` | users, their secrets and privileges |
//! | `skip`, `skipped` | the numbers after a restore from an older copy |
//! | `invariants` | what holds after each command, checked by debug builds |
//! | `apply` | the dispatch of commands to these files |
//! | `snapshot`, `limits`, `room`, `reserve` | the encoded state, its size limits, the refusals of commands beyond them, and what is kept for administrators |
//!
//! An index is `pending` until it is built (by CREATE INDEX itself, or by BUILD INDEX), `backfill` until the leader
//! has seen every slice readable, then `maintenance`. Slices move only in `maintenance`.

mod apply;
pub mod bucket;
mod buckets;
mod checks;
pub mod context;
mod coordinators;
mod copies;
pub(crate) mod data_sets;
pub mod effect;
pub mod epoch_history;
pub mod epoch_moments;
mod epochs;
mod generations;
mod growth;
pub mod index_record;
mod indexes;
mod invariants;
pub(crate) mod limits;
mod lookup;
mod lost;
mod moments;
mod moves;
pub(crate) mod nodes;
mod open_source;
mod partitions;
pub mod placement;
mod requests;
mod reserve;
mod rollback;
mod room;
mod skip;
mod skipped;
mod snapshot;
mod users;
mod vbucket_owners;
mod version_builds;

pub use bucket::BucketState;
pub use context::StateContext;
pub use effect::Effect;
pub use epoch_history::EpochHistory;
pub use reserve::check_reserve;

#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
pub(crate) mod unique_tests;
