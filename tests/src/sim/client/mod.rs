//! The simulated client: its connections, its workload, and the writes and reads of documents in it.

pub(super) mod reads;
pub(super) mod session;
pub mod workload;
pub(super) mod writes;
