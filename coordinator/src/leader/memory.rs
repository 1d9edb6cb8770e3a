//! The leader's memory, [`Leader`]: what the leader knows about nodes, sources, epochs and moves,
//! and the plans that it makes.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::history::SourceHistory;
use proto::model::identity::{JoinRequest, NodeProof};
use proto::model::ids::{BucketId, Epoch, LocalIndexId, NodeId};
use proto::model::joint::PartlyLostCommit;
use proto::model::left_out::LeftOut;
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::model::node::NodeInfo;
use proto::model::rollback::NewestNumbers;
use proto::rpc::api::{BucketReport, EpochWait, Heartbeat, NodeStatus};
use proto::rpc::command::Command;
use proto::{Error, ErrorCode, Result};

use super::copies::CopyPlans;
use super::copies::check::{Checksum, CopyCheck};
use super::copies::holds::epoch_holds;
use super::epochs::Promotions;
use super::epochs::durability::durable_epoch;
use super::epochs::sources::{HistoryQuery, Sources};
use super::epochs::stability::EpochCutChooser;
use super::generations::growth::Growth;
use super::generations::ready_indexes;
use super::generations::retired::RetiredGenerations;
use super::moves::Moves;
use super::moves::repair::{self, Repairs};
use super::moves::settings::MoveSettings;
use super::nodes::bootstrap;
use super::nodes::heartbeats::{Heartbeats, SILENT_MS_MAX};
use super::nodes::lost::{self, LostSlices};
use super::nodes::old_copy::{self, OldCopyDetection};
use super::plan::Plan;
use super::versions::Versions;
use crate::state::StateContext;
use crate::state::nodes::node_id_taken_error;

/// The leader's memory. Times are milliseconds of any clock that only grows.
#[derive(Debug)]
pub struct Leader {
    term: u64,
    pub(super) heartbeats: Heartbeats,
    slices_reported: bool,
    /// The closed cuts that the projectors reported (SYNC), and the callers that wait for an
    /// epoch.
    pub stability: EpochCutChooser,
    sources: Sources,
    promotions: Promotions,
    /// True once this leader has received all reports that it needs (the bootstrap of the term).
    active: bool,
    pub(super) moves: Moves,
    pub(super) repairs: Repairs,
    retired: RetiredGenerations,
    versions: Versions,
    growth: Growth,
    lost: LostSlices,
    copies: CopyPlans,
    old_copy: OldCopyDetection,
    /// The number of documents that indexes could not store, as each projector reports it.
    left_out: BTreeMap<NodeId, Vec<(LocalIndexId, LeftOut)>>,
    /// The commits of transactions over several buckets that are lost in some of these buckets,
    /// as each projector reports them.
    halved: BTreeMap<NodeId, Vec<PartlyLostCommit>>,
}

/// Returns the error for a second process that reports under the node id of a running process.
/// (Neither process has a data directory that would prove its identity.)
fn node_id_in_use(node: NodeId, known: Option<&Arc<NodeInfo>>) -> Error {
    let at = known.map_or_else(String::new, |known| format!(" at {}", known.address));
    let what = format!("node {node} is another process{at}, which the coordinators hear");
    let hint = "give each process its own --id; a process that takes the place of another one waits until that is silent for 5 s";
    Error::new(ErrorCode::NodeTaken, what).with_hint(hint)
}

impl Leader {
    /// Creates the memory of a leader whose term begins.
    pub fn new(term: u64, now_ms: u64, tick_ms: u64, settings: MoveSettings) -> Self {
        Self {
            term,
            heartbeats: Heartbeats::new(now_ms),
            slices_reported: false,
            stability: EpochCutChooser::default(),
            sources: Sources::default(),
            promotions: Promotions::new(tick_ms),
            active: false,
            moves: Moves::new(settings),
            repairs: Repairs::default(),
            retired: RetiredGenerations::default(),
            versions: Versions::default(),
            growth: Growth::default(),
            lost: LostSlices::default(),
            copies: CopyPlans::default(),
            old_copy: OldCopyDetection::default(),
            left_out: BTreeMap::new(),
            halved: BTreeMap::new(),
        }
    }

    /// Sets whether epochs and definitions wait for the reports of all nodes at the beginning of
    /// the term, because the log may be an older copy.
    pub fn waiting_for_reports(mut self, waits: bool) -> Self {
        self.old_copy.waits_for_reports = waits;
        self
    }

