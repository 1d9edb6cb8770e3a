//! What the leader knows of the sources' histories, and whom it enquires.
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
use proto::model::ids::{BucketId, NodeId};
use proto::model::rollback::RollbackStage;

use super::stability::Stability;
use crate::state::{BucketState, StateContext};

/// A bucket of which nothing was heard for this long is enquired.
pub(super) const SYNC_SILENCE_MS: u64 = 1_000;

/// Between two enquiries of a bucket that something is strange about.
const ENQUIRE_EVERY_MS: u64 = 20;

/// What is known of the sources.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// What each said last when it was enquired, until the state agrees; and which question that answers.
    pub(super) histories: BTreeMap<BucketId, (Asked, SourceHistory)>,
    /// Counts questions, and what makes answers to earlier ones late.
    pub(super) sequence: u64,
    /// Answers to questions before this one do not tell what is lost.
    pub(super) fresh_from: BTreeMap<BucketId, u64>,
    /// The same of the vbuckets of one projector.
    pub(super) fresh_of: BTreeMap<(BucketId, NodeId), u64>,
    /// Those whose rollback has been seen in `started`.
    pub(super) started: BTreeSet<BucketId>,
    /// Those that are to be enquired now.
    pub(super) strange: BTreeSet<BucketId>,
    /// When each was heard of by each projector, or enquired.
    pub(super) heard_ms: BTreeMap<(BucketId, NodeId), u64>,
    /// Those that were enquired and agreed with, in this term.
    pub(super) compared: BTreeSet<BucketId>,
    /// The history that the closed cuts of a bucket belong to.
    pub(super) logs: BTreeMap<BucketId, Arc<FailoverLogs>>,
}

/// When a source was asked: the term of the leader, and a number that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    pub(super) term: u64,
    sequence: u64,
}

impl Sources {
    /// What is answered to the questions so far is late.
    pub(super) fn make_late(&mut self, bucket: BucketId) {
        self.sequence += 1;
        self.fresh_from.insert(bucket, self.sequence);
    }

    /// What is answered to the questions so far is late for a projector's vbuckets.
    pub(super) fn make_late_of(&mut self, bucket: BucketId, projector: NodeId) {
        self.sequence += 1;
        self.fresh_of.insert((bucket, projector), self.sequence);
    }

    /// Does what was said last of a bucket answer a question that is not late for the vbuckets of these
    /// projectors?
    pub(super) fn is_fresh(&self, bucket: BucketId, projectors: &[NodeId]) -> bool {
        let of_each = projectors.iter().filter_map(|id| self.fresh_of.get(&(bucket, *id)));
        let from = of_each.chain(self.fresh_from.get(&bucket)).max().copied().unwrap_or(0);
        self.histories.get(&bucket).is_some_and(|(asked, _)| asked.sequence > from)
    }

    /// Of a bucket whose rollback begins only what is asked from now on tells what has survived. Says if it begins.
    pub(super) fn see_stage(&mut self, bucket: BucketId, stage: Option<RollbackStage>) -> bool {
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

    /// A source is about to be asked for its history.
    pub(super) fn asking(&mut self, term: u64) -> Asked {
        self.sequence += 1;
        Asked { term, sequence: self.sequence }
    }

    /// SYNC: the durable history of a bucket reaches a cut in the vbuckets that the projector keeps. Dropped
    /// buckets are ignored: the projector will hear of it.
    pub(super) fn sync(
        &mut self,
        stability: &mut Stability,
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
                self.strange.insert(bucket);
                return Ok(());
            }
        }
        self.heard_ms.insert((bucket, projector), now_ms);
        if known.info.readable_from().is_none() {
            // What would be put together with it of other projectors is about to be taken back. It is told again.
            return Ok(());
        }
        self.make_late_of(bucket, projector);
        if cut.vbuckets() != last.vbuckets() {
            return self.report(stability, known, cut);
        }
        // The vbuckets of other projectors are where these have said. Any such cut is closed: the mutations of a
        // bucket that several projectors keep stand alone.
        self.keep_history(stability, known);
        let newest = stability.newest(bucket).unwrap_or(last);
        let cut = newest.with_of(&kept, &cut);
        // The last epoch may be of a history that was lost and is not known to be: then an enquiry tells where the
        // others are.
        if !known.logs.includes_cut(&cut) {
            return Ok(());
        }
        self.report(stability, known, cut)
    }

    /// A source was enquired and said this.
    pub(super) fn enquired(
        &mut self,
        stability: &mut Stability,
        state: &StateContext,
        bucket: BucketId,
        asked: Asked,
        history: SourceHistory,
    ) -> Result<()> {
        let Some(known) = state.bucket(bucket) else {
            return Ok(());
        };
        self.strange.remove(&bucket);
        known.check(&history)?;
        if known.logs == history.logs && history.has(&known.epochs.last().cut) {
            self.report(stability, known, history.durable.clone())?;
        }
        self.histories.insert(bucket, (asked, history));
        Ok(())
    }

    /// Has the source of each bucket been compared with the state, in this term?
    pub(super) fn are_heard(&self, state: &StateContext) -> bool {
        state.buckets().all(|(id, _)| self.compared.contains(&id))
    }

    /// Is there a source to be enquired at once?
    pub(super) fn is_curious(&self) -> bool {
        !self.strange.is_empty()
    }

    pub(super) fn report(
        &mut self,
        stability: &mut Stability,
        known: &BucketState,
        cut: Cut,
    ) -> Result<()> {
        self.keep_history(stability, known);
        stability.report(known.info.id, cut, &known.epochs.last().cut)
    }

    /// Forgets cuts of another history.
    pub(super) fn keep_history(&mut self, stability: &mut Stability, known: &BucketState) {
        let id = known.info.id;
        if self.logs.get(&id).is_none_or(|logs| *logs != known.logs) {
            stability.forget(id);
            self.logs.insert(id, Arc::clone(&known.logs));
        }
    }

    /// The buckets whose sources are to be enquired. What was told to an earlier leader
    /// is lost with it, and a source that has nothing new says nothing.
    pub(super) fn enquiries_due(&mut self, state: &StateContext, now_ms: u64) -> Vec<BucketId> {
        self.heard_ms.retain(|(bucket, _), _| state.bucket(*bucket).is_some());
        self.strange.retain(|bucket| state.bucket(*bucket).is_some());
        let mut found = Vec::new();
        for (id, bucket) in state.buckets() {
            let pause_ms = match self.strange.contains(&id) {
                true => ENQUIRE_EVERY_MS,
                false => SYNC_SILENCE_MS,
            };
            let projectors = bucket.info.homes.projectors();
            let is_heard = |projector: &NodeId| {
                let heard = self.heard_ms.get(&(id, *projector));
                heard.is_some_and(|at_ms| now_ms.saturating_sub(*at_ms) < pause_ms)
            };
            if projectors.iter().all(is_heard) {
                continue;
            }
            let now = projectors.into_iter().map(|projector| ((id, projector), now_ms));
            self.heard_ms.extend(now);
            found.push(id);
        }
        found
    }
}
