//! The router: knows the topology and nothing else.
//!
//! Inward ([`Inward`]) it says which slice a document's key-versions belong to. Outward ([`Router`]) it
//! runs scans: fixes the epoch, then the base topology, scatters the scan over the shards, and merges
//! what comes back. It serves from its cached catalog, and from what the indexers themselves say they
//! have applied, also when no coordinator answers.

pub mod applied;
mod inward;
mod leases;
mod scan;
mod service;
mod topologies;

pub use inward::Inward;
pub use leases::EpochLease;
pub use scan::{ScanBatch, ScanStream, virtual_scan};
pub use service::{Config, Router};
