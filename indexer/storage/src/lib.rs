//! The slice store: what keeps the entries of an indexer's slices, their versions, and the back index
//! that says which entries a document has.
//!
//! [`SliceStore`] is what the rest of the indexer sees; [`FragmentStore`] keeps epochs as sorted runs in
//! memory and as fragments on disk. ARCHITECTURE.md has the map of the files here.

mod arrival;
mod block;
mod block_builder;
mod block_index;
mod builds;
mod bulk;
mod changes;
mod compact;
mod compaction;
mod compare;
mod cursor;
mod edits;
mod epoch;
mod files;
mod flush;
pub mod fragment;
pub mod fuzz;
pub mod garbage;
mod group_writer;
pub mod layout;
pub mod load_state;
mod loading;
pub mod log;
mod lookup;
pub mod manifest;
mod memtable;
mod merge;
mod open;
mod pacing;
mod packed;
mod rebuild;
mod rewrite;
mod rollback;
mod rows;
mod slot;
mod state;
mod store;
mod table;
mod transfer;
mod upkeep;
pub mod verify;
mod verify_slices;
mod versions;
mod visible;
mod writer;

pub use compare::Comparison;
pub use load_state::LoadState;
pub use manifest::Grouping;
pub use store::{FragmentStore, StoreOptions};
pub use transfer::{Export, Received, Refused};

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, Epoch, Generation, IndexId, Seqno, SliceId, SliceNo};
use proto::model::index::IndexInfo;
use proto::rpc::api::SliceProgress;
use proto::rpc::rows::RowBlockBuilder;
use proto::rpc::scan::KeyRange;
use proto::{Error, ErrorCode, Result};

/// Whether a checksum is still wanted is looked at so often.
const LOOK_EVERY_ENTRIES: u64 = 4096;

/// All that one epoch changes on this node.
#[derive(Clone, Debug)]
pub struct EpochBatch {
    /// The epoch.
    pub mark: EpochMark,
    /// The mutations that belong to it, in the order of their seqnos within each vbucket.
    pub pieces: Vec<Piece>,
}

/// Packed key-versions of one vbucket, of which the seqnos in `(after, to]` count.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Packed key-versions.
    pub body: Bytes,
    /// What their seqnos are relative to.
    pub base: Seqno,
    /// Mutations up to here belong to an earlier epoch.
    pub after: Seqno,
    /// Mutations above here belong to a later epoch.
    pub to: Seqno,
}

/// An index as a store has it.
#[derive(Clone, Debug)]
pub struct StoredIndex {
    /// Its definition and topology when its slices were made.
    pub info: Arc<IndexInfo>,
    /// The oldest epoch that its slices answer; `None` while they are being built.
    pub floor: Option<Epoch>,
    /// The newest epoch that it has; a crash may have left an index ahead of its bucket.
    pub newest: Epoch,
    /// The slices that are here, ascending, and the oldest epoch that each answers.
    pub slices: Vec<(SliceNo, Epoch)>,
}

impl StoredIndex {
    /// Is a slice here?
    pub fn has(&self, slice: SliceNo) -> bool {
        self.slices.iter().any(|(other, _)| *other == slice)
    }
}

/// How far a bucket's epochs have come on this node; each number is at or below the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The newest epoch that was handed to [`SliceStore::apply`].
    pub staged: Epoch,
    /// The newest epoch that scans see.
    pub committed: Epoch,
    /// The newest epoch that would survive a crash: the log is synced behind it, or its fragments are.
    pub durable: Epoch,
    /// The newest epoch that no longer needs the log: its fragments are synced and their manifests
    /// written.
    pub stable: Epoch,
}

