//! The retained epochs of a bucket and its rollback points ([`crate::state::epochs`] explains which epochs are retained).

use std::collections::VecDeque;
use std::sync::Arc;

use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::history::SourceHistory;
use proto::model::ids::{BucketId, Epoch, VbucketId};
use proto::model::rollback::DeadEpochs;
use proto::plant::{self, Plant};
use proto::rpc::command::Promotion;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// The number of epochs that a bucket may always keep: the two oldest, and the newest two.
pub(in crate::state) const EPOCHS_MIN: usize = 4;

/// The distances of rollback points. Each tier has an age and an interval, in ms: up to that age,
/// one point is kept per interval.
const TIERS: [(u64, u64); 4] =
    [(60_000, 10_000), (600_000, 60_000), (3_600_000, 600_000), (21_600_000, 3_600_000)];

/// The retained epochs of a bucket; never empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochHistory {
    /// The epochs in use, ascending, each with the steady time of its publication in ms.
    #[serde(deserialize_with = "at_least_one")]
    marks: VecDeque<(EpochMark, u64)>,
    /// Rollback points, all older than `marks`.
    points: VecDeque<(EpochMark, u64)>,
}

/// Decodes marks, and refuses an empty history: a damaged snapshot may contain one.
fn at_least_one<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<VecDeque<(EpochMark, u64)>, D::Error> {
    let marks = VecDeque::deserialize(input)?;
    if marks.is_empty() {
        return Err(D::Error::custom("a bucket without an epoch"));
    }
    Ok(marks)
}

impl EpochHistory {
    /// Creates the history of a new bucket. Its epoch 1 ends before the first mutation.
    pub(in crate::state) fn new(bucket: BucketId, vbuckets: u16, steady_ms: u64) -> Self {
        let mark = EpochMark {
            bucket,
            epoch: Epoch(1),
            parent: Epoch(0),
            cut: Arc::new(Cut::zero(vbuckets)),
            horizon: Epoch(1),
            points: Arc::default(),
        };
        Self { marks: VecDeque::from([(mark, steady_ms)]), points: VecDeque::new() }
    }

    /// The newest epoch.
    pub fn last(&self) -> &EpochMark {
        &self.marks[self.marks.len() - 1].0
    }

    /// The oldest retained epoch.
    pub(in crate::state) fn oldest(&self) -> Epoch {
        self.marks[0].0.epoch
    }

    /// The retained epoch before the newest one.
    pub(in crate::state) fn before_last(&self) -> Option<Epoch> {
        self.marks.iter().nth_back(1).map(|(mark, _)| mark.epoch)
    }

    /// Iterates over the retained epochs after a given one, ascending.
    pub fn after(&self, epoch: Epoch) -> impl Iterator<Item = &EpochMark> {
        let at = self.marks.partition_point(|(mark, _)| mark.epoch <= epoch);
        self.marks.range(at..).map(|(mark, _)| mark)
    }

    /// Returns the oldest retained epoch at or after `from` whose cut covers a cut of the same
    /// history.
    pub fn covering(&self, cut: &Cut, from: Epoch) -> Option<&EpochMark> {
        self.after(Epoch(from.0.saturating_sub(1))).find(|mark| mark.cut.reaches(cut))
    }

    /// The mark of a retained epoch or rollback point.
    pub fn mark(&self, epoch: Epoch) -> Option<&EpochMark> {
        self.marks.iter().chain(&self.points).map(|(mark, _)| mark).find(|mark| mark.epoch == epoch)
    }

    /// Returns the epoch to which a rollback returns when the source has only this history: the
    /// newest epoch whose cut the history fully contains.
    pub fn rollback_point_in(&self, history: &SourceHistory) -> Option<&EpochMark> {
        let newest_first = self.marks.iter().rev().chain(self.points.iter().rev());
        let has = |mark: &&EpochMark| {
            let last = VbucketId(mark.cut.vbuckets().saturating_sub(1));
            match plant::is(Plant::PointTooNew) {
                true => history.has(&mark.cut.with(&[(last, Position::default())])),
                false => history.has(&mark.cut),
            }
        };
        newest_first.map(|(mark, _)| mark).find(has)
    }

