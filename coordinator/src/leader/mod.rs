//! The leader's memory, and the plans that it makes from its memory and the StateContext.
//!
//! Positions, heartbeats and leases change many times a second and are useless after a change of leader, so they are
//! never replicated. A [`Leader`] starts empty with each term and receives everything again within one heartbeat
//! interval. It does no I/O: [`Leader::plan`] returns what to propose now and when to plan again, and the `driver`
//! carries the plan out.

mod admission;
pub mod bootstrap;
mod builds;
mod check;
mod copies;
pub(crate) mod driver;
mod durability;
mod growth;
mod heartbeats;
mod holds;
pub mod horizon;
mod joint;
mod leases;
mod looks;
mod lost;
mod memory;
pub mod moment_round;
mod move_settings;
mod moves;
mod old_copy;
mod plan;
mod promotions;
mod pushed;
mod repair;
mod retired;
mod rollback;
mod sources;
mod splits;
pub mod stability;
mod version_waits;
mod versions;
mod vouched;

pub use check::{Checksum, CopyCheck};
pub use memory::Leader;
pub use move_settings::MoveSettings;
pub use plan::Plan;
#[cfg(feature = "testing")]
pub use sources::HistoryQuery;

#[cfg(test)]
mod fault_tests;