    /// Records the heartbeat of a process that is not registered. If the coordinator was restored
    /// from an older copy, the process may have joined after the copy was made.
    pub fn record_stranger(&mut self, heartbeat: &Heartbeat) {
        self.heartbeats.add_stranger(heartbeat);
    }

    /// Records a node's heartbeat. Returns true if the heartbeat may change the plan.
    pub fn record_heartbeat(&mut self, heartbeat: Heartbeat, now_ms: u64) -> bool {
        self.slices_reported |=
            heartbeat.report.indexer().is_some_and(|report| !report.slices.is_empty());
        let news = self.heartbeats.changes_plans(&heartbeat, now_ms);
        self.heartbeats.add(heartbeat, now_ms);
        news
    }

    /// Checks whether a process may join with a node id that another process has. Only a silent
    /// process may be replaced. Returns the proof of the replaced process, or `None` if no
    /// process is replaced.
    pub fn judge_join(
        &self,
        state: &StateContext,
        request: &JoinRequest,
        now_ms: u64,
    ) -> Result<Option<NodeProof>> {
        let node = request.node.id;
        let Some(holder) = state.proof(node).filter(|holder| *holder != request.proof) else {
            return Ok(None);
        };
        let silent_ms = self.heartbeats.silent_ms(node, now_ms);
        if silent_ms < SILENT_MS_MAX {
            return Err(node_id_taken_error(node, state.node(node)));
        }
        tracing::warn!(%node, silent_ms, "another process takes the number of a silent node over");
        Ok(Some(holder))
    }

    /// Checks whether a process without a data directory may register with a node id. Refuses it
    /// if another process under this id is alive and identifies itself by a random proof in its
    /// heartbeats.
    pub fn judge_registration(
        &self,
        state: &StateContext,
        node: &NodeInfo,
        now_ms: u64,
    ) -> Result<()> {
        let known = state.node(node.id).filter(|known| ***known != *node);
        match known.is_some() && self.heartbeats.process_proof(node.id, now_ms).is_some() {
            true => Err(node_id_in_use(node.id, known)),
            false => Ok(()),
        }
    }

    /// Checks that a heartbeat comes from the same process as the heartbeats before, by the
    /// random proof in them. Only processes without a data directory are checked.
    pub fn check_same_process(
        &self,
        state: &StateContext,
        heartbeat: &Heartbeat,
        now_ms: u64,
    ) -> Result<()> {
        let node = heartbeat.node;
        let heard = self.heartbeats.process_proof(node, now_ms);
        match heard.is_some() && heard != heartbeat.proof && state.proof(node).is_none() {
            true => Err(node_id_in_use(node, state.node(node))),
            false => Ok(()),
        }
    }

    /// Checks a removal of a node that an operator forces. Refuses it if the node is alive and
    /// has the only copy of a slice.
    pub fn check_forced_removal(
        &self,
        state: &StateContext,
        node: NodeId,
        now_ms: u64,
    ) -> Result<()> {
        lost::check_forced_removal(state, &self.heartbeats, node, now_ms)
    }

    /// Records a statement of a user before it is proposed.
    pub fn note_statement(&mut self, state: &StateContext, command: &Command) {
        self.growth.note_statement(state, command);
    }

    /// Returns the silent nodes that a command should avoid: indexers if it places slices,
    /// projectors if it gives partitions to load.
    pub fn silent_nodes_for(
        &self,
        state: &StateContext,
        command: &Command,
        now_ms: u64,
    ) -> Vec<NodeId> {
        lost::silent_nodes_for(state, &self.heartbeats, command, now_ms)
    }

    /// Returns the status of each registered node. `members` is the time, in ms, since each
    /// coordinator was last heard.
    pub fn node_status(
        &self,
        state: &StateContext,
        members: &BTreeMap<NodeId, u64>,
        now_ms: u64,
    ) -> Vec<NodeStatus> {
        self.heartbeats.status(state, members, now_ms)
    }

    /// Returns the nodes that have been silent too long to be waited for.
    pub fn silent_nodes(&mut self, state: &StateContext, now_ms: u64) -> Vec<NodeId> {
        self.heartbeats.silent_nodes(state, now_ms)
    }

    /// Records the numbers of documents that each index could not store, as a projector has
    /// counted them.
    pub fn record_left_out(&mut self, projector: NodeId, counts: Vec<(LocalIndexId, LeftOut)>) {
        self.left_out.insert(projector, counts);
    }

