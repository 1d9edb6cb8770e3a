//! Writer of fragments.

use std::sync::Arc;

use proto::model::ids::Epoch;
use proto::plant::{self, Plant};
use proto::{Error, ErrorCode, Result};

use crate::fragment::blob_store::{BlobStore, BlobWriter};
use crate::fragment::cache::BlockCache;
use crate::fragment::compression::Compression;
use crate::fragment::filter::{Filter, LINE_BYTES, filter_hash};
use crate::fragment::format::{FragmentHeader, FragmentTrailer, HEADER_BYTES, MetaRef};
use crate::fragment::reader::{Fragment, OpenFragment};
use crate::fragment::stored_block::{Encoder, put_again};
use crate::rows::block::Block;
use crate::rows::block_index::BlockIndex;
use crate::rows::row::RowVersion;
use crate::rows::sinks::BlockSink;
use crate::rows::stats::TableStats;

/// Size of a write in bytes: large enough that the cost of the system call is small compared with
/// the copy, and small enough for many concurrent writers.
const WRITE_BYTES: usize = 256 << 10;

/// Number of keys that are added to the filter at a time.
const FILTER_BATCH: usize = 64;

/// Options of a new fragment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FragmentOptions {
    /// Compression of the blocks.
    pub compression: Compression,
    /// Approximate number of rows for the filter over their keys; `None` for no filter.
    pub filter_rows: Option<u64>,
    /// Columns of the rows, as in `rows::columns::Columns`.
    pub columns: u64,
    /// True for a fragment whose rows get one epoch when it is finished
    /// ([`FragmentWriter::finish_stamped`]).
    pub is_stamped: bool,
}

/// Writer of a table's blocks into a new fragment file.
///
/// A writer that is dropped before [`Self::finish`] leaves a file that no manifest names; garbage
/// collection deletes it.
pub struct FragmentWriter {
    /// Name of the blob in errors.
    name: String,
    id: u64,
    blob: Box<dyn BlobWriter>,
    cache: Arc<BlockCache>,
    seed: u32,
    encoder: Encoder,
    filter: Option<Filter>,
    /// Hashes of keys that wait to be added to the filter together.
    hashes: Vec<u64>,
    columns: u64,
    is_stamped: bool,
    /// The bytes that are not written yet, and in the next field their offset in the file.
    buffer: Vec<u8>,
    buffer_offset: u64,
    /// The number of blocks written so far.
    blocks: u32,
    /// True if all further blocks are also put into the cache.
    warm: bool,
}

impl FragmentWriter {
    /// Creates a fragment in a store; its blocks will be read through `cache`. It is an error if a
    /// blob with that id exists.
    pub fn create(
        blobs: &dyn BlobStore,
        id: u64,
        cache: &Arc<BlockCache>,
        options: &FragmentOptions,
    ) -> Result<Self> {
        let name = blobs.name(id);
        let blob = blobs
            .create(id)
            .map_err(|error| Error::from(error).context(format!("create {name}")))?;
        let (header, seed) = FragmentHeader { id, is_stamped: options.is_stamped }.encode();
        let mut buffer = Vec::with_capacity(WRITE_BYTES + WRITE_BYTES / 8);
        buffer.extend_from_slice(&header);
        Ok(Self {
            name,
            id,
            blob,
            cache: Arc::clone(cache),
            seed,
            encoder: Encoder::new(options.compression)?,
            filter: options.filter_rows.map(Filter::for_keys),
            hashes: Vec::with_capacity(FILTER_BATCH),
            columns: options.columns,
            is_stamped: options.is_stamped,
            buffer,
            buffer_offset: 0,
            blocks: 0,
            warm: false,
        })
    }

    /// Returns the id of the file.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Puts all further blocks into the cache too: used for a table that replaces tables whose
    /// blocks are cached.
    pub fn cache_new_blocks(&mut self) {
        self.warm = true;
    }

    /// Writes a block; returns its offset and length.
    fn write_block(&mut self, block: &[u8]) -> Result<(u64, u32)> {
        let (offset, from) = (self.offset(), self.buffer.len());
        self.encoder.append_block(self.seed, offset, block, &mut self.buffer)?;
        self.end_block(offset, from)
    }

    /// Writes a block in the form in which another file stores it, so that it need not be
    /// compressed again. Returns its offset and length.
    pub fn put_stored(&mut self, stored: &[u8]) -> Result<(u64, u32)> {
        let (offset, from) = (self.offset(), self.buffer.len());
        put_again(self.seed, offset, stored, &mut self.buffer);
        self.end_block(offset, from)
    }

    /// Counts a block that was appended to the buffer at `from`, and writes a full buffer to the
    /// file. Returns the block's offset and length in the file.
    fn end_block(&mut self, offset: u64, from: usize) -> Result<(u64, u32)> {
        let len = u32::try_from(self.buffer.len() - from).map_err(|_| {
            let what = format!("a block of {} is above 4 GiB", self.name);
            Error::new(ErrorCode::OverLimit, what)
        })?;
        if self.buffer.len() >= WRITE_BYTES {
            self.write_buffer()?;
        }
        self.blocks += 1;
        Ok((offset, len))
    }

    /// Adds the hash of a key to the filter, if there is one.
    pub fn add_hash(&mut self, hash: u64) {
        if self.filter.is_some() {
            self.hashes.push(hash);
            if self.hashes.len() == FILTER_BATCH {
                self.fill_filter();
            }
        }
    }

    /// Makes the bytes that were written to the file durable. Bytes in the buffer stay there.
    pub fn sync(&mut self) -> Result<()> {
        if plant::is(Plant::FragmentsNotSynced) {
            return Ok(());
        }
        self.blob.sync().map_err(|error| Error::from(error).context(format!("sync {}", self.name)))
    }

