//! The simulated cluster: its processes, their disks, the network between them, and the connections
//! of clients.

pub mod client;
pub(super) mod disks;
pub mod hosts;
pub mod net;
pub(super) mod purges;
