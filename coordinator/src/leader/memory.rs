//! The leader's memory: all parts together.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::history::SourceHistory;
use proto::model::identity::{JoinRequest, NodeProof};
use proto::model::ids::{BucketId, Epoch, LocalIndexId, NodeId};
use proto::model::joint::HalvedCommit;
use proto::model::left_out::LeftOut;
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::model::node::NodeInfo;
use proto::model::rollback::NewestNumbers;
use proto::rpc::api::{BucketReport, EpochHold, Heartbeat, NodeStatus};
use proto::rpc::command::Command;
use proto::{Error, ErrorCode, Result};

use super::copies::CopyPlans;
use super::copies::check::{Checksum, CopyCheck};
use super::copies::holds::holds;
use super::epochs::Promotions;
use super::epochs::durability::durable_epoch;
use super::epochs::sources::{HistoryQuery, Sources};
use super::epochs::stability::Stability;
use super::generations::growth::Growth;
use super::generations::ready_indexes;
use super::generations::retired::RetiredGenerations;
use super::moves::Moves;
use super::moves::repair::{self, Repairs};
use super::moves::settings::MoveSettings;
use super::nodes::bootstrap;
use super::nodes::heartbeats::{Heartbeats, SILENT_MS_MAX};
use super::nodes::lost::{self, LostSlices};
use super::nodes::old_copy::{self, OldCopy};
use super::plan::Plan;
use super::versions::Versions;
use crate::state::StateContext;
use crate::state::nodes::taken;

/// The leader's memory. Times are milliseconds of any clock that only grows.
#[derive(Debug)]
pub struct Leader {
    term: u64,
    pub(super) heartbeats: Heartbeats,
    slices_reported: bool,
    /// The cuts that SYNC reported, and the callers that wait for an epoch.
    pub stability: Stability,
    sources: Sources,
    promotions: Promotions,
    /// True once the bootstrap of the term is complete.
    active: bool,
    pub(super) moves: Moves,
    pub(super) repairs: Repairs,
    retired: RetiredGenerations,
    versions: Versions,
    growth: Growth,
    lost: LostSlices,
    copies: CopyPlans,
    old_copy: OldCopy,
    /// By projector: the documents that indexes have left out.
    left_out: BTreeMap<NodeId, Vec<(LocalIndexId, LeftOut)>>,
    /// By projector: the commits over several buckets that it has found to be halved.
    halved: BTreeMap<NodeId, Vec<HalvedCommit>>,
}

