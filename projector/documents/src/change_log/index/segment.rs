//! The index of one log segment, which finds its runs. A run is a sequence of mutations of one
//! vbucket.
//!
//! The index is derived from the items of its segment alone. A rewind item removes later
//! mutations of its vbucket from the index, and a removal item removes all runs of its vbucket.
//! So the runs of a vbucket are contiguous and do not overlap. Items of later segments do not
//! change it; the directory (`directory.rs`) defines which runs are still valid.

use std::collections::BTreeMap;

use proto::model::ids::{Seqno, VbucketId};
use storage::log::Lsn;

use crate::change_log::items::state::Change;

/// The entry of a run in the index of a segment: 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::change_log) struct RunEntry {
    pub(in crate::change_log) first: Seqno,
    /// The bytes of the vbucket's log before the run.
    pub(in crate::change_log) bytes_before: u64,
    /// LSN of the run's item.
    pub(in crate::change_log) lsn: Lsn,
    /// The number of bytes of the item.
    pub(in crate::change_log) item_bytes: u32,
    /// The number of valid mutations of the run. The item contains more if a rewind has removed
    /// some.
    pub(super) count: u32,
}

impl RunEntry {
    pub(in crate::change_log) fn last(&self) -> Seqno {
        Seqno(self.first.0 + u64::from(self.count) - 1)
    }
}

/// The first and the last seqno of a vbucket's mutations in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::change_log) struct SeqnoRange {
    pub(in crate::change_log) vbucket: VbucketId,
    pub(in crate::change_log) first: Seqno,
    pub(in crate::change_log) last: Seqno,
}

/// The index of the runs of one segment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::change_log) struct SegmentIndex {
    pub(in crate::change_log) base: Lsn,
    runs: BTreeMap<VbucketId, Vec<RunEntry>>,
}

impl SegmentIndex {
    pub(in crate::change_log) fn new(base: Lsn) -> Self {
        Self { base, runs: BTreeMap::new() }
    }

    /// Applies the change that an item of this segment makes to a vbucket.
    pub(in crate::change_log) fn apply(&mut self, vbucket: VbucketId, change: &Change, lsn: Lsn) {
        match *change {
            _ if change.clears_vbucket() => {
                self.runs.remove(&vbucket);
            }
            Change::Run { first, last, bytes_before, item_bytes, .. } => {
                let count = (last.0 - first.0 + 1) as u32;
                let run = RunEntry { first, bytes_before, lsn, item_bytes, count };
                self.runs.entry(vbucket).or_default().push(run);
            }
            Change::Rewind { to, .. } => self.cut(vbucket, to),
            _ => {}
        }
    }

    /// Removes the mutations of a vbucket after the seqno `to`.
    fn cut(&mut self, vbucket: VbucketId, to: Seqno) {
        let Some(runs) = self.runs.get_mut(&vbucket) else { return };
        runs.truncate(runs.partition_point(|run| run.first <= to));
        match runs.last_mut() {
            Some(last) => last.count = last.count.min((to.0 - last.first.0 + 1) as u32),
            None => {
                self.runs.remove(&vbucket);
            }
        }
    }

    /// Returns the runs of a vbucket, in the order of their seqnos.
    pub(in crate::change_log) fn runs(&self, vbucket: VbucketId) -> &[RunEntry] {
        self.runs.get(&vbucket).map_or(&[], Vec::as_slice)
    }

    /// Returns the vbuckets that have runs in the segment, with their runs.
    pub(in crate::change_log) fn vbuckets(&self) -> impl Iterator<Item = (VbucketId, &[RunEntry])> {
        self.runs.iter().map(|(vbucket, runs)| (*vbucket, runs.as_slice()))
    }

    /// Returns the range of seqnos of each vbucket that has mutations in the segment.
    pub(in crate::change_log) fn ranges(&self) -> Vec<SeqnoRange> {
        let range = |(vbucket, runs): (VbucketId, &[RunEntry])| {
            let (first, last) = (runs.first()?.first, runs.last()?.last());
            Some(SeqnoRange { vbucket, first, last })
        };
        self.vbuckets().filter_map(range).collect()
    }
}

/// Returns the index in `runs` of the run with a seqno; `None` if no run has it.
pub(in crate::change_log) fn position_of(runs: &[RunEntry], seqno: Seqno) -> Option<usize> {
    let at = runs.partition_point(|run| run.first <= seqno).checked_sub(1)?;
    (runs[at].last() >= seqno).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(first: u64, last: u64) -> Change {
        let (first, last) = (Seqno(first), Seqno(last));
        Change::Run { first, last, bytes_before: first.0 * 10, bytes: 10, item_bytes: 100 }
    }

    #[test]
    fn rewind_and_removal_shorten_the_index() {
        let (mut index, v) = (SegmentIndex::new(7), VbucketId(3));
        index.apply(v, &run(5, 9), 10);
        index.apply(v, &run(10, 12), 20);
        index.apply(v, &Change::Rewind { to: Seqno(7), bytes: 0 }, 30);
        index.apply(v, &run(8, 8), 40);
        let places: Vec<_> =
            index.runs(v).iter().map(|run| (run.first.0, run.last().0, run.lsn)).collect();
        assert_eq!(places, [(5, 7, 10), (8, 8, 40)]);
        assert_eq!(position_of(index.runs(v), Seqno(8)), Some(1));
        assert_eq!(position_of(index.runs(v), Seqno(9)), None);
        index.apply(v, &Change::Rewind { to: Seqno(4), bytes: 0 }, 50);
        assert!(index.ranges().is_empty(), "all runs are beyond the rewind");
        index.apply(v, &run(5, 5), 60);
        index.apply(v, &Change::Remove, 70);
        assert!(index.runs(v).is_empty());
    }
}
