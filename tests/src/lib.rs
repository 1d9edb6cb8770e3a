//! Tests that need several services at once.
//!
//! | module | contents |
//! |---|---|
//! | `sim` | the full stack in a simulation, with faults |
//! | `cores` | all decisions, without I/O |
//! | `fuzz` | random changes of good input for each decoder |
//! | `growth` | the traffic of the coordinators in clusters of many nodes |
//! | `slice_store`, `raft`, `vscan` | the storage engine, Raft and virtual scans beside models |
//! | `model` | a model of documents, indexes and scans that shares no code with the product |
//! | `chaos` | faults over real processes |
//! | `bench` | benchmarks |
//! | `history` | a judge of recorded histories of transactions, that shares no code with the product |
//! | `hostile` | clients that attack a running node |
//! | `workloads` | transactions of many clients, with the reads of their clients |
//! | `harness` | clusters and clients for tests |

pub mod bench;
pub mod chaos;
#[cfg(feature = "simulation")]
pub mod cores;
#[cfg(feature = "fuzzing")]
pub mod fuzz;
#[cfg(feature = "simulation")]
pub mod growth;
pub mod harness;
pub mod history;
pub mod hostile;
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
pub mod workloads;