    /// Returns the offset in the file at which the next block begins.
    fn offset(&self) -> u64 {
        self.buffer_offset + self.buffer.len() as u64
    }

    fn write_buffer(&mut self) -> Result<()> {
        self.blob.append(&self.buffer).map_err(|error| {
            Error::from(error)
                .context(format!("write {} at offset {}", self.name, self.buffer_offset))
        })?;
        self.buffer_offset = self.offset();
        self.buffer.clear();
        Ok(())
    }

    /// Writes all blocks so far and makes them durable, so that little work is left when the
    /// fragment is finished.
    pub fn sync_blocks(&mut self) -> Result<()> {
        self.write_buffer()?;
        self.sync()
    }

    /// Finishes a stamped fragment: all its rows get this epoch, and no block is rewritten.
    pub fn finish_stamped(
        self,
        epoch: Epoch,
        stats: TableStats,
        index: BlockIndex,
    ) -> Result<OpenFragment> {
        self.finish(TableStats { oldest: epoch, newest: epoch, ..stats }, index)
    }

    /// Writes the rest of the table, syncs the file, and opens it. The file's name becomes durable
    /// only when the caller syncs the directory, once for all fragments.
    pub fn finish(self, stats: TableStats, index: BlockIndex) -> Result<OpenFragment> {
        self.finish_unsynced(stats, index)?.sync()
    }

    /// Writes the rest of the table and ends the file, which the caller must sync.
    pub fn finish_unsynced(
        mut self,
        stats: TableStats,
        index: BlockIndex,
    ) -> Result<UnsyncedFragment> {
        let meta_offset = self.offset();
        let meta = MetaRef { columns: self.columns, stats: &stats, index: &index };
        let meta = postcard::to_allocvec(&meta)
            .map_err(|error| Error::internal(format!("cannot encode a meta section: {error}")))?;
        let meta_bytes = u32::try_from(meta.len()).map_err(|_| {
            let what = format!("the sparse index of {} is above 4 GiB", self.name);
            Error::new(ErrorCode::OverLimit, what)
        })?;
        self.buffer.extend_from_slice(&meta);
        self.fill_filter();
        let filter = self.filter.take();
        let trailer = FragmentTrailer {
            meta_offset,
            meta_bytes,
            filter_lines: filter.as_ref().map_or(0, |filter| filter.lines() as u32),
            meta_crc: crc32c::crc32c_append(self.seed, &meta),
            filter_crc: self.put_filter(filter.as_ref())?,
        };
        self.buffer.extend_from_slice(&trailer.encode(self.seed));
        self.write_buffer()?;
        self.buffer = Vec::new();
        Ok(UnsyncedFragment { writer: self, stats, index, filter, meta_offset })
    }

    /// Adds the waiting hashes to the filter.
    fn fill_filter(&mut self) {
        if let Some(filter) = &mut self.filter {
            filter.insert_all(&self.hashes);
        }
        self.hashes.clear();
    }

    /// Appends the filter; returns its checksum.
    fn put_filter(&mut self, filter: Option<&Filter>) -> Result<u32> {
        let mut crc = self.seed;
        let Some(filter) = filter else { return Ok(crc) };
        for lines in filter.chunks(WRITE_BYTES / LINE_BYTES) {
            let from = self.buffer.len();
            lines.for_each(|word| self.buffer.extend_from_slice(&word.to_le_bytes()));
            crc = crc32c::crc32c_append(crc, &self.buffer[from..]);
            self.write_buffer()?;
        }
        Ok(crc)
    }
}

/// A complete fragment whose content is not durable yet.
#[derive(Debug)]
pub struct UnsyncedFragment {
    writer: FragmentWriter,
    stats: TableStats,
    index: BlockIndex,
    filter: Option<Filter>,
    meta_offset: u64,
}

impl UnsyncedFragment {
    /// Makes the content durable, but not the name, and opens the fragment.
    pub fn sync(mut self) -> Result<OpenFragment> {
        self.writer.sync()?;
        Ok(self.open())
    }

    /// Opens the fragment without syncing it, for a file that need not survive a crash.
    pub fn open(self) -> OpenFragment {
        let Self { writer, stats, index, filter, meta_offset } = self;
        let FragmentWriter { name, id, blob, cache, seed, columns, buffer_offset: bytes, .. } =
            writer;
        let (blob, written_id, blocks) = (blob.into_blob(), id, index.blocks());
        let stamp = writer.is_stamped.then_some(stats.oldest);
        let fragment = Fragment {
            name,
            id,
            written_id,
            blob,
            cache,
            seed,
            columns,
            bytes,
            blocks,
            filter,
            stamp,
        };
        let block_bytes = meta_offset - HEADER_BYTES;
        OpenFragment { fragment: Arc::new(fragment), stats, index, block_bytes }
    }
}

impl BlockSink for FragmentWriter {
    fn row(&mut self, row: &RowVersion<'_>) {
        if self.filter.is_some() {
            self.add_hash(filter_hash(row.key));
        }
    }

    fn block(&mut self, block: Vec<u8>) -> Result<(u64, u32)> {
        let place = self.write_block(&block)?;
        if self.warm {
            let block = Block::parse(block.into_boxed_slice())?;
            self.cache.put(self.id, self.blocks - 1, Arc::new(block));
        }
        Ok(place)
    }

    /// Appends a block that is already in memory, and puts it into the cache.
    fn shared_block(&mut self, block: &Arc<Block>) -> Result<(u64, u32)> {
        let place = self.write_block(block.bytes())?;
        self.cache.put(self.id, self.blocks - 1, Arc::clone(block));
        Ok(place)
    }
}

impl std::fmt::Debug for FragmentWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FragmentWriter({})", self.name)
    }
}
