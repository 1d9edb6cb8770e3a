//! The coordinator: what the cluster has agreed on, and what is decided from it.
//!
//! ```text
//!  CoordinatorApi ──▶ service ──▶ raft (log on disk, majority) ──▶ replica: StateContext
//!       ▲   ▲            │                                            │
//!       │   └─ watch ◀───┼────────────────────────────────────────────┤
//!       │                ▼                                            ▼
//!   SYNC, heartbeats ─▶ leader's memory ──▶ plan ──▶ lead: proposes what the plan says
//! ```
//!
//! | module | what it is | I/O |
//! |---|---|---|
//! | `state` | the StateContext and its commands | none |
//! | `planner` | where slices go | none |
//! | `leader` | what the leader remembers, and its decisions: next cuts, horizon, builds that are done, moves | none |
//! | `leader::driver` | the tasks that carry these decisions out | through the seams |
//! | `raft` | the replicated log | in `log_store` and `service` |
//! | `replica` | a member's copy of the state | none |
//! | `service` | a member: its tasks, the calls that come in, watches, and who waits for an epoch | through the seams |
//!
//! Imports run one way: service → leader's driver → leader → state → planner; raft stands beside them, and the
//! replica joins it to the state.

mod config;
mod leader;
mod planner;
mod raft;
mod replica;
mod service;
mod state;

pub use config::Config;
pub use leader::MoveSettings;
pub use raft::RaftConfig;
pub use service::Coordinator;

/// The cores by themselves, for simulations that step them.
#[cfg(feature = "testing")]
pub mod testing {
    pub use crate::leader::{Asked, Check, Leader, Plan};
    pub use crate::raft::core::{Output, RaftCore};
    pub use crate::raft::log_store::LogStore;
    pub use crate::raft::log_write::LogWrite;
    pub use crate::raft::memory_log::MemoryLog;
    pub use crate::raft::state_machine::StateMachine;
    pub use crate::raft::wire::{LogEntry, MessageKind, RaftMessage};
    pub use crate::replica::{Machine, Replica, encode_record};
}
