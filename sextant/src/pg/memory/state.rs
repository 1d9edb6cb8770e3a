//! The documents, catalog and transactions of the cluster in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, Epoch, TransactionId, TransactionPlace};
use proto::rpc::scan::UncommittedView;

use crate::access::TransactionView;

/// The documents of a bucket, by id.
pub(super) type Documents = BTreeMap<String, Bytes>;

/// The contents of the cluster in memory.
#[derive(Clone, Default)]
pub(super) struct MemoryState {
    /// True if the memory for changes of transactions is used up.
    pub(super) is_full: bool,
    pub(super) catalog: Catalog,
    pub(super) documents: BTreeMap<BucketId, Documents>,
    pub(super) history: BTreeMap<u64, BTreeMap<BucketId, Documents>>,
    pub(super) epoch: u64,
    pub(super) pins: usize,
    /// The catalog that replaces the present one when the next epoch is pinned.
    pub(super) at_pin: Option<Catalog>,
    /// The changes of open transactions, ordered by transaction and by their position in it.
    /// `None` is a removed document.
    pub(super) changes: BTreeMap<(TransactionId, TransactionPlace), (String, Option<Bytes>)>,
    /// The epoch of each document's last change.
    pub(super) changed: BTreeMap<(BucketId, String), u64>,
}

impl MemoryState {
    /// Pins the present epoch, and returns it with the catalog.
    pub(super) fn pin(&mut self) -> (Epoch, Arc<Catalog>) {
        self.catalog = self.at_pin.take().unwrap_or_else(|| self.catalog.clone());
        self.pins += 1;
        self.history.insert(self.epoch, self.documents.clone());
        (Epoch(self.epoch), Arc::new(self.catalog.clone()))
    }

    /// Returns the documents of a bucket as a transaction sees them.
    pub(super) fn view(&self, bucket: BucketId, view: TransactionView) -> Documents {
        let past = view.snapshot.filter(|epoch| epoch.0 != self.epoch);
        let all = past.map_or(&self.documents, |epoch| &self.history[&epoch.0]);
        let mut documents = all.get(&bucket).cloned().unwrap_or_default();
        let Some(UncommittedView { transaction, place }) = view.own else { return documents };
        let own = (transaction, TransactionPlace(0))..=(transaction, place);
        for (id, document) in self.changes.range(own).map(|(_, change)| change.clone()) {
            match document {
                Some(document) => documents.insert(id, document),
                None => documents.remove(&id),
            };
        }
        documents
    }
}
