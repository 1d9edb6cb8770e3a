//! Limits of clients: the resources of a process that one client, one user or one address may use,
//! so that others are not blocked.
//!
//! Each limit is one setting ([`ClientLimits`]), counts its refusals ([`Refusals`]), and is named
//! by the error of a refused client. A place is a value that is released on drop. No caller waits
//! for a place while it holds a resource of a projector or a coordinator, and each wait has a time
//! limit.

mod addresses;
mod calls;
mod definitions;
mod limits;
mod memory;
mod process;
mod read_pace;
mod refusals;
mod stall;
mod stop;
mod users;

pub use addresses::{AddressPlace, Addresses};
pub use calls::{Calls, OpenCall, Quiet};
pub use definitions::{DefinitionPlace, Definitions};
pub use limits::ClientLimits;
pub use memory::{Room, RoomBudget};
pub use process::Flow;
pub use read_pace::{
    CONNECTION_WINDOW_BYTES, HEADER_LIST_BYTES_MAX, ReadPace, STREAM_WINDOW_BYTES,
};
pub use refusals::{Limit, Refusals};
pub use stall::Stall;
pub use stop::{Stop, StopWatch};
pub use users::{SessionPlace, StatementPlace, UserPlaces, Work, is_administrator, reserved};
