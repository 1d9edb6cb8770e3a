//! Reader of fragments.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use proto::env::FileSystem;
use proto::model::ids::Epoch;
use proto::{Error, ErrorCode, Result};

use crate::fragment::blob_store::{Blob, BlobStore};
use crate::fragment::cache::BlockCache;
use crate::fragment::file_blobs::open_file;
use crate::fragment::filter::{Filter, LINE_BYTES};
use crate::fragment::format::{
    FragmentHeader, FragmentTrailer, HEADER_BYTES, Meta, TRAILER_BYTES, corrupt,
};
use crate::fragment::stored_block as stored;
use crate::rows::block::Block;
use crate::rows::block_index::BlockIndex;
use crate::rows::stats::TableStats;

/// Largest read buffer that a thread keeps for its next read, in bytes.
const SCRATCH_BYTES_MAX: usize = 1 << 20;
/// The number of bytes in which a filter is read at a time.
const FILTER_READ_BYTES: usize = 4096 * LINE_BYTES;

const DAMAGE_HINT: &str =
    "`sextant verify` lists all damage; a replica or a new build replaces the slice";

/// An opened fragment, with the statistics and the sparse index of its file.
#[derive(Debug)]
pub struct OpenFragment {
    /// The file.
    pub fragment: Arc<Fragment>,
    /// Statistics of all rows.
    pub stats: TableStats,
    /// Sparse index.
    pub index: BlockIndex,
    /// Size of the blocks as they are stored, in bytes.
    pub block_bytes: u64,
}

/// An open fragment file.
pub struct Fragment {
    /// Name of the blob in errors.
    pub(super) name: String,
    pub(super) id: u64,
    /// The id under which the file was written, possibly by another node.
    pub(super) written_id: u64,
    pub(super) blob: Arc<dyn Blob>,
    pub(super) cache: Arc<BlockCache>,
    /// Checksum of the header, the seed of all other checksums.
    pub(super) seed: u32,
    pub(super) columns: u64,
    pub(super) bytes: u64,
    pub(super) blocks: u32,
    pub(super) filter: Option<Filter>,
    /// The epoch of all rows, if the fragment is stamped.
    pub(super) stamp: Option<Epoch>,
}

impl Fragment {
    /// Opens the fragment `id` of a store; blocks are read through `cache`.
    pub fn open(blobs: &dyn BlobStore, id: u64, cache: &Arc<BlockCache>) -> Result<OpenFragment> {
        Self::read(blobs.open(id), blobs.name(id), id, cache)
    }

    /// Opens a fragment by the path of its file; `id` is its key in the cache.
    pub fn open_path(
        fs: &dyn FileSystem,
        path: &Path,
        id: u64,
        cache: &Arc<BlockCache>,
    ) -> Result<OpenFragment> {
        Self::read(open_file(fs, path), path.display().to_string(), id, cache)
    }

    /// Reads everything except the blocks of an opened blob, and adds the file's name to an error.
    fn read(
        opened: io::Result<Arc<dyn Blob>>,
        name: String,
        id: u64,
        cache: &Arc<BlockCache>,
    ) -> Result<OpenFragment> {
        let read = opened
            .map_err(Error::from)
            .and_then(|blob| Self::read_parts(blob, name.clone(), id, cache));
        read.map_err(|error| {
            let is_damage = error.code == ErrorCode::Corrupt;
            let error = error.context(format!("open fragment {name}"));
            if is_damage { error.with_hint(DAMAGE_HINT) } else { error }
        })
    }

    /// Reads and checks the header, the trailer, the meta section and the filter of a blob.
    fn read_parts(
        blob: Arc<dyn Blob>,
        name: String,
        id: u64,
        cache: &Arc<BlockCache>,
    ) -> Result<OpenFragment> {
        let bytes = blob.byte_len()?;
        if bytes < HEADER_BYTES + TRAILER_BYTES {
            return Err(corrupt(format!("the file has {bytes} bytes, too few for a fragment")));
        }
        let mut header = [0; HEADER_BYTES as usize];
        read_at(&*blob, &mut header, 0)?;
        let (header, seed) = FragmentHeader::decode(&header)?;
        let mut trailer = [0; TRAILER_BYTES as usize];
        read_at(&*blob, &mut trailer, bytes - TRAILER_BYTES)?;
        let trailer = FragmentTrailer::decode(&trailer, seed, bytes)?;
        let meta = read_meta(&*blob, &trailer, seed)?;
        let stamp = header.is_stamped.then(|| meta.stamp()).transpose()?;
        let Meta { columns, stats, index } = meta;
        let filter = read_filter(&*blob, &trailer, seed)?;
        let cache = Arc::clone(cache);
        let written_id = header.id;
        let blocks = index.blocks();
        let fragment =
            Self { name, id, written_id, blob, cache, seed, columns, bytes, blocks, filter, stamp };
        let block_bytes = trailer.meta_offset - HEADER_BYTES;
        Ok(OpenFragment { fragment: Arc::new(fragment), stats, index, block_bytes })
    }

