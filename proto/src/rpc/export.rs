//! What the two ends of a slice move tell each other: the files of a copy, piece by piece.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::model::ids::{Epoch, MoveId, SliceId};
use crate::model::index::IndexInfo;

/// How long a copy of so many bytes may take to tell the checksum of what it shows: a minute, and a second for every
/// 4 MiB, while others read from the same disk.
pub fn checksum_patience(bytes: u64) -> Duration {
    Duration::from_secs(60 + bytes / (4 << 20))
}

/// What a target asks of a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportRequest {
    /// The slice.
    pub slice: SliceId,
    /// The move: the copy's files are kept together for it from the first request until it ends. `None` where the
    /// target has lost its own copy: then a later request may name other files.
    pub id: Option<MoveId>,
    /// All epochs up to this one must be in what comes; waited for until `timeout_ms`.
    pub epoch: Epoch,
    /// Files, by their numbers on the source, that the target has already.
    pub have: Vec<u64>,
    /// The [`ExportHead::opening`] under which it got them.
    pub opening: Option<u64>,
    /// Give up after so long without having applied the epoch.
    pub timeout_ms: u64,
}

/// What a copy answers: a head, the files that the target has not, and an end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ExportMessage {
    /// What comes.
    Head(ExportHead),
    /// A piece of a file.
    Piece(FilePiece),
    /// All files have been sent.
    End,
}

/// A slice as a copy has it in files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportHead {
    /// The index as the source has it.
    pub info: Arc<IndexInfo>,
    /// Random, drawn whenever the source opens its store: it may give a file's number again after a restart, and a
    /// node that comes back empty begins with the first.
    pub opening: u64,
    /// The oldest epoch that the copy answers.
    pub floor: Epoch,
    /// Below that, ascending: the epochs to which it can go back all the same.
    pub points: Vec<Epoch>,
    /// All epochs up to this one are in the files.
    pub epoch: Epoch,
    /// Entries at that epoch.
    pub entries: u64,
    /// The slice's lists, packed by the slice store.
    pub lists: Bytes,
    /// The files that the lists name, with their lengths in bytes, also those that are not sent.
    pub files: Vec<(u64, u64)>,
}

/// A piece of a file; pieces come in the order of their offsets, file by file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePiece {
    /// The file's number on the source.
    pub file: u64,
    /// Where it begins.
    pub offset: u64,
    /// CRC-32C of `file` and `offset` (little endian) and the bytes.
    pub crc: u32,
    /// The bytes.
    pub bytes: Bytes,
}

impl FilePiece {
    /// A piece with its checksum.
    pub fn new(file: u64, offset: u64, bytes: Bytes) -> Self {
        let crc = Self::checksum(file, offset, &bytes);
        Self { file, offset, crc, bytes }
    }

    /// Is it as it was sent?
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
    fn a_piece_that_was_changed_or_belongs_elsewhere_is_told_from_a_whole_one() {
        let piece = FilePiece::new(7, 4096, Bytes::from_static(b"rows"));
        assert!(piece.is_whole());
        assert!(!FilePiece { offset: 0, ..piece.clone() }.is_whole());
        assert!(!FilePiece { file: 8, ..piece.clone() }.is_whole());
        assert!(!FilePiece { bytes: Bytes::from_static(b"rowz"), ..piece }.is_whole());
    }
}
