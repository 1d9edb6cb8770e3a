//! The router: knows the topology and nothing else.
//!
//! Inward ([`SliceRouter`]) it says which slice a document's key-versions belong to. Outward ([`Router`]) it
//! runs scans: fixes the epoch, then the base topology, scatters the scan over the shards, and merges
//! what comes back. It serves from its cached catalog, and from what the indexers themselves say they
//! have applied, also when no coordinator answers.

mod catalog_watch;
mod config;
mod context;
pub mod epochs;
mod scan;
mod service;
mod slice_router;

pub use config::Config;
pub use epochs::leases::EpochLease;
pub use scan::stream::{ScanBatch, ScanStream};
pub use scan::virtual_scan;
pub use service::Router;
pub use slice_router::SliceRouter;
