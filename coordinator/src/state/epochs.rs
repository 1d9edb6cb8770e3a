//! Stability timestamps: cut number n marks the end of epoch n.
//!
//! A promotion carries the changed positions. The new cut is the last one with these positions replaced, the new
//! epoch is the last one plus one, and its parent is the last one. A position never goes back, whatever a promotion
//! contains. Epochs below the horizon are dropped. A lease may hold the horizon back for so long that the cuts would
//! fill the memory and the snapshots. Then the oldest epochs above the horizon are dropped as well, and a copy that
//! is still behind them gets a newer floor. All buckets keep the same maximal number of epochs, and the total number
//! of positions in their cuts is bounded.
//!
//! Some epochs that fall behind the horizon stay as *rollback points*, in tiers by age (`TIERS` in
//! [`super::epoch_history`]). Every copy has such an epoch as a whole, because it was at or above the horizon until
//! the epoch that first lists it as a point. A dropped point never returns.

use std::collections::BTreeSet;

use proto::model::cut::Position;
use proto::model::ids::{BucketId, VbucketId};
use proto::rpc::command::{Outcome, Promotion};

use super::context::StateContext;
use super::effect::{Change, Effect};
use super::epoch_history::EPOCHS_MIN;
use super::limits::POSITIONS_MAX;

/// The number of epochs that a bucket keeps at most: more than a minute of epochs.
const EPOCHS_MAX: usize = 4096;

impl StateContext {
    pub(super) fn epochs_max(&self) -> usize {
        (POSITIONS_MAX / self.vbuckets_in_all().max(1)).clamp(EPOCHS_MIN, EPOCHS_MAX)
    }

    /// Makes room for the epochs of a new bucket.
    pub(super) fn thin_epochs(&mut self) {
        let epochs_max = self.epochs_max();
        self.buckets.values_mut().for_each(|bucket| bucket.epochs.thin(epochs_max));
        self.thin_moments();
    }

    /// Promotes buckets; of each set of `joined` ones either all that exist or none.
    pub(super) fn promote_epochs(
        &mut self,
        promotions: &[Promotion],
        joined: &[Vec<BucketId>],
    ) -> Change {
        let epochs_max = self.epochs_max();
        let mut held: BTreeSet<_> = promotions
            .iter()
            .filter(|promotion| self.buckets.contains_key(&promotion.bucket))
            .filter(|promotion| !self.stands(promotion))
            .map(|promotion| promotion.bucket)
            .collect();
        let split = joined.iter().filter(|set| set.iter().any(|bucket| held.contains(bucket)));
        let split: Vec<_> = split.flatten().copied().collect();
        held.extend(split);
        let mut effects = Vec::new();
        for promotion in promotions.iter().filter(|promotion| !held.contains(&promotion.bucket)) {
            // The bucket may have been dropped meanwhile.
            let Some(bucket) = self.buckets.get_mut(&promotion.bucket) else { continue };
            let mark = bucket.epochs.promote(promotion, self.steady_ms, epochs_max);
            let Some(mark) = mark.cloned() else { continue };
            effects.push(Effect::EpochPublished(mark));
            self.note_published(promotion.bucket);
        }
        Ok((Outcome::Done, effects))
    }

    /// True if a bucket can be promoted. The leader may have planned the promotion in a history that has been lost since.
    fn stands(&self, promotion: &Promotion) -> bool {
        self.buckets.get(&promotion.bucket).is_some_and(|bucket| {
            let frozen = bucket.info.rollback.as_ref().is_some_and(|r| r.resumes.is_none());
            let in_history = |(vbucket, position): &(VbucketId, Position)| {
                bucket.logs.includes(*vbucket, *position)
            };
            !frozen && promotion.changes.iter().all(in_history)
        })
    }
}

#[cfg(test)]
#[path = "epochs_tests.rs"]
mod tests;