    /// Returns a block from the cache or the file.
    pub fn block(&self, index: &BlockIndex, block: u32) -> Result<Arc<Block>> {
        self.cache
            .get_or_read(self.id, block, || {
                let mut read = None;
                let range = block..block + 1;
                self.read_blocks(index, range, |_, block| read = Some(Arc::new(block)))?;
                read.ok_or_else(|| Error::internal("a read of one block returned no block"))
            })
            .map_err(|error| self.with_file_name(error))
    }

    /// Returns a block from the cache or from the kernel's page cache, without waiting for the disk
    /// or for another reader of the block. A block from the page cache is added to the cache.
    /// [`ErrorCode::NotInMemory`] if the block is in neither.
    pub fn block_in_memory(&self, index: &BlockIndex, block: u32) -> Result<Arc<Block>> {
        if let Some(found) = self.cache.get(self.id, block) {
            return Ok(found);
        }
        let not_in_memory = || {
            let what = format!("block {block} of fragment {} is not in memory", self.name);
            Error::new(ErrorCode::NotInMemory, what)
        };
        let (offset, len) = index.place(block).ok_or_else(not_in_memory)?;
        let found = with_read_buffer(len as usize, |scratch| {
            if !self.blob.read_from_memory(scratch, offset) {
                return Err(not_in_memory());
            }
            let parsed = stored::decode(self.seed, offset, scratch, self.stamp)
                .map_err(|error| self.with_file_name(error.context(place_name(block, offset))))?;
            Ok(Arc::new(parsed))
        })?;
        self.cache.put(self.id, block, Arc::clone(&found));
        Ok(found)
    }

    /// Reads neighbouring blocks with one read of the file, without using the cache.
    pub fn read_ahead(
        &self,
        index: &BlockIndex,
        wanted: Range<u32>,
        out: &mut VecDeque<Arc<Block>>,
    ) -> Result<()> {
        self.read_blocks(index, wanted, |_, block| out.push_back(Arc::new(block)))
            .map_err(|error| self.with_file_name(error))
    }

    /// Reads neighbouring blocks with one read of the file. Passes each block to `each`, as stored
    /// and parsed.
    pub(super) fn read_blocks(
        &self,
        index: &BlockIndex,
        wanted: Range<u32>,
        mut each: impl FnMut(&[u8], Block),
    ) -> Result<()> {
        if wanted.is_empty() {
            return Ok(());
        }
        let place = |block| {
            let missing = || Error::internal(format!("there is no block {block}"));
            index.place(block).ok_or_else(missing)
        };
        let (from, _) = place(wanted.start)?;
        let (last, last_len) = place(wanted.end - 1)?;
        // The places were checked when the file was opened: each block begins where the one before
        // ends.
        let len = (last - from) as usize + last_len as usize;
        with_read_buffer(len, |scratch| {
            read_at(&*self.blob, scratch, from)
                .map_err(|error| error.context(place_name(wanted.start, from)))?;
            for block in wanted {
                let (offset, len) = place(block)?;
                let at = (offset - from) as usize;
                let stored = &scratch[at..at + len as usize];
                let parsed = stored::decode(self.seed, offset, stored, self.stamp)
                    .map_err(|error| error.context(place_name(block, offset)))?;
                each(stored, parsed);
            }
            Ok(())
        })
    }

    /// Reads bytes of the file without parsing or checking them. Blocks the thread.
    pub(super) fn read_stored(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        read_at(&*self.blob, out, offset).map_err(|error| self.with_file_name(error))
    }

    /// Adds the file's name and a remedy to an error about damage.
    fn with_file_name(&self, error: Error) -> Error {
        let is_damage = error.code == ErrorCode::Corrupt;
        let error = error.context(format!("fragment {}", self.name));
        if is_damage { error.with_hint(DAMAGE_HINT) } else { error }
    }

