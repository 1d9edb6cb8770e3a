//! The part of a change log that readers can see: the position of each vbucket, and the segments
//! with its mutations.
//!
//! The *directory* of a vbucket lists the segments with its retained mutations, each with its
//! first seqno. A run (a sequence of mutations of one vbucket) invalidates all mutations in
//! earlier segments with the same or larger seqnos, because there must have been a rewind in
//! between. So each seqno up to the end is valid in exactly one segment, and in exactly one run
//! of it.

use std::collections::VecDeque;
use std::sync::Arc;

use proto::model::ids::{Seqno, VbucketId};
use storage::log::Lsn;

use super::segment::{SegmentIndex, SeqnoRange};
use crate::change_log::items::state::{Change, VbucketState};
use crate::document_store::LogExtent;

/// The position of one vbucket in the log, and the segments with its mutations.
#[derive(Clone, Debug, Default)]
pub(in crate::change_log) struct VbucketIndex {
    pub(in crate::change_log) state: VbucketState,
    /// The number of rewinds, removals and restarts of the vbucket since the log was opened. A
    /// reader detects such a change by comparing this number.
    pub(in crate::change_log) history: u64,
    /// The segments with retained mutations of the vbucket, oldest first: the first seqno in
    /// each, and the LSN at which it begins.
    segments: VecDeque<(Seqno, Lsn)>,
}

/// A change that is in the log, but not visible to readers yet.
#[derive(Clone, Copy, Debug)]
pub(in crate::change_log) struct PlacedChange {
    pub(in crate::change_log) vbucket: VbucketId,
    pub(in crate::change_log) change: Change,
    /// The LSN of the item with the change; `segment` is the LSN at which the item's segment
    /// begins.
    pub(in crate::change_log) lsn: Lsn,
    pub(in crate::change_log) segment: Lsn,
}

/// The part of a change log that readers can see: the positions of the vbuckets, and their
/// segments.
#[derive(Debug)]
pub(in crate::change_log) struct LogIndex {
    pub(in crate::change_log) vbuckets: Vec<VbucketIndex>,
    /// The index of the last segment.
    pub(in crate::change_log) tail: SegmentIndex,
    /// The indexes of closed segments whose side files are not written yet.
    pub(in crate::change_log) closed: Vec<Arc<SegmentIndex>>,
    /// The LSN up to which readers can see the log.
    pub(in crate::change_log) end: Lsn,
}

impl VbucketIndex {
    /// Returns the segment that has the mutation with a seqno, and the last seqno that is valid
    /// in that segment.
    pub(in crate::change_log) fn segment_of(&self, seqno: Seqno) -> Option<(Lsn, Seqno)> {
        let behind = self.segments.partition_point(|(first, _)| *first <= seqno);
        let (_, base) = *self.segments.get(behind.checked_sub(1)?)?;
        let next = self.segments.get(behind).map(|(first, _)| Seqno(first.0 - 1));
        Some((base, next.unwrap_or(self.state.extent.end)))
    }

    /// Adds the newest segment, with the first retained seqno of the vbucket in it.
    fn push(&mut self, first: Seqno, base: Lsn) {
        self.cut(first);
        self.segments.push_back((first, base));
    }

    /// Removes the segments whose first seqno is `from` or larger.
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

    /// Returns the LSN at which the oldest segment with retained mutations begins.
    pub(in crate::change_log) fn oldest(&self) -> Option<Lsn> {
        self.segments.front().map(|(_, base)| *base)
    }

    /// Returns the last seqno of the vbucket in the segments that begin before an LSN; `None` if
    /// none of these has retained mutations.
    fn last_before(&self, lsn: Lsn) -> Option<Seqno> {
        self.oldest().filter(|oldest| *oldest < lsn)?;
        let behind = self.segments.iter().find(|(_, base)| *base >= lsn);
        Some(behind.map_or(self.state.extent.end, |(first, _)| Seqno(first.0 - 1)))
    }

    fn apply(&mut self, change: &Change, segment: Lsn) {
        match change {
            _ if change.clears_vbucket() => {
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
    /// Creates an index whose directory is empty; [`Self::add_segment`] and [`Self::finish`] fill
    /// it.
    pub(in crate::change_log) fn new(
        states: &[VbucketState],
        tail: SegmentIndex,
        end: Lsn,
    ) -> Self {
        let vbucket = |state: &VbucketState| VbucketIndex { state: *state, ..Default::default() };
        let vbuckets = states.iter().map(vbucket).collect();
        Self { vbuckets, tail, closed: Vec::new(), end }
    }

    /// Adds the next segment, which has these ranges of seqnos. The error is the first range that
    /// leaves a gap after the earlier segments.
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

    /// Completes the directory. The segments must reach the end of each vbucket; the error is a
    /// range of seqnos that no segment has.
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

    /// Returns, for each vbucket with retained mutations in the segments that begin before an
    /// LSN, the last seqno in these segments.
    pub(in crate::change_log) fn lasts_before(&self, lsn: Lsn) -> Vec<(VbucketId, Seqno)> {
        let last =
            |(vbucket, n): (&VbucketIndex, u16)| Some((VbucketId(n), vbucket.last_before(lsn)?));
        self.vbuckets.iter().zip(0..).filter_map(last).collect()
    }

    /// Makes changes visible to readers. `states` are the positions of the vbuckets after the
    /// changes, and `end` is the LSN after them.
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
