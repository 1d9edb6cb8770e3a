//! The leader's knowledge of the sources' histories, and the queries by which it learns them.
//! (The source of a bucket is where its mutations come from; its projectors report for it.)
//!
//! The projectors' regular reports (SYNC) contain positions only. A source is *queried* when a
//! reported position is not in the bucket's known history or lies before the last epoch. It is
//! also queried when nothing was reported for a while, and at the beginning of each term. The
//! answer has the failover logs and the end of the history, both of one moment. A command
//! ([`proto::model::rollback::RollbackStep::Compare`]) compares the answer with the state. The
//! source's positions count only when both agree.
//!
//! An answer may be late: it lacks the positions that SYNC has reported and epochs have covered
//! since the query. That is not a loss. So an answer that lacks part of the last epoch counts
//! only if its query began after the last SYNC. After a loss, only the answer to a query that
//! began after epochs ceased to be published shows the surviving history.
//!
//! Positions are comparable only within one history, so a change of the history drops the closed
//! cuts of the old one. (A closed cut splits no transaction; the next epoch ends at one.) A
//! source may also lose its end without beginning a branch (a pushed source, whose producer
//! numbers the mutations). The lost positions then look valid in its history. So the beginning of
//! a rollback drops all closed cuts, and none is collected while the rollback lasts.
//!
//! After a new branch, or after the loss of an end that no epoch covers, the next reports lie
//! below the newest closed cut. Such reports do not count, so the source is queried. If the
//! answer has the known history and lacks part of that cut, all closed cuts are dropped. The next
//! reports, which are complete, provide new ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto::Result;
use proto::model::bucket::SourceKind;
use proto::model::cut::Cut;
use proto::model::history::{FailoverLogs, SourceHistory};
use proto::model::ids::{BucketId, NodeId};
use proto::model::rollback::RollbackStage;
use proto::rpc::api::BucketReport;

use crate::leader::epochs::stability::EpochCutChooser;
use crate::state::{BucketView, StateContext};

/// The time without reports, in ms, after which a bucket is queried.
pub(in crate::leader) const SYNC_SILENCE_MS: u64 = 1_000;

/// The interval between two queries of a source that must be queried at once, in ms.
const QUERY_EVERY_MS: u64 = 20;

/// The leader's knowledge of the sources' histories, and of the queries that are due.
#[derive(Debug, Default)]
pub(in crate::leader) struct Sources {
    /// The last answer of each source with the query that it answers. It is removed once the
    /// state agrees with it.
    pub(in crate::leader) histories: BTreeMap<BucketId, (HistoryQuery, SourceHistory)>,
    /// A counter of queries and of the events that make earlier answers late. The order of its
    /// numbers shows which answers are late.
    pub(in crate::leader) sequence: u64,
    /// The number of the event, by bucket, that made earlier answers late: they do not prove a
    /// loss.
    pub(in crate::leader) fresh_from: BTreeMap<BucketId, u64>,
    /// The number of the event that made earlier answers late for the vbuckets of one projector
    /// only.
    pub(in crate::leader) fresh_from_projector: BTreeMap<(BucketId, NodeId), u64>,
    /// The buckets whose rollback has reached the stage `started`.
    pub(in crate::leader) started: BTreeSet<BucketId>,
    /// The buckets whose sources must be queried at once.
    pub(in crate::leader) suspects: BTreeSet<BucketId>,
    /// The time at which each projector last reported on a bucket, or was queried about it.
    pub(in crate::leader) reported_ms: BTreeMap<(BucketId, NodeId), u64>,
    /// Buckets whose source was queried in this term and agreed with the state.
    pub(in crate::leader) compared: BTreeSet<BucketId>,
    /// The failover logs of the history to which the closed cuts of a bucket belong.
    pub(in crate::leader) logs: BTreeMap<BucketId, Arc<FailoverLogs>>,
}

/// The identity of a query: the leader's term, and a number that grows with each query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryQuery {
    pub(in crate::leader) term: u64,
    sequence: u64,
}

