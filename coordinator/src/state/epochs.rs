//! Stability timestamps: cut number n says "epoch n ends here".
//!
//! A promotion carries the positions that changed; the new cut is the last one with these replaced, the
//! new epoch the last one plus one, its parent the last one. A position never goes back, whatever a
//! promotion says. Epochs below the horizon are forgotten. If a lease holds the horizon back for so long
//! that the cuts would fill the memory and the snapshots, the oldest ones above it are forgotten too: a
//! copy that is still behind those begins at a newer floor. All buckets keep equally many epochs at most,
//! and the positions of all their cuts together are bounded.
//!
//! Of the epochs that fall behind the horizon some stay as *rollback points*, in tiers by age
//! (`TIERS`). Each was at or above the horizon until the epoch that first names it as a point, so that
//! every copy still has it whole; and one that was given up never comes back.

use std::collections::VecDeque;
use std::sync::Arc;

use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::history::{BRANCHES_MAX, SourceHistory};
use proto::model::ids::{BucketId, Epoch, VbucketId};
use proto::model::rollback::DEAD_MAX;
use proto::plant::{self, Plant};
use proto::rpc::command::{Outcome, Promotion};
use serde::{Deserialize, Serialize};

use super::{Change, Effect, StateContext};
use crate::raft::wire::MESSAGE_BYTES_MAX;

/// Positions that the kept cuts of all buckets may hold together: 16 MiB of memory, and of a snapshot,
/// where a position takes at most 20 bytes, a third of the largest message between processes. Rollback points
/// may add a quarter.
const POSITIONS_MAX: usize = 1 << 20;
/// Epochs that a bucket keeps at most: more than a minute of them.
const EPOCHS_MAX: usize = 4096;
/// Epochs that a bucket may keep however many there are: the two oldest, and what is under way.
const EPOCHS_MIN: usize = 4;
/// Rollback points: up to this age (ms) there is one every so often (ms): seconds, minutes, hours.
const TIERS: [(u64, u64); 4] =
    [(60_000, 10_000), (600_000, 60_000), (3_600_000, 600_000), (21_600_000, 3_600_000)];
/// What the buckets may have together. Beside the cuts a snapshot has of each vbucket its branches, its place in each
/// range of dead epochs, and two while it is rolled back, of 20 bytes each at most: with the cuts less than a message
/// between members may have, and some megabytes are left for indexes.
pub(super) const VBUCKETS_IN_ALL_MAX: usize = 32 << 10;
const _: () = assert!(
    20 * (POSITIONS_MAX + POSITIONS_MAX / 4 + VBUCKETS_IN_ALL_MAX * (BRANCHES_MAX + DEAD_MAX + 2))
        < MESSAGE_BYTES_MAX - (8 << 20)
);

/// The epochs of a bucket that are still kept; never empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochHistory {
    marks: VecDeque<(EpochMark, u64)>,
    /// Rollback points, below all of `marks`.
    points: VecDeque<(EpochMark, u64)>,
}

