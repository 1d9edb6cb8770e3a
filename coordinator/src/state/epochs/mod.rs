//! The epochs of buckets, whose marks are called stability timestamps: cut number n marks the end
//! of epoch n.
//!
//! A promotion publishes the next epoch and contains the changed positions. The new cut is the
//! last one with these positions replaced, the new epoch is the last one plus one, and its parent
//! is the last one. A position never moves back, whatever a promotion contains. Epochs below the
//! horizon are dropped. A lease may hold the horizon back for so long that the cuts would fill
//! the memory and the snapshots. Then the oldest epochs above the horizon are dropped as well,
//! and a copy that has not applied them yet gets a newer floor (the oldest epoch that it can
//! serve). All buckets keep the same maximal number of epochs, and the total number of positions
//! in their cuts is bounded.
//!
//! Some epochs that the horizon passes stay as *rollback points*, in tiers by age (`TIERS` in
//! [`crate::state::epochs::history`]). Every copy has such an epoch completely, because the epoch
//! was at or above the horizon until a later epoch listed it as a point. A dropped point never
//! returns.

pub mod epoch_moments;
pub mod history;
pub mod moments;
pub mod rollback;
pub mod skip;
pub mod state;

use std::collections::BTreeSet;

use proto::model::cut::Position;
use proto::model::ids::VbucketId;
use proto::rpc::command::{Outcome, PromoteEpochs, Promotion};

use crate::state::context::StateContext;
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, Effect};

impl Apply for PromoteEpochs {
    /// Publishes the next epochs of buckets. The buckets of a `joined` set are promoted together:
    /// all that exist, or none.
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let mut held: BTreeSet<_> = self
            .promotions
            .iter()
            .filter(|promotion| must_not_promote(state, promotion))
            .map(|promotion| promotion.bucket)
            .collect();
        let split = self.joined.iter().filter(|set| set.iter().any(|bucket| held.contains(bucket)));
        let split: Vec<_> = split.flatten().copied().collect();
        held.extend(split);
        let promoted = self.promotions.iter().filter(|of| !held.contains(&of.bucket));
        let now = state.clock.now();
        let marks = state.epochs.promote(promoted, now);
        Ok((Outcome::Done, marks.into_iter().map(Effect::EpochPublished).collect()))
    }
}

/// Returns true if a promotion must not be applied: its bucket is being rolled back, or it
/// contains positions of a history that has been lost since it was planned.
fn must_not_promote(state: &StateContext, promotion: &Promotion) -> bool {
    state.bucket(promotion.bucket).is_some_and(|bucket| {
        let is_frozen = bucket.info.rollback.as_ref().is_some_and(|r| r.resumes.is_none());
        let is_in_history =
            |(vbucket, position): &(VbucketId, Position)| bucket.logs.includes(*vbucket, *position);
        is_frozen || !promotion.changes.iter().all(is_in_history)
    })
}

#[cfg(test)]
mod tests;
