//! The mutation queue of one bucket. It gathers frames (ranges of mutations of a vbucket) until
//! the cut of an epoch is known and the frames cover it. Then it returns the mutations of that
//! epoch (I1, I2). Pure: no clock, no I/O.
//!
//! A frame is accepted only at the vbucket's watermark (the end of the received mutations). An
//! older frame is ignored; a newer frame means that mutations are missing, and the caller opens a
//! new stream from the watermarks. Epochs are applied in order, each when the watermarks cover
//! its cut, so that vbuckets and slices without changes advance with the others.
//!
//! The mutations of a large commit are not in the frames that cover them: a marker replaces them,
//! and the late-commit store has them. A marker belongs with all of its mutations to the first
//! epoch that reaches its seqnos. Such frames are incomplete without the marker, so a queue with
//! markers is dropped with its stream.
//!
//! Frames that wait for an epoch are in memory, and are not spilled to disk.

use std::collections::{BTreeMap, VecDeque};

use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::ids::{Epoch, Seqno, VbucketId};
use proto::plant::{self, Plant};
use proto::rpc::mutation::{CommitMarker, Frame};

use storage::{EpochBatch, VbucketMutations};

/// The mutation queue of one bucket: received mutations that wait for their epoch, and epochs
/// that wait for their mutations.
pub struct MutationQueue {
    /// The end, in each vbucket, of the mutations that were received without a gap.
    watermarks: Cut,
    /// The cut of the applied mutations.
    applied_cut: Cut,
    applied: Epoch,
    staged: BTreeMap<VbucketId, VecDeque<Frame>>,
    staged_bytes: usize,
    epochs: VecDeque<EpochMark>,
    /// Markers of large commits that wait for their epoch, in the order of the source's log.
    commits: VecDeque<CommitMarker>,
}

/// A gap in the stream: a frame begins after the end of the received mutations.
#[derive(Debug, PartialEq, Eq)]
pub struct Hole {
    /// The vbucket with the gap.
    pub vbucket: VbucketId,
    /// The seqno at which the frame should begin.
    pub expected: Seqno,
    /// The seqno at which the frame begins.
    pub found: Seqno,
}

impl MutationQueue {
    /// Creates a queue that continues from a cut; `applied` is the newest epoch applied there.
    pub fn new(at: Cut, applied: Epoch) -> Self {
        Self {
            applied_cut: at.clone(),
            watermarks: at,
            applied,
            staged: BTreeMap::new(),
            staged_bytes: 0,
            epochs: VecDeque::new(),
            commits: VecDeque::new(),
        }
    }

    /// The end, in each vbucket, of the mutations that were received without a gap.
    pub fn watermarks(&self) -> &Cut {
        &self.watermarks
    }

    /// Bytes of frames that wait for their epoch.
    pub fn staged_bytes(&self) -> usize {
        self.staged_bytes
    }

    /// Returns the newest epoch that waits for its mutations; without one, the newest applied
    /// epoch.
    pub fn newest_epoch(&self) -> Epoch {
        self.epochs.back().map_or(self.applied, |mark| mark.epoch)
    }

    /// Drops the waiting stability timestamps (ends of epochs). The next stream sends them again
    /// if they are still valid.
    pub fn forget_epochs(&mut self) {
        self.epochs.clear();
    }

    /// Drops all waiting stability timestamps (ends of epochs) except the newest, because the
    /// others will not be applied.
    pub fn keep_newest_epoch(&mut self) {
        self.epochs.drain(..self.epochs.len().saturating_sub(1));
    }

    /// Drops the waiting stability timestamps (ends of epochs) before the first one that
    /// satisfies `will_do`.
    pub fn skip_epochs(&mut self, will_do: impl Fn(&EpochMark) -> bool) {
        while self.epochs.front().is_some_and(|mark| !will_do(mark)) {
            self.epochs.pop_front();
        }
    }

    /// Adds a frame, or ignores it if its mutations were received before. If the frame is too
    /// new, returns the gap before it.
    pub fn add_frame(&mut self, frame: Frame) -> Result<(), Hole> {
        let watermark = self.watermarks.get(frame.vbucket);
        if frame.from > watermark.seqno {
            let (expected, found) = (watermark.seqno, frame.from);
            return Err(Hole { vbucket: frame.vbucket, expected, found });
        }
        if frame.to <= watermark.seqno {
            return Ok(());
        }
        let end = Position { vbuuid: frame.vbuuid, seqno: frame.to };
        self.watermarks.set(frame.vbucket, end);
        self.staged_bytes += frame.body.len();
        self.staged.entry(frame.vbucket).or_default().push_back(frame);
        Ok(())
    }

    /// Adds the marker of a large commit. The frames that cover the commit must be added after
    /// it.
    pub fn add_commit_marker(&mut self, marker: CommitMarker) {
        self.commits.push_back(marker);
    }

