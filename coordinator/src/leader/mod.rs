//! The leader's memory, and the plans that it makes from its memory and the StateContext.
//!
//! Positions, heartbeats and leases change many times a second and are useless after a change of
//! leader, so they are never replicated. A [`Leader`] starts empty with each term and receives
//! everything again within one heartbeat interval. It does no I/O: [`Leader::plan`] returns what
//! to propose now and when to plan again, and the `driver` carries the plan out.
//!
//! The folders have the names of the families of commands; each folder plans for its family.
//!
//! | folder | plans |
//! |---|---|
//! | `generations` | builds that are complete, growth and splits, retired generations |
//! | `versions` | versions of data sets: building, switching to them, dropping them |
//! | `moves` | the stages of moves, repairs |
//! | `nodes` | heartbeats, the beginning of a term, lost slices, coordinators that are older copies of themselves |
//! | `copies` | copies of buckets; commits over several buckets or owners, which no epoch may split |
//! | `epochs` | the next epochs and their horizons, leases, moments, rollbacks |

mod check_timer;
mod copies;
pub(crate) mod driver;
pub mod epochs;
mod generations;
mod memory;
mod moves;
pub mod nodes;
mod plan;
mod versions;

pub use copies::check::{Checksum, CopyCheck};
#[cfg(feature = "testing")]
pub use epochs::sources::HistoryQuery;
pub use memory::Leader;
pub use moves::settings::MoveSettings;
pub use plan::Plan;

#[cfg(test)]
mod fault_tests;
