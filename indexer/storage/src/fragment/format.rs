//! Header, trailer and meta section of a fragment file.

use proto::model::ids::Epoch;
use proto::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};

use crate::fragment::filter::LINE_BYTES;
use crate::rows::block_index::BlockIndex;
use crate::rows::stats::TableStats;

const MAGIC: &[u8; 4] = b"sxfr";
const TRAILER_MAGIC: &[u8; 4] = b"rfxs";
const VERSION: u16 = 1;
/// Offset of the fragment's kind in the header; a byte of zero follows it.
pub(super) const KIND_AT: usize = 6;
/// The kind of a fragment whose rows contain their epochs.
const OWN_EPOCHS: u8 = 0;
/// The kind of a fragment whose rows all have one epoch, which the statistics contain.
pub(super) const STAMPED: u8 = 1;
/// Size of the header, in bytes; the first block follows it.
pub const HEADER_BYTES: u64 = 20;
/// Size of the trailer, in bytes. The trailer ends the file.
pub const TRAILER_BYTES: u64 = 32;

/// Creates an error for damage in a file; the caller adds the file's name.
pub(super) fn corrupt(what: impl Into<String>) -> Error {
    Error::new(ErrorCode::Corrupt, what)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// The header of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentHeader {
    /// Id under which the file was written.
    pub id: u64,
    /// True if all rows have the epoch in the statistics; readers then ignore the epochs in the
    /// blocks.
    pub is_stamped: bool,
}

impl FragmentHeader {
    /// Encodes the header. Also returns its checksum, which is the seed of the file's other
    /// checksums.
    pub fn encode(self) -> ([u8; HEADER_BYTES as usize], u32) {
        let mut bytes = [0; HEADER_BYTES as usize];
        bytes[..4].copy_from_slice(MAGIC);
        bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
        bytes[KIND_AT] = if self.is_stamped { STAMPED } else { OWN_EPOCHS };
        bytes[8..16].copy_from_slice(&self.id.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..16]);
        bytes[16..].copy_from_slice(&crc.to_le_bytes());
        (bytes, crc)
    }

    /// Decodes a header. Also returns its checksum, which is the seed of the file's other
    /// checksums.
    pub fn decode(bytes: &[u8; HEADER_BYTES as usize]) -> Result<(Self, u32)> {
        if &bytes[..4] != MAGIC {
            return Err(corrupt("the file does not begin like a fragment"));
        }
        let crc = crc32c::crc32c(&bytes[..16]);
        if crc != u32_at(bytes, 16) {
            return Err(corrupt("the checksum of the header, at offset 0, does not match"));
        }
        let version = u16::from_le_bytes([bytes[4], bytes[5]]);
        if version != VERSION {
            let message = format!(
                "the fragment has format version {version}, this build reads version {VERSION}"
            );
            return Err(Error::new(ErrorCode::Version, message)
                .with_hint("run the release of sextant that wrote the file, or a newer release"));
        }
        let is_stamped = match (bytes[KIND_AT], bytes[KIND_AT + 1]) {
            (OWN_EPOCHS, 0) => false,
            (STAMPED, 0) => true,
            (kind, _) => return Err(corrupt(format!("the fragment has the unknown kind {kind}"))),
        };
        Ok((Self { id: u64_at(bytes, 8), is_stamped }, crc))
    }
}

/// The trailer of a file: the places of the meta section and the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentTrailer {
    /// Offset of the meta section, where the blocks end.
    pub meta_offset: u64,
    /// Size of the meta section, in bytes.
    pub meta_bytes: u32,
    /// Number of lines (of 64 bytes) of the filter; 0 if there is none.
    pub filter_lines: u32,
    /// Checksum of the meta section.
    pub meta_crc: u32,
    /// Checksum of the filter.
    pub filter_crc: u32,
}

impl FragmentTrailer {
    /// Returns the offset of the filter in the file.
    pub fn filter_offset(&self) -> u64 {
        self.meta_offset + u64::from(self.meta_bytes)
    }

