//! The router: routes mutations to slices, and scans to the nodes that have the slices.
//!
//! [`SliceRouter`] maps the key-versions of a document to slices. [`Router`] runs scans: it
//! chooses the epoch, then the base topology, scatters the scan over the shards, and merges their
//! rows. The router uses its cached catalog and the reports of the indexers, so that scans also
//! run when no coordinator answers. With a data directory ([`RouterData`]), scans run without a
//! coordinator after a restart too.

mod busy;
mod catalog_watch;
mod config;
mod context;
pub mod epochs;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod hedging;
mod knowledge;
mod offline;
mod scan;
mod service;
mod slice_router;

pub use config::Config;
pub use epochs::pinned::PinnedEpoch;
pub use hedging::HedgingStatus;
pub use knowledge::Knowledge;
pub use offline::RouterData;
pub use scan::stream::{ScanBatch, ScanStream};
pub use scan::token::{Token, VirtualScan};
pub use scan::virtual_scan;
pub use service::Router;
pub use slice_router::SliceRouter;
