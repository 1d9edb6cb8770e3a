//! Checkpoints of the log: which segments of the log can be released, and how the node manifest
//! records that. The *mark* of a bucket in the node manifest is the newest epoch that the
//! fragments of all its indexes have.
//!
//! # Invariant
//!
//! If an index manifest has a floor (an oldest readable epoch), the node manifest on disk has a
//! mark of the index's bucket. Without a mark, and without the log, the epoch of the fragments
//! would be unknown, and the stream of mutations would begin at the wrong place. So `name_bucket`
//! (`node/name_bucket.rs`) is called before the first slice of a bucket becomes readable.
//!
//! # Skipped epochs
//!
//! A bucket that is rolled back to zero drops its indexes; nothing is truncated, and its mark
//! stays in the node manifest. The next epoch skips all earlier epochs, including the epoch of the
//! mark. The mark moves on when that epoch is in fragments. Until then the log has the epoch,
//! because it is newer than the mark, and a replay of it finds the skipped epochs again. So they
//! enter the node manifest only once no mark is among them. Epochs that a rollback has truncated
//! are in the manifest at once: their marks are rolled back with them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use proto::lock::lock;
use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, LocalIndexId};

use crate::file_id::FileId;
use crate::log::lsn::Lsn;
use crate::manifest::node_manifest::{DeadEpochs, NodeManifest};

/// The positions of the log at which the newest epochs of all buckets were recorded, and the
/// contents of the next node manifest.
#[derive(Default)]
pub struct LogCheckpoints {
    /// Positions of the log, oldest first, each with the newest epoch of each bucket before it.
    pub checkpoints: VecDeque<(Lsn, Vec<EpochMark>)>,
    /// The newest epoch of each bucket in the last node manifest.
    pub marks: Vec<EpochMark>,
    /// Buckets that the node manifest on disk has a newest epoch of.
    pub named: BTreeSet<BucketId>,
    /// The LSN before which the log may be released.
    pub log_from: Lsn,
    /// Epochs that rollbacks have undone in all indexes, except the epochs in `skipped`.
    pub dead: Arc<Mutex<Vec<DeadEpochs>>>,
    /// Undone epochs that an epoch in the log has skipped, and that may not be in the node
    /// manifest yet.
    pub skipped: Vec<DeadEpochs>,
}

impl LogCheckpoints {
    /// Replaces the recorded epochs of a bucket that are above the epoch to which it is rolled
    /// back.
    pub fn roll_back_to(&mut self, mark: &EpochMark) {
        let of_checkpoints = self.checkpoints.iter_mut().flat_map(|(_, marks)| marks);
        for known in self.marks.iter_mut().chain(of_checkpoints) {
            if known.bucket == mark.bucket && known.epoch > mark.epoch {
                *known = mark.clone();
            }
        }
    }

    /// Returns the node manifest to be written now.
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

    /// Adds the newest epoch of a bucket that has none yet, to the next node manifest and to all
    /// checkpoints from which later ones are made.
    pub fn add_mark(&mut self, mark: &EpochMark) {
        let of_checkpoints = self.checkpoints.iter_mut().map(|(_, marks)| marks);
        for marks in of_checkpoints.chain([&mut self.marks]) {
            if marks.iter().all(|known| known.bucket != mark.bucket) {
                marks.push(mark.clone());
            }
        }
    }
}
