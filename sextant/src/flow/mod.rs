//! Limits of clients: the resources of a process that one client, one user or one address may use,
//! so that others are not blocked.
//!
//! Each limit is one setting ([`ClientLimits`]). The refusals of each limit are counted
//! ([`Refusals`]), and the error of a refused client contains the name of the setting. A *place*
//! is the permission for one unit of a limit, such as one session; it is given back when its
//! value is dropped. No caller waits for a place while it has a resource of a projector or a
//! coordinator, and each wait has a time limit.

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
pub use calls::{Calls, IdleTimer, OpenCall};
pub use definitions::{DefinitionPlace, Definitions};
pub use limits::ClientLimits;
pub use memory::{MemoryBudget, ReservedMemory};
pub use process::ClientCapacity;
pub use read_pace::{
    CONNECTION_WINDOW_BYTES, HEADER_LIST_BYTES_MAX, ReadPace, STREAM_WINDOW_BYTES,
};
pub use refusals::{Limit, Refusals};
pub use stall::StallTimer;
pub use stop::{Stop, StopWatch};
pub use users::{SessionPlace, StatementPlace, UserPlaces, Work, is_administrator, reserved};
