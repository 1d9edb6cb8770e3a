//! What needs several of the services at once: the simulation with its faults, the model that answers
//! are compared with, the cores without I/O, the judge of the slice store, the cases of virtual scans,
//! chaos over real processes, and what the tests share to start clusters and to talk to them.

pub mod bench;
pub mod chaos;
#[cfg(feature = "simulation")]
pub mod cores;
pub mod harness;
#[cfg(feature = "simulation")]
pub mod layers;
pub mod model;
#[cfg(feature = "simulation")]
pub mod raft;
#[cfg(feature = "simulation")]
pub mod sim;
#[cfg(feature = "simulation")]
pub mod slice_store;
#[cfg(feature = "simulation")]
pub mod vscan;
