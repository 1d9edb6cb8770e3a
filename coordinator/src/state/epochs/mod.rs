//! Stability timestamps: cut number n marks the end of epoch n.
//!
//! A promotion carries the changed positions. The new cut is the last one with these positions replaced, the new
//! epoch is the last one plus one, and its parent is the last one. A position never moves back, whatever a promotion contains. Epochs below
//! the horizon are dropped. A lease may hold the horizon back for so long that the cuts would fill the memory and the snapshots. Then the
//! oldest epochs above the horizon are dropped as well, and a copy that has not applied them yet gets a newer floor. All buckets keep the
//! same maximal number of epochs, and the total number of positions in their cuts is bounded.
//!
//! Some epochs that the horizon passes stay as *rollback points*, in tiers by age (`TIERS` in
//! [`crate::state::epochs::history`]). Every copy has such an epoch as a whole, because it was at or above the horizon until
//! the epoch that first lists it as a point. A dropped point never returns.

pub mod epoch_moments;
pub mod history;
pub mod moments;
pub mod rollback;
pub mod skip;
pub mod skipped;

use std::collections::BTreeSet;

use proto::model::cut::Position;
use proto::model::ids::{BucketId, VbucketId};
use proto::rpc::command::{Outcome, PromoteEpochs, Promotion, Rollback, SkipEpochs};

use crate::state::capacity::limits::POSITIONS_MAX;
use crate::state::context::StateContext;
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, Effect};
use crate::state::epochs::history::EPOCHS_MIN;

/// The number of epochs that a bucket keeps at most: more than a minute of epochs.
const EPOCHS_MAX: usize = 4096;

impl Apply for PromoteEpochs {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.promote_epochs(&self.promotions, &self.joined)
    }
}

impl Apply for Rollback {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.rollback(self.bucket, &self.step)
    }
}

impl Apply for SkipEpochs {
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        state.skip_epochs(&decided.newest)
    }
}

impl StateContext {
    pub(in crate::state) fn epochs_max(&self) -> usize {
        (POSITIONS_MAX / self.vbuckets_in_all().max(1)).clamp(EPOCHS_MIN, EPOCHS_MAX)
    }

    /// Makes room for the epochs of a new bucket.
    pub(in crate::state) fn thin_epochs(&mut self) {
        let epochs_max = self.epochs_max();
        self.buckets.values_mut().for_each(|bucket| bucket.epochs.thin(epochs_max));
        self.thin_moments();
    }

    /// Promotes buckets. Of each set of `joined` buckets, it promotes all that exist or none.
    pub(in crate::state) fn promote_epochs(
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
mod tests;
