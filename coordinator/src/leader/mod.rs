//! What the leader keeps in its own memory, and what it decides from that and the StateContext.
//!
//! Current positions, heartbeats and leases change many times a second and are worth nothing after a
//! change of leader: they are never replicated. A [`Leader`] begins empty with each term and hears
//! everything again within a heartbeat. It does no I/O: [`Leader::plan`] says what to propose now and
//! when to look again, and the service does it.

mod admission;
pub mod bootstrap;
mod builds;
mod check;
pub(crate) mod driver;
mod heartbeats;
pub mod horizon;
mod memory;
mod move_settings;
mod moves;
mod plan;
mod promotions;
mod repair;
mod rollback;
mod sources;
pub mod stability;

pub use check::{Check, Checksum};
pub use memory::Leader;
pub use move_settings::MoveSettings;
pub use plan::Plan;
#[cfg(feature = "testing")]
pub use sources::Asked;

#[cfg(test)]
mod fault_tests;
