//! Determines from the catalog which indexes of a bucket a stream carries for its node.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::expr::Fields;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, LocalIndexId, NodeId};
use proto::model::index::{IndexInfo, IndexState};
use proto::rpc::routing::MutationRouter;
use tokio::sync::watch;

/// A watch of the newest catalog.
type CatalogWatch = watch::Receiver<Option<Arc<Catalog>>>;

/// The indexes that a stream carries, as of one catalog.
pub(super) struct StreamIndexes {
    bucket: BucketId,
    node: NodeId,
    router: Arc<dyn MutationRouter>,
    /// The version number (`cas`) of the catalog from which `indexes` were taken.
    catalog_cas: u64,
    indexes: BTreeMap<LocalIndexId, Arc<IndexInfo>>,
    /// The fields that these indexes read.
    fields: Arc<Fields>,
}

/// The indexes that join and leave a stream between two catalogs.
pub(super) struct IndexChanges {
    pub left: Vec<LocalIndexId>,
    pub joined: Vec<Arc<IndexInfo>>,
}

impl StreamIndexes {
    /// Creates an empty set of indexes for a bucket and a node.
    pub fn new(bucket: BucketId, node: NodeId, router: Arc<dyn MutationRouter>) -> Self {
        let (indexes, fields) = (BTreeMap::new(), Arc::default());
        Self { bucket, node, router, catalog_cas: 0, indexes, fields }
    }

    /// Returns all indexes of the stream, in the order of their ids.
    pub fn all(&self) -> Vec<Arc<IndexInfo>> {
        self.indexes.values().cloned().collect()
    }

    /// Returns the fields that the indexes read.
    pub fn fields(&self) -> Arc<Fields> {
        Arc::clone(&self.fields)
    }

    /// Returns true if a newer catalog exists than the one from which the indexes were taken.
    pub fn is_older_than(&self, catalog: &CatalogWatch) -> bool {
        catalog.borrow().as_ref().is_some_and(|catalog| catalog.cas != self.catalog_cas)
    }

    /// Replaces the indexes by those of the newest catalog; returns the changes.
    pub fn follow(&mut self, catalog: &mut CatalogWatch) -> IndexChanges {
        let catalog = catalog.borrow_and_update().clone().unwrap_or_default();
        self.catalog_cas = catalog.cas;
        let is_wanted = |index: &&Arc<IndexInfo>| {
            index.bucket == self.bucket
                && index.state != IndexState::Pending
                && self.router.concerns(self.node, index)
        };
        let wanted = catalog.local_indexes().filter(is_wanted);
        let wanted: BTreeMap<_, _> =
            wanted.map(|index| (index.local_id(), Arc::clone(index))).collect();
        let left = self.indexes.keys().filter(|index| !wanted.contains_key(index));
        // A change of the state alone does not change the frames.
        let is_new = |(id, index): &(&LocalIndexId, &Arc<IndexInfo>)| {
            self.indexes.get(id).is_none_or(|before| {
                (&before.topology, &before.moves) != (&index.topology, &index.moves)
            })
        };
        let joined = wanted.iter().filter(is_new).map(|(_, index)| Arc::clone(index));
        let changes = IndexChanges { left: left.copied().collect(), joined: joined.collect() };
        let mut fields = Fields::default();
        wanted.values().for_each(|index| fields.add_all(index.spec.fields()));
        (self.indexes, self.fields) = (wanted, Arc::new(fields));
        changes
    }
}
