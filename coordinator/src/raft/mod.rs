//! The replicated log: tikv's `raft` crate, a log store of our own, and a service around both.
//!
//! | file | contents |
//! |---|---|
//! | [`config`], [`role`], [`state_machine`], [`transport`] | a member's settings, its role, and the traits that it works with |
//! | [`core`] | one member without I/O, time and threads: inputs in, outputs out |
//! | `ready` | the loop that processes the inputs |
//! | [`members`], `change`, `removal`, `unsettled` | the members of the group, how they change, and when a removal is safe |
//! | `snapshots` | the member's own snapshots, and those of the leader |
//! | [`log_write`] | changes of the log |
//! | [`memory_log`] | the log in memory, from which Raft reads |
//! | [`log_store`] | the log on disk |
//! | `guard` | validation of incoming messages |
//! | `election_timeout`, `snapshots_sent` | seeded election timeouts; retries of snapshots |
//! | [`wire`] | messages in our own types |
//! | [`service`], `handle` | the task that owns a core, its disk and its clock, and the handle to the task |
//!
//! A member that lost its data directory must not return under its old id, because it has
//! forgotten its votes and acknowledged entries. Such a member is removed, and a member with
//! another id is added.

mod change;
pub mod config;
pub mod core;
mod election_timeout;
mod guard;
mod handle;
pub mod log_store;
pub mod log_write;
pub mod members;
pub mod memory_log;
mod ready;
mod removal;
pub mod role;
pub mod service;
mod slog_bridge;
mod snapshots;
mod snapshots_sent;
pub mod state_machine;
pub mod transport;
mod unsettled_removal;
pub mod wire;

pub use self::config::RaftConfig;
pub use self::handle::RaftHandle;
pub use self::log_store::has_log;
pub use self::members::{MemberChange, Members, removed_error};
pub use self::role::{RaftRole, not_leader};
pub use self::service::RaftService;
pub use self::state_machine::StateMachine;
pub use self::transport::PeerTransport;
pub use self::wire::{RaftMessage, sender_of_message};
