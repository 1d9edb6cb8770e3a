//! The sources of the values that the HTTP port shows.

use std::sync::{Arc, Weak};

use crate::backend::{ClusterBackend, Counters};

/// The sources of `/status` and `/metrics`.
#[derive(Clone)]
pub struct Observed {
    /// The router of this process and the other services.
    pub backend: Arc<ClusterBackend>,
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
