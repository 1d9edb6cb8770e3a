//! The manifest of a node.

use std::collections::BTreeMap;

use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, Epoch, LocalIndexId};
use serde::{Deserialize, Serialize};

use crate::file_id::FileId;
use crate::log::lsn::Lsn;

/// The durable state of a node, apart from its index manifests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeManifest {
    /// All file numbers in use are below this number.
    pub next_file: FileId,
    /// For each bucket, the epoch up to which the fragments of all its indexes are complete.
    pub marks: Vec<EpochMark>,
    /// Epochs that a rollback has undone in all indexes. A replay skips their log records.
    pub dead: Vec<DeadEpochs>,
    /// The LSN from which the log must be complete: no fragment has the epochs of later records.
    pub log_from: Lsn,
    /// The index manifest numbers that were taken into account when the log was released. A
    /// manifest may have a larger number by now, and a dropped index has no manifest.
    pub index_numbers: BTreeMap<LocalIndexId, u64>,
}

/// Epochs of a bucket that a rollback has undone: the range `(above, to]`.
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
