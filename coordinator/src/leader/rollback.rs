//! How the leader learns what a source's history is, and takes rollbacks from stage to stage.
//!
//! SYNC tells positions only. Where one is not a place in the history that the bucket is known to have, or lies
//! before the last epoch, the source is *enquired*: it tells its failover logs and where it ends, at one
//! moment. So is a bucket of which nothing was heard for a while, and every bucket at the beginning of a term.
//! What it answers is compared with the state by a command ([`proto::model::rollback::RollbackStep::Compare`]); only
//! when the two agree do its positions count.
//!
//! An answer may be late: what SYNC has told since the question, and epochs that have been published, are not in it.
//! That is not a loss. So an answer that has less than the last epoch counts only if it was asked for after the last
//! SYNC; and what has survived a loss is what the source says when it is asked after epochs have ceased to be
//! published.
//!
//! Two positions are compared in a history, so closed cuts of another one are forgotten when it changes. A source may
//! also lose its end and begin no branch (a pushed one: its producer numbers the mutations), and then the lost positions
//! look like places in its history. So all closed cuts are forgotten when a rollback begins, and none is put together
//! while it goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto::Result;
use proto::model::cut::Cut;
use proto::model::history::{FailoverLogs, SourceHistory};
use proto::model::homes::VbucketSet;
use proto::model::ids::{BucketId, Epoch, NodeId};
use proto::model::index::IndexState;
use proto::model::rollback::{RollbackStage, RollbackStep};
use proto::rpc::command::Command;

use super::{Leader, Plan, SILENT_MS_MAX};
use crate::state::{BucketState, StateContext};

/// A bucket of which nothing was heard for this long is enquired.
pub(super) const SYNC_SILENCE_MS: u64 = 1_000;
/// Between two enquiries of a bucket that something is strange about.
const ENQUIRE_EVERY_MS: u64 = 20;

/// What is known of the sources.
#[derive(Debug, Default)]
pub struct Sources {
    /// What each said last when it was enquired, until the state agrees; and which question that answers.
    histories: BTreeMap<BucketId, (Asked, SourceHistory)>,
    /// Counts questions, and what makes answers to earlier ones late.
    sequence: u64,
    /// Answers to questions before this one do not tell what is lost.
    fresh_from: BTreeMap<BucketId, u64>,
    /// The same of the vbuckets of one projector.
    fresh_of: BTreeMap<(BucketId, NodeId), u64>,
    /// Those whose rollback has been seen in `started`.
    started: BTreeSet<BucketId>,
    /// Those that are to be enquired now.
    strange: BTreeSet<BucketId>,
    /// When each was heard of by each projector, or enquired.
    heard_ms: BTreeMap<(BucketId, NodeId), u64>,
    /// Those that were enquired and agreed with, in this term.
    compared: BTreeSet<BucketId>,
    /// The history that the closed cuts of a bucket belong to.
    logs: BTreeMap<BucketId, Arc<FailoverLogs>>,
}

/// When a source was asked: the term of the leader, and a number that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    term: u64,
    sequence: u64,
}

impl Sources {
    /// What is answered to the questions so far is late.
    fn make_late(&mut self, bucket: BucketId) {
        self.sequence += 1;
        self.fresh_from.insert(bucket, self.sequence);
    }

    /// What is answered to the questions so far is late for a projector's vbuckets.
    fn make_late_of(&mut self, bucket: BucketId, projector: NodeId) {
        self.sequence += 1;
        self.fresh_of.insert((bucket, projector), self.sequence);
    }

    /// Does what was said last of a bucket answer a question that is not late for the vbuckets of these
    /// projectors?
    fn is_fresh(&self, bucket: BucketId, projectors: &[NodeId]) -> bool {
        let of_each = projectors.iter().filter_map(|id| self.fresh_of.get(&(bucket, *id)));
        let from = of_each.chain(self.fresh_from.get(&bucket)).max().copied().unwrap_or(0);
        self.histories.get(&bucket).is_some_and(|(asked, _)| asked.sequence > from)
    }

    /// Of a bucket whose rollback begins only what is asked from now on tells what has survived. Says if it begins.
    fn see_stage(&mut self, bucket: BucketId, stage: Option<RollbackStage>) -> bool {
        if stage != Some(RollbackStage::Started) {
            self.started.remove(&bucket);
            return false;
        }
        let begins = self.started.insert(bucket);
        if begins {
            self.make_late(bucket);
        }
        begins
    }
}

