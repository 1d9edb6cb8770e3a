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
//! | [`raft`] | the replicated log | in `log_store` and `service` |
//! | [`replica`] | a member's copy of the state | none |
//! | [`watch`] | the catalog and the epochs as a stream | none |
//! | `peers`, `lead`, `covering`, [`service`] | the tasks of a member, and who waits for an epoch | through the seams |

mod covering;
mod lead;
pub mod leader;
mod peers;
pub mod planner;
pub mod raft;
pub mod replica;
pub mod service;
pub mod state;
pub mod watch;

pub use service::{Config, Coordinator};
