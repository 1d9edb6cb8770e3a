//! Counts of the entries that are visible at an epoch.

use proto::Result;
use proto::model::ids::Epoch;

use crate::read::rows::Rows;
use crate::read::source::Source;
use crate::read::visible_rows::VisibleRows;

/// Counts the entries of `sources` that are visible at the newest of their epochs.
pub fn count(sources: Vec<Source>) -> Result<u64> {
    count_at(sources, Epoch(u64::MAX))
}

/// Counts the entries of `sources` that are visible at an epoch.
pub fn count_at(sources: Vec<Source>, epoch: Epoch) -> Result<u64> {
    let mut rows = VisibleRows::new(sources, epoch, false, false)?;
    let mut entries = 0;
    while rows.next()? {
        entries += 1;
    }
    Ok(entries)
}
