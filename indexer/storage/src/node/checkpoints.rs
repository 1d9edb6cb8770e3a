//! Checkpoints of the log: the releasable part, and the node manifest's record of it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use proto::lock::lock;
use proto::model::cut::EpochMark;

use crate::file_id::FileId;
use crate::log::lsn::Lsn;
use crate::manifest::node_manifest::{DeadEpochs, NodeManifest};

/// Checkpoints of the log, in its order.
#[derive(Default)]
pub struct LogCheckpoints {
    /// LSNs with the buckets' newest epochs before them, oldest first.
    pub checkpoints: VecDeque<(Lsn, Vec<EpochMark>)>,
    /// Marks of the last node manifest.
    pub marks: Vec<EpochMark>,
    /// Epochs that rollbacks have undone on all indexes.
    pub dead: Arc<Mutex<Vec<DeadEpochs>>>,
}

impl LogCheckpoints {
    /// Replaces marks of a bucket above an epoch that it is rolled back to.
    pub fn roll_back_to(&mut self, mark: &EpochMark) {
        let of_checkpoints = self.checkpoints.iter_mut().flat_map(|(_, marks)| marks);
        for known in self.marks.iter_mut().chain(of_checkpoints) {
            if known.bucket == mark.bucket && known.epoch > mark.epoch {
                *known = mark.clone();
            }
        }
    }

    /// The current node manifest.
    pub fn node_manifest(&self, next_file: FileId) -> NodeManifest {
        let dead = lock(&self.dead).clone();
        NodeManifest { next_file, marks: self.marks.clone(), dead }
    }
}