impl EpochHistory {
    /// The history of a new bucket: epoch 1 ends before the first mutation.
    pub(super) fn new(bucket: BucketId, vbuckets: u16, steady_ms: u64) -> Self {
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

    /// The epochs after one, ascending; all for zero.
    pub fn after(&self, epoch: Epoch) -> impl Iterator<Item = &EpochMark> {
        let at = self.marks.partition_point(|(mark, _)| mark.epoch <= epoch);
        self.marks.range(at..).map(|(mark, _)| mark)
    }

    /// The oldest epoch kept that covers a cut, which must be a place in the same history.
    pub fn covering(&self, cut: &Cut) -> Option<&EpochMark> {
        self.marks.iter().map(|(mark, _)| mark).find(|mark| mark.cut.reaches(cut))
    }

    /// The mark of an epoch that is kept, or is a rollback point.
    pub fn mark(&self, epoch: Epoch) -> Option<&EpochMark> {
        self.marks.iter().chain(&self.points).map(|(mark, _)| mark).find(|mark| mark.epoch == epoch)
    }

    /// The rollback point for a history: the newest epoch of which it has everything.
    pub fn newest_in(&self, history: &SourceHistory) -> Option<&EpochMark> {
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

    /// What is above an epoch (zero: everything) is dead; the next epoch follows that one and ends at `cut`.
    pub(super) fn go_back(&mut self, to: Epoch, cut: Arc<Cut>, steady_ms: u64) -> EpochMark {
        let last = self.last().clone();
        self.marks.retain(|(mark, _)| mark.epoch <= to);
        if self.marks.is_empty() {
            self.points.retain(|(mark, _)| mark.epoch <= to);
            self.marks.extend(self.points.pop_back());
        }
        let epoch = Epoch(last.epoch.0 + 1);
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

    fn point_epochs(&self) -> Arc<Vec<Epoch>> {
        Arc::new(self.points.iter().map(|(mark, _)| mark.epoch).collect())
    }

    /// Takes in an epoch that has fallen behind the horizon, if it is far enough from the last point.
    fn offer_point(&mut self, candidate: (EpochMark, u64)) {
        let newest = self.points.back().map(|(_, published)| *published);
        if newest.is_none_or(|newest| candidate.1 >= newest.saturating_add(TIERS[0].1)) {
            self.points.push_back(candidate);
        }
    }

    /// Gives up the points that are closer together than their age allows, or too old, or too many.
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

    /// The newest epoch that is kept and not above another one; the oldest one if all are.
    pub fn newest_until(&self, epoch: Epoch) -> Epoch {
        let after = self.marks.partition_point(|(mark, _)| mark.epoch <= epoch);
        self.marks[after.saturating_sub(1)].0.epoch
    }

    /// Publishes the next epoch, if anything changed.
    fn promote(
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

    /// Forgets the oldest epochs that are too many. The very oldest stays, and what superseded it, so
    /// that the age of the lease that holds it is known.
    fn thin(&mut self, epochs_max: usize) {
        let surplus = self.marks.len().saturating_sub(epochs_max.max(EPOCHS_MIN));
        if surplus > 0 {
            self.marks.drain(2..2 + surplus);
        }
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
    /// The vbuckets of all buckets.
    pub(super) fn vbuckets_in_all(&self) -> usize {
        self.buckets.values().map(|bucket| usize::from(bucket.info.vbuckets)).sum()
    }

    fn epochs_max(&self) -> usize {
        (POSITIONS_MAX / self.vbuckets_in_all().max(1)).clamp(EPOCHS_MIN, EPOCHS_MAX)
    }

    /// Makes room for the epochs of a new bucket.
    pub(super) fn thin_epochs(&mut self) {
        let epochs_max = self.epochs_max();
        self.buckets.values_mut().for_each(|bucket| bucket.epochs.thin(epochs_max));
    }

    pub(super) fn promote_epochs(&mut self, promotions: &[Promotion]) -> Change {
        let epochs_max = self.epochs_max();
        let mut effects = Vec::new();
        for promotion in promotions {
            // A bucket that was dropped meanwhile has no epochs any more.
            let Some(bucket) = self.buckets.get_mut(&promotion.bucket) else { continue };
            // What the leader saw may be of a history that is no more.
            let stands = |(vbucket, position): &(VbucketId, Position)| {
                bucket.logs.includes(*vbucket, *position)
            };
            let frozen = bucket.info.rollback.as_ref().is_some_and(|r| r.resumes.is_none());
            if frozen || !promotion.changes.iter().all(stands) {
                continue;
            }
            let mark = bucket.epochs.promote(promotion, self.steady_ms, epochs_max);
            effects.extend(mark.cloned().map(Effect::EpochPublished));
        }
        Ok((Outcome::Done, effects))
    }
}

#[cfg(test)]
mod tests {
    use proto::ErrorCode;
    use proto::model::bucket::SourceKind;
    use proto::model::ids::{Seqno, Vbuuid};
    use proto::rpc::command::{Command, CommandRequest};

    use super::*;
    use crate::state::BucketState;
    use crate::state::tests::{apply, one_branch, with_bucket};

    fn create_wide_bucket(state: &mut StateContext, name: &str) -> Outcome {
        let command = Command::CreateBucket {
            name: name.into(),
            vbuckets: 1024,
            source: SourceKind::Embedded,
            projectors: 1,
            if_not_exists: false,
        };
        let made = apply(state, command).0;
        if let Outcome::Bucket(bucket) = made {
            one_branch(state, bucket, u64::MAX);
        }
        made
    }

    /// Moves all vbuckets of a bucket, to positions that take as many bytes as positions can.
    fn promote_all(state: &mut StateContext, bucket: u64, n: u64) {
        let position = Position { vbuuid: Vbuuid(u64::MAX), seqno: Seqno(u64::MAX / 2 + n) };
        let promotion = Promotion {
            bucket: BucketId(bucket),
            changes: (0..1024).map(|vbucket| (VbucketId(vbucket), position)).collect(),
            horizon: Epoch(1),
        };
        let command = Command::PromoteEpochs(vec![promotion]);
        state.apply(1_000 + n, n, &CommandRequest { request: None, command });
    }

    fn positions_kept(state: &StateContext) -> usize {
        let kept = |bucket: &BucketState| {
            bucket.epochs.after(Epoch(0)).count() * usize::from(bucket.info.vbuckets)
        };
        state.buckets().map(|(_, bucket)| kept(bucket)).sum()
    }

    #[test]
    fn the_cuts_of_all_buckets_together_are_bounded() {
        let mut state = with_bucket();
        assert_eq!(create_wide_bucket(&mut state, "c"), Outcome::Bucket(BucketId(2)));
        (1..=1_100).for_each(|n| promote_all(&mut state, 2, n));
        assert!(positions_kept(&state) > POSITIONS_MAX / 2, "as many as the bound allows");
        assert_eq!(create_wide_bucket(&mut state, "d"), Outcome::Bucket(BucketId(3)));
        (1..=600).for_each(|n| promote_all(&mut state, 3, n));
        assert!(positions_kept(&state) <= POSITIONS_MAX, "{}", positions_kept(&state));
        let bytes = state.to_bytes().unwrap().len();
        assert!(bytes < proto::rpc::api::PEER_MESSAGE_BYTES_MAX / 2, "{bytes}");
        let oldest = state.bucket(BucketId(2)).unwrap().epochs.after(Epoch(0)).take(2);
        assert_eq!(oldest.map(|mark| mark.epoch.0).collect::<Vec<_>>(), [1, 2], "still known");
    }

    #[test]
    fn more_vbuckets_than_the_bound_is_for_are_refused() {
        let mut state = with_bucket();
        let full = (0..32).map(|n| create_wide_bucket(&mut state, &format!("w{n}"))).last();
        let refused = full.unwrap();
        assert!(matches!(&refused, Outcome::Refused(e) if e.code == ErrorCode::OverLimit));
        assert_eq!(state.buckets().count(), 32, "31 wide ones and the first");
        assert!(positions_kept(&state) <= POSITIONS_MAX);
    }

    /// A member that lags behind needs the state as one message.
    #[test]
    fn a_snapshot_of_as_many_vbuckets_branches_and_losses_as_there_may_be_fits_in_a_message() {
        let mut state = with_bucket();
        (0..31).for_each(|n| drop(create_wide_bucket(&mut state, &format!("w{n}"))));
        for n in 1..=40 {
            (2..=32).for_each(|bucket| promote_all(&mut state, bucket, n));
        }
        for bucket in state.buckets.values_mut() {
            let began = |n: usize| (Vbuuid(u64::MAX), u64::MAX / 2 + n as u64);
            let branches: Vec<_> = (0..BRANCHES_MAX).map(began).collect();
            let all = vec![branches; usize::from(bucket.info.vbuckets)];
            bucket.logs = Arc::new(proto::model::history::FailoverLogs::new(all));
            let point = Some(bucket.epochs.last().clone());
            let dead = proto::model::rollback::DeadEpochs { point, to: Epoch(u64::MAX) };
            Arc::make_mut(&mut bucket.info).dead = Arc::new(vec![dead; DEAD_MAX]);
        }
        let bytes = state.to_bytes().unwrap().len();
        assert!(bytes > 20 << 20, "{bytes}");
        assert!(bytes < MESSAGE_BYTES_MAX, "{bytes}");
    }
}
