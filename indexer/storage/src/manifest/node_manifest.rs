//! The manifest of a node: the state on disk that concerns all of its indexes.

use std::collections::BTreeMap;

use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, Epoch, LocalIndexId};
use serde::{Deserialize, Serialize};

use crate::file_id::FileId;
use crate::log::lsn::Lsn;

/// The content of a node manifest: the durable state of a node, apart from its index manifests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeManifest {
    /// All file numbers in use are below this number.
    pub next_file: FileId,
    /// For each bucket, the epoch up to which the fragments of all its indexes have all rows.
    pub marks: Vec<EpochMark>,
    /// Epochs that a rollback has undone in all indexes. A replay of the log ignores them.
    pub dead: Vec<DeadEpochs>,
    /// The LSN from which the log must be complete: no fragment has the epochs of later records.
    pub log_from: Lsn,
    /// The number of each index manifest at the time when the log was released. By now a manifest
    /// may have a larger number, and a dropped index has no manifest.
    pub index_numbers: BTreeMap<LocalIndexId, u64>,
}

/// Epochs of a bucket that a rollback has undone: those after `above`, up to and including `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadEpochs {
    /// The bucket that was rolled back.
    pub bucket: BucketId,
    /// The epoch to which the bucket was rolled back.
    pub above: Epoch,
    /// Newest epoch that was undone.
    pub to: Epoch,
}

impl DeadEpochs {
    /// Returns true if the rollback has undone an epoch of a bucket.
    pub fn contains(&self, bucket: BucketId, epoch: Epoch) -> bool {
        self.bucket == bucket && self.above < epoch && epoch <= self.to
    }
}