impl Leader {
    /// A source is about to be asked for its history.
    pub fn asking(&mut self) -> Asked {
        self.sources.sequence += 1;
        Asked { term: self.term, sequence: self.sources.sequence }
    }

    /// SYNC: the durable history of a bucket reaches a cut in the vbuckets that the projector keeps. Dropped
    /// buckets are ignored: the projector will hear of it.
    pub fn sync(
        &mut self,
        state: &StateContext,
        projector: NodeId,
        (bucket, kept, cut): (BucketId, VbucketSet, Cut),
        now_ms: u64,
    ) -> Result<()> {
        let Some(known) = state.bucket(bucket) else { return Ok(()) };
        let last = &known.epochs.last().cut;
        if cut.vbuckets() == last.vbuckets() {
            let is_strange = |vbucket| {
                let at = cut.get(vbucket);
                at.seqno < last.get(vbucket).seqno || !known.logs.includes(vbucket, at)
            };
            if kept.iter().any(is_strange) {
                self.sources.strange.insert(bucket);
                return Ok(());
            }
        }
        self.sources.heard_ms.insert((bucket, projector), now_ms);
        if known.info.readable_from().is_none() {
            // What would be put together with it of other projectors is about to be taken back. It is told again.
            return Ok(());
        }
        self.sources.make_late_of(bucket, projector);
        if cut.vbuckets() != last.vbuckets() {
            return self.report(known, cut);
        }
        // The vbuckets of other projectors are where these have said. Any such cut is closed: the mutations of a
        // bucket that several projectors keep stand alone.
        self.keep_history(known);
        let newest = self.stability.newest(bucket).unwrap_or(last);
        let cut = newest.with_of(&kept, &cut);
        // The last epoch may be of a history that was lost and is not known to be: then an enquiry tells where the
        // others are.
        if !known.logs.includes_cut(&cut) {
            return Ok(());
        }
        self.report(known, cut)
    }

    /// A source was enquired and said this.
    pub fn enquired(
        &mut self,
        state: &StateContext,
        bucket: BucketId,
        asked: Asked,
        history: SourceHistory,
    ) -> Result<()> {
        let Some(known) = state.bucket(bucket).filter(|_| asked.term == self.term) else {
            return Ok(());
        };
        self.sources.strange.remove(&bucket);
        known.check(&history)?;
        if known.logs == history.logs && history.has(&known.epochs.last().cut) {
            self.report(known, history.durable.clone())?;
        }
        self.sources.histories.insert(bucket, (asked, history));
        Ok(())
    }

    /// Has the source of each bucket been compared with the state, in this term?
    pub(super) fn sources_are_heard(&self, state: &StateContext) -> bool {
        state.buckets().all(|(id, _)| self.sources.compared.contains(&id))
    }

    /// Is there a source to be enquired at once?
    pub fn is_curious(&self) -> bool {
        !self.sources.strange.is_empty()
    }

    fn report(&mut self, known: &BucketState, cut: Cut) -> Result<()> {
        self.keep_history(known);
        self.stability.report(known.info.id, cut, &known.epochs.last().cut)
    }

    /// Forgets cuts of another history.
    fn keep_history(&mut self, known: &BucketState) {
        let id = known.info.id;
        if self.sources.logs.get(&id).is_none_or(|logs| *logs != known.logs) {
            self.stability.forget(id);
            self.sources.logs.insert(id, Arc::clone(&known.logs));
        }
    }

    /// The buckets whose sources are to be enquired. What was told to an earlier leader
    /// is lost with it, and a source that has nothing new says nothing.
    pub fn to_enquire(&mut self, state: &StateContext, now_ms: u64) -> Vec<BucketId> {
        self.sources.heard_ms.retain(|(bucket, _), _| state.bucket(*bucket).is_some());
        self.sources.strange.retain(|bucket| state.bucket(*bucket).is_some());
        let mut found = Vec::new();
        for (id, bucket) in state.buckets() {
            let pause_ms = match self.sources.strange.contains(&id) {
                true => ENQUIRE_EVERY_MS,
                false => SYNC_SILENCE_MS,
            };
            let projectors = bucket.info.homes.projectors();
            let is_heard = |projector: &NodeId| {
                let heard = self.sources.heard_ms.get(&(id, *projector));
                heard.is_some_and(|at_ms| now_ms.saturating_sub(*at_ms) < pause_ms)
            };
            if projectors.iter().all(is_heard) {
                continue;
            }
            let now = projectors.into_iter().map(|projector| ((id, projector), now_ms));
            self.sources.heard_ms.extend(now);
            found.push(id);
        }
        found
    }

