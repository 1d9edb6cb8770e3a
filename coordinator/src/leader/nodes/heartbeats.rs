//! The last heartbeat of each node, and facts derived from the heartbeats.

use std::collections::{BTreeMap, BTreeSet};

use proto::model::assignment::VbucketSet;
use proto::model::identity::NodeProof;
use proto::model::ids::{BucketId, Epoch, LocalIndexId, MoveId, NodeId, SliceId, SliceNo};
use proto::model::index::IndexInfo;
use proto::model::moment::Moment;
use proto::model::moves::MoveProgress;
use proto::model::node::Role;
pub(in crate::leader) use proto::rpc::api::SILENT_MS_MAX;
use proto::rpc::api::{
    BucketProgress, Heartbeat, IndexerReport, NodeStatus, ProjectorReport, RouterReport,
    SliceProgress,
};

use crate::leader::epochs::horizon::LEASE_MS;
use crate::state::StateContext;

/// The time, in ms, for which the list of silent nodes is cached for the answers to heartbeats.
const ANSWER_MS: u64 = 100;

/// The number of unregistered projectors whose vbuckets are remembered.
const STRANGERS_MAX: usize = 64;

/// The last heartbeats since the leader's term began.
#[derive(Debug)]
pub(in crate::leader) struct Heartbeats {
    /// The time at which the term began, in ms.
    pub since_ms: u64,
    pub nodes: BTreeMap<NodeId, LastHeartbeat>,
    /// The newest catalog that an unregistered process has reported, and the node id of that
    /// process.
    pub newest_stranger: Option<(u64, NodeId)>,
    /// The vbuckets of unregistered projectors, of [`STRANGERS_MAX`] at most.
    pub stranger_owners: BTreeMap<NodeId, Vec<(BucketId, VbucketSet)>>,
    /// The nodes that [`Heartbeats::news`] has described as silent and not as returned since.
    silent: BTreeSet<NodeId>,
    /// The cached list of silent nodes, and the time at which it was made.
    answered: Option<(u64, Vec<NodeId>)>,
    /// For each bucket, the nodes that have applied one of its epochs, with the newest applied
    /// epoch.
    in_bucket: BTreeMap<BucketId, BTreeMap<NodeId, Epoch>>,
}

/// The last heartbeat of a node.
#[derive(Debug)]
pub(in crate::leader) struct LastHeartbeat {
    pub at_ms: u64,
    pub heartbeat: Heartbeat,
}

impl Heartbeats {
    pub(in crate::leader) fn new(since_ms: u64) -> Self {
        Self {
            since_ms,
            nodes: BTreeMap::new(),
            newest_stranger: None,
            stranger_owners: BTreeMap::new(),
            silent: BTreeSet::new(),
            answered: None,
            in_bucket: BTreeMap::new(),
        }
    }

    /// Records what the heartbeat of an unregistered process reports: its catalog and, for a
    /// projector, its vbuckets.
    pub(in crate::leader) fn add_stranger(&mut self, heartbeat: &Heartbeat) {
        self.newest_stranger =
            self.newest_stranger.max(Some((heartbeat.catalog_cas, heartbeat.node)));
        let owned = heartbeat.report.projector().map_or(&[][..], |report| &report.owned);
        if !owned.is_empty() && self.stranger_owners.len() < STRANGERS_MAX {
            self.stranger_owners.insert(heartbeat.node, owned.to_vec());
        }
    }

    /// Returns the last report of a node, if it is a projector.
    pub(in crate::leader) fn projector(&self, node: NodeId) -> Option<&ProjectorReport> {
        self.nodes.get(&node)?.heartbeat.report.projector()
    }

    /// Returns the last report of a node, if it is an indexer.
    pub(in crate::leader) fn indexer(&self, node: NodeId) -> Option<&IndexerReport> {
        self.nodes.get(&node)?.heartbeat.report.indexer()
    }

    /// Returns the last report of a node, if it is a router.
    pub(in crate::leader) fn router(&self, node: NodeId) -> Option<&RouterReport> {
        self.nodes.get(&node)?.heartbeat.report.router()
    }

