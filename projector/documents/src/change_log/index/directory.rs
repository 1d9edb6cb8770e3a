//! The visible part of a change log: the position of each vbucket, and the segments with its
//! mutations.
//!
//! The *directory* of a vbucket lists the segments with its retained mutations, by the first seqno
//! in each. A run invalidates all mutations of earlier segments at or after its first seqno,
//! because there must have been a rewind in between. So each seqno up to the end is valid in
//! exactly one segment, and in exactly one run of it.

use std::collections::VecDeque;
use std::sync::Arc;

use proto::model::ids::{Seqno, VbucketId};
use storage::log::Lsn;

use super::segment::{SegmentIndex, SeqnoRange};
use crate::change_log::items::state::{Change, VbucketState};
use crate::document_store::LogExtent;

/// The position of one vbucket, and the segments with its mutations.
#[derive(Clone, Debug, Default)]
pub(in crate::change_log) struct VbucketIndex {
    pub(in crate::change_log) state: VbucketState,
    /// The number of rewinds, removals and beginnings since the log was opened.
    pub(in crate::change_log) history: u64,
    /// For each segment with retained mutations, the first seqno in it and the LSN of its
    /// beginning, oldest first.
    segments: VecDeque<(Seqno, Lsn)>,
}

/// A logged change that is not visible yet.
#[derive(Clone, Copy, Debug)]
pub(in crate::change_log) struct PlacedChange {
    pub(in crate::change_log) vbucket: VbucketId,
    pub(in crate::change_log) change: Change,
    /// LSN of the change's item; `segment` is the LSN of its segment's beginning.
    pub(in crate::change_log) lsn: Lsn,
    pub(in crate::change_log) segment: Lsn,
}

/// The visible part of a change log.
#[derive(Debug)]
pub(in crate::change_log) struct LogIndex {
    pub(in crate::change_log) vbuckets: Vec<VbucketIndex>,
    /// The index of the last segment.
    pub(in crate::change_log) tail: SegmentIndex,
    /// Closed segments whose side files are not written yet.
    pub(in crate::change_log) closed: Vec<Arc<SegmentIndex>>,
    /// The LSN up to which the log is visible.
    pub(in crate::change_log) end: Lsn,
}

impl VbucketIndex {
    /// Returns the segment that has a seqno, and the last seqno that is valid in it.
    pub(in crate::change_log) fn segment_of(&self, seqno: Seqno) -> Option<(Lsn, Seqno)> {
        let behind = self.segments.partition_point(|(first, _)| *first <= seqno);
        let (_, base) = *self.segments.get(behind.checked_sub(1)?)?;
        let next = self.segments.get(behind).map(|(first, _)| Seqno(first.0 - 1));
        Some((base, next.unwrap_or(self.state.extent.end)))
    }

    /// Adds a segment, newer than all others, with its first retained seqno.
    fn push(&mut self, first: Seqno, base: Lsn) {
        self.cut(first);
        self.segments.push_back((first, base));
    }

    /// Removes the segments that begin at or after a seqno.
    fn cut(&mut self, from: Seqno) {
        while self.segments.back().is_some_and(|(first, _)| *first >= from) {
            self.segments.pop_back();
        }
    }

    /// Removes the segments whose mutations are all purged.
    fn trim(&mut self) {
        let LogExtent { purged, end, .. } = self.state.extent;
        if purged == end {
            self.segments.clear();
        }
        while self.segments.get(1).is_some_and(|(next, _)| next.0 <= purged.0 + 1) {
            self.segments.pop_front();
        }
    }

    /// Returns the oldest segment with retained mutations.
    pub(in crate::change_log) fn oldest(&self) -> Option<Lsn> {
        self.segments.front().map(|(_, base)| *base)
    }

    /// Returns the last seqno in the segments before an LSN; `None` if none of these has retained
    /// mutations.
    fn last_before(&self, lsn: Lsn) -> Option<Seqno> {
        self.oldest().filter(|oldest| *oldest < lsn)?;
        let behind = self.segments.iter().find(|(_, base)| *base >= lsn);
        Some(behind.map_or(self.state.extent.end, |(first, _)| Seqno(first.0 - 1)))
    }