    /// Returns the number of the fragment's blocks in the cache.
    pub fn cached_blocks(&self) -> u32 {
        self.cache.count(self.id, self.blocks)
    }

    /// Returns true if the fragment may have rows of a document; `hash` is the
    /// [`super::filter_hash`] of its id. A fragment with a filter returns false for almost all
    /// documents that it lacks.
    #[inline]
    pub fn may_contain(&self, hash: u64) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.may_contain(hash))
    }

    /// Returns the id in the cache and in the file's name.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the id in the header: the id under which the file was written, perhaps on another
    /// node.
    pub fn written_id(&self) -> u64 {
        self.written_id
    }

    /// Returns the epoch of all rows of a stamped fragment; `None` if the blocks contain the
    /// epochs.
    pub fn stamp(&self) -> Option<Epoch> {
        self.stamp
    }

    /// Returns the columns of the rows, see [`super::FragmentOptions::columns`].
    pub fn columns(&self) -> u64 {
        self.columns
    }

    /// Returns the filter, if the fragment has one.
    pub fn filter(&self) -> Option<&Filter> {
        self.filter.as_ref()
    }

    /// Returns the size of the file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the memory use in bytes, without the cached blocks.
    pub fn memory_bytes(&self) -> usize {
        let filter = self.filter.as_ref().map_or(0, Filter::size);
        filter + self.name.len() + std::mem::size_of::<Self>()
    }
}

impl Drop for Fragment {
    fn drop(&mut self) {
        self.cache.remove_file(self.id, self.blocks);
    }
}

impl std::fmt::Debug for Fragment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Fragment({})", self.name)
    }
}

/// Returns the name of a block for error messages.
fn place_name(block: u32, offset: u64) -> String {
    format!("block {block}, at offset {offset}")
}

/// Fills a buffer from an offset of a blob. A blob that ends earlier is damaged.
fn read_at(blob: &dyn Blob, out: &mut [u8], offset: u64) -> Result<()> {
    blob.read_exact_at(out, offset).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            corrupt(format!("the file ends before offset {}", offset + out.len() as u64))
        }
        _ => Error::from(error),
    })
}

fn read_meta(blob: &dyn Blob, trailer: &FragmentTrailer, seed: u32) -> Result<Meta> {
    // The trailer's lengths fit the file's, so they bound this allocation.
    let mut bytes = vec![0; trailer.meta_bytes as usize];
    read_at(blob, &mut bytes, trailer.meta_offset)?;
    let at = trailer.meta_offset;
    if crc32c::crc32c_append(seed, &bytes) != trailer.meta_crc {
        let what = format!("the checksum of the meta section, at offset {at}, does not match");
        return Err(corrupt(what));
    }
    Meta::decode(&bytes, at).map_err(|error| error.context(format!("at offset {at}")))
}

fn read_filter(blob: &dyn Blob, trailer: &FragmentTrailer, seed: u32) -> Result<Option<Filter>> {
    let at = trailer.filter_offset();
    let mut left = trailer.filter_lines as usize * LINE_BYTES;
    let mut filter = Filter::to_decode(trailer.filter_lines as usize);
    let (mut crc, mut offset) = (seed, at);
    let mut bytes = vec![0; left.min(FILTER_READ_BYTES)];
    while left > 0 {
        let piece = &mut bytes[..left.min(FILTER_READ_BYTES)];
        read_at(blob, piece, offset)?;
        crc = crc32c::crc32c_append(crc, piece);
        filter.decode_lines(piece);
        offset += piece.len() as u64;
        left -= piece.len();
    }
    if crc != trailer.filter_crc {
        return Err(corrupt(format!("the checksum of the filter, at offset {at}, does not match")));
    }
    Ok((filter.lines() > 0).then_some(filter))
}

thread_local! {
    /// Buffer for file content before it is parsed into blocks.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Calls `read` with a buffer of `len` bytes; a buffer of moderate size is reused by the thread.
fn with_read_buffer<T>(len: usize, read: impl FnOnce(&mut [u8]) -> T) -> T {
    // Taken out of the cell, so that a nested use finds an empty buffer instead of a panic.
    let mut scratch = SCRATCH.take();
    if scratch.len() < len {
        scratch.resize(len, 0);
    }
    let result = read(&mut scratch[..len]);
    if scratch.len() <= SCRATCH_BYTES_MAX {
        SCRATCH.set(scratch);
    }
    result
}