    /// Iterates over the last reports of all indexers.
    pub(in crate::leader) fn indexers(&self) -> impl Iterator<Item = (NodeId, &IndexerReport)> {
        let reports = self.nodes.iter();
        reports.filter_map(|(node, last)| Some((*node, last.heartbeat.report.indexer()?)))
    }

    pub(in crate::leader) fn add(&mut self, heartbeat: Heartbeat, now_ms: u64) {
        let node = heartbeat.node;
        self.stranger_owners.remove(&node);
        if let Some((_, silent)) = &mut self.answered {
            silent.retain(|silent| *silent != node);
        }
        let before = self.indexer(node).into_iter().flat_map(|report| &report.buckets);
        let before: Vec<_> = before.map(|progress| progress.bucket).collect();
        for gone in before {
            if let Some(nodes) = self.in_bucket.get_mut(&gone) {
                nodes.remove(&node);
            }
        }
        for progress in heartbeat.report.indexer().into_iter().flat_map(|report| &report.buckets) {
            self.in_bucket.entry(progress.bucket).or_default().insert(node, progress.applied);
        }
        self.in_bucket.retain(|_, nodes| !nodes.is_empty());
        self.nodes.insert(heartbeat.node, LastHeartbeat { at_ms: now_ms, heartbeat });
    }

    /// Returns true if a heartbeat may change the plan: its node has moves or had some, was silent,
    /// or has other slices than before.
    pub(in crate::leader) fn changes_plans(&self, heartbeat: &Heartbeat, now_ms: u64) -> bool {
        let last = self.nodes.get(&heartbeat.node);
        let has_moves = |report: &IndexerReport| !report.moves.is_empty();
        let had_moves = self.indexer(heartbeat.node).is_some_and(has_moves);
        let has_moves = heartbeat.report.indexer().is_some_and(has_moves);
        let was_silent =
            last.is_some_and(|last| now_ms.saturating_sub(last.at_ms) >= SILENT_MS_MAX);
        has_moves || had_moves || was_silent || self.changes_slices(heartbeat)
    }

    /// Returns true if the set of slices in the heartbeat, or the set of its readable slices,
    /// differs from that in the node's last heartbeat. Sizes and floors are not compared, because
    /// they are checked every second anyway.
    fn changes_slices(&self, heartbeat: &Heartbeat) -> bool {
        let told = |slice: &SliceProgress| {
            (slice.slice, slice.floor.is_some(), slice.copied_from, slice.trouble.is_some())
        };
        let slices = |report: Option<&IndexerReport>| {
            report.map(|report| report.slices.iter().map(told).collect::<Vec<_>>())
        };
        let (last, now) = (self.indexer(heartbeat.node), heartbeat.report.indexer());
        slices(last).unwrap_or_default() != slices(now).unwrap_or_default()
    }

    /// Returns log lines about the nodes that have fallen silent or returned since the last call.
    pub(in crate::leader) fn silence_news(
        &mut self,
        state: &StateContext,
        now_ms: u64,
    ) -> Vec<String> {
        let mut news = Vec::new();
        // The members of the coordinator send no heartbeats.
        let nodes = state.nodes().filter(|node| node.role != Role::Coordinator);
        for node in nodes {
            let silent_ms = self.silent_ms(node.id, now_ms);
            let (id, role) = (node.id, node.role.name());
            if silent_ms < SILENT_MS_MAX {
                if self.silent.remove(&id) {
                    news.push(format!("{role} {id} is back"));
                }
            } else if self.silent.insert(id) {
                let text = format!("{role} {id} has been silent for {} s", silent_ms / 1_000);
                news.push(format!("{text}; it may be down, see SHOW NODES"));
            }
        }
        self.silent.retain(|id| state.node(*id).is_some());
        news
    }