impl Sources {
    /// Makes all answers to earlier queries count as late, so that they do not prove a loss.
    pub(in crate::leader) fn expire_answers(&mut self, bucket: BucketId) {
        self.sequence += 1;
        self.fresh_from.insert(bucket, self.sequence);
    }

    /// Makes all answers to earlier queries count as late for the vbuckets of one projector.
    pub(in crate::leader) fn expire_answers_of(&mut self, bucket: BucketId, projector: NodeId) {
        self.sequence += 1;
        self.fresh_from_projector.insert((bucket, projector), self.sequence);
    }

    /// Returns true if the last answer of a bucket is not late for the vbuckets of these
    /// projectors.
    pub(in crate::leader) fn is_fresh(&self, bucket: BucketId, projectors: &[NodeId]) -> bool {
        let of_each =
            projectors.iter().filter_map(|id| self.fresh_from_projector.get(&(bucket, *id)));
        let from = of_each.chain(self.fresh_from.get(&bucket)).max().copied().unwrap_or(0);
        self.histories.get(&bucket).is_some_and(|(asked, _)| asked.sequence > from)
    }

    /// Records the stage of a bucket's rollback, and returns true if the rollback begins. From
    /// its beginning on, only answers to later queries show which mutations the source still has.
    pub(in crate::leader) fn note_stage(
        &mut self,
        bucket: BucketId,
        stage: Option<RollbackStage>,
    ) -> bool {
        if stage != Some(RollbackStage::Started) {
            self.started.remove(&bucket);
            return false;
        }
        let begins = self.started.insert(bucket);
        if begins {
            self.expire_answers(bucket);
        }
        begins
    }

    /// Returns the identity of a query of a source's history that begins now.
    pub(in crate::leader) fn begin_query(&mut self, term: u64) -> HistoryQuery {
        self.sequence += 1;
        HistoryQuery { term, sequence: self.sequence }
    }

    /// Handles SYNC: records the end of the durable history of a bucket, in the vbuckets that the
    /// projector owns. Ignores reports about dropped buckets; the projector will see the drop in
    /// the catalog.
    pub(in crate::leader) fn record_sync_report(
        &mut self,
        stability: &mut EpochCutChooser,
        state: &StateContext,
        projector: NodeId,
        report: BucketReport,
        now_ms: u64,
    ) -> Result<()> {
        let BucketReport { bucket, mut kept, cut, open, before } = report;
        let Some(known) = state.bucket(bucket) else { return Ok(()) };
        if !known.info.source.reports_position() {
            return Ok(());
        }
        if known.info.source == SourceKind::Push {
            // A projector that does not know of a hand-over yet, or a late report, must not change the positions of the next owner of a
            // vbucket.
            let assignment = &known.info.assignment;
            kept = kept.iter().filter(|v| assignment.owner(*v) == Some(projector)).collect();
            if kept.is_empty() {
                return Ok(());
            }
        }
        let last = &known.epochs.last().cut;
        if cut.vbuckets() == last.vbuckets() {
            let is_suspect = |vbucket| {
                let at = cut.get(vbucket);
                at.seqno < last.get(vbucket).seqno || !known.logs.includes(vbucket, at)
            };
            if kept.iter().any(is_suspect) {
                self.suspects.insert(bucket);
                return Ok(());
            }
            self.reset_on_new_history(stability, known);
            let newest = stability.newest_closed_cut(bucket).unwrap_or(last);
            if kept.iter().any(|vbucket| cut.get(vbucket).seqno < newest.get(vbucket).seqno) {
                // A newer report has overtaken this one, or the projector has lost what it had reported. If this continues, the projector
                // counts as silent, and a query shows what it has.
                return Ok(());
            }
        }
        self.reported_ms.insert((bucket, projector), now_ms);
        if known.info.readable_from().is_none() {
            // The rollback will remove the cut that this report would complete. The projector reports it again.
            return Ok(());
        }
        self.expire_answers_of(bucket, projector);
        if cut.vbuckets() != last.vbuckets() {
            return self.report_cut(stability, known, cut).map(drop);
        }
        // The other vbuckets are at the positions that their own projectors reported. Every such cut is closed except for the commits that
        // the reports name, because the mutations of a bucket on several projectors are independent of each other otherwise. The earlier
        // cuts come first. A cut that an epoch covers is ignored.
        let mut is_newest = false;
        for cut in before.into_iter().filter(|cut| cut.vbuckets() == last.vbuckets()).chain([cut]) {
            let newest = stability.newest_closed_cut(bucket).unwrap_or(last);
            let whole = newest.with_vbuckets_of(&kept, &cut);
            // The last epoch may belong to a history whose loss is not known yet. Then a query returns the positions of
            // the other vbuckets.
            let stands = known.logs.includes_cut(&whole);
            is_newest = stands && self.report_cut(stability, known, whole)?;
        }
        if is_newest {
            stability.set_open(bucket, &kept, open, now_ms);
        }
        Ok(())
    }

