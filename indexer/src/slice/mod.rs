//! The slice store: what keeps the entries of an indexer's slices, their versions, and the back index
//! that says which entries a document has.
//!
//! [`SliceStore`] is what the rest of the indexer sees. [`memory::MemoryStore`] keeps epoch runs in
//! memory and a commit log on disk, whole, from which it recovers; the fragment engine takes its place
//! behind the same trait.

pub mod back_index;
pub mod build;
mod changes;
pub mod commit_log;
pub mod compaction;
pub mod memory;
pub mod merge;
pub mod record;
pub mod run;
mod slot;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use proto::Result;
use proto::api::SliceProgress;
use proto::cut::EpochMark;
use proto::ids::{BucketId, Epoch, Generation, IndexId, Seqno, SliceId, SliceNo};
use proto::index::IndexInfo;
use proto::scan::KeyRange;

use merge::Merge;
use run::Run;

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
}

/// What keeps the slices of a node.
#[async_trait]
pub trait SliceStore: Send + Sync + 'static {
    /// The newest epoch applied to each bucket.
    fn applied(&self) -> Vec<EpochMark>;

    /// The newest epoch applied to a bucket.
    fn applied_epoch(&self, bucket: BucketId) -> Option<Epoch>;

    /// The indexes that it keeps.
    fn indexes(&self) -> Vec<StoredIndex>;

    /// Begins (or begins anew) to build the node's slices of an index: from now on the epochs are
    /// gathered for it.
    fn begin_build(&self, info: Arc<IndexInfo>);

    /// Takes documents of a backfill snapshot.
    async fn backfill(
        &self,
        index: IndexId,
        generation: Generation,
        documents: Bytes,
    ) -> Result<()>;

    /// Ends a build: the slices show what the snapshot and the epochs since have made, from `mark`
    /// (the newest applied epoch, which must cover the snapshot's cut) on.
    async fn finish_build(
        &self,
        index: IndexId,
        generation: Generation,
        mark: &EpochMark,
    ) -> Result<()>;

    /// Removes an index.
    async fn drop_index(&self, index: IndexId) -> Result<()>;

    /// Applies an epoch to all indexes of its bucket at once. When this returns, scans see it.
    async fn apply(&self, batch: EpochBatch) -> Result<()>;

    /// The newest epoch of a bucket that would survive a crash.
    fn durable_epoch(&self, bucket: BucketId) -> Epoch;

    /// An index as an epoch shows it; `SnapshotTooOld` below its floor, `Unavailable` while it is
    /// being built or the epoch is not applied, `SliceMoved` if it is not here.
    fn snapshot(&self, index: IndexId, generation: Generation, epoch: Epoch) -> Result<Snapshot>;

    /// What there is of each slice.
    fn progress(&self) -> Vec<SliceProgress>;

    /// Bytes of memory.
    fn memory_bytes(&self) -> u64;
}

/// An index at one epoch; what it shows never changes, whatever is applied or compacted meanwhile.
#[derive(Clone)]
pub struct Snapshot {
    /// The index.
    pub info: Arc<IndexInfo>,
    /// The epoch.
    pub epoch: Epoch,
    runs: Vec<Arc<Run>>,
}

impl Snapshot {
    /// The entries of some slices in a range, merged in order.
    pub fn merge(&self, slices: &[SliceNo], range: &KeyRange, reverse: bool) -> Merge {
        Merge::new(&self.runs, slices, range, self.epoch, reverse)
    }

    /// The additive checksum of what a slice shows, and how many entries that is.
    pub fn checksum(&self, slice: SliceId) -> (u64, u64) {
        let mut merge = self.merge(&[slice.slice], &KeyRange::all(), false);
        let (mut sum, mut entries) = (0u64, 0);
        while let Some(found) = merge.next_visible() {
            let entry = xxhash_rust::xxh3::xxh3_64(merge.entry(found));
            sum =
                sum.wrapping_add(xxhash_rust::xxh3::xxh3_64_with_seed(merge.include(found), entry));
            entries += 1;
        }
        (sum, entries)
    }
}
