//! What needs several of the services at once: the simulation with its faults, the model that answers
//! are compared with, the cores without I/O, the judge of the slice store, the cases of virtual scans,
//! chaos over real processes, and what the tests share to start clusters and to talk to them.

pub mod bench;
pub mod chaos;
pub mod cores;
pub mod harness;
pub mod layers;
pub mod model;
pub mod raft;
pub mod sim;
pub mod slice_store;
pub mod vscan;
