//! Slices that this node should have and has not: one that could not go back with its bucket was dropped
//! (`follower/rollback.rs`). Another copy of it, which could, gives its files as it would for a move, and its
//! reach with them; the stream feeds the slice here all the while, since the topology names this node.
//!
//! A copy that stands in dead epochs does no harm: what is installed are its files up to the epoch that is applied
//! here, and it is asked for that epoch, which it has only when it has gone back itself.
//!
//! What has come is compared with what the copy shows, by checksum and at one epoch, before it is installed.
//!
//! Where no copy has the slice, or none gives it for long, the restore is *hopeless*: then the node builds it from the
//! source (`follower/builds.rs`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, Generation, IndexId, NodeId, SliceId, SliceNo};
use proto::model::index::IndexInfo;
use proto::model::topology::TopologyProvider;
use proto::rpc::api::SliceProgress;
use tokio::sync::{Semaphore, watch};

use super::incoming_move::{IncomingMove, lock};
use crate::context::NodeContext;

/// Lost slices that are copied at a time: of moves, too, the leader begins a few only.
const AT_ONCE: usize = 4;

/// The lost slices of this node that are fetched from other copies.
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
    /// Fetches slices that are not here from their other copies.
    pub(super) fn restore(
        &self,
        context: &NodeContext,
        changed: &watch::Sender<u64>,
        index: &IndexInfo,
        slices: &[SliceNo],
    ) {
        let mut restores = lock(&self.slices);
        for slice in slices {
            let slice = SliceId { index: index.id, generation: index.generation, slice: *slice };
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

    /// Is a slice of an index fetched?
    pub(super) fn is_restoring(&self, index: IndexId, generation: Generation) -> bool {
        let of_index = |slice: &SliceId| (slice.index, slice.generation) == (index, generation);
        lock(&self.slices).keys().any(of_index)
    }

    /// A slice is here again.
    pub(super) fn restored(&self, slice: SliceId) {
        self.end_restores(|other| *other == slice);
    }

    /// Fetches some slices of an index no more.
    pub(super) fn end_restores_of(&self, index: IndexId, slices: &[SliceNo]) {
        self.end_restores(|slice| slice.index == index && slices.contains(&slice.slice));
    }

    /// The slices of a bucket that are not to be had, by index.
    pub(super) fn hopeless(
        &self,
        context: &NodeContext,
        bucket: BucketId,
    ) -> BTreeMap<IndexId, Vec<SliceNo>> {
        let mut hopeless = BTreeMap::<_, Vec<_>>::new();
        let restores = lock(&self.slices);
        let of_bucket = restores.values().filter(|restore| restore.bucket == bucket);
        for restore in of_bucket.filter(|restore| restore.is_hopeless(context)) {
            hopeless.entry(restore.slice.index).or_default().push(restore.slice.slice);
        }
        hopeless
    }

    /// What is told of them in heartbeats.
    pub(super) fn restoring(&self) -> Vec<SliceProgress> {
        let progress = |restore: &Arc<IncomingMove>| {
            let state = lock(&restore.state);
            SliceProgress {
                slice: restore.slice,
                floor: None,
                entries: 0,
                bytes: state.bytes,
                copied_from: state.source,
                trouble: state.trouble.clone(),
            }
        };
        lock(&self.slices).values().map(progress).collect()
    }

    /// The catalog has them elsewhere, or no more.
    pub(super) fn end_restores_elsewhere(&self, node: NodeId, catalog: &Catalog) {
        self.end_restores(|slice| {
            let index = catalog.indexes.get(&slice.index);
            !index.is_some_and(|index| {
                index.generation == slice.generation && index.topology.hosts(node, slice.slice)
            })
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
