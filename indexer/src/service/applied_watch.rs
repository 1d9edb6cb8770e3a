//! Streams of reports about a node's applied epochs and slices, to which routers subscribe.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, Epoch, LocalIndexId, NodeId, SliceId};
use proto::rpc::scan::AppliedReport;
use storage::{SliceStore, StorageEngine, StoredIndex};
use tokio::sync::watch;

/// The stream of reports for one router. The first report has all applied epochs and slices,
/// later ones only changes.
pub(super) struct AppliedWatch {
    pub(super) store: Arc<StorageEngine>,
    pub(super) catalog: Arc<ArcSwap<Catalog>>,
    pub(super) node: NodeId,
    pub(super) changed: watch::Receiver<u64>,
    pub(super) slices: watch::Receiver<u64>,
    pub(super) told: BTreeMap<BucketId, Epoch>,
    pub(super) first: bool,
}

impl AppliedWatch {
    /// Waits for changes and returns the next report; `None` when the node stops.
    pub(super) async fn next(&mut self) -> Option<AppliedReport> {
        if !self.first {
            self.changed.changed().await.ok()?;
        }
        let slices_changed = self.slices.has_changed().unwrap_or(false) || self.first;
        self.first = false;
        self.slices.mark_unchanged();
        let mut applied = Vec::new();
        let catalog = self.catalog.load_full();
        for mark in self.store.applied() {
            // After a rollback the rollback point lacks surviving mutations, until they are applied again.
            let bucket = catalog.buckets.get(&mark.bucket);
            if bucket.is_some_and(|b| b.readable_from().is_some_and(|from| mark.epoch < from)) {
                continue;
            }
            if self.told.insert(mark.bucket, mark.epoch) != Some(mark.epoch) {
                applied.push((mark.bucket, mark.epoch));
            }
        }
        let readable = slices_changed.then(|| readable_slices(&self.store));
        let rebuilt = if slices_changed { rebuilt_slices(&self.store) } else { Vec::new() };
        Some(AppliedReport { node: self.node, applied, readable, rebuilt })
    }
}

/// Returns the slices that a node is rebuilding from the source.
fn rebuilt_slices(store: &StorageEngine) -> Vec<SliceId> {
    let slices = |(index, _): &(LocalIndexId, BucketId)| {
        let slices = store.rebuilt_slices(*index).into_iter();
        slices.map(|slice| index.slice(slice)).collect::<Vec<_>>()
    };
    store.rebuilds().iter().flat_map(slices).collect()
}

/// Returns the readable slices of a node, each with its floor (the oldest epoch at which it can
/// be read).
fn readable_slices(store: &StorageEngine) -> Vec<(SliceId, Epoch)> {
    let mut readable = Vec::new();
    for StoredIndex { info, slices, .. } in store.indexes().iter().filter(|s| s.floor.is_some()) {
        for (slice, floor) in slices {
            readable.push((info.local_id().slice(*slice), *floor));
        }
    }
    readable
}