    /// Returns the age of the term, in ms.
    pub(in crate::leader) fn term_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.since_ms)
    }

    /// Returns the status of each registered node. `members` is the time, in ms, since each
    /// coordinator was last heard.
    pub(in crate::leader) fn status(
        &self,
        state: &StateContext,
        members: &BTreeMap<NodeId, u64>,
        now_ms: u64,
    ) -> Vec<NodeStatus> {
        let status = |node: NodeId| {
            let told = self.indexer(node);
            let scans = told.map(|told| told.scans);
            let since_term_ms = self.term_ms(now_ms);
            let as_member_ms = members.get(&node).map(|silent_ms| since_term_ms.min(*silent_ms));
            NodeStatus {
                node,
                silent_ms: as_member_ms.unwrap_or_else(|| self.silent_ms(node, now_ms)),
                buckets: told.map(|told| told.buckets.clone()).unwrap_or_default(),
                slices: told.map(|told| told.slices.clone()).unwrap_or_default(),
                moves: told.map(|told| told.moves.clone()).unwrap_or_default(),
                scans: scans.or_else(|| Some(self.router(node)?.scans)),
            }
        };
        state.nodes().map(|node| status(node.id)).collect()
    }

    /// Returns the registered nodes that have been silent for [`SILENT_MS_MAX`]. Coordinators are
    /// left out, because they send no heartbeats of this kind. The result is cached for
    /// [`ANSWER_MS`], since every answer to a heartbeat contains it.
    pub(in crate::leader) fn silent_nodes(
        &mut self,
        state: &StateContext,
        now_ms: u64,
    ) -> Vec<NodeId> {
        if let Some((at_ms, silent)) = &self.answered
            && now_ms.saturating_sub(*at_ms) < ANSWER_MS
        {
            return silent.clone();
        }
        let nodes = state.nodes().filter(|node| node.role != Role::Coordinator);
        let is_silent = |id: &NodeId| self.silent_ms(*id, now_ms) >= SILENT_MS_MAX;
        let silent: Vec<_> = nodes.map(|node| node.id).filter(is_silent).collect();
        self.answered = Some((now_ms, silent.clone()));
        silent
    }

    /// Returns the random proof by which the process that recently reported as a node identifies
    /// itself; `None` if there was no recent report or it has no proof.
    pub(in crate::leader) fn process_proof(&self, node: NodeId, now_ms: u64) -> Option<NodeProof> {
        let last = self.nodes.get(&node).filter(|_| self.is_alive(node, now_ms))?;
        last.heartbeat.proof
    }

    /// Returns true if the node has reported recently.
    pub(in crate::leader) fn is_alive(&self, node: NodeId, now_ms: u64) -> bool {
        let last = self.nodes.get(&node);
        last.is_some_and(|last| now_ms.saturating_sub(last.at_ms) < SILENT_MS_MAX)
    }

    /// Returns true if the node reports that it is fetching or building a slice, so that the slice
    /// cannot be copied from there.
    pub(in crate::leader) fn is_building(&self, node: NodeId, slice: SliceId) -> bool {
        let mut slices = self.indexer(node).into_iter().flat_map(|report| &report.slices);
        slices.any(|progress| progress.slice == slice && progress.floor.is_none())
    }

    /// Returns the time since the node's last report, or since the term began, in ms.
    pub(in crate::leader) fn silent_ms(&self, node: NodeId, now_ms: u64) -> u64 {
        let last_ms = self.nodes.get(&node).map_or(0, |last| last.at_ms);
        now_ms.saturating_sub(last_ms.max(self.since_ms))
    }

    /// Iterates over the epochs of a bucket that running scans read (their leases).
    pub(in crate::leader) fn leases(
        &self,
        bucket: BucketId,
        now_ms: u64,
    ) -> impl Iterator<Item = Epoch> {
        self.leases_with_catalogs(bucket, now_ms).map(|(epoch, _)| epoch)
    }

    /// Iterates over the epochs of a bucket that running scans read. Each comes with the oldest
    /// catalog by which any scan or transaction of the same router chose its slices.
    pub(in crate::leader) fn leases_with_catalogs(
        &self,
        bucket: BucketId,
        now_ms: u64,
    ) -> impl Iterator<Item = (Epoch, u64)> {
        self.routers_with_leases(now_ms)
            .flat_map(|report| report.leases.iter().map(move |lease| (lease, report.reads_since)))
            .filter(move |((leased, _), _)| *leased == bucket)
            .map(|((_, epoch), reads_since)| (*epoch, reads_since))
    }

    /// Iterates over the reports of the routers whose leases have not expired.
    fn routers_with_leases(&self, now_ms: u64) -> impl Iterator<Item = &RouterReport> {
        self.nodes
            .values()
            .filter(move |last| now_ms.saturating_sub(last.at_ms) <= LEASE_MS)
            .filter_map(|last| last.heartbeat.report.router())
    }

    /// Returns the moments that transactions read, ascending.
    pub(in crate::leader) fn moments(&self, now_ms: u64) -> BTreeSet<Moment> {
        self.routers_with_leases(now_ms).flat_map(|report| report.moments.iter().copied()).collect()
    }

    /// Returns the progress of the live indexers in a bucket.
    pub(in crate::leader) fn progress(
        &self,
        bucket: BucketId,
        now_ms: u64,
    ) -> Vec<&BucketProgress> {
        let nodes = self.in_bucket.get(&bucket).into_iter().flat_map(BTreeMap::keys);
        nodes
            .filter_map(|node| self.nodes.get(node))
            .filter(|last| now_ms.saturating_sub(last.at_ms) < SILENT_MS_MAX)
            .filter_map(|last| last.heartbeat.report.indexer())
            .flat_map(|report| &report.buckets)
            .filter(|progress| progress.bucket == bucket)
            .collect()
    }

    /// Returns the newest epoch of a bucket that any node has applied, and that node.
    pub(in crate::leader) fn newest_applied(&self, bucket: BucketId) -> Option<(Epoch, NodeId)> {
        let nodes = self.in_bucket.get(&bucket)?;
        nodes.iter().map(|(node, applied)| (*applied, *node)).max()
    }

    /// Returns the newest epoch at which all slices of an index can be read. Each slice counts
    /// with the copy that has applied the newest epoch.
    pub(in crate::leader) fn newest_servable_epoch(&self, index: &IndexInfo) -> Epoch {
        let in_bucket = self.in_bucket.get(&index.bucket);
        let applied = |node: &NodeId| {
            in_bucket.and_then(|nodes| nodes.get(node)).copied().unwrap_or_default()
        };
        let best = |nodes: &Vec<NodeId>| nodes.iter().map(applied).max().unwrap_or_default();
        index.topology.placement.iter().map(best).min().unwrap_or_default()
    }

    /// Returns the oldest epoch at which every slice of an index can be read on some node; `None`
    /// while a slice cannot be read on any node.
    pub(in crate::leader) fn common_floor(&self, index: &IndexInfo) -> Option<Epoch> {
        let floor = |(slice, nodes): (SliceNo, &Vec<NodeId>)| {
            let id = index.local_id().slice(slice);
            let ranges =
                nodes.iter().filter_map(|node| self.readable_range(*node, id, index.bucket));
            ranges.map(|(_, floor, _)| floor).min()
        };
        let slices = (0..).map(SliceNo).zip(&index.topology.placement);
        slices.map(floor).try_fold(Epoch(0), |oldest, floor| Some(oldest.max(floor?)))
    }

    /// Iterates over the slices that each node can scan.
    pub(in crate::leader) fn readable_slices(&self) -> impl Iterator<Item = (NodeId, SliceId)> {
        let slices =
            self.indexers().flat_map(|(node, report)| report.slices.iter().map(move |s| (node, s)));
        slices.filter(|(_, slice)| slice.floor.is_some()).map(|(node, slice)| (node, slice.slice))
    }

    /// Returns the progress of a move, as its target has reported it.
    pub(in crate::leader) fn progress_of(
        &self,
        target: NodeId,
        index: LocalIndexId,
        id: MoveId,
    ) -> Option<&MoveProgress> {
        let moves = &self.indexer(target)?.moves;
        moves.iter().find(|progress| progress.index == index && progress.id == id)
    }

    /// Returns the reported size of a slice on a node, and the oldest and the newest epoch at which
    /// it can be read there.
    pub(in crate::leader) fn readable_range(
        &self,
        node: NodeId,
        slice: SliceId,
        bucket: BucketId,
    ) -> Option<(u64, Epoch, Epoch)> {
        let last = self.indexer(node)?;
        let of_slice = last.slices.iter().find(|progress| progress.slice == slice)?;
        let bucket = last.buckets.iter().find(|progress| progress.bucket == bucket)?;
        Some((of_slice.bytes, of_slice.floor?, bucket.applied))
    }
}
