//! The messages with which a slice is copied from one node to another, as in a move. The source
//! sends from each of its files the bytes that belong to the slice, in pieces.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::model::ids::{Epoch, MoveId, SliceId};
use crate::model::index::IndexInfo;

/// Returns the time limit for computing the checksum of a copy with this number of bytes: a
/// minute, and a second for every 4 MiB, since the disk serves other readers too.
pub fn checksum_time_limit(bytes: u64) -> Duration {
    Duration::from_secs(60 + bytes / (4 << 20))
}

/// The request of a move's target to a node that has a copy of the slice, which is the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportRequest {
    /// The slice to export.
    pub slice: SliceId,
    /// The number of the move. The source keeps the copy's files until the move ends. `None` if
    /// the target restores a lost copy; the source may then name other files in a later answer.
    pub id: Option<MoveId>,
    /// The epoch that the answer must include. The source waits for at most `timeout_ms` until it
    /// has applied this epoch.
    pub epoch: Epoch,
    /// The files that the target has already, by their numbers on the source.
    pub have: Vec<u64>,
    /// The [`ExportHead::opening`] of the answer with which the files in `have` were received.
    pub opening: Option<u64>,
    /// The time limit for the wait, in milliseconds.
    pub timeout_ms: u64,
}

/// A message of the source's answer: first a head, then the slice's bytes of each file that the
/// target lacks, then an end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ExportMessage {
    /// The description of the copy.
    Head(ExportHead),
    /// Some of the slice's bytes of a file.
    Piece(FilePiece),
    /// The end: all files have been sent.
    End,
}

/// The description of a slice at its source, and of the files that contain it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportHead {
    /// The index, as the source's catalog has it.
    pub info: Arc<IndexInfo>,
    /// A random number that the source draws when it opens its store. File numbers are comparable
    /// only under equal random numbers: a file number may be reused after a restart, and an
    /// emptied node begins again with the first number.
    pub opening: u64,
    /// The oldest epoch that can be read in the copy.
    pub floor: Epoch,
    /// The older epochs to which the copy can still return in a rollback, ascending.
    pub points: Vec<Epoch>,
    /// The newest epoch in the files. They contain all epochs up to this one.
    pub epoch: Epoch,
    /// The number of entries at `epoch`.
    pub entries: u64,
    /// The lists of the files that contain the slice, packed by the slice store.
    pub lists: Bytes,
    /// The files in `lists`: the number of each, and the number of its bytes that belong to the
    /// slice. Includes files that are not sent.
    pub files: Vec<(u64, u64)>,
}

/// Some of the slice's bytes of a file. Pieces are sent file by file, in the order of their
/// offsets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePiece {
    /// The file's number on the source.
    pub file: u64,
    /// The offset of the piece among the slice's bytes of the file.
    pub offset: u64,
    /// CRC-32C of `file` and `offset` (little endian) and the bytes.
    pub crc: u32,
    /// The bytes of the piece.
    pub bytes: Bytes,
}

impl FilePiece {
    /// Creates a piece with its checksum.
    pub fn new(file: u64, offset: u64, bytes: Bytes) -> Self {
        let crc = Self::checksum(file, offset, &bytes);
        Self { file, offset, crc, bytes }
    }

    /// Returns true if the checksum matches the contents.
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