/// What keeps the slices of a node.
///
/// Keys are self-delimiting (`proto::value::key`): none is a proper beginning of another, so that the order of
/// (key, id) is the order of their bytes back to back.
#[async_trait]
pub trait SliceStore: Send + Sync + 'static {
    /// The newest epoch applied to each bucket.
    fn applied(&self) -> Vec<EpochMark>;

    /// How far a bucket's epochs have come.
    fn counters(&self, bucket: BucketId) -> Counters;

    /// The newest epoch of a bucket that scans see; as in [`Self::counters`], without waiting for a
    /// writer.
    fn committed(&self, bucket: BucketId) -> Epoch {
        self.counters(bucket).committed
    }

    /// The indexes that it keeps.
    fn indexes(&self) -> Vec<StoredIndex>;

    /// Begins (or begins anew) to build the node's slices of an index: from now on the epochs are
    /// applied to it, but nothing is shown. `grouping` says whether its included values, if it has any,
    /// get fragments of their own.
    async fn begin_build(&self, info: Arc<IndexInfo>, grouping: Grouping) -> Result<()>;

    /// A backfill snapshot begins, at or behind the place where the build began: what an earlier one,
    /// cut short, has left is forgotten.
    async fn begin_backfill(&self, index: IndexId, generation: Generation) -> Result<()>;

    /// Takes documents of a backfill snapshot, each once.
    async fn backfill(
        &self,
        index: IndexId,
        generation: Generation,
        documents: Bytes,
    ) -> Result<()>;

    /// Ends a build: the slices show what the snapshot and the epochs since have made, from `mark`
    /// (the newest applied epoch, which must cover the snapshot's cut) on, also after a crash. What an
    /// epoch has said of a document outranks the snapshot.
    async fn finish_build(
        &self,
        index: IndexId,
        generation: Generation,
        mark: &EpochMark,
    ) -> Result<()>;

    /// Removes an index, also for what comes after a crash.
    async fn drop_index(&self, index: IndexId) -> Result<()>;

    /// Applies an epoch to all indexes of its bucket at once; waits while the store is short of memory.
    /// When this returns, scans see it.
    async fn apply(&self, batch: EpochBatch) -> Result<()>;

    /// Waits until an epoch of a bucket would survive a crash.
    async fn wait_durable(&self, bucket: BucketId, epoch: Epoch) -> Result<()>;

    /// Turns what is in memory into synced fragments: all epochs committed before the call are stable.
    async fn flush(&self) -> Result<()>;

    /// Merges each slice down to as few fragments as there can be, dropping what no epoch at or above
    /// the horizon needs.
    async fn compact(&self) -> Result<()>;

    /// Splits a slice at an entry: `low` has the entries before it, `high` those from it on, with all
    /// their versions; the slice itself is gone. Nothing is copied.
    async fn split(&self, slice: SliceId, at: &[u8], low: SliceNo, high: SliceNo) -> Result<()>;

    /// Makes `to` a slice with the same entries and versions. Nothing is copied.
    async fn clone_slice(&self, slice: SliceId, to: SliceNo) -> Result<()>;

    /// Removes one slice; scans in progress keep what they read.
    async fn drop_slice(&self, slice: SliceId) -> Result<()>;

    /// Divides the columns of an index anew, also for what comes after a crash. Nothing is copied: what
    /// is written from now on, also by compactions, follows the new division.
    async fn regroup(
        &self,
        index: IndexId,
        generation: Generation,
        grouping: Grouping,
    ) -> Result<()>;

    /// Can a slice that is here go back to an epoch: at or above its floor, or a rollback point that it has
    /// kept?
    fn can_go_back(&self, slice: SliceId, epoch: Epoch) -> bool;

    /// Goes back to an epoch, to which every slice of the bucket can go back: what is newer is gone, now
    /// and after a crash, and refused for ever, up to `dead_to` at least.
    async fn truncate(&self, mark: &EpochMark, dead_to: Epoch) -> Result<()>;

    /// An index as an epoch shows it; `SnapshotTooOld` below its floor, `Unavailable` while it is
    /// being built or the epoch is not applied, `SliceMoved` if it is not here.
    fn snapshot(
        &self,
        index: IndexId,
        generation: Generation,
        epoch: Epoch,
    ) -> Result<Arc<dyn Snapshot>>;

    /// Waits until an index is loaded, or known not to be here; what keeps it from being loaded is an
    /// error.
    async fn wait_loaded(&self, index: IndexId) -> Result<()>;

    /// Where each index is in its life on this node, the same for all of its slices.
    fn load_states(&self) -> Vec<(IndexId, LoadState)>;

    /// What there is of each slice.
    fn progress(&self) -> Vec<SliceProgress>;

    /// Bytes of memory.
    fn memory_bytes(&self) -> u64;
}

/// An index at one epoch; what it shows never changes, whatever is applied, flushed, compacted, split
/// or dropped meanwhile.
pub trait Snapshot: Send + Sync {
    /// The index.
    fn info(&self) -> &Arc<IndexInfo>;

    /// Is a slice here?
    fn has(&self, slice: SliceNo) -> bool;

    /// Can it be read without waiting for a disk?
    fn is_in_memory(&self) -> bool;

    /// Bytes of fragments' blocks that a walk over some slices may hold at once, about.
    fn walk_bytes(&self, _slices: &[SliceNo], _include: bool) -> usize {
        0
    }

    /// The entries of some slices in a range, merged in order or in reverse; included values are read
    /// only if asked for.
    fn rows(
        &self,
        slices: &[SliceNo],
        range: &KeyRange,
        reverse: bool,
        include: bool,
    ) -> Result<Box<dyn Rows>>;

    /// The additive checksum of what a slice shows, and how many entries that is.
    fn checksum(&self, slice: SliceNo) -> Result<(u64, u64)> {
        self.checksum_while(slice, &|| true)
    }

    /// The same, for as long as it is wanted, which is looked at every few thousand entries.
    fn checksum_while(&self, slice: SliceNo, wanted: &dyn Fn() -> bool) -> Result<(u64, u64)> {
        let mut rows = self.rows(&[slice], &KeyRange::all(), false, true)?;
        let (mut sum, mut entries) = (0u64, 0u64);
        while rows.next()? {
            if entries.is_multiple_of(LOOK_EVERY_ENTRIES) && !wanted() {
                return Err(Error::new(ErrorCode::Cancelled, "nobody waits for the checksum"));
            }
            let entry = xxhash_rust::xxh3::xxh3_64(rows.entry());
            sum = sum.wrapping_add(xxhash_rust::xxh3::xxh3_64_with_seed(rows.include(), entry));
            entries += 1;
        }
        Ok((sum, entries))
    }
}

/// Walks the visible entries of a snapshot. It keeps alive what it reads from.
pub trait Rows: Send {
    /// Goes to the next entry; false behind the last.
    fn next(&mut self) -> Result<bool>;

    /// Encoded key parts of the entry that [`Self::next`] found, then its document id.
    fn entry(&self) -> &[u8];

    /// Its encoded included values; empty if they were not asked for.
    fn include(&self) -> &[u8];

    /// Packs entries until the block has `bytes_max` bytes or there are `rows_max` more of them; false
    /// when there are none left.
    fn pack(
        &mut self,
        block: &mut RowBlockBuilder,
        bytes_max: usize,
        rows_max: u64,
    ) -> Result<bool> {
        for _ in 0..rows_max {
            if block.len() >= bytes_max {
                break;
            }
            if !self.next()? {
                return Ok(false);
            }
            block.push(self.entry(), self.include());
        }
        Ok(true)
    }
}

#[cfg(test)]
mod concurrency_tests;
