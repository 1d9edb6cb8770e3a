//! The coordinator: the replicated StateContext, and the decisions that its leader makes.
//!
//! ```text
//!  CoordinatorApi ──▶ service ──▶ raft (log on disk, majority) ──▶ replica: StateContext
//!       ▲   ▲            │                                            │
//!       │   └─ watch ◀───┼────────────────────────────────────────────┤
//!       │                ▼                                            ▼
//!   SYNC, heartbeats ─▶ leader's memory ──▶ plan ──▶ driver: proposes the plan's commands
//! ```
//!
//! | module | contents | I/O |
//! |---|---|---|
//! | `state` | the StateContext and its commands | none |
//! | `planner` | the placement of slices | none |
//! | `leader` | the leader's memory, and its decisions: next cuts, horizon, finished builds, moves | none |
//! | `leader::driver` | the tasks that carry out these decisions | through the seams |
//! | `raft` | the replicated log | in `log_store` and `service` |
//! | `replica` | a member's copy of the state | none |
//! | `service` | a member: its tasks, its incoming calls, watches, waiters for an epoch | through the seams |
//!
//! Imports run one way: service → leader's driver → leader → state → planner. Raft stands beside them; the replica
//! joins Raft to the state.

mod config;
#[cfg(feature = "testing")]
pub mod fuzz;
mod leader;
mod planner;
mod raft;
mod replica;
mod service;
mod state;

pub use config::Config;
pub use leader::MoveSettings;
pub use raft::{RaftConfig, has_log, removed_error, sender_of_message};
pub use service::Coordinator;
pub use state::check_reserve;

/// The modules without I/O, for simulations that step them directly.
#[cfg(feature = "testing")]
pub mod testing {
    pub use crate::fuzz;
    pub use crate::leader::{CopyCheck, HistoryQuery, Leader, Plan};
    pub use crate::raft::core::{AppliedChange, Output, RaftCore};
    pub use crate::raft::log_store::LogStore;
    pub use crate::raft::log_write::LogWrite;
    pub use crate::raft::members::{MemberChange, Members};
    pub use crate::raft::memory_log::MemoryLog;
    pub use crate::raft::state_machine::StateMachine;
    pub use crate::raft::wire::{EntryKind, LogEntry, LogSnapshot, MessageKind, RaftMessage};
    pub use crate::replica::{Machine, Replica, encode_record};
    pub use crate::state::Decisions;
}
