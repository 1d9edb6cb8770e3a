//! Which slices come to this node.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, IndexId, MoveId, SliceId};
use proto::model::moves::{MovePhase, MoveProgress, MoveStage};
use tokio::sync::{Semaphore, watch};

use super::{IncomingMove, lock, restore};
use crate::follower::Shared;

type ById = BTreeMap<(IndexId, MoveId), Arc<IncomingMove>>;

/// The moves to this node.
#[derive(Clone)]
pub struct Incoming {
    pub(super) moves: Arc<Mutex<ById>>,
    /// What was lost here and is fetched from other copies.
    pub(super) restores: Arc<Mutex<BTreeMap<SliceId, Arc<IncomingMove>>>>,
    /// Who has one copies a lost slice.
    pub(super) turns: Arc<Semaphore>,
    pub(super) changed: watch::Sender<u64>,
}

impl Default for Incoming {
    fn default() -> Self {
        Self {
            moves: Arc::default(),
            restores: Arc::default(),
            turns: Arc::new(Semaphore::new(restore::AT_ONCE)),
            changed: watch::Sender::new(0),
        }
    }
}

impl Incoming {
    /// Takes up the moves that the catalog names, and drops the others.
    pub fn take_catalog(&self, shared: &Shared, catalog: &Catalog) {
        let node = shared.config.node.id;
        let mut moves = lock(&self.moves);
        let mut wanted = BTreeMap::new();
        for index in catalog.indexes.values() {
            let mine = index.moves.iter().filter(|m| m.to == Some(node));
            for mv in mine.filter(|m| matches!(m.stage, MoveStage::Pending | MoveStage::Catchup)) {
                wanted.insert((index.id, mv.id), (index, mv));
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
                let slice =
                    SliceId { index: index.id, generation: index.generation, slice: mv.slice };
                IncomingMove::begin(shared, slice, index.bucket, Some(mv.id))
            });
        }
        // One that had arrived may have been dropped since: the move was undone and begun anew.
        for mv in moves.values() {
            let installed = lock(&mv.state).phase == MovePhase::Installed;
            if installed && !mv.is_here(shared) {
                mv.start_copying(shared);
            }
        }
        drop(moves);
        self.end_restores_elsewhere(node, catalog);
        self.changed.send_modify(|count| *count += 1);
    }

    /// What comes of a bucket's slices.
    pub fn of_bucket(&self, bucket: BucketId) -> Vec<Arc<IncomingMove>> {
        let (moves, restores) = (lock(&self.moves), lock(&self.restores));
        let all = moves.values().chain(restores.values());
        all.filter(|mv| mv.bucket == bucket).cloned().collect()
    }

    /// Does one of a bucket's slices wait to be installed?
    pub fn waits(&self, bucket: BucketId) -> bool {
        self.of_bucket(bucket).iter().any(|mv| lock(&mv.state).phase == MovePhase::Copied)
    }

    /// Tells of each change.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// What is told of them in heartbeats.
    pub fn progress(&self) -> Vec<MoveProgress> {
        let progress = |((index, id), mv): (&(IndexId, MoveId), &Arc<IncomingMove>)| {
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
}
