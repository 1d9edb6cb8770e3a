//! The messages between the two ends of a slice move: a slice's parts of the files of a copy, piece by piece.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::model::ids::{Epoch, MoveId, SliceId};
use crate::model::index::IndexInfo;

/// Time limit for the checksum of a copy of this size: a minute, and a second for every 4 MiB, since others read from the
/// same disk.
pub fn checksum_patience(bytes: u64) -> Duration {
    Duration::from_secs(60 + bytes / (4 << 20))
}

/// A request of a move's target to a node that has a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportRequest {
    /// The slice to export.
    pub slice: SliceId,
    /// The move, for whose duration the source keeps the copy's files. `None` if the target restores a lost copy: a later
    /// answer may then name other files.
    pub id: Option<MoveId>,
    /// The answer must include all epochs up to this one; the source waits for it until `timeout_ms`.
    pub epoch: Epoch,
    /// Files that the target already has, by their numbers on the source.
    pub have: Vec<u64>,
    /// The [`ExportHead::opening`] under which the target received them.
    pub opening: Option<u64>,
    /// Time limit for applying the epoch, in milliseconds.
    pub timeout_ms: u64,
}

/// The answer: a head, the slice's parts of the files that the target lacks, and an end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ExportMessage {
    /// The description of the copy.
    Head(ExportHead),
    /// A piece of a part.
    Piece(FilePiece),
    /// All parts have been sent.
    End,
}

/// A slice as the files of a copy contain it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportHead {
    /// The index as the source has it.
    pub info: Arc<IndexInfo>,
    /// A random number, drawn each time the source opens its store: file numbers may be reused after a restart, and a node that restarts
    /// empty begins again with the first number.
    pub opening: u64,
    /// The oldest epoch that the copy can answer.
    pub floor: Epoch,
    /// Rollback points below the floor that the copy can still return to, ascending.
    pub points: Vec<Epoch>,
    /// The newest epoch in the files, which contain all epochs up to it.
    pub epoch: Epoch,
    /// Entries at that epoch.
    pub entries: u64,
    /// The slice's lists, packed by the slice store.
    pub lists: Bytes,
    /// The files named by the lists, with the lengths in bytes of the slice's parts of them, including those that are not sent.
    pub files: Vec<(u64, u64)>,
}

/// A piece of a slice's part of a file; pieces come in the order of their offsets, file by file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePiece {
    /// The file's number on the source.
    pub file: u64,
    /// The offset of its first byte in the part.
    pub offset: u64,
    /// CRC-32C of `file` and `offset` (little endian) and the bytes.
    pub crc: u32,
    /// The bytes of the piece.
    pub bytes: Bytes,
}

impl FilePiece {
    /// A piece with its checksum.
    pub fn new(file: u64, offset: u64, bytes: Bytes) -> Self {
        let crc = Self::checksum(file, offset, &bytes);
        Self { file, offset, crc, bytes }
    }

    /// True if the checksum matches.
    pub fn is_whole(&self) -> bool {
        self.crc == Self::checksum(self.file, self.offset, &self.bytes)
    }

    fn checksum(file: u64, offset: u64, bytes: &[u8]) -> u32 {
        let place =
            crc32c::crc32c_append(crc32c::crc32c(&file.to_le_bytes()), &offset.to_le_bytes());
        crc32c::crc32c_append(place, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_or_misplaced_piece_is_detected() {
        let piece = FilePiece::new(7, 4096, Bytes::from_static(b"rows"));
        assert!(piece.is_whole());
        assert!(!FilePiece { offset: 0, ..piece.clone() }.is_whole());
        assert!(!FilePiece { file: 8, ..piece.clone() }.is_whole());
        assert!(!FilePiece { bytes: Bytes::from_static(b"rowz"), ..piece }.is_whole());
    }
}
