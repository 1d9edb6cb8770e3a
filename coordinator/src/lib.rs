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
//! | [`state`] | the StateContext and its commands | none |
//! | [`planner`] | where slices go | none |
//! | [`leader`] | what the leader remembers, and its decisions: next cuts, horizon, builds that are done, moves | none |
//! | `leader::driver` | the tasks that carry these decisions out | through the seams |
//! | [`raft`] | the replicated log | in `log_store` and `service` |
//! | [`replica`] | a member's copy of the state | none |
//! | [`service`] | a member: its tasks, the calls that come in, watches, and who waits for an epoch | through the seams |
//!
//! Imports run one way: service → leader's driver → leader → state → planner; raft stands beside them, and the
//! replica joins it to the state.

pub mod config;
pub mod leader;
pub mod planner;
pub mod raft;
pub mod replica;
pub mod service;
pub mod state;

pub use config::Config;
pub use service::Coordinator;
