//! The part of a fragment that contains one slice's rows, as it is sent to another node.
//!
//! Several slices can share a fragment. No block has rows of two slices, so the part of a slice is
//! a sequence of neighbouring blocks. They are sent as the file stores them, after the values that
//! a reader needs to check them:
//!
//! ```text
//! part := header columns:u64 slice:u16 rows:u64 offset:u64 blocks:u32 [stamp:u64] stored-bytes:u32{blocks} stored{blocks}
//! ```
//! The part of a stamped fragment contains the fragment's epoch as `stamp`, and the receiver
//! writes a stamped fragment. `header` is the header of the file, `slice` the number that the rows
//! have in the file, `offset` the place of the first block in the file. So each block can be
//! checked by its checksum, which covers the block's offset and the file's id: the receiver also
//! detects damage on the source's disk.
//!
//! The bytes of a part depend only on the file and the slice. So its length is known before it is
//! read, and it can be read from any offset. The receiver writes the blocks into a new fragment,
//! with its own sparse index, statistics and filter ([`super::writer`]).

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use proto::Result;
use proto::model::ids::{Epoch, SliceNo};

use crate::fragment::format::{FragmentHeader, HEADER_BYTES, corrupt, u32_at, u64_at};
use crate::fragment::reader::Fragment;
use crate::fragment::stored_block as stored;
use crate::rows::block::Block;
use crate::rows::block_index::BlockIndex;

/// The number of bytes of a part before the lengths of the blocks, without the stamp (the epoch of
/// a stamped fragment).
const PREFIX_BYTES: usize = HEADER_BYTES as usize + 30;
/// The size of the stamp in bytes.
const STAMP_BYTES: usize = 8;
/// The size in bytes of one block length.
const LENGTH_BYTES: u64 = 4;

/// A fragment's part for one slice: the blocks with the slice's rows, as they are sent to another
/// node.
#[derive(Debug)]
pub struct FragmentPart {
    fragment: Arc<Fragment>,
    blocks: Range<u32>,
    /// Offset of the first block in the file.
    offset: u64,
    block_bytes: u64,
    prefix: Vec<u8>,
}

impl FragmentPart {
    /// Returns the part of a fragment with the rows of a slice; `None` if the fragment has no rows
    /// of the slice.
    pub fn new(fragment: &Arc<Fragment>, index: &BlockIndex, slice: SliceNo) -> Option<Self> {
        let section = &index.sections()[index.section(slice)?];
        let (offset, _) = index.place(section.first_block)?;
        let blocks = section.first_block..section.end_block;
        let (id, stamp) = (fragment.written_id(), fragment.stamp());
        let (header, _) = FragmentHeader { id, is_stamped: stamp.is_some() }.encode();
        let mut prefix = header.to_vec();
        prefix.extend_from_slice(&fragment.columns().to_le_bytes());
        prefix.extend_from_slice(&slice.0.to_le_bytes());
        prefix.extend_from_slice(&section.rows.to_le_bytes());
        prefix.extend_from_slice(&offset.to_le_bytes());
        prefix.extend_from_slice(&(blocks.len() as u32).to_le_bytes());
        prefix.extend(stamp.iter().flat_map(|epoch| epoch.0.to_le_bytes()));
        let (fragment, block_bytes) = (Arc::clone(fragment), section.bytes);
        Some(Self { fragment, blocks, offset, block_bytes, prefix })
    }

    /// Returns the offset in the part at which the blocks begin.
    fn blocks_at(&self) -> u64 {
        self.prefix.len() as u64 + LENGTH_BYTES * self.blocks.len() as u64
    }

    /// Returns the length of the part in bytes.
    pub fn byte_len(&self) -> u64 {
        self.blocks_at() + self.block_bytes
    }

    /// Reads `len` bytes of the part from `offset` on; the part must be long enough. Blocks the
    /// thread.
    pub fn read(&self, index: &BlockIndex, offset: u64, len: usize) -> Result<Bytes> {
        let end = offset + len as u64;
        let mut out = Vec::with_capacity(len);
        let prefix_bytes = self.prefix.len() as u64;
        if offset < prefix_bytes {
            let to = end.min(prefix_bytes) as usize;
            out.extend_from_slice(&self.prefix[offset as usize..to]);
        }
        let blocks_at = self.blocks_at();
        let mut at = offset + out.len() as u64;
        while at < end.min(blocks_at) {
            let behind_prefix = at - prefix_bytes;
            let block = self.blocks.start + (behind_prefix / LENGTH_BYTES) as u32;
            let length = index.place(block).map_or(0, |place| place.1).to_le_bytes();
            let left = (end - at).min(LENGTH_BYTES - behind_prefix % LENGTH_BYTES) as usize;
            let from = (behind_prefix % LENGTH_BYTES) as usize;
            out.extend_from_slice(&length[from..from + left]);
            at += left as u64;
        }
        let read = out.len();
        if read < len {
            out.resize(len, 0);
            self.fragment.read_stored(self.offset + at - blocks_at, &mut out[read..])?;
        }
        Ok(out.into())
    }
}

/// The beginning of a part, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartHead {
    /// Columns of the rows.
    pub columns: u64,
    /// Slice number of the rows in the source's file.
    pub slice: SliceNo,
    /// Number of rows.
    pub rows: u64,
    /// The epoch of all rows of a stamped fragment; `None` if the blocks contain the epochs.
    pub stamp: Option<Epoch>,
}

/// An item that was decoded from a part: its head, or one of its blocks.
#[derive(Debug)]
pub enum PartItem<'a> {
    /// The beginning of the part: its header and fixed fields; returned once.
    Head(PartHead),
    /// A complete block: as stored in the source's file, and parsed.
    Block(&'a [u8], Block),
}