/// Returns the error for a second process with the node id of a running process that has no data
/// directory.
fn marked(node: NodeId, known: Option<&Arc<NodeInfo>>) -> Error {
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
            stability: Stability::default(),
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
            old_copy: OldCopy::default(),
            left_out: BTreeMap::new(),
            halved: BTreeMap::new(),
        }
    }

    /// Sets whether the term begins only after the reports of all nodes, because the log may be an
    /// older copy.
    pub fn waiting_for_reports(mut self, waits: bool) -> Self {
        self.old_copy.waits_for_reports = waits;
        self
    }

    /// Records the heartbeat of a process that is not registered: it may have joined after the restored copy was made.
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

    /// Checks whether a process may join with a node id that another process holds. Returns the proof of the process
    /// that it replaces, if any: only a silent process is replaced.
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
            return Err(taken(node, state.node(node)));
        }
        tracing::warn!(%node, silent_ms, "another process takes the number of a silent node over");
        Ok(Some(holder))
    }

    /// Checks whether a process without a data directory may register with a node id: it must not replace another process that is alive and
    /// has a mark.
    pub fn judge_registration(
        &self,
        state: &StateContext,
        node: &NodeInfo,
        now_ms: u64,
    ) -> Result<()> {
        let known = state.node(node.id).filter(|known| ***known != *node);
        match known.is_some() && self.heartbeats.mark(node.id, now_ms).is_some() {
            true => Err(marked(node.id, known)),
            false => Ok(()),
        }
    }

    /// Checks whether a heartbeat comes from the same process as the one before, if that process has a mark and no data directory.
    pub fn judge_mark(
        &self,
        state: &StateContext,
        heartbeat: &Heartbeat,
        now_ms: u64,
    ) -> Result<()> {
        let node = heartbeat.node;
        let heard = self.heartbeats.mark(node, now_ms);
        match heard.is_some() && heard != heartbeat.proof && state.proof(node).is_none() {
            true => Err(marked(node, state.node(node))),
            false => Ok(()),
        }
    }

    /// Checks the removal of a node that an operator forces; an error if the node is alive and has
    /// the only copy of a slice.
    pub fn judge_forced(&self, state: &StateContext, node: NodeId, now_ms: u64) -> Result<()> {
        lost::judge_forced(state, &self.heartbeats, node, now_ms)
    }

    /// Records a statement before it is proposed.
    pub fn note_statement(&mut self, state: &StateContext, command: &Command) {
        self.growth.note(state, command);
    }

    /// Returns the silent nodes among those to which a command may give slices or partitions.
    pub fn silent_for(&self, state: &StateContext, command: &Command, now_ms: u64) -> Vec<NodeId> {
        lost::silent_for(state, &self.heartbeats, command, now_ms)
    }

    /// Returns the status of each registered node. `members` contains the silence of the
    /// coordinators, in ms.
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

    /// Records the number of documents that each index has left out, as a projector has counted
    /// them.
    pub fn record_left_out(&mut self, projector: NodeId, counts: Vec<(LocalIndexId, LeftOut)>) {
        self.left_out.insert(projector, counts);
    }

    /// Records the commits over several buckets that a projector has found to be halved.
    pub fn record_halved(&mut self, projector: NodeId, halved: Vec<HalvedCommit>) {
        self.halved.insert(projector, halved);
    }

    /// Returns the commits that projectors have found to be halved. Several projectors may find one
    /// commit.
    pub fn halved(&self) -> Vec<HalvedCommit> {
        self.halved.values().flatten().copied().collect()
    }

    /// The documents that each index has left out.
    pub fn left_out(&self) -> Vec<(LocalIndexId, LeftOut)> {
        let mut sums: BTreeMap<LocalIndexId, LeftOut> = BTreeMap::new();
        for (index, counts) in self.left_out.values().flatten() {
            sums.entry(*index).or_default().add(counts);
        }
        sums.into_iter().collect()
    }

    /// Returns the epochs that joint commits hold.
    pub fn holds(&self, state: &StateContext, now_ms: u64) -> Vec<EpochHold> {
        holds(&self.stability, state, now_ms)
    }

    /// Returns for each bucket the number of epochs in this term that were published without
    /// waiting any longer for slow indexers.
    pub fn past_slow(&self) -> Vec<(BucketId, u64)> {
        self.stability.past_slow()
    }

    /// Returns the reasons why versions of data sets wait, by the versions' buckets.
    pub fn version_waits(&self, state: &StateContext, now_ms: u64) -> Vec<(BucketId, String)> {
        self.versions.waits(state, &self.heartbeats, now_ms)
    }

    /// Records that a command of a plan was refused.
    pub fn refused(&mut self, command: &Command, error: &Error) {
        self.versions.refused(command, error);
        Growth::refused(command, error);
    }

    /// Returns log lines about the nodes that have fallen silent or returned since the last call.
    pub fn node_news(&mut self, state: &StateContext, now_ms: u64) -> Vec<String> {
        self.heartbeats.news(state, now_ms)
    }

    /// Plans the next commands and checks. The driver reports the end of each promotion with [`Leader::promoted`].
    pub fn plan(&mut self, state: &StateContext, now_ms: u64) -> Plan {
        let mut plan = Plan::default();
        let Self { heartbeats, stability, .. } = self;
        if self.old_copy.look(state, heartbeats, now_ms) {
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

    /// Returns true as long as nodes may still report that the coordinator is an older copy of
    /// itself. Epochs, definitions and answers wait until then.
    pub fn is_held(&self, state: &StateContext, now_ms: u64) -> bool {
        self.old_copy.is_held(state, &self.heartbeats, now_ms)
    }

    /// Returns true if the term is held, or there is evidence that the coordinator is an older copy
    /// of itself.
    pub fn is_doubted(&self, state: &StateContext, now_ms: u64) -> bool {
        self.is_held(state, now_ms) || old_copy::evidence(state, &self.heartbeats).is_some()
    }

    /// Checks that the heartbeats give no evidence that the coordinator was restored from an older copy.
    pub fn check_newest(&self, state: &StateContext) -> Result<()> {
        match old_copy::evidence(state, &self.heartbeats) {
            Some(evidence) => Err(old_copy::error(&evidence, self.old_copy.is_lasting())),
            None => Ok(()),
        }
    }

    /// Like [`Self::check_newest`], but for callers that wait: the error is returned only when the evidence has lasted
    /// for a while.
    pub fn check_lasting(&self, state: &StateContext) -> Result<()> {
        if self.old_copy.is_lasting() { self.check_newest(state) } else { Ok(()) }
    }

    /// Checks that `--skip-epochs` would leave each vbucket with the projector that has its documents.
    pub fn check_owners(&self, state: &StateContext) -> Result<()> {
        old_copy::check_owners(state, &self.heartbeats)
    }

    /// Returns the newest numbers that processes have reported in this term.
    pub fn newest_known(&self) -> NewestNumbers {
        old_copy::newest_known(&self.heartbeats)
    }

    /// Records that the promotion that began at `begun_ms` was committed or failed.
    pub fn promoted(&mut self, begun_ms: u64, now_ms: u64) {
        self.promotions.promoted(begun_ms, now_ms);
    }

    /// Returns the newest epoch of a bucket that is durable on all copies, if the leader knows it.
    pub fn durable_epoch(&self, state: &StateContext, bucket: BucketId) -> Option<Epoch> {
        durable_epoch(state, &self.heartbeats, bucket)
    }

    /// Starts a query of a source's history.
    pub fn begin_query(&mut self) -> HistoryQuery {
        self.sources.begin_query(self.term)
    }

    /// Handles SYNC: the durable history of a bucket reaches a cut in the vbuckets that the projector owns. Reports
    /// about dropped buckets are ignored; the projector will see the drop in the catalog.
    pub fn sync(
        &mut self,
        state: &StateContext,
        projector: NodeId,
        reported: BucketReport,
        now_ms: u64,
    ) -> Result<()> {
        self.sources.sync(&mut self.stability, state, projector, reported, now_ms)
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

    /// Schedules queries of sources that are ahead of the state.
    pub fn suspect(&mut self, buckets: impl IntoIterator<Item = BucketId>) {
        self.sources.suspects.extend(buckets);
    }

    /// Returns the buckets whose sources are due for a query.
    pub fn queries_due(&mut self, state: &StateContext, now_ms: u64) -> Vec<BucketId> {
        self.sources.queries_due(state, now_ms)
    }

    /// Records the result of a check.
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

    /// Returns true once the leader has received all reports that it needs. It then stays active
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
        let old = self.check_newest(state).err().map(|error| error.to_string());
        old.into_iter().chain(bootstrap::differences(state, &self.heartbeats)).collect()
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
pub(in crate::leader) mod tests;
