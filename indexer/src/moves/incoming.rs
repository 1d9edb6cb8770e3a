//! The table of slices that are being copied to this node.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proto::lock::lock;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, LocalIndexId, MoveId, SliceId, SliceNo};
use proto::model::index::IndexInfo;
use proto::model::moves::{MovePhase, MoveProgress, MoveStage};
use proto::rpc::api::SliceProgress;
use tokio::sync::watch;

use super::incoming_move::IncomingMove;
use super::restore::Restores;
use crate::context::NodeContext;

type MovesById = BTreeMap<(LocalIndexId, MoveId), Arc<IncomingMove>>;

/// The moves to this node, and its restores; clones share the table.
#[derive(Clone)]
pub struct IncomingMoves {
    moves: Arc<Mutex<MovesById>>,
    restores: Restores,
    changed: watch::Sender<u64>,
}

impl Default for IncomingMoves {
    fn default() -> Self {
        Self {
            moves: Arc::default(),
            restores: Restores::default(),
            changed: watch::Sender::new(0),
        }
    }
}

impl IncomingMoves {
    /// Starts the moves to this node that the catalog lists, and drops all others.
    pub fn take_catalog(&self, context: &NodeContext, catalog: &Catalog) {
        let node = context.config.node.id;
        let mut moves = lock(&self.moves);
        let mut wanted = BTreeMap::new();
        for index in catalog.local_indexes() {
            let mine = index.moves.iter().filter(|m| m.to == Some(node));
            for mv in mine.filter(|m| matches!(m.stage, MoveStage::Pending | MoveStage::Catchup)) {
                wanted.insert((index.local_id(), mv.id), (index, mv));
            }
        }
        moves.retain(|key, mv| {
            let goes_on = wanted.contains_key(key);
            if !goes_on {
                drop(lock(&mv.state).copying.take());
            }
            goes_on
        });
        for (key, (index, mv)) in wanted {
            moves.entry(key).or_insert_with(|| {
                let slice = index.local_id().slice(mv.slice);
                IncomingMove::begin(context, slice, index.bucket, Some(mv.id), &self.changed, None)
            });
        }
        // An installed slice may have been dropped since, if its move was undone and begun again.
        for mv in moves.values() {
            let installed = lock(&mv.state).phase == MovePhase::Installed;
            if installed && !mv.is_slice_readable(context) {
                mv.start_copying(context);
            }
        }
        drop(moves);
        self.restores.end_restores_elsewhere(node, catalog);
        self.changed.send_modify(|count| *count += 1);
    }

    /// The slices of a bucket that are being copied to this node.
    pub fn of_bucket(&self, bucket: BucketId) -> Vec<Arc<IncomingMove>> {
        let (moves, restores) = (lock(&self.moves), lock(&self.restores.slices));
        let all = moves.values().chain(restores.values());
        all.filter(|mv| mv.bucket == bucket).cloned().collect()
    }

    /// Returns true if a slice of the bucket is copied and waits to be installed.
    pub fn has_slice_to_install(&self, bucket: BucketId) -> bool {
        self.of_bucket(bucket).iter().any(|mv| lock(&mv.state).phase == MovePhase::Copied)
    }

    /// Returns a watch that wakes when the table or the phase of a move changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The progress of the moves, for heartbeats.
    pub fn progress(&self) -> Vec<MoveProgress> {
        let progress = |((index, id), mv): (&(LocalIndexId, MoveId), &Arc<IncomingMove>)| {
            let state = lock(&mv.state);
            MoveProgress {
                index: *index,
                id: *id,
                phase: state.phase,
                bytes: state.bytes,
                bytes_total: state.bytes_total,
                bytes_per_s: state.bytes_per_s,
                trouble: state.trouble.clone(),
            }
        };
        lock(&self.moves).iter().map(progress).collect()
    }

    /// Begins to fetch slices that the node lacks from copies on other nodes.
    pub fn restore(&self, context: &NodeContext, index: &IndexInfo, slices: &[SliceNo]) {
        self.restores.restore(context, &self.changed, index, slices);
    }

    /// Returns true while a slice of an index is being fetched from other nodes.
    pub fn is_restoring(&self, index: LocalIndexId) -> bool {
        self.restores.is_restoring(index)
    }

    /// Ends the restore of a slice, because it is installed.
    pub fn end_restore(&self, slice: SliceId) {
        self.restores.end_restore(slice);
    }

    /// Ends the restores of some slices of an index.
    pub fn end_restores_of(&self, index: LocalIndexId, slices: &[SliceNo]) {
        self.restores.end_restores_of(index, slices);
    }

    /// Returns the slices of a bucket that no other node can send, by index.
    pub fn hopeless_slices(
        &self,
        context: &NodeContext,
        bucket: BucketId,
    ) -> BTreeMap<LocalIndexId, Vec<SliceNo>> {
        self.restores.hopeless_slices(context, bucket)
    }

    /// The progress of the restores, for heartbeats.
    pub fn restore_progress(&self) -> Vec<SliceProgress> {
        self.restores.restore_progress()
    }
}
