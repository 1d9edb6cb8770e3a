//! Plans the steps of rollbacks, from stage to stage, as the reports of sources and indexers
//! allow. [`crate::leader::epochs::sources`] collects the reports of the sources.

use std::collections::BTreeSet;

use proto::model::cut::{Cut, Position};
use proto::model::history::SourceHistory;
use proto::model::ids::{BucketId, Epoch, NodeId, VbucketId};
use proto::model::index::IndexState;
use proto::model::rollback::{RollbackStage, RollbackStep};
use proto::rpc::command::{Command, Rollback};

use crate::leader::epochs::sources::Sources;
use crate::leader::epochs::stability::EpochCutChooser;
use crate::leader::nodes::heartbeats::{Heartbeats, SILENT_MS_MAX};
use crate::leader::plan::Plan;
use crate::state::{BucketView, StateContext};

impl Sources {
    /// Compares the sources' histories with the state, and plans the next step of each rollback.
    pub(in crate::leader) fn plan(
        &mut self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        stability: &mut EpochCutChooser,
        now_ms: u64,
        plan: &mut Plan,
    ) {
        self.histories.retain(|bucket, _| state.bucket(*bucket).is_some());
        self.compared.retain(|bucket| state.bucket(*bucket).is_some());
        self.logs.retain(|bucket, _| state.bucket(*bucket).is_some());
        self.fresh_from.retain(|bucket, _| state.bucket(*bucket).is_some());
        self.fresh_from_projector.retain(|(bucket, _), _| state.bucket(*bucket).is_some());
        self.started.retain(|bucket| state.bucket(*bucket).is_some());
        for (id, bucket) in state.buckets() {
            self.reset_on_new_history(stability, bucket);
            let stage = bucket.info.rollback.as_ref().map(|rollback| rollback.stage);
            if self.note_stage(id, stage) {
                // The lost positions are among these cuts. A source that began no branch continues the same history,
                // so the history does not show it.
                stability.drop_closed_cuts(id);
            }
            self.drop_expired(id, bucket, stage);
            self.drop_lost_cuts(stability, id, bucket);
            if let Some(step) = self.next_step(state, heartbeats, bucket, now_ms) {
                plan.commands.push(Command::Rollback(Rollback { bucket: id, step }));
            }
        }
    }

    /// Drops the source's last answer and schedules another query, if the answer reports a loss
    /// but may be too old to prove one.
    fn drop_expired(&mut self, id: BucketId, bucket: BucketView<'_>, stage: Option<RollbackStage>) {
        let Some((_, history)) = self.histories.get(&id) else { return };
        let tells_loss = match stage {
            Some(RollbackStage::Started) => true,
            None | Some(RollbackStage::Rollback) => !history.has(&bucket.epochs.last().cut),
            Some(_) => false,
        };
        // Reports of other projectors do not make the answer late.
        let lacking = owners_lacking_cut_part(bucket, history, &bucket.epochs.last().cut);
        if tells_loss && !self.is_fresh(id, &lacking) {
            self.histories.remove(&id);
            self.suspects.insert(id);
        }
    }

    /// Drops the closed cuts of a bucket whose source has lost a part of the newest cut, although
    /// its history shows no new branch. Otherwise a joint commit could delay that cut for long,
    /// and all reports below it would be ignored meanwhile.
    fn drop_lost_cuts(
        &self,
        stability: &mut EpochCutChooser,
        id: BucketId,
        bucket: BucketView<'_>,
    ) {
        let Some((_, history)) = self.histories.get(&id) else { return };
        let Some(newest) = stability.newest_closed_cut(id).filter(|_| history.logs == *bucket.logs)
        else {
            return;
        };
        let lacking = owners_lacking_cut_part(bucket, history, newest);
        if !lacking.is_empty() && self.is_fresh(id, &lacking) {
            stability.drop_closed_cuts(id);
        }
    }

    /// Removes a source's answer that agrees with the state, so that the source's reports count.
    /// The end in the answer is not a closed cut: only SYNC names the commits before a cut.
    fn remove_agreeing_answer(&mut self, bucket: BucketId) {
        self.compared.insert(bucket);
        self.histories.remove(&bucket);
    }

    /// Returns the next step of the rollback of a bucket, or the step that compares the source's
    /// answer with the state.
    fn next_step(
        &mut self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        bucket: BucketView<'_>,
        now_ms: u64,
    ) -> Option<RollbackStep> {
        let id = bucket.info.id;
        let rollback = bucket.info.rollback.as_ref();
        let stage = rollback.map(|rollback| rollback.stage);
        if let Some((_, history)) = self.histories.get(&id) {
            if is_stale_answer(state, bucket, stage, history) {
                self.histories.remove(&id);
                self.suspects.insert(id);
                return None;
            }
            if stage == Some(RollbackStage::Started) {
                return Some(RollbackStep::Prepare(history.clone()));
            }
            let agrees = history.logs == *bucket.logs
                && (history.has(&bucket.epochs.last().cut)
                    || stage.is_some_and(|stage| stage < RollbackStage::Rollback));
            if !agrees {
                return Some(RollbackStep::Compare(history.clone()));
            }
            self.remove_agreeing_answer(id);
        } else if stage == Some(RollbackStage::Started) {
            self.suspects.insert(id);
            return None;
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

/// Returns the projectors whose vbuckets, in a source's answer, lack a part of a cut.
fn owners_lacking_cut_part(
    bucket: BucketView<'_>,
    history: &SourceHistory,
    cut: &Cut,
) -> Vec<NodeId> {
    let is_lacking = |(vbucket, at): &(VbucketId, Position)| {
        history.durable.get(*vbucket).seqno < at.seqno || !history.logs.includes(*vbucket, *at)
    };
    let lacking = cut.iter().filter(is_lacking);
    lacking.filter_map(|(vbucket, _)| bucket.info.assignment.owner(vbucket)).collect()
}

/// Returns true if an answer is too old to count, because an earlier process of the projector
/// that has the only copy of the bucket gave it. The present process was compared when it began
/// to serve (`Command::OpenSource`), and has lost nothing since.
fn is_stale_answer(
    state: &StateContext,
    bucket: BucketView<'_>,
    stage: Option<RollbackStage>,
    history: &SourceHistory,
) -> bool {
    if !bucket.info.source.is_only_copy() || state.skips_to(bucket.info.id).0 > 0 {
        return false;
    }
    match stage {
        None | Some(RollbackStage::Rollback) => !history.has(&bucket.epochs.last().cut),
        Some(_) => history.logs != *bucket.logs,
    }
}

/// Returns true if each indexer with slices of the bucket has applied the epoch, or is silent.
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
        let last = heartbeats.nodes.get(node);
        let reported_ms = last.map_or(0, |last| last.at_ms).max(heartbeats.since_ms);
        let applied = heartbeats.indexer(*node).is_some_and(|report| {
            let mut buckets = report.buckets.iter();
            buckets.any(|progress| progress.bucket == bucket && progress.applied >= epoch)
        });
        applied || now_ms.saturating_sub(reported_ms) >= SILENT_MS_MAX
    })
}

#[cfg(test)]
#[path = "rollback_tests.rs"]
mod tests;
