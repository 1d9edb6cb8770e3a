//! Merges the rows of several tables into one, and leaves out the versions that no read can need.

use std::sync::atomic::{AtomicBool, Ordering};

use proto::model::ids::VbucketId;
use proto::{Error, Result};
use storage::fragment::filter_hash;
use storage::layers::{Block, BlockSink, Merge, RowVersion, Source, TableBuilder};

use crate::table::dead::DeadList;
use crate::table::retention::{NeededVersions, Retention};
use crate::table::version::{RowView, SLICE, vbucket_of_hash};

/// The settings of a merge of neighbouring tables.
#[derive(Debug)]
pub(super) struct Rewrite<'a> {
    /// The dead (invalid) versions, which are left out.
    pub dead: &'a DeadList,
    /// The states that may still be read. Versions that no such state needs are left out; `None`
    /// keeps all valid versions.
    pub retention: Option<&'a Retention>,
    /// True if there is no table with older versions.
    pub is_at_bottom: bool,
    /// Number of vbuckets of the bucket.
    pub vbuckets: u16,
    /// Cancels the merge with an error when it becomes true; `None` if the merge cannot be
    /// cancelled.
    pub stop: Option<&'a AtomicBool>,
}

/// The number of rows after which a merge checks [`Rewrite::stop`] again.
const STOP_ROWS: u32 = 1024;

impl Rewrite<'_> {
    /// Merges the rows of `sources`, which are ordered from the newest to the oldest, into `out`.
    /// Returns the number of documents with remaining versions.
    pub fn run<S: BlockSink>(
        &self,
        sources: Vec<Source>,
        out: &mut TableBuilder<S>,
    ) -> Result<u64> {
        let mut merge = Merge::new(sources, false)?;
        let mut document = DocumentMerge::default();
        let mut joined = Vec::new();
        let (mut documents, mut rows) = (0, 0_u32);
        while let Some(cursor) = merge.next_row() {
            let (block, row) = cursor.block_and_row();
            if !document.has(block, row) {
                document.begin(self, block, row);
            }
            let version = RowView::of(block, row)?;
            if document.needs(self, &version)? {
                let [prefix, mut value] = block.value_pieces(row);
                if !prefix.is_empty() {
                    joined.clear();
                    joined.extend_from_slice(prefix);
                    joined.extend_from_slice(value);
                    value = &joined;
                }
                let (key, id, epoch) = (&document.id[..], &[][..], block.epoch(row));
                let tombstone = version.is_tombstone;
                documents += u64::from(!std::mem::replace(&mut document.is_written, true));
                out.push(&RowVersion { slice: SLICE, key, id, value, epoch, tombstone })?;
            }
            merge.skip_row()?;
            rows += 1;
            if rows.is_multiple_of(STOP_ROWS)
                && self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
            {
                return Err(Error::unavailable("the store is being closed"));
            }
        }
        Ok(documents)
    }
}

/// The progress of a merge in one document, whose versions it reads from the newest to the
/// oldest.
#[derive(Debug, Default)]
struct DocumentMerge {
    id: Vec<u8>,
    vbucket: VbucketId,
    /// The filter of needed versions; `None` if all versions are needed.
    needed: Option<NeededVersions>,
    /// The place of the document's previous version; `None` before the first document.
    place: Option<u64>,
    /// True if a version of the document was written.
    is_written: bool,
}

impl DocumentMerge {
    fn has(&self, block: &Block, row: u32) -> bool {
        self.place.is_some() && block.compare(row, &self.id).is_eq()
    }

    fn begin(&mut self, rewrite: &Rewrite<'_>, block: &Block, row: u32) {
        self.id.clear();
        block.put_entry(row, &mut self.id);
        self.vbucket = vbucket_of_hash(filter_hash(&self.id), rewrite.vbuckets);
        let needed = |retention: &Retention| NeededVersions::new(retention.floor(self.vbucket));
        self.needed = rewrite.retention.map(needed);
        self.place = Some(u64::MAX);
        self.is_written = false;
    }

    fn needs(&mut self, rewrite: &Rewrite<'_>, version: &RowView<'_>) -> Result<bool> {
        if self.place.is_some_and(|newer| version.place >= newer) {
            // The rule of the retention holds only in this order.
            return Err(Error::internal("the versions of a document do not come newest first"));
        }
        self.place = Some(version.place);
        if rewrite.dead.has(self.vbucket, version.place, version.seqno) {
            return Ok(false);
        }
        let Some(needed) = &mut self.needed else { return Ok(true) };
        let is_void = rewrite.is_at_bottom
            && version.is_tombstone
            && needed.is_at_or_below_floor(version.seqno);
        Ok(needed.is_needed(version.seqno) && !is_void)
    }
}
