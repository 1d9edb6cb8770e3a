//! The simulated client: its connections, its workload, and the document reads and writes of the
//! workload.

pub(super) mod reads;
pub(super) mod session;
pub mod workload;
pub(super) mod writes;
