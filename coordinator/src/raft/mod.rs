//! The replicated log: tikv's `raft` crate, a log store of our own, and a service around both.
//!
//! | file | contents |
//! |---|---|
//! | [`config`], [`role`], [`state_machine`], [`transport`] | a member's settings, its role, and the traits that it works with |
//! | [`core`] | the ready loop: inputs in, outputs out, no I/O, no time, no threads |
//! | [`log_write`] | changes of the log |
//! | [`memory_log`] | the log as Raft reads it |
//! | [`log_store`] | the log on disk |
//! | `guard` | validation of incoming messages |
//! | `election_timeout`, `snapshots_sent` | seeded election timeouts; retries of snapshots |
//! | [`wire`] | messages in our own types |
//! | [`service`] | the task that owns a core, its disk and its clock, and the handle to the task |
//!
//! The list of members is fixed and the same on all members. A member that lost its data directory must not return
//! under its old id, because it would break the promises that it made before.

pub mod config;
pub mod core;
mod election_timeout;
mod guard;
pub mod log_store;
pub mod log_write;
pub mod memory_log;
pub mod role;
pub mod service;
mod slog_bridge;
mod snapshots_sent;
pub mod state_machine;
pub mod transport;
pub mod wire;

pub use self::config::RaftConfig;
pub use self::log_store::has_log;
pub use self::role::{RaftRole, not_leader};
pub use self::service::{RaftHandle, RaftService};
pub use self::state_machine::StateMachine;
pub use self::transport::PeerTransport;
pub use self::wire::RaftMessage;
