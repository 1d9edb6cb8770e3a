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
//! (`TIERS` in [`super::epoch_history`]). Each was at or above the horizon until the epoch that first names it as a point, so that
//! every copy still has it whole; and one that was given up never comes back.

use proto::model::cut::Position;
use proto::model::ids::VbucketId;
use proto::rpc::command::{Outcome, Promotion};

use super::context::StateContext;
use super::effect::{Change, Effect};
use super::epoch_history::EPOCHS_MIN;
use super::limits::POSITIONS_MAX;

/// Epochs that a bucket keeps at most: more than a minute of them.
const EPOCHS_MAX: usize = 4096;

impl StateContext {
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
#[path = "epochs_tests.rs"]
mod tests;
