//! The router's handling of epochs: which epochs each indexer can answer ([`applied_epochs`]),
//! which epochs are leased (`leases`), the topologies that tokens name (`topologies`), the choice
//! for a new scan (`choose`, with `bucket_source`) and for a transaction (`pinned`), and slices
//! that no node can answer (`reachable`).

pub mod applied_epochs;
pub(crate) mod bucket_source;
pub(crate) mod choose;
pub(crate) mod leases;
pub(crate) mod pinned;
pub(crate) mod reachable;
pub(crate) mod read_view;
pub(crate) mod topologies;
