//! Plans the next epochs and their horizons.

use std::collections::BTreeMap;

use proto::model::ids::{BucketId, Epoch};
use proto::model::index::IndexState;
use proto::rpc::command::{Command, Promotion};

use super::heartbeats::{Heartbeats, SILENT_MS_MAX};
use super::horizon::{self, LEASE_MS, Published};
use super::plan::Plan;
use super::stability::{Choice, Stability};
use crate::state::epoch_history::advance;
use crate::state::{BucketState, StateContext};

/// The longest time between two epochs while there are new mutations, however slow the log is.
pub(super) const TICK_MS_MAX: u64 = 1_000;

/// The leader's memory of the epochs that it has published.
#[derive(Debug)]
pub(super) struct Promotions {
    tick_ms: u64,
    /// The times at which the epochs of each bucket were first seen.
    published: BTreeMap<BucketId, Published>,
    promoted_ms: Option<u64>,
    promotion_took_ms: u64,
    /// The buckets that get no epochs because a node knows of newer ones: the begin of that time, and whether it was logged.
    behind_since_ms: BTreeMap<BucketId, (u64, bool)>,
}

/// The reason why a bucket gets no epochs: an indexer has applied one that this coordinator does not know.
pub(super) fn epoch_from_elsewhere(
    bucket: &BucketState,
    heartbeats: &Heartbeats,
) -> Option<String> {
    let known = bucket.epochs.last().epoch;
    let (applied, node) = heartbeats.newest_applied(bucket.info.id)?;
    (applied > known).then(|| {
        format!(
            "bucket \"{}\" gets no new epochs: node {node} has applied epoch {applied}, but the newest that this \
             coordinator knows is {known}; its data directory is an old copy: restore the newest one",
            bucket.info.name
        )
    })
}

impl Promotions {
    pub(super) fn new(tick_ms: u64) -> Self {
        Self {
            tick_ms,
            published: BTreeMap::new(),
            promoted_ms: None,
            promotion_took_ms: 0,
            behind_since_ms: BTreeMap::new(),
        }
    }

    /// Records that the promotion that began at `begun_ms` was committed or failed. The tick grows with the time that
    /// the log needs.
    pub(super) fn promoted(&mut self, begun_ms: u64, now_ms: u64) {
        self.promoted_ms = Some(begun_ms);
        self.promotion_took_ms = now_ms.saturating_sub(begun_ms);
    }

    pub(super) fn plan(
        &mut self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        stability: &mut Stability,
        now_ms: u64,
        plan: &mut Plan,
    ) {
        stability.retain(|bucket| state.bucket(bucket).is_some());
        self.published.retain(|bucket, _| state.bucket(*bucket).is_some());
        let tick_ms = self.tick_ms.max(2 * self.promotion_took_ms).min(TICK_MS_MAX);
        let due_ms = self.promoted_ms.map_or(now_ms, |at_ms| at_ms + tick_ms);
        let mut promotions = Vec::new();
        let mut now = due_ms <= now_ms;
        for (id, bucket) in state.buckets() {
            self.published.entry(id).or_default().observe(&bucket.epochs, now_ms);
            if bucket.info.readable_from().is_none() || self.is_behind(bucket, heartbeats, now_ms) {
                continue;
            }
            let published = &bucket.epochs.last().cut;
            let indexers = heartbeats.progress(id, now_ms);
            let cut = match stability.choose(id, published, &indexers, now_ms) {
                Choice::Nothing => continue,
                Choice::Hold => {
                    plan.next_ms = Some(now_ms + self.tick_ms);
                    continue;
                }
                Choice::Promote(cut) => cut,
                Choice::PromoteNow(cut) => {
                    now = true;
                    cut
                }
            };
            let horizon = self.horizon(state, heartbeats, bucket, now_ms);
            promotions.push(Promotion { bucket: id, changes: advance(published, &cut), horizon });
        }
        if promotions.is_empty() {
            return;
        }
        if now {
            plan.commands.push(Command::PromoteEpochs(promotions));
        } else {
            plan.next_ms = Some(due_ms);
        }
    }

    /// True if an indexer has applied a newer epoch of a bucket than this coordinator knows: its log is an old copy, and the
    /// next epoch would have a number that is in use (I6). A leader that has just been elected may be behind for a moment.
    fn is_behind(&mut self, bucket: &BucketState, heartbeats: &Heartbeats, now_ms: u64) -> bool {
        let id = bucket.info.id;
        let Some(what) = epoch_from_elsewhere(bucket, heartbeats) else {
            self.behind_since_ms.remove(&id);
            return false;
        };
        let since_ms = self.behind_since_ms.entry(id).or_insert((now_ms, false));
        if !since_ms.1 && now_ms.saturating_sub(since_ms.0) >= SILENT_MS_MAX {
            since_ms.1 = true;
            tracing::error!("{what}");
        }
        true
    }

    fn horizon(
        &self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        bucket: &BucketState,
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
            .map(|index| heartbeats.servable(index));
        horizon::horizon(&bucket.epochs, published, now_ms, leases, servable)
    }
}
