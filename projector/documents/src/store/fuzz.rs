//! Sample files for fuzzers of the store, and the correction of checksums in fuzzed files, so
//! that a fuzzer reaches the code after the check of the checksum. The files are paired files:
//! files that are stored in two copies.

use std::collections::BTreeMap;

use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::commits::{CommittedTransaction, TransactionEvent};
use proto::model::ids::{BucketId, NodeId, TransactionId};

use super::checkpoint::Checkpoint;
use super::paired_file::{FileKind, HEADER_BYTES, SUMMED_BYTES, encode};
use super::source_manifest::SourceManifest;
use crate::change_log::{LogState, PreparedPlaces};
use crate::record::BucketRecord;
use crate::table::TableManifest;

/// Returns the bytes of two paired files: a checkpoint of a bucket with vbuckets and a commit,
/// and the manifest of a source.
pub fn samples_of_paired_files() -> Vec<Vec<u8>> {
    let mut record = BucketRecord {
        info: BucketInfo::new(BucketId(1), "b", 4, SourceKind::Embedded, NodeId(1)),
        branches: Vec::new(),
        ownership: Default::default(),
        given_up: BTreeMap::new(),
        commits: Default::default(),
    };
    let committed =
        CommittedTransaction { transaction: TransactionId(7), affected: 1, positions: Vec::new() };
    record.commits.apply_event(&TransactionEvent::Committed(committed));
    let (log, table) = (LogState::new(4), TableManifest::new(1));
    let checkpoint = Checkpoint { log, record, table, places: PreparedPlaces::default() };
    let manifest = SourceManifest { catalog_cas: 7, next_directory: 3, ..Default::default() };
    let files =
        [encode(FileKind::Checkpoint, 3, &checkpoint), encode(FileKind::Source, 4, &manifest)];
    files.into_iter().flatten().collect()
}

/// Corrects the length and the checksum in the bytes of a paired file.
pub fn correct_paired_file(bytes: &mut [u8]) {
    let Some(len) = bytes.len().checked_sub(HEADER_BYTES) else { return };
    bytes[20..28].copy_from_slice(&(len as u64).to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..SUMMED_BYTES]), &bytes[HEADER_BYTES..]);
    bytes[SUMMED_BYTES..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
}
