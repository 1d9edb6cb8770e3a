//! Stability timestamps: cut number n says "epoch n ends here".
//!
//! A promotion carries the positions that changed; the new cut is the last one with these replaced, the
//! new epoch the last one plus one, its parent the last one. A position never goes back, whatever a
//! promotion says. Epochs below the horizon are forgotten. If a lease holds the horizon back for so long
//! that the cuts would fill the memory, the oldest ones above it are forgotten too: a copy that is still
//! behind those begins at a newer floor.

use std::collections::VecDeque;
use std::sync::Arc;

use proto::command::{Outcome, Promotion};
use proto::cut::{Cut, EpochMark, Position};
use proto::ids::{BucketId, Epoch, VbucketId};
use serde::{Deserialize, Serialize};

use super::{Change, Effect, StateContext};

/// Positions that a bucket's kept cuts may hold together: 16 MiB.
const POSITIONS_MAX: usize = 1 << 20;
/// Epochs that are kept at most: more than a minute of them.
const EPOCHS_MAX: usize = 4096;
/// Epochs that may be kept however many vbuckets there are: five seconds of them.
const EPOCHS_MIN: usize = 256;

/// The epochs of a bucket that are still kept; never empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochHistory {
    marks: VecDeque<(EpochMark, u64)>,
}

impl EpochHistory {
    /// The history of a new bucket: epoch 1 ends before the first mutation.
    pub(super) fn new(bucket: BucketId, vbuckets: u16, unix_ms: u64) -> Self {
        let mark = EpochMark {
            bucket,
            epoch: Epoch(1),
            parent: Epoch(0),
            cut: Arc::new(Cut::zero(vbuckets)),
            horizon: Epoch(1),
        };
        Self { marks: VecDeque::from([(mark, unix_ms)]) }
    }

    /// The newest epoch.
    pub fn last(&self) -> &EpochMark {
        &self.marks[self.marks.len() - 1].0
    }

    /// The epochs after one, ascending; all for zero.
    pub fn after(&self, epoch: Epoch) -> impl Iterator<Item = &EpochMark> {
        let at = self.marks.partition_point(|(mark, _)| mark.epoch <= epoch);
        self.marks.range(at..).map(|(mark, _)| mark)
    }

    /// The oldest epoch kept that covers a cut.
    pub fn covering(&self, cut: &Cut) -> Option<&EpochMark> {
        // Cuts grow; but on a change of branch a covered position may no longer be.
        self.marks.iter().map(|(mark, _)| mark).find(|mark| mark.cut.covers(cut))
    }

    /// The newest epoch published at or before a time; the oldest one if all are younger.
    pub fn at_time(&self, unix_ms: u64) -> Epoch {
        let at = self.marks.partition_point(|(_, published)| *published <= unix_ms);
        self.marks[at.saturating_sub(1)].0.epoch
    }

    /// When an epoch ceased to be the newest: when the first kept one after it was published; `None`
    /// if it is the newest.
    pub fn superseded_unix_ms(&self, epoch: Epoch) -> Option<u64> {
        let after = self.marks.partition_point(|(mark, _)| mark.epoch <= epoch);
        self.marks.get(after).map(|(_, published)| *published)
    }

    /// Publishes the next epoch, if anything changed.
    fn promote(&mut self, promotion: &Promotion, unix_ms: u64) -> Option<&EpochMark> {
        let last = self.last().clone();
        let changes: Vec<_> = promotion
            .changes
            .iter()
            .filter(|(vbucket, position)| advances(last.cut.get(*vbucket), *position))
            .filter(|(vbucket, _)| vbucket.0 < last.cut.vbuckets())
            .copied()
            .collect();
        if changes.is_empty() {
            return None;
        }
        let epoch = Epoch(last.epoch.0 + 1);
        let mark = EpochMark {
            bucket: last.bucket,
            epoch,
            parent: last.epoch,
            cut: Arc::new(last.cut.with(&changes)),
            horizon: promotion.horizon.max(last.horizon).min(epoch),
        };
        let horizon = mark.horizon;
        self.marks.push_back((mark, unix_ms));
        let epochs_max =
            (POSITIONS_MAX / usize::from(last.cut.vbuckets()).max(1)).clamp(EPOCHS_MIN, EPOCHS_MAX);
        while self.marks[0].0.epoch < horizon {
            self.marks.pop_front();
        }
        if self.marks.len() > epochs_max {
            // The oldest stays, and what superseded it, so that the age of the lease that holds it is
            // known.
            self.marks.remove(2);
        }
        Some(self.last())
    }
}

/// Does a position lead on from another one? The same seqno on another branch does: the branch began
/// there. Seqno 0 says nothing, whatever the branch.
pub fn advances(from: Position, to: Position) -> bool {
    to.seqno > from.seqno || (to.seqno == from.seqno && to.seqno.0 > 0 && to.vbuuid != from.vbuuid)
}

/// What of `to` leads on from `from`.
pub fn advance(from: &Cut, to: &Cut) -> Vec<(VbucketId, Position)> {
    to.iter().filter(|(vbucket, position)| advances(from.get(*vbucket), *position)).collect()
}

impl StateContext {
    pub(super) fn promote_epochs(&mut self, promotions: &[Promotion]) -> Change {
        let mut effects = Vec::new();
        for promotion in promotions {
            // A bucket that was dropped meanwhile has no epochs any more.
            let Some(bucket) = self.buckets.get_mut(&promotion.bucket) else { continue };
            let mark = bucket.epochs.promote(promotion, self.unix_ms);
            effects.extend(mark.cloned().map(Effect::EpochPublished));
        }
        Ok((Outcome::Done, effects))
    }
}
