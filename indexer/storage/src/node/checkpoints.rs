//! Checkpoints of the log: up to where the log can be released, and how the node manifest records
//! that.
//!
//! # Invariant
//!
//! If an index manifest has a floor, the node manifest on disk has a mark of the index's bucket.
//! Without a mark, and without the log, the epoch of the fragments would be unknown, and the stream
//! of mutations would begin at the wrong place. So `name_bucket` (`node/name_bucket.rs`) is called
//! before the first slice of a bucket becomes readable.
//!
//! # Skipped epochs
//!
//! A bucket that is rolled back to zero drops its indexes; nothing is truncated, and its mark is
//! kept. The next epoch skips all earlier epochs, including the epoch of the mark. The mark moves
//! on when that epoch is in fragments. Until then the log has the epoch, because it is newer than
//! the mark, and a replay of it finds the skipped epochs again. So they enter the node manifest
//! only once no mark is among them. Epochs that a rollback has truncated are in the manifest at
//! once: their marks are rolled back with them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use proto::lock::lock;
use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, LocalIndexId};

use crate::file_id::FileId;
use crate::log::lsn::Lsn;
use crate::manifest::node_manifest::{DeadEpochs, NodeManifest};

/// Checkpoints of the log, in log order.
#[derive(Default)]
pub struct LogCheckpoints {
    /// LSNs with the newest epoch of each bucket before that LSN, oldest first.
    pub checkpoints: VecDeque<(Lsn, Vec<EpochMark>)>,
    /// Marks of the last node manifest.
    pub marks: Vec<EpochMark>,
    /// Buckets with a mark in the node manifest on disk.
    pub named: BTreeSet<BucketId>,
    /// The LSN before which the log may be released.
    pub log_from: Lsn,
    /// Epochs that rollbacks have undone in all indexes, except those in `skipped`.
    pub dead: Arc<Mutex<Vec<DeadEpochs>>>,
    /// Epochs that an epoch in the log has skipped.
    pub skipped: Vec<DeadEpochs>,
}

impl LogCheckpoints {
    /// Replaces the marks of a bucket above the epoch that it is rolled back to.
    pub fn roll_back_to(&mut self, mark: &EpochMark) {
        let of_checkpoints = self.checkpoints.iter_mut().flat_map(|(_, marks)| marks);
        for known in self.marks.iter_mut().chain(of_checkpoints) {
            if known.bucket == mark.bucket && known.epoch > mark.epoch {
                *known = mark.clone();
            }
        }
    }

    /// Returns the current node manifest.
    pub fn node_manifest(
        &self,
        next_file: FileId,
        index_numbers: BTreeMap<LocalIndexId, u64>,
    ) -> NodeManifest {
        let (marks, mut dead) = (self.marks.clone(), lock(&self.dead).clone());
        for skipped in &self.skipped {
            let has_mark = marks.iter().any(|mark| skipped.contains(mark.bucket, mark.epoch));
            if !has_mark && !dead.contains(skipped) {
                dead.push(*skipped);
            }
        }
        NodeManifest { next_file, marks, dead, log_from: self.log_from, index_numbers }
    }

    /// Adds the mark of a bucket without one, also to the checkpoints that may later be written to
    /// the node manifest.
    pub fn add_mark(&mut self, mark: &EpochMark) {
        let of_checkpoints = self.checkpoints.iter_mut().map(|(_, marks)| marks);
        for marks in of_checkpoints.chain([&mut self.marks]) {
            if marks.iter().all(|known| known.bucket != mark.bucket) {
                marks.push(mark.clone());
            }
        }
    }
}
