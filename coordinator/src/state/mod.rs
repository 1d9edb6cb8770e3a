//! The StateContext: everything that the cluster has agreed on.
//!
//! [`StateContext::apply`] is synchronous and pure. The log position and the leader's decisions
//! ([`Decisions`]) come with the command, maps are ordered, and nothing is random or looked up
//! elsewhere. So every member that applies the same log has the same state, byte by byte, and a
//! snapshot of one member is the state of all. Each command that changes something increments
//! `cas`. An impossible command is refused. A refusal is an outcome like any other: it is stored
//! for retries and changes nothing else.
//!
//! Consequences outside of the state are returned as [`Effect`]s, which are plain values. The
//! caller decides what to do with them.
//!
//! Each family of commands (`proto::rpc::command`) has a folder of its name, which applies them
//! ([`effect::Apply`]), with its sub-state in `state.rs`. A command reads the whole context and
//! changes the sub-state of its family. A change that it causes in other families is a plain
//! value, a `Consequence`, which `carry_out` passes to all of them in one order. So sub-states do
//! not refer to each other; their fields are private, and `tests/tests/sources/families.rs`
//! checks the rest.
//!
//! | folder | contents |
//! |---|---|
//! | [`buckets`] | the records of buckets; making and dropping them |
//! | [`indexes`] | the records of indexes with all generations, checks of definitions, placements |
//! | `indexes/generations` | builds of new generations while others serve; growth |
//! | `versions` | versioned data sets, and the projectors that load their versions |
//! | `moves` | moves of slices, hand-overs of vbuckets |
//! | [`nodes`] | registration, draining, removal; coordinators; slices without a remaining copy |
//! | `copies` | the copies of an embedded bucket, and projectors that begin to serve one |
//! | [`epochs`] | epochs, moments, rollbacks, the numbers after a restore from an older copy |
//! | `users` | users, their secrets and privileges |
//!
//! | file | contents |
//! |---|---|
//! | [`context`], [`bucket_view`], `lookup` | the list of sub-states, and the queries that join them |
//! | `apply`, [`decisions`], [`effect`] | applying a command with the leader's decisions, and its result |
//! | `consequence`, `carry_out` | what a command changes in other families |
//! | `clock` | the counters of changes, and the position and the time of the last command |
//! | `requests` | the answers that are stored for retries |
//! | `invariants` | what is true after each command, checked by debug builds |
//! | `snapshot`, [`capacity`] | the encoded state, the table of its limits, and the capacity that is reserved for administrators |
//!
//! An index is `pending` until it is built (by CREATE INDEX itself, or by BUILD INDEX),
//! `backfill` until the leader has seen every slice readable, then `maintenance`. Slices move
//! only in `maintenance`.

mod apply;
pub mod bucket_view;
pub mod buckets;
pub(crate) mod capacity;
mod carry_out;
mod clock;
mod consequence;
pub mod context;
mod copies;
pub mod decisions;
pub mod effect;
pub mod epochs;
pub mod indexes;
mod invariants;
mod lookup;
mod moves;
pub(crate) mod nodes;
mod requests;
mod snapshot;
mod users;
pub(crate) mod versions;

pub use bucket_view::BucketView;
pub use capacity::check_reserve;
pub use context::StateContext;
pub use decisions::Decisions;
pub use effect::Effect;
pub use epochs::history::EpochHistory;

#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod unique_tests;
