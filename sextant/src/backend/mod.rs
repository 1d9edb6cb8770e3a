//! The implementation of the cluster for the ports of a process: it calls the services, retries,
//! and counts.

mod build_wait;
mod cluster_backend;
mod counters;
mod drain_wait;
mod keep_alive;
mod pushes;
mod samples;
mod source_calls;
mod transactions;

pub use cluster_backend::ClusterBackend;
pub use counters::Counters;
pub use samples::Samples;
