//! What a node keeps on disk beside its indexes.

use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, Epoch};
use serde::{Deserialize, Serialize};

use crate::file_id::FileId;

/// What a node keeps beside its indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeManifest {
    /// No file has this number or a larger one.
    pub next_file: FileId,
    /// For each bucket, the epoch up to which the fragments of each of its indexes have everything.
    pub marks: Vec<EpochMark>,
    /// Epochs that a rollback has taken back on all indexes; where the log still has them, they are
    /// passed over.
    pub dead: Vec<DeadEpochs>,
}

/// Epochs of a bucket that a rollback has taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadEpochs {
    /// The bucket.
    pub bucket: BucketId,
    /// The epoch that it went back to.
    pub above: Epoch,
    /// The newest epoch that was taken back.
    pub to: Epoch,
}