/// A decoder of a part whose bytes arrive in order. Every byte is checked.
#[derive(Debug)]
pub struct PartReader {
    /// Length of the part.
    len: u64,
    /// The number of bytes received so far.
    taken: u64,
    /// The received bytes; the bytes before `at` are parsed.
    buffer: Vec<u8>,
    at: usize,
    stage: Stage,
}

/// The item of the part that is expected next.
#[derive(Debug)]
enum Stage {
    Prefix,
    /// The lengths of the blocks are expected; `blocks` is their number.
    Lengths {
        source: SourceFile,
        offset: u64,
        blocks: u32,
    },
    /// The block number `next` is expected; `offset` is its place in the source's file.
    Blocks {
        source: SourceFile,
        offset: u64,
        lengths: Vec<u32>,
        next: usize,
    },
}

/// The values from the header of the source's file that the checksums of its blocks depend on.
#[derive(Clone, Copy, Debug)]
struct SourceFile {
    seed: u32,
    stamp: Option<Epoch>,
    /// Bytes before the lengths.
    prefix_bytes: usize,
}

impl PartReader {
    /// Creates a decoder of a part of this length in bytes.
    pub fn new(len: u64) -> Self {
        Self { len, taken: 0, buffer: Vec::new(), at: 0, stage: Stage::Prefix }
    }

    /// Returns the number of bytes received so far.
    pub fn received_bytes(&self) -> u64 {
        self.taken
    }

    /// Adds the next bytes. Before this call, [`Self::next`] must have returned `None`.
    pub fn add_bytes(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.at);
        self.at = 0;
        self.buffer.extend_from_slice(bytes);
        self.taken += bytes.len() as u64;
    }

    /// Returns true if all bytes of the part were received and parsed.
    pub fn is_complete(&self) -> bool {
        let read =
            matches!(&self.stage, Stage::Blocks { lengths, next, .. } if *next == lengths.len());
        read && self.taken == self.len && self.at == self.buffer.len()
    }

    /// Decodes the next item; returns `None` if it needs more bytes.
    pub fn next(&mut self) -> Result<Option<PartItem<'_>>> {
        match &self.stage {
            Stage::Prefix if self.buffer.len() >= PREFIX_BYTES => self.decode_head(),
            Stage::Prefix => Ok(None),
            Stage::Lengths { source, offset, blocks } => {
                let (source, offset, blocks) = (*source, *offset, *blocks as usize);
                let table = LENGTH_BYTES as usize * blocks;
                if self.buffer.len() - self.at < table {
                    return Ok(None);
                }
                let table = &self.buffer[self.at..self.at + table];
                let lengths: Vec<u32> =
                    table.chunks_exact(LENGTH_BYTES as usize).map(|at| u32_at(at, 0)).collect();
                let before = source.prefix_bytes as u64 + LENGTH_BYTES * blocks as u64;
                if lengths.iter().map(|len| u64::from(*len)).sum::<u64>() + before != self.len {
                    return Err(corrupt("the lengths of the blocks contradict that of the part"));
                }
                self.at += table.len();
                self.stage = Stage::Blocks { source, offset, lengths, next: 0 };
                self.decode_block()
            }
            Stage::Blocks { .. } => self.decode_block(),
        }
    }

    /// Decodes the header and the fixed fields.
    fn decode_head(&mut self) -> Result<Option<PartItem<'_>>> {
        let mut header = [0; HEADER_BYTES as usize];
        header.copy_from_slice(&self.buffer[..HEADER_BYTES as usize]);
        let (FragmentHeader { is_stamped, .. }, seed) = FragmentHeader::decode(&header)?;
        let prefix_bytes = PREFIX_BYTES + if is_stamped { STAMP_BYTES } else { 0 };
        if self.buffer.len() < prefix_bytes {
            return Ok(None);
        }
        let rest = &self.buffer[HEADER_BYTES as usize..prefix_bytes];
        let stamp = is_stamped.then(|| Epoch(u64_at(rest, 30)));
        let slice = SliceNo(u16::from_le_bytes([rest[8], rest[9]]));
        let head = PartHead { columns: u64_at(rest, 0), slice, rows: u64_at(rest, 10), stamp };
        let (offset, blocks) = (u64_at(rest, 18), u32_at(rest, 26));
        let before = prefix_bytes as u64 + LENGTH_BYTES * u64::from(blocks);
        if blocks == 0 || before > self.len || offset.checked_add(self.len).is_none() {
            return Err(corrupt("the number of blocks contradicts the length of the part"));
        }
        self.at = prefix_bytes;
        let source = SourceFile { seed, stamp, prefix_bytes };
        self.stage = Stage::Lengths { source, offset, blocks };
        Ok(Some(PartItem::Head(head)))
    }

    /// Decodes the next block; returns `None` if it needs more bytes.
    fn decode_block(&mut self) -> Result<Option<PartItem<'_>>> {
        let Stage::Blocks { source, offset, lengths, next } = &mut self.stage else {
            return Ok(None);
        };
        let Some(len) = lengths.get(*next).copied() else { return Ok(None) };
        let Some(bytes) = self.buffer.get(self.at..self.at + len as usize) else {
            return Ok(None);
        };
        let block = stored::decode(source.seed, *offset, bytes, source.stamp)
            .map_err(|error| error.context(format!("block at offset {offset}")))?;
        self.at += len as usize;
        *offset += u64::from(len);
        *next += 1;
        Ok(Some(PartItem::Block(bytes, block)))
    }
}

#[cfg(test)]
#[path = "part_tests.rs"]
mod tests;
