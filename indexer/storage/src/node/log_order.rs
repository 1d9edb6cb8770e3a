//! What the order of the log decides.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use proto::model::cut::EpochMark;

use crate::file_id::FileId;
use crate::lock::lock;
use crate::log::lsn::Lsn;
use crate::manifest::node_manifest::{DeadEpochs, NodeManifest};

/// What the order of the log decides.
#[derive(Default)]
pub struct Order {
    /// Places in the log with the buckets' newest epochs before them, the oldest first.
    pub checkpoints: VecDeque<(Lsn, Vec<EpochMark>)>,
    /// The marks of the last node manifest.
    pub marks: Vec<EpochMark>,
    /// Epochs that a rollback has taken back on all indexes.
    pub dead: Arc<Mutex<Vec<DeadEpochs>>>,
}

impl Order {
    /// A bucket goes back to an epoch.
    pub fn go_back(&mut self, mark: &EpochMark) {
        let of_checkpoints = self.checkpoints.iter_mut().flat_map(|(_, marks)| marks);
        for known in self.marks.iter_mut().chain(of_checkpoints) {
            if known.bucket == mark.bucket && known.epoch > mark.epoch {
                *known = mark.clone();
            }
        }
    }

    /// The node manifest as of now.
    pub fn node_manifest(&self, next_file: FileId) -> NodeManifest {
        let dead = lock(&self.dead).clone();
        NodeManifest { next_file, marks: self.marks.clone(), dead }
    }
}