    /// Removes a range of dead epochs, which ends at or above the newest one, and publishes the
    /// next epoch. The new epoch follows the range, ends at `cut`, and has the epoch below the
    /// range as its parent.
    pub(in crate::state) fn roll_back(
        &mut self,
        dead: &DeadEpochs,
        cut: Arc<Cut>,
        steady_ms: u64,
    ) -> EpochMark {
        let (last, to) = (self.last().clone(), dead.below_range());
        self.marks.retain(|(mark, _)| mark.epoch <= to);
        if self.marks.is_empty() {
            self.points.retain(|(mark, _)| mark.epoch <= to);
            self.marks.extend(self.points.pop_back());
        }
        let epoch = Epoch(dead.to.0 + 1);
        let point = self.marks.back().map(|(point, _)| point.epoch);
        let mark = EpochMark {
            bucket: last.bucket,
            epoch,
            parent: to,
            cut,
            horizon: point.map_or(epoch, |point| point.min(last.horizon)),
            points: self.point_epochs(),
        };
        self.marks.push_back((mark.clone(), steady_ms));
        mark
    }

    /// Returns the numbers of the rollback points.
    fn point_epochs(&self) -> Arc<Vec<Epoch>> {
        Arc::new(self.points.iter().map(|(mark, _)| mark.epoch).collect())
    }

    /// Adds an epoch to the rollback points if it is far enough from the last point.
    fn offer_point(&mut self, candidate: (EpochMark, u64)) {
        let newest = self.points.back().map(|(_, published)| *published);
        if newest.is_none_or(|newest| candidate.1 >= newest.saturating_add(TIERS[0].1)) {
            self.points.push_back(candidate);
        }
    }

    /// Drops the rollback points that are too close together for their age, too old, or too many.
    fn thin_points(&mut self, steady_ms: u64, points_max: usize) {
        let mut kept_at: Option<u64> = None;
        self.points.retain(|(_, published)| {
            let age = steady_ms.saturating_sub(*published);
            let Some((_, apart)) = TIERS.iter().find(|(age_max, _)| age <= *age_max) else {
                return false;
            };
            let keep = kept_at.is_none_or(|at| *published >= at.saturating_add(*apart));
            if keep {
                kept_at = Some(*published);
            }
            keep
        });
        let surplus = self.points.len().saturating_sub(points_max);
        self.points.drain(..surplus);
    }

    /// Returns the newest retained epoch at or below the given one; the oldest retained epoch if
    /// all are above.
    pub fn newest_until(&self, epoch: Epoch) -> Epoch {
        let after = self.marks.partition_point(|(mark, _)| mark.epoch <= epoch);
        self.marks[after.saturating_sub(1)].0.epoch
    }

    /// Publishes the next epoch if any position advances.
    pub(in crate::state) fn promote(
        &mut self,
        promotion: &Promotion,
        steady_ms: u64,
        epochs_max: usize,
    ) -> Option<&EpochMark> {
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
        let horizon = promotion.horizon.max(last.horizon).min(epoch);
        while self.marks.front().is_some_and(|(oldest, _)| oldest.epoch < horizon)
            && let Some(passed) = self.marks.pop_front()
        {
            self.offer_point(passed);
        }
        self.thin_points(steady_ms, (epochs_max / 4).max(1));
        let mark = EpochMark {
            bucket: last.bucket,
            epoch,
            parent: last.epoch,
            cut: Arc::new(last.cut.with(&changes)),
            horizon,
            points: self.point_epochs(),
        };
        self.marks.push_back((mark, steady_ms));
        self.thin(epochs_max);
        Some(self.last())
    }

    /// Drops old epochs until at most `epochs_max` remain. The oldest epoch and its successor
    /// stay, because they show the age of the lease that holds back the horizon.
    pub(in crate::state) fn thin(&mut self, epochs_max: usize) {
        let surplus = self.marks.len().saturating_sub(epochs_max.max(EPOCHS_MIN));
        if surplus > 0 {
            self.marks.drain(2..2 + surplus);
        }
    }
}

/// Returns true if the position `to` is after the position `from`. An equal seqno on another
/// branch is after it, because that branch began there. Seqno 0 never is.
pub fn advances(from: Position, to: Position) -> bool {
    to.seqno > from.seqno || (to.seqno == from.seqno && to.seqno.0 > 0 && to.vbuuid != from.vbuuid)
}

/// Returns the positions of the cut `to` that are after those of the cut `from`.
pub fn advanced_positions(from: &Cut, to: &Cut) -> Vec<(VbucketId, Position)> {
    to.iter().filter(|(vbucket, position)| advances(from.get(*vbucket), *position)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_without_an_epoch_is_not_read() {
        let read = |history: &EpochHistory| {
            let bytes = postcard::to_allocvec(history).expect("it is encoded");
            postcard::from_bytes::<EpochHistory>(&bytes)
        };
        let mut history = EpochHistory::new(BucketId(1), 4, 0);
        assert_eq!(read(&history).as_ref(), Ok(&history));
        history.marks.clear();
        assert!(read(&history).is_err());
    }
}
