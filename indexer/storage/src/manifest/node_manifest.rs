//! The manifest of a node.

use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, Epoch};
use serde::{Deserialize, Serialize};

use crate::file_id::FileId;

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
}

/// Epochs of a bucket that a rollback has undone: those in `(above, to]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadEpochs {
    /// The bucket.
    pub bucket: BucketId,
    /// Epoch that the bucket was rolled back to.
    pub above: Epoch,
    /// Newest epoch that was undone.
    pub to: Epoch,
}
