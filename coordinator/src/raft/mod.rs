//! The replicated log: tikv's `raft` crate with a log of our own, and a service around it.
//!
//! | file | what it is |
//! |---|---|
//! | [`config`], [`role`], [`state_machine`], [`transport`] | a member's settings and place, and what it works with |
//! | [`core`] | the ready loop: inputs in, outputs out, no I/O, no time, no threads |
//! | [`log_write`] | changes of the log |
//! | [`memory_log`] | the log as Raft reads it |
//! | [`log_store`] | the log on disk |
//! | `guard` | which messages a core may be given |
//! | [`wire`] | messages in our own types |
//! | [`service`] | the task that owns a core, its disk and its clock, and the handle to it |
//!
//! Members are a fixed list, given to all of them alike. A member that lost its data directory must
//! not come back under its old name: what it had promised would be forgotten.

pub mod config;
pub mod core;
mod guard;
pub mod log_store;
pub mod log_write;
pub mod memory_log;
pub mod role;
pub mod service;
mod slog_bridge;
pub mod state_machine;
pub mod transport;
pub mod wire;

pub use self::config::RaftConfig;
pub use self::role::{Role, not_leader};
pub use self::service::{RaftHandle, RaftService};
pub use self::state_machine::StateMachine;
pub use self::transport::PeerTransport;
pub use self::wire::RaftMessage;