    /// Encodes the trailer; `seed` is the header's checksum.
    pub fn encode(self, seed: u32) -> [u8; TRAILER_BYTES as usize] {
        let mut bytes = [0; TRAILER_BYTES as usize];
        bytes[..8].copy_from_slice(&self.meta_offset.to_le_bytes());
        let words = [self.meta_bytes, self.filter_lines, self.meta_crc, self.filter_crc];
        for (n, word) in words.into_iter().enumerate() {
            bytes[8 + 4 * n..12 + 4 * n].copy_from_slice(&word.to_le_bytes());
        }
        let crc = crc32c::crc32c_append(seed, &bytes[..24]);
        bytes[24..28].copy_from_slice(&crc.to_le_bytes());
        bytes[28..].copy_from_slice(TRAILER_MAGIC);
        bytes
    }

    /// Decodes the trailer of a file of `file_bytes`; `seed` is the header's checksum. Fails
    /// unless the blocks, the meta section and the filter fill the file without a gap.
    pub fn decode(
        bytes: &[u8; TRAILER_BYTES as usize],
        seed: u32,
        file_bytes: u64,
    ) -> Result<Self> {
        let at = file_bytes - TRAILER_BYTES;
        if &bytes[28..] != TRAILER_MAGIC {
            let what =
                format!("the last bytes, from offset {at} on, are not the trailer of a fragment");
            return Err(corrupt(what));
        }
        if crc32c::crc32c_append(seed, &bytes[..24]) != u32_at(bytes, 24) {
            let what = format!("the checksum of the trailer, at offset {at}, does not match");
            return Err(corrupt(what));
        }
        let trailer = Self {
            meta_offset: u64_at(bytes, 0),
            meta_bytes: u32_at(bytes, 8),
            filter_lines: u32_at(bytes, 12),
            meta_crc: u32_at(bytes, 16),
            filter_crc: u32_at(bytes, 20),
        };
        let behind_blocks = u64::from(trailer.meta_bytes)
            + u64::from(trailer.filter_lines) * LINE_BYTES as u64
            + TRAILER_BYTES;
        let fits = trailer.meta_offset >= HEADER_BYTES
            && trailer.meta_offset.checked_add(behind_blocks) == Some(file_bytes);
        if !fits {
            let what =
                format!("the parts named by the trailer, at offset {at}, do not fill the file");
            return Err(corrupt(what));
        }
        Ok(trailer)
    }
}

/// The meta section, borrowed for writing.
#[derive(Serialize)]
pub struct MetaRef<'a> {
    /// Columns of the rows.
    pub columns: u64,
    /// Statistics of all rows.
    pub stats: &'a TableStats,
    /// Sparse index.
    pub index: &'a BlockIndex,
}

/// The meta section after it was read, with the fields of [`MetaRef`].
#[derive(Deserialize)]
pub struct Meta {
    /// Columns of the rows.
    pub columns: u64,
    /// Statistics of all rows.
    pub stats: TableStats,
    /// Sparse index.
    pub index: BlockIndex,
}

impl Meta {
    /// Returns the epoch of all rows of a stamped fragment.
    pub fn stamp(&self) -> Result<Epoch> {
        let TableStats { oldest, newest, .. } = self.stats;
        match oldest == newest {
            true => Ok(oldest),
            false => Err(corrupt("the statistics name several epochs, and the rows have one")),
        }
    }

    /// Decodes the meta section. Checks that its fields agree with each other and with blocks that
    /// end at the offset `blocks_end`.
    pub fn decode(bytes: &[u8], blocks_end: u64) -> Result<Self> {
        let (mut meta, rest) = postcard::take_from_bytes::<Self>(bytes)
            .map_err(|error| corrupt(format!("cannot decode the meta section: {error}")))?;
        if !rest.is_empty() || !meta.index.prepare() {
            return Err(corrupt("the parts of the sparse index contradict each other"));
        }
        let mut end = HEADER_BYTES;
        for block in 0..meta.index.blocks() {
            match meta.index.place(block) {
                Some((offset, len)) if offset == end => end += u64::from(len),
                _ => {
                    return Err(corrupt(format!(
                        "the sparse index has a wrong place for block {block}"
                    )));
                }
            }
        }
        let rows = meta.index.sections().iter().map(|section| section.rows);
        let rows = rows.fold(0, u64::saturating_add);
        if end != blocks_end || rows != meta.stats.rows {
            return Err(corrupt("the sparse index contradicts the statistics or the length"));
        }
        Ok(meta)
    }
}
