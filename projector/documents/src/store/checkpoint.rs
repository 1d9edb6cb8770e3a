//! The checkpoint of a bucket.

use serde::{Deserialize, Serialize};

use super::paired_file::FileKind;
use crate::change_log::LogState;
use crate::record::BucketRecord;
use crate::table::TableManifest;

/// The name and kind of a checkpoint's file.
pub const CHECKPOINT_FILE: (&str, FileKind) = ("checkpoint", FileKind::Checkpoint);

/// What a start need not replay.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The place in the change log, and the positions there.
    pub log: LogState,
    /// The record of the bucket there.
    pub record: BucketRecord,
    /// The fragments of the table. They have everything before the place, and may have more.
    pub table: TableManifest,
}