    fn apply(&mut self, change: &Change, segment: Lsn) {
        match change {
            _ if change.clears() => {
                self.segments.clear();
                self.history += 1;
            }
            Change::Run { first, .. }
                if self.segments.back().is_none_or(|(_, base)| *base != segment) =>
            {
                self.push(*first, segment);
            }
            Change::Rewind { to, .. } => {
                self.cut(Seqno(to.0 + 1));
                self.history += 1;
            }
            _ => {}
        }
    }
}

impl LogIndex {
    /// Creates an index without segments; [`Self::add_segment`] and [`Self::finish`] fill its
    /// directory.
    pub(in crate::change_log) fn new(
        states: &[VbucketState],
        tail: SegmentIndex,
        end: Lsn,
    ) -> Self {
        let vbucket = |state: &VbucketState| VbucketIndex { state: *state, ..Default::default() };
        let vbuckets = states.iter().map(vbucket).collect();
        Self { vbuckets, tail, closed: Vec::new(), end }
    }

    /// Adds the seqno ranges of the next segment. Returns the first range that leaves a gap after
    /// the earlier segments as an error.
    pub(in crate::change_log) fn add_segment(
        &mut self,
        base: Lsn,
        segment_end: Lsn,
        ranges: &[SeqnoRange],
        lasts: &mut [Seqno],
    ) -> Result<(), SeqnoRange> {
        for range in ranges {
            let at = usize::from(range.vbucket.0);
            let Some(vbucket) = self.vbuckets.get_mut(at) else { return Err(*range) };
            if segment_end <= vbucket.state.begun {
                continue;
            }
            let is_gap = !vbucket.segments.is_empty() && range.first.0 > lasts[at].0 + 1;
            if is_gap {
                let (first, last) = (Seqno(lasts[at].0 + 1), Seqno(range.first.0 - 1));
                return Err(SeqnoRange { first, last, ..*range });
            }
            vbucket.push(range.first, base);
            lasts[at] = range.last;
        }
        Ok(())
    }

    /// Completes the directory, in which the segments must reach the end of each vbucket. Returns
    /// missing seqnos of a vbucket as an error.
    pub(in crate::change_log) fn finish(&mut self, lasts: &[Seqno]) -> Result<(), SeqnoRange> {
        for (at, (vbucket, last)) in self.vbuckets.iter_mut().zip(lasts).enumerate() {
            let LogExtent { purged, end, .. } = vbucket.state.extent;
            vbucket.cut(Seqno(end.0 + 1));
            vbucket.trim();
            let id = VbucketId(at as u16);
            let missing = |first, last| Err(SeqnoRange { vbucket: id, first, last });
            let begin = Seqno(purged.0 + 1);
            match vbucket.segments.front() {
                _ if purged == end => {}
                None => return missing(begin, end),
                Some((first, _)) if *first > begin => return missing(begin, Seqno(first.0 - 1)),
                Some(_) if *last < end => return missing(Seqno(last.0 + 1), end),
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Returns the last seqno in the segments before an LSN, for each vbucket with retained
    /// mutations in one of these segments.
    pub(in crate::change_log) fn lasts_before(&self, lsn: Lsn) -> Vec<(VbucketId, Seqno)> {
        let last =
            |(vbucket, n): (&VbucketIndex, u16)| Some((VbucketId(n), vbucket.last_before(lsn)?));
        self.vbuckets.iter().zip(0..).filter_map(last).collect()
    }

    /// Makes changes visible, with the resulting states of the vbuckets.
    pub(in crate::change_log) fn publish(
        &mut self,
        changes: &mut Vec<PlacedChange>,
        states: &[VbucketState],
        end: Lsn,
    ) {
        for PlacedChange { vbucket, change, lsn, segment } in changes.iter() {
            if *segment != self.tail.base {
                let closed = std::mem::replace(&mut self.tail, SegmentIndex::new(*segment));
                self.closed.push(Arc::new(closed));
            }
            self.tail.apply(*vbucket, change, *lsn);
            self.vbuckets[usize::from(vbucket.0)].apply(change, *segment);
        }
        for PlacedChange { vbucket, .. } in changes.drain(..) {
            let at = usize::from(vbucket.0);
            self.vbuckets[at].state = states[at];
            self.vbuckets[at].trim();
        }
        self.end = end;
    }
}
