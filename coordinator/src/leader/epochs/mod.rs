//! Plans the next epochs and their horizons.

pub mod durability;
pub mod horizon;
pub mod leases;
pub mod moment_round;
pub mod rollback;
pub mod sources;
pub mod stability;

use std::collections::{BTreeMap, BTreeSet};

use proto::model::cut::Cut;
use proto::model::ids::{BucketId, Epoch};
use proto::model::index::IndexState;
use proto::rpc::command::{Command, PromoteEpochs, Promotion};

use crate::leader::copies::keep_whole::{
    ChosenCuts, avoid_split_commits, buckets_promoted_together,
};
use crate::leader::epochs::horizon::{LEASE_MS, PublicationTimes};
use crate::leader::epochs::leases::{epochs_in_force, leased_indexes};
use crate::leader::epochs::stability::{CutChoice, EpochCutChooser};
use crate::leader::nodes::heartbeats::Heartbeats;
use crate::leader::plan::Plan;
use crate::state::epochs::history::advanced_positions;
use crate::state::{BucketView, StateContext};

/// The longest interval between two epochs while there are new mutations, in ms, however slow the
/// log is.
pub(in crate::leader) const TICK_MS_MAX: u64 = 1_000;

/// The leader's memory of the epochs that it has published.
#[derive(Debug)]
pub(in crate::leader) struct Promotions {
    pub(in crate::leader) tick_ms: u64,
    /// The times at which this leader first saw the epochs of each bucket.
    published: BTreeMap<BucketId, PublicationTimes>,
    promoted_ms: Option<u64>,
    promotion_took_ms: u64,
}

impl Promotions {
    pub(in crate::leader) fn new(tick_ms: u64) -> Self {
        Self { tick_ms, published: BTreeMap::new(), promoted_ms: None, promotion_took_ms: 0 }
    }

    /// Returns the newest epoch of a bucket that was published at or before the time `at_ms`;
    /// `None` if this leader has seen none.
    pub(in crate::leader) fn published_at(&self, bucket: BucketId, at_ms: u64) -> Option<Epoch> {
        self.published.get(&bucket)?.at_time(at_ms)
    }

    /// Records that the promotion that began at `begun_ms` has ended. The interval until the next
    /// promotion grows with the duration.
    pub(in crate::leader) fn record_promotion_end(&mut self, begun_ms: u64, now_ms: u64) {
        self.promoted_ms = Some(begun_ms);
        self.promotion_took_ms = now_ms.saturating_sub(begun_ms);
    }

    pub(in crate::leader) fn plan(
        &mut self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        stability: &mut EpochCutChooser,
        now_ms: u64,
        plan: &mut Plan,
    ) {
        stability.retain(|bucket| state.bucket(bucket).is_some());
        self.published.retain(|bucket, _| state.bucket(*bucket).is_some());
        let tick_ms = self.tick_ms.max(2 * self.promotion_took_ms).min(TICK_MS_MAX);
        let due_ms = self.promoted_ms.map_or(now_ms, |at_ms| at_ms + tick_ms);
        let mut chosen = ChosenCuts::new();
        let is_due = due_ms <= now_ms;
        for (id, bucket) in state.buckets() {
            self.published.entry(id).or_default().observe(bucket.epochs, now_ms);
            if bucket.info.readable_from().is_none() || stability.newest_closed_cut(id).is_none() {
                continue;
            }
            if !is_due && !stability.has_waiters() {
                // Hundreds of reports arrive between two ticks; the cuts are compared once.
                plan.plan_again_at(due_ms);
                continue;
            }
            let published = &bucket.epochs.last().cut;
            let indexers = heartbeats.progress(id, now_ms);
            let cut = match stability.choose(id, published, &indexers, now_ms) {
                CutChoice::Nothing => continue,
                CutChoice::Hold => {
                    plan.next_ms = Some(now_ms + self.tick_ms);
                    continue;
                }
                CutChoice::Promote(cut) | CutChoice::PromoteNow(cut) => cut,
            };
            chosen.insert(id, cut);
        }
        let is_newest =
            |(id, cut): (&BucketId, &Cut)| (*id, stability.newest_closed_cut(*id) == Some(cut));
        let wanted: Vec<_> = chosen.iter().map(is_newest).collect();
        avoid_split_commits(stability, state, &mut chosen);
        for (held, is_newest) in wanted.into_iter().filter(|(id, _)| !chosen.contains_key(id)) {
            stability.begin_wait(held, now_ms);
            if !is_newest {
                // In a while the newest has its turn.
                plan.plan_again_at(due_ms.max(now_ms + self.tick_ms));
            }
        }
        if chosen.is_empty() {
            return;
        }
        // A place that is held is reached by none of the next epochs, however often reports come.
        let is_awaited = |(id, cut): (&BucketId, &Cut)| {
            state
                .bucket(*id)
                .is_some_and(|known| stability.awaits(*id, &known.epochs.last().cut, cut))
        };
        if !is_due && !chosen.iter().any(is_awaited) {
            plan.plan_again_at(due_ms);
            return;
        }
        chosen.keys().for_each(|id| stability.end_wait(*id));
        let joined = buckets_promoted_together(stability, state, &chosen);
        let moments = leased_indexes(state, heartbeats, now_ms);
        let promotion =
            |(id, cut)| self.promotion(state, heartbeats, (id, &cut), (&moments, now_ms));
        let promotions: Vec<_> = chosen.into_iter().filter_map(promotion).collect();
        plan.commands.push(Command::PromoteEpochs(PromoteEpochs { promotions, joined }));
    }

    /// Returns the promotion of a bucket to a cut.
    fn promotion(
        &self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        (id, cut): (BucketId, &Cut),
        (moments, now_ms): (&BTreeSet<u64>, u64),
    ) -> Option<Promotion> {
        let bucket = state.bucket(id)?;
        let horizon = self.horizon(state, heartbeats, bucket, moments, now_ms);
        Some(Promotion {
            bucket: id,
            changes: advanced_positions(&bucket.epochs.last().cut, cut),
            horizon,
        })
    }

    /// Returns the next horizon of a bucket.
    fn horizon(
        &self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        bucket: BucketView<'_>,
        moments: &BTreeSet<u64>,
        now_ms: u64,
    ) -> Epoch {
        let id = bucket.info.id;
        // The routers had no time yet to report their leases.
        let term_ms = heartbeats.term_ms(now_ms);
        let Some(published) = self.published.get(&id).filter(|_| term_ms >= LEASE_MS) else {
            return bucket.epochs.last().horizon;
        };
        let leases = heartbeats.leases(id, now_ms);
        let servable = state
            .indexes()
            .map(|record| &record.info)
            .filter(|index| index.bucket == id && index.state == IndexState::Maintenance)
            .map(|index| heartbeats.newest_servable_epoch(index));
        let in_force = epochs_in_force(state, id, moments);
        horizon::next_horizon(bucket.epochs, published, now_ms, leases, in_force, servable)
    }
}
