//! Restores: copies of slices that this node lacks although the topology places them on it, for
//! example because they could not be rolled back with their bucket (`follow/rollback.rs`).
//! Another node sends the files of its copy as for a move, with the rollback points. The stream
//! carries the slice's mutations during the restore, since the topology names this node.
//!
//! A source copy whose newest epochs are dead is harmless: the request names the epoch applied on
//! this node, which the source copy has only after its own rollback.
//!
//! The received slice is compared with the source copy by checksum, at one epoch, before it is
//! installed.
//!
//! If no other node has the slice, or none has sent data for long, the restore is *hopeless*, and
//! the node rebuilds the slice from the source of the bucket (`follow/builds.rs`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proto::lock::lock;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, LocalIndexId, NodeId, SliceId, SliceNo};
use proto::model::index::IndexInfo;
use proto::model::topology::TopologyProvider;
use proto::rpc::api::SliceProgress;
use tokio::sync::{Semaphore, watch};

use super::incoming_move::IncomingMove;
use crate::context::NodeContext;

/// Maximum number of concurrent restores, equal to the leader's limit of moves.
const AT_ONCE: usize = 4;

/// The restores of this node; clones share the table.
#[derive(Clone)]
pub(super) struct Restores {
    pub(super) slices: Arc<Mutex<BTreeMap<SliceId, Arc<IncomingMove>>>>,
    /// Limits concurrent restores.
    turns: Arc<Semaphore>,
}

impl Default for Restores {
    fn default() -> Self {
        Self { slices: Arc::default(), turns: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl Restores {
    /// Begins to fetch slices that the node lacks from their copies on other nodes.
    pub(super) fn restore(
        &self,
        context: &NodeContext,
        changed: &watch::Sender<u64>,
        index: &IndexInfo,
        slices: &[SliceNo],
    ) {
        let mut restores = lock(&self.slices);
        for slice in slices {
            let slice = index.local_id().slice(*slice);
            restores.entry(slice).or_insert_with(|| {
                tracing::info!(%slice, "fetching a slice from another copy");
                let restore = IncomingMove::begin(
                    context,
                    slice,
                    index.bucket,
                    None,
                    changed,
                    Some(Arc::clone(&self.turns)),
                );
                let mut copies = index.topology.replicas(slice.slice).iter();
                let first = copies.find(|node| **node != context.config.node.id);
                lock(&restore.state).source = first.copied();
                restore
            });
        }
    }

    /// True while a slice of the index is being fetched from other nodes.
    pub(super) fn is_restoring(&self, index: LocalIndexId) -> bool {
        lock(&self.slices).keys().any(|slice| slice.local_index() == index)
    }

    /// Ends the restore of a slice, because it is installed.
    pub(super) fn end_restore(&self, slice: SliceId) {
        self.end_restores(|other| *other == slice);
    }

    /// Ends the restores of some slices of an index.
    pub(super) fn end_restores_of(&self, index: LocalIndexId, slices: &[SliceNo]) {
        self.end_restores(|slice| slice.local_index() == index && slices.contains(&slice.slice));
    }

    /// The slices of a bucket that no other node can send, by index.
    pub(super) fn hopeless_slices(
        &self,
        context: &NodeContext,
        bucket: BucketId,
    ) -> BTreeMap<LocalIndexId, Vec<SliceNo>> {
        let mut hopeless = BTreeMap::<_, Vec<_>>::new();
        let restores = lock(&self.slices);
        let of_bucket = restores.values().filter(|restore| restore.bucket == bucket);
        for restore in of_bucket.filter(|restore| restore.is_hopeless(context)) {
            hopeless.entry(restore.slice.local_index()).or_default().push(restore.slice.slice);
        }
        hopeless
    }

    /// The restores in progress, for heartbeats.
    pub(super) fn restore_progress(&self) -> Vec<SliceProgress> {
        let progress = |restore: &Arc<IncomingMove>| {
            let state = lock(&restore.state);
            SliceProgress {
                slice: restore.slice,
                floor: None,
                entries: 0,
                bytes: state.bytes,
                live_bytes: None,
                built_percent: None,
                seconds_left: None,
                copied_from: state.source,
                trouble: state.trouble.clone(),
            }
        };
        lock(&self.slices).values().map(progress).collect()
    }

    /// Ends the restores of slices that the catalog no longer places on this node.
    pub(super) fn end_restores_elsewhere(&self, node: NodeId, catalog: &Catalog) {
        self.end_restores(|slice| {
            let index = catalog.local_index(slice.local_index());
            !index.is_some_and(|index| index.topology.hosts(node, slice.slice))
        });
    }

    fn end_restores(&self, ends: impl Fn(&SliceId) -> bool) {
        lock(&self.slices).retain(|slice, restore| {
            let goes_on = !ends(slice);
            if !goes_on {
                drop(lock(&restore.state).copying.take());
            }
            goes_on
        });
    }
}