    /// Records the commits of transactions over several buckets that are lost in some of these
    /// buckets, as a projector has found them.
    pub fn record_halved(&mut self, projector: NodeId, halved: Vec<PartlyLostCommit>) {
        self.halved.insert(projector, halved);
    }

    /// Returns the commits of transactions over several buckets that are lost in some of these
    /// buckets. Several projectors may find one commit.
    pub fn halved(&self) -> Vec<PartlyLostCommit> {
        self.halved.values().flatten().copied().collect()
    }

    /// Returns the numbers of documents that each index could not store.
    pub fn left_out(&self) -> Vec<(LocalIndexId, LeftOut)> {
        let mut sums: BTreeMap<LocalIndexId, LeftOut> = BTreeMap::new();
        for (index, counts) in self.left_out.values().flatten() {
            sums.entry(*index).or_default().add(counts);
        }
        sums.into_iter().collect()
    }

    /// Returns the epochs that are held back by joint commits (of transactions over several
    /// buckets), with the commit and the duration.
    pub fn epoch_holds(&self, state: &StateContext, now_ms: u64) -> Vec<EpochWait> {
        epoch_holds(&self.stability, state, now_ms)
    }

    /// Returns for each bucket the number of epochs in this term that slow indexers could not
    /// delay any longer.
    pub fn epochs_past_slow_indexers(&self) -> Vec<(BucketId, u64)> {
        self.stability.epochs_past_slow_indexers()
    }

    /// Returns the reasons why a version of a data set is not current yet, or why projectors
    /// still lack partitions of it, by the versions' buckets.
    pub fn version_waits(&self, state: &StateContext, now_ms: u64) -> Vec<(BucketId, String)> {
        self.versions.wait_reasons(state, &self.heartbeats, now_ms)
    }

    /// Records that a command that the leader had planned was refused.
    pub fn record_refusal(&mut self, command: &Command, error: &Error) {
        self.versions.record_refusal(command, error);
        Growth::log_refusal(command, error);
    }

    /// Returns log lines about the nodes that have fallen silent or returned since the last call.
    pub fn node_news(&mut self, state: &StateContext, now_ms: u64) -> Vec<String> {
        self.heartbeats.silence_news(state, now_ms)
    }

    /// Plans the next commands and checks. The driver reports the end of each promotion with [`Leader::record_promotion_end`].
    pub fn plan(&mut self, state: &StateContext, now_ms: u64) -> Plan {
        let mut plan = Plan::default();
        let Self { heartbeats, stability, .. } = self;
        if self.old_copy.search_evidence(state, heartbeats, now_ms) {
            plan.next_ms = Some(now_ms + self.promotions.tick_ms);
            return plan;
        }
        self.sources.plan(state, heartbeats, stability, now_ms, &mut plan);
        self.promotions.plan(state, heartbeats, stability, now_ms, &mut plan);
        if std::mem::take(&mut self.slices_reported) {
            plan.commands.extend(ready_indexes(state, heartbeats, &self.promotions, now_ms));
        }
        self.moves.plan(state, heartbeats, now_ms, &mut plan);
        self.lost.plan(state, heartbeats, &self.moves.settings, now_ms, &mut plan);
        self.repairs.plan(state, heartbeats, &self.moves, now_ms, &mut plan);
        self.retired.plan(state, heartbeats, now_ms, &mut plan);
        self.versions.plan(state, heartbeats, &self.promotions, now_ms, &mut plan);
        self.growth.plan(state, heartbeats, now_ms, &mut plan);
        self.copies.plan(state, heartbeats, now_ms, &mut plan);
        plan
    }

    /// Returns true as long as nodes may still report evidence that the coordinator is an older
    /// copy of itself. New epochs, definitions and answers wait until then.
    pub fn waits_for_reports(&self, state: &StateContext, now_ms: u64) -> bool {
        self.old_copy.waits_for_more_reports(state, &self.heartbeats, now_ms)
    }

    /// Returns true if nodes may still report that the coordinator is an older copy of itself, or
    /// there is evidence of it already.
    pub fn may_be_older_copy(&self, state: &StateContext, now_ms: u64) -> bool {
        self.waits_for_reports(state, now_ms)
            || old_copy::old_copy_evidence(state, &self.heartbeats).is_some()
    }

    /// Checks that the heartbeats give no evidence that the coordinator was restored from an older copy.
    pub fn check_not_older_copy(&self, state: &StateContext) -> Result<()> {
        match old_copy::old_copy_evidence(state, &self.heartbeats) {
            Some(evidence) => Err(old_copy::error(&evidence, self.old_copy.is_lasting())),
            None => Ok(()),
        }
    }

