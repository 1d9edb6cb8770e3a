//! What the HTTP port shows.

use std::sync::{Arc, Weak};

use proto::rpc::api::Directory;

use crate::backend::Counters;

/// What the port tells of.
#[derive(Clone)]
pub struct Observed {
    /// The router of this process.
    pub router: Arc<router::Router>,
    /// The other services.
    pub directory: Arc<dyn Directory>,
    /// The indexers of this process, as long as they run: the port keeps none of them alive.
    pub indexers: Vec<Weak<indexer::Indexer>>,
    /// What the SQL and gRPC ports count.
    pub counters: Arc<Counters>,
}

impl Observed {
    pub(super) fn running(&self) -> impl Iterator<Item = Arc<indexer::Indexer>> {
        self.indexers.iter().filter_map(Weak::upgrade)
    }
}
