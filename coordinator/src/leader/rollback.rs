//! Takes rollbacks from stage to stage, as far as the sources and the indexers have come ([`super::sources`] says what
//! is known of them).

use std::collections::BTreeSet;

use proto::model::ids::{BucketId, Epoch, NodeId};
use proto::model::index::IndexState;
use proto::model::rollback::{RollbackStage, RollbackStep};
use proto::rpc::command::Command;

use super::heartbeats::{Heartbeats, SILENT_MS_MAX};
use super::plan::Plan;
use super::sources::Sources;
use super::stability::Stability;
use crate::state::{BucketState, StateContext};

impl Sources {
    /// Compares what sources have said with the state, and takes rollbacks on.
    pub(super) fn plan(
        &mut self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        stability: &mut Stability,
        now_ms: u64,
        plan: &mut Plan,
    ) {
        self.histories.retain(|bucket, _| state.bucket(*bucket).is_some());
        self.compared.retain(|bucket| state.bucket(*bucket).is_some());
        self.logs.retain(|bucket, _| state.bucket(*bucket).is_some());
        self.fresh_from.retain(|bucket, _| state.bucket(*bucket).is_some());
        self.fresh_of.retain(|(bucket, _), _| state.bucket(*bucket).is_some());
        self.started.retain(|bucket| state.bucket(*bucket).is_some());
        for (id, bucket) in state.buckets() {
            self.keep_history(stability, bucket);
            let stage = bucket.info.rollback.as_ref().map(|rollback| rollback.stage);
            if self.see_stage(id, stage) {
                // Of what was lost: a source that began no branch goes on with the same history.
                stability.forget(id);
            }
            self.drop_late(id, bucket, stage);
            if let Some(step) = self.next_step(state, heartbeats, stability, bucket, now_ms) {
                plan.commands.push(Command::Rollback { bucket: id, step });
            }
        }
    }

    /// Asks again where a late answer would tell of a loss.
    fn drop_late(&mut self, id: BucketId, bucket: &BucketState, stage: Option<RollbackStage>) {
        let Some((_, history)) = self.histories.get(&id) else { return };
        let tells_loss = match stage {
            Some(RollbackStage::Started) => true,
            None | Some(RollbackStage::Rollback) => !history.has(&bucket.epochs.last().cut),
            Some(_) => false,
        };
        // Another projector's news make nobody's loss late.
        let last = &bucket.epochs.last().cut;
        let short = last.iter().filter(|(vbucket, at)| {
            history.durable.get(*vbucket).seqno < at.seqno || !history.logs.includes(*vbucket, *at)
        });
        let homes: Vec<NodeId> =
            short.filter_map(|(vbucket, _)| bucket.info.homes.home(vbucket)).collect();
        if tells_loss && !self.is_fresh(id, &homes) {
            self.histories.remove(&id);
            self.strange.insert(id);
        }
    }

    fn next_step(
        &mut self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        stability: &mut Stability,
        bucket: &BucketState,
        now_ms: u64,
    ) -> Option<RollbackStep> {
        let id = bucket.info.id;
        let rollback = bucket.info.rollback.as_ref();
        let stage = rollback.map(|rollback| rollback.stage);
        match self.histories.get(&id) {
            Some((_, history)) if stage == Some(RollbackStage::Started) => {
                return Some(RollbackStep::Prepare(history.clone()));
            }
            Some((_, history)) => {
                let agrees = history.logs == bucket.logs
                    && (history.has(&bucket.epochs.last().cut)
                        || stage.is_some_and(|stage| stage < RollbackStage::Rollback));
                if !agrees {
                    return Some(RollbackStep::Compare(history.clone()));
                }
                self.compared.insert(id);
                // Its positions count from now on, until the next enquiry.
                let (_, history) = self.histories.remove(&id)?;
                if stage.is_none_or(|stage| stage == RollbackStage::Rollback) {
                    let told = self.report(stability, bucket, history.durable);
                    told.err().inspect(|error| tracing::warn!(bucket = %id, %error, "a history"));
                }
            }
            None if stage == Some(RollbackStage::Started) => {
                self.strange.insert(id);
                return None;
            }
            None => {}
        }
        match stage? {
            RollbackStage::Started => None,
            RollbackStage::Prepare => Some(RollbackStep::Restart),
            RollbackStage::Restart => Some(RollbackStep::Rollback),
            RollbackStage::Rollback => {
                let resumed = rollback?.resumes?;
                have_applied(state, heartbeats, id, resumed, now_ms)
                    .then_some(RollbackStep::End { resumed })
            }
        }
    }
}

/// Has each living indexer with slices of a bucket applied an epoch?
fn have_applied(
    state: &StateContext,
    heartbeats: &Heartbeats,
    bucket: BucketId,
    epoch: Epoch,
    now_ms: u64,
) -> bool {
    let indexes = state.indexes().map(|record| &record.info);
    let read = indexes.filter(|i| i.bucket == bucket && i.state != IndexState::Pending);
    let hosts: BTreeSet<NodeId> =
        read.flat_map(|index| index.topology.placement.iter().flatten().copied()).collect();
    hosts.iter().all(|node| {
        let heard = heartbeats.nodes.get(node);
        let heard_ms = heard.map_or(0, |heard| heard.at_ms).max(heartbeats.since_ms);
        let applied = heard.is_some_and(|heard| {
            let mut buckets = heard.heartbeat.buckets.iter();
            buckets.any(|progress| progress.bucket == bucket && progress.applied >= epoch)
        });
        applied || now_ms.saturating_sub(heard_ms) >= SILENT_MS_MAX
    })
}

#[cfg(test)]
#[path = "rollback_tests.rs"]
mod tests;
