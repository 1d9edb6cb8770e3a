//! The trait of snapshots: an index at one epoch, as a scan reads it.

use std::sync::Arc;

use proto::model::ids::SliceNo;
use proto::model::index::IndexInfo;
use proto::plant::{self, Plant};
use proto::rpc::scan::KeyRange;
use proto::{Error, ErrorCode, Result};

use crate::read::rows::Rows;

/// The number of entries between two checks of whether a checksum is still needed.
const LOOK_EVERY_ENTRIES: u64 = 4096;

/// A snapshot: an index at one epoch. Its content never changes, even if the index is written,
/// flushed, compacted, split or dropped meanwhile.
pub trait Snapshot: Send + Sync {
    /// Returns the definition of the index.
    fn info(&self) -> &Arc<IndexInfo>;

    /// Returns true if a slice is on this node.
    fn has(&self, slice: SliceNo) -> bool;

    /// Returns a copy of the snapshot for reads that must not wait: a read of a block that is not
    /// in memory fails with [`ErrorCode::NotInMemory`], and the caller restarts its read.
    fn without_waiting(&self) -> Arc<dyn Snapshot>;

    /// Returns the approximate bytes of fragment blocks that a walk over some slices uses at once.
    fn walk_bytes(&self, _slices: &[SliceNo], _include: bool) -> usize {
        0
    }

    /// Returns the approximate number of cursors that a walk over some slices opens.
    fn cursors(&self, slices: &[SliceNo], _include: bool) -> usize {
        slices.len()
    }

    /// Walks the entries of some slices in a range, merged into one order, forward or in reverse.
    /// Included values are read only if `include` is true.
    fn rows(
        &self,
        slices: &[SliceNo],
        range: &KeyRange,
        reverse: bool,
        include: bool,
    ) -> Result<Box<dyn Rows>>;

    /// Returns an additive checksum of a slice's entries, and their number.
    fn checksum(&self, slice: SliceNo) -> Result<(u64, u64)> {
        self.checksum_while(slice, &|| true)
    }

    /// Computes the checksum like [`Self::checksum`], but fails once `wanted` returns false.
    /// `wanted` is called every few thousand entries.
    fn checksum_while(&self, slice: SliceNo, wanted: &dyn Fn() -> bool) -> Result<(u64, u64)> {
        let mut rows = self.rows(&[slice], &KeyRange::all(), false, true)?;
        let (mut sum, mut entries) = (0u64, 0u64);
        while rows.next()? {
            if entries.is_multiple_of(LOOK_EVERY_ENTRIES) && !wanted() {
                return Err(Error::new(
                    ErrorCode::Cancelled,
                    "the checksum is not wanted any more",
                ));
            }
            let entry = xxhash_rust::xxh3::xxh3_64(rows.entry());
            let include = if plant::is(Plant::ChecksumBlind) { &[] } else { rows.include() };
            sum = sum.wrapping_add(xxhash_rust::xxh3::xxh3_64_with_seed(include, entry));
            entries += 1;
        }
        Ok((sum, entries))
    }
}
