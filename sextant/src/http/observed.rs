//! The sources of what the HTTP port shows.

use std::sync::{Arc, Weak};

use proto::rpc::api::Directory;

use crate::backend::Counters;

/// The sources of `/status` and `/metrics`.
#[derive(Clone)]
pub struct Observed {
    /// The router of this process.
    pub router: Arc<router::Router>,
    /// The other services.
    pub directory: Arc<dyn Directory>,
    /// The indexers of this process. The references are weak, so that the port keeps no stopped indexer alive.
    pub indexers: Vec<Weak<indexer::Indexer>>,
    /// Counters of the SQL and gRPC ports.
    pub counters: Arc<Counters>,
}

impl Observed {
    pub(super) fn running(&self) -> impl Iterator<Item = Arc<indexer::Indexer>> {
        self.indexers.iter().filter_map(Weak::upgrade)
    }
}
