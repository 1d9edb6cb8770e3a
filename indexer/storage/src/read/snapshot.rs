//! An index at one epoch, as a scan reads it.

use std::sync::Arc;

use proto::model::ids::SliceNo;
use proto::model::index::IndexInfo;
use proto::rpc::scan::KeyRange;
use proto::{Error, ErrorCode, Result};

use crate::read::rows::Rows;

/// Whether a checksum is still wanted is looked at so often.
const LOOK_EVERY_ENTRIES: u64 = 4096;

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
