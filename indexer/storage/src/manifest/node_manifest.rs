//! The manifest of a node.

use std::collections::BTreeMap;

use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, Epoch, LocalIndexId};
use serde::{Deserialize, Serialize};

use crate::file_id::FileId;
use crate::log::lsn::Lsn;

/// The durable state of a node besides its indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeManifest {
    /// No file has this number or a larger one.
    pub next_file: FileId,
    /// For each bucket, the epoch up to which the fragments of all its indexes are complete.
    pub marks: Vec<EpochMark>,
    /// Epochs that a rollback has undone on all indexes. A replay skips them where the log
    /// still has them.
    pub dead: Vec<DeadEpochs>,
    /// The log is complete from here on: a replay that begins later lacks epochs that no fragment has.
    pub log_from: Lsn,
    /// Numbers of the index manifests that the log's release relies on. A manifest may have a larger number by now, and
    /// a dropped index has no manifest.
    pub index_numbers: BTreeMap<LocalIndexId, u64>,
}

/// Epochs of a bucket that a rollback has undone: those in `(above, to]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadEpochs {
    /// The bucket that was rolled back.
    pub bucket: BucketId,
    /// Epoch that the bucket was rolled back to.
    pub above: Epoch,
    /// Newest epoch that was undone.
    pub to: Epoch,
}

impl DeadEpochs {
    /// True if an epoch of a bucket was undone.
    pub fn contains(&self, bucket: BucketId, epoch: Epoch) -> bool {
        self.bucket == bucket && self.above < epoch && epoch <= self.to
    }
}