    /// Records a source's answer to a query. The end in the answer is not a closed cut: only SYNC
    /// names the commits before it.
    pub(in crate::leader) fn record_history(
        &mut self,
        state: &StateContext,
        bucket: BucketId,
        asked: HistoryQuery,
        history: SourceHistory,
    ) -> Result<()> {
        let Some(known) = state.bucket(bucket) else {
            return Ok(());
        };
        self.suspects.remove(&bucket);
        known.check(&history)?;
        self.histories.insert(bucket, (asked, history));
        Ok(())
    }

    /// Returns true if the source of each bucket was compared with the state in this term.
    pub(in crate::leader) fn all_compared(&self, state: &StateContext) -> bool {
        let mut reporting =
            state.buckets().filter(|(_, bucket)| bucket.info.source.reports_position());
        reporting.all(|(id, _)| self.compared.contains(&id))
    }

    /// Returns true if some source must be queried at once.
    pub(in crate::leader) fn has_suspects(&self) -> bool {
        !self.suspects.is_empty()
    }

    /// Adds a cut to the closed cuts of a bucket. Returns true if it is the newest one.
    pub(in crate::leader) fn report_cut(
        &mut self,
        stability: &mut EpochCutChooser,
        known: BucketView<'_>,
        cut: Cut,
    ) -> Result<bool> {
        self.reset_on_new_history(stability, known);
        stability.report(known.info.id, cut, &known.epochs.last().cut)
    }

    /// Drops the closed cuts of a bucket if its history has changed since they were reported.
    pub(in crate::leader) fn reset_on_new_history(
        &mut self,
        stability: &mut EpochCutChooser,
        known: BucketView<'_>,
    ) {
        let id = known.info.id;
        if self.logs.get(&id).is_none_or(|logs| logs != known.logs) {
            stability.drop_closed_cuts(id);
            self.logs.insert(id, Arc::clone(known.logs));
        }
    }

    /// Returns the buckets whose sources must be queried: suspect ones, and those without recent
    /// reports. A new leader has no reports, and an idle source sends none.
    pub(in crate::leader) fn queries_due(
        &mut self,
        state: &StateContext,
        now_ms: u64,
    ) -> Vec<BucketId> {
        self.reported_ms.retain(|(bucket, _), _| state.bucket(*bucket).is_some());
        self.suspects.retain(|bucket| state.bucket(*bucket).is_some());
        let mut found = Vec::new();
        for (id, bucket) in state.buckets().filter(|(_, b)| b.info.source.reports_position()) {
            let pause_ms = match self.suspects.contains(&id) {
                true => QUERY_EVERY_MS,
                false => SYNC_SILENCE_MS,
            };
            let projectors = bucket.info.assignment.projectors();
            let is_reported = |projector: &NodeId| {
                let last_ms = self.reported_ms.get(&(id, *projector));
                last_ms.is_some_and(|at_ms| now_ms.saturating_sub(*at_ms) < pause_ms)
            };
            if projectors.iter().all(is_reported) {
                continue;
            }
            let now = projectors.into_iter().map(|projector| ((id, projector), now_ms));
            self.reported_ms.extend(now);
            found.push(id);
        }
        found
    }
}