    /// Compares what sources have said with the state, and takes rollbacks on.
    pub(super) fn plan_rollbacks(&mut self, state: &StateContext, now_ms: u64, plan: &mut Plan) {
        self.sources.histories.retain(|bucket, _| state.bucket(*bucket).is_some());
        self.sources.compared.retain(|bucket| state.bucket(*bucket).is_some());
        self.sources.logs.retain(|bucket, _| state.bucket(*bucket).is_some());
        self.sources.fresh_from.retain(|bucket, _| state.bucket(*bucket).is_some());
        self.sources.fresh_of.retain(|(bucket, _), _| state.bucket(*bucket).is_some());
        self.sources.started.retain(|bucket| state.bucket(*bucket).is_some());
        for (id, bucket) in state.buckets() {
            self.keep_history(bucket);
            let stage = bucket.info.rollback.as_ref().map(|rollback| rollback.stage);
            if self.sources.see_stage(id, stage) {
                // Of what was lost: a source that began no branch goes on with the same history.
                self.stability.forget(id);
            }
            self.drop_late(id, bucket, stage);
            if let Some(step) = self.next_step(state, id, bucket, now_ms) {
                plan.commands.push(Command::Rollback { bucket: id, step });
            }
        }
    }

    /// Asks again where a late answer would tell of a loss.
    fn drop_late(&mut self, id: BucketId, bucket: &BucketState, stage: Option<RollbackStage>) {
        let Some((_, history)) = self.sources.histories.get(&id) else { return };
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
        if tells_loss && !self.sources.is_fresh(id, &homes) {
            self.sources.histories.remove(&id);
            self.sources.strange.insert(id);
        }
    }

    fn next_step(
        &mut self,
        state: &StateContext,
        id: BucketId,
        bucket: &BucketState,
        now_ms: u64,
    ) -> Option<RollbackStep> {
        let rollback = bucket.info.rollback.as_ref();
        let stage = rollback.map(|rollback| rollback.stage);
        match self.sources.histories.get(&id) {
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
                self.sources.compared.insert(id);
                // Its positions count from now on, until the next enquiry.
                let (_, history) = self.sources.histories.remove(&id)?;
                if stage.is_none_or(|stage| stage == RollbackStage::Rollback) {
                    let told = self.report(bucket, history.durable);
                    told.err().inspect(|error| tracing::warn!(bucket = %id, %error, "a history"));
                }
            }
            None if stage == Some(RollbackStage::Started) => {
                self.sources.strange.insert(id);
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
                self.have_applied(state, id, resumed, now_ms)
                    .then_some(RollbackStep::End { resumed })
            }
        }
    }

    /// Has each living indexer with slices of a bucket applied an epoch?
    fn have_applied(
        &self,
        state: &StateContext,
        bucket: BucketId,
        epoch: Epoch,
        now_ms: u64,
    ) -> bool {
        let indexes = state.indexes().map(|record| &record.info);
        let read = indexes.filter(|i| i.bucket == bucket && i.state != IndexState::Pending);
        let hosts: BTreeSet<NodeId> =
            read.flat_map(|index| index.topology.placement.iter().flatten().copied()).collect();
        hosts.iter().all(|node| {
            let heard = self.nodes.get(node);
            let heard_ms = heard.map_or(0, |heard| heard.at_ms).max(self.since_ms);
            let applied = heard.is_some_and(|heard| {
                let mut buckets = heard.heartbeat.buckets.iter();
                buckets.any(|progress| progress.bucket == bucket && progress.applied >= epoch)
            });
            applied || now_ms.saturating_sub(heard_ms) >= SILENT_MS_MAX
        })
    }
}

#[cfg(test)]
#[path = "rollback_tests.rs"]
mod tests;