    /// Checks for evidence as [`Self::check_not_older_copy`] does, but returns an error only if the
    /// evidence has lasted for a while. For callers that wait.
    pub fn check_no_lasting_evidence(&self, state: &StateContext) -> Result<()> {
        if self.old_copy.is_lasting() { self.check_not_older_copy(state) } else { Ok(()) }
    }

    /// Checks that `--skip-epochs` would leave each vbucket with the projector that has its documents.
    pub fn check_owners(&self, state: &StateContext) -> Result<()> {
        old_copy::check_owners(state, &self.heartbeats)
    }

    /// Returns the newest epoch and catalog that processes have reported in this term.
    pub fn newest_reported_numbers(&self) -> NewestNumbers {
        old_copy::newest_reported_numbers(&self.heartbeats)
    }

    /// Records that the promotion that began at `begun_ms` was committed or failed.
    pub fn record_promotion_end(&mut self, begun_ms: u64, now_ms: u64) {
        self.promotions.record_promotion_end(begun_ms, now_ms);
    }

    /// Returns the newest epoch of a bucket that is durable on all copies of its indexes; `None`
    /// if the leader does not know it.
    pub fn durable_epoch(&self, state: &StateContext, bucket: BucketId) -> Option<Epoch> {
        durable_epoch(state, &self.heartbeats, bucket)
    }

    /// Returns the identity of a query of a source's history that begins now.
    pub fn begin_query(&mut self) -> HistoryQuery {
        self.sources.begin_query(self.term)
    }

    /// Handles SYNC: records the end of the durable history of a bucket, in the vbuckets that the
    /// projector owns. Ignores reports about dropped buckets; the projector will see the drop in
    /// the catalog.
    pub fn record_sync_report(
        &mut self,
        state: &StateContext,
        projector: NodeId,
        reported: BucketReport,
        now_ms: u64,
    ) -> Result<()> {
        self.sources.record_sync_report(&mut self.stability, state, projector, reported, now_ms)
    }

    /// Records a source's answer to a query. Answers to an earlier term are ignored.
    pub fn record_history(
        &mut self,
        state: &StateContext,
        bucket: BucketId,
        asked: HistoryQuery,
        history: SourceHistory,
    ) -> Result<()> {
        if asked.term != self.term {
            return Ok(());
        }
        self.sources.record_history(state, bucket, asked, history)
    }

    /// Returns true if some source must be queried at once.
    pub fn has_suspects(&self) -> bool {
        self.sources.has_suspects()
    }

    /// Schedules queries of sources that have a history which the state does not know yet.
    pub fn schedule_queries(&mut self, buckets: impl IntoIterator<Item = BucketId>) {
        self.sources.suspects.extend(buckets);
    }

    /// Returns the buckets whose sources are due for a query.
    pub fn queries_due(&mut self, state: &StateContext, now_ms: u64) -> Vec<BucketId> {
        self.sources.queries_due(state, now_ms)
    }

    /// Records the result of a comparison of two copies.
    pub fn finish_check(
        &mut self,
        check: &CopyCheck,
        result: Result<(Checksum, Checksum)>,
        now_ms: u64,
    ) {
        self.moves.finish_check(check, result, now_ms);
    }

    /// Plans a rebalance of all indexes or of one. With one index, only the load of that index counts.
    pub fn rebalance(
        &self,
        state: &StateContext,
        request: &RebalanceRequest,
        now_ms: u64,
    ) -> Result<RebalancePlan> {
        repair::rebalance(state, &self.heartbeats, &self.moves.settings, request, now_ms)
    }

    /// Returns true once the leader has received all reports that it needs. The answer stays true
    /// until the term ends.
    pub fn is_active(&mut self, state: &StateContext, now_ms: u64) -> bool {
        if !self.active {
            self.active = bootstrap::is_complete(state, &self.heartbeats, &self.sources, now_ms);
            if self.active {
                bootstrap::log_findings(state, &self.heartbeats);
            }
        }
        self.active
    }

    /// Describes where the slices that indexers report differ from the topology.
    pub fn differences(&self, state: &StateContext) -> Vec<String> {
        let old = self.check_not_older_copy(state).err().map(|error| error.to_string());
        old.into_iter().chain(bootstrap::differences(state, &self.heartbeats)).collect()
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
pub(in crate::leader) mod tests;