    /// True if the marker of a large commit waits for its epoch.
    pub fn has_commits(&self) -> bool {
        !self.commits.is_empty()
    }

    /// Removes and returns the waiting commits that belong to the epoch that ends at `cut`, in
    /// the order of their markers. With several projectors, a later marker may belong to an
    /// earlier epoch.
    fn commits_of(&mut self, cut: &Cut) -> Vec<CommitMarker> {
        let is_reached = |marker: &CommitMarker| {
            marker.ranges.iter().any(|range| cut.get(range.vbucket).seqno > range.after)
        };
        let (reached, waiting) = self.commits.drain(..).partition::<Vec<_>, _>(is_reached);
        self.commits = waiting.into();
        reached
    }

    /// Adds a stability timestamp (the end of an epoch). Ignores one that is not newer than the
    /// last. Removes waiting timestamps from which the new one does not descend: a rollback
    /// removed their epochs before they were applied, and their mutations may be lost.
    pub fn add_epoch(&mut self, mark: EpochMark) {
        if mark.epoch <= self.newest_epoch() {
            return;
        }
        while self.epochs.back().is_some_and(|waiting| waiting.epoch > mark.parent) {
            self.epochs.pop_back();
        }
        self.epochs.push_back(mark);
    }

    /// The epochs that wait for their mutations.
    pub fn waiting_epochs(&self) -> impl Iterator<Item = Epoch> + '_ {
        self.epochs.iter().map(|mark| mark.epoch)
    }

    /// Removes and returns the next epoch that can be applied, with its mutations; `None` if the
    /// received mutations do not cover its cut yet.
    pub fn next_ready_epoch(&mut self) -> Option<EpochBatch> {
        let mark = self.epochs.front()?;
        let last = mark.cut.vbuckets().saturating_sub(1);
        let without_last = plant::is(Plant::EpochUncovered)
            && mark
                .cut
                .iter()
                .take(last.into())
                .all(|(v, p)| self.watermarks.get(v).seqno >= p.seqno);
        if !without_last && !self.watermarks.reaches(&mark.cut) {
            return None;
        }
        let mark = self.epochs.pop_front()?;
        let mut pieces = Vec::new();
        for (vbucket, frames) in &mut self.staged {
            let after = self.applied_cut.get(*vbucket).seqno;
            let to = mark.cut.get(*vbucket).seqno;
            for frame in frames.iter().take_while(|frame| frame.from < to) {
                pieces.push(VbucketMutations {
                    body: frame.body.clone(),
                    base: frame.from,
                    after,
                    to,
                });
            }
            while frames.front().is_some_and(|frame| frame.to <= to) {
                self.staged_bytes -= frames.pop_front().map_or(0, |frame| frame.body.len());
            }
        }
        self.staged.retain(|_, frames| !frames.is_empty());
        self.applied_cut = Cut::clone(&mark.cut);
        self.applied = mark.epoch;
        let commits = self.commits_of(&mark.cut);
        Some(EpochBatch { mark, pieces, commits })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::model::ids::{BucketId, TransactionId, TransactionPlace, Vbuuid};
    use proto::rpc::mutation::{ChangesDigest, CommitRange};

    use super::*;

    fn frame(vbucket: u16, from: u64, to: u64) -> Frame {
        Frame {
            vbucket: VbucketId(vbucket),
            vbuuid: Vbuuid(7),
            from: Seqno(from),
            to: Seqno(to),
            body: vec![0; (to - from) as usize].into(),
        }
    }

    fn mark(epoch: u64, seqnos: [u64; 2]) -> EpochMark {
        let position = |seqno: u64| Position {
            vbuuid: Vbuuid(if seqno == 0 { 0 } else { 7 }),
            seqno: Seqno(seqno),
        };
        EpochMark {
            bucket: BucketId(1),
            epoch: Epoch(epoch),
            parent: Epoch(epoch - 1),
            cut: Arc::new(Cut::from_positions(seqnos.map(position).to_vec())),
            horizon: Epoch(0),
            points: Arc::default(),
        }
    }

    fn ranges(batch: &EpochBatch) -> Vec<(u64, u64, u64)> {
        batch.pieces.iter().map(|piece| (piece.base.0, piece.after.0, piece.to.0)).collect()
    }

    #[test]
    fn an_epoch_waits_for_its_last_vbucket_and_splits_a_frame_that_crosses_its_cut() {
        let mut queue = MutationQueue::new(Cut::zero(2), Epoch(0));
        queue.add_frame(frame(0, 0, 10)).unwrap();
        queue.add_epoch(mark(1, [6, 1]));
        assert!(queue.next_ready_epoch().is_none(), "vbucket 1 has not arrived");
        queue.add_frame(frame(1, 0, 1)).unwrap();
        queue.add_epoch(mark(2, [10, 1]));
        let first = queue.next_ready_epoch().expect("covered");
        assert_eq!(ranges(&first), [(0, 0, 6), (0, 0, 1)]);
        let second = queue.next_ready_epoch().expect("covered");
        assert_eq!(ranges(&second), [(0, 6, 10)], "only the rest of the frame");
        assert_eq!(queue.staged_bytes(), 0);
    }

    #[test]
    fn old_frames_are_ignored_and_holes_are_named() {
        let mut queue = MutationQueue::new(Cut::zero(2), Epoch(0));
        queue.add_frame(frame(0, 0, 5)).unwrap();
        queue.add_frame(frame(0, 0, 5)).unwrap();
        assert_eq!(queue.staged_bytes(), 5, "the repeated frame is not kept");
        let hole = queue.add_frame(frame(0, 7, 9)).unwrap_err();
        assert_eq!(hole, Hole { vbucket: VbucketId(0), expected: Seqno(5), found: Seqno(7) });
        queue.add_epoch(mark(3, [5, 0]));
        queue.add_epoch(mark(2, [1, 0]));
        assert_eq!(queue.next_ready_epoch().map(|batch| batch.mark.epoch), Some(Epoch(3)));
        assert!(
            queue.next_ready_epoch().is_none(),
            "an older epoch does not come after a newer one"
        );
    }

    #[test]
    fn a_commit_goes_with_the_first_epoch_that_reaches_it() {
        let range = |vbucket, after, to| CommitRange {
            vbucket: VbucketId(vbucket),
            after: Seqno(after),
            to: Seqno(to),
        };
        let marker = |n: u64, ranges: &[CommitRange]| CommitMarker {
            transaction: TransactionId(n),
            place: TransactionPlace(1),
            digest: ChangesDigest::default(),
            ranges: ranges.to_vec(),
        };
        let mut queue = MutationQueue::new(Cut::zero(2), Epoch(0));
        queue.add_frame(frame(0, 0, 2)).unwrap();
        queue.add_commit_marker(marker(1, &[range(0, 2, 5), range(1, 0, 3)]));
        queue.add_commit_marker(marker(2, &[range(1, 3, 4)]));
        let empty = |frame: Frame| Frame { body: Default::default(), ..frame };
        queue.add_frame(empty(frame(0, 2, 5))).unwrap();
        queue.add_frame(empty(frame(1, 0, 4))).unwrap();
        let mut commits_at = |epoch, seqnos| {
            queue.add_epoch(mark(epoch, seqnos));
            let batch = queue.next_ready_epoch().expect("covered");
            batch.commits.iter().map(|marker| marker.transaction.0).collect::<Vec<_>>()
        };
        assert_eq!(commits_at(1, [2, 0]), [0; 0]);
        assert_eq!(commits_at(2, [5, 3]), [1]);
        assert_eq!(commits_at(3, [5, 4]), [2]);
        assert!(!queue.has_commits());
        // Two projectors: the epoch has the commit of the later marker only.
        queue.add_commit_marker(marker(3, &[range(0, 5, 7)]));
        queue.add_commit_marker(marker(4, &[range(1, 4, 6)]));
        queue.add_frame(empty(frame(0, 5, 7))).unwrap();
        queue.add_frame(empty(frame(1, 4, 6))).unwrap();
        let mut commits_at = |epoch, seqnos| {
            queue.add_epoch(mark(epoch, seqnos));
            let batch = queue.next_ready_epoch().expect("covered");
            batch.commits.iter().map(|marker| marker.transaction.0).collect::<Vec<_>>()
        };
        assert_eq!(commits_at(4, [5, 6]), [4]);
        assert_eq!(commits_at(5, [7, 6]), [3]);
    }

    #[test]
    fn a_rolled_back_epoch_no_longer_waits() {
        let mut queue = MutationQueue::new(Cut::zero(2), Epoch(0));
        queue.add_frame(frame(0, 0, 5)).unwrap();
        queue.add_epoch(mark(1, [2, 0]));
        queue.add_epoch(mark(2, [9, 0]));
        queue.add_epoch(mark(3, [9, 1]));
        assert_eq!(queue.waiting_epochs().collect::<Vec<_>>(), [1, 2, 3].map(Epoch));
        // The source has lost the mutations after 5, on the branch that it continues.
        queue.add_epoch(EpochMark { parent: Epoch(1), ..mark(4, [5, 0]) });
        assert_eq!(queue.next_ready_epoch().map(|batch| batch.mark.epoch), Some(Epoch(1)));
        assert_eq!(queue.next_ready_epoch().map(|batch| batch.mark.epoch), Some(Epoch(4)));
        assert_eq!(queue.newest_epoch(), Epoch(4));
    }
}
