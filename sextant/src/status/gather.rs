//! Builds the cluster's status from the catalog of this process and the reports that the
//! coordinator has.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use proto::Result;
use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::ids::{LocalIndexId, NodeId};
use proto::model::index::{IndexInfo, IndexState};
use proto::model::left_out::LeftOut;
use proto::model::node::{NodeInfo, Role};
use proto::rpc::api::{BucketProgress, CoordinatorMembers, CoordinatorStatus, SILENT_MS_MAX};
use router::Knowledge;

use super::cluster_status::{
    BucketStatus, ClusterStatus, CoordinatorAnswer, IndexStatus, NodeBucketStatus, NodeStatus,
    ProjectorShare,
};
use super::{copies, holds, moves, rollbacks, slices, versions};
use crate::access::{Access, FigureKind};
use crate::sql::definitions::alter::declaration;

/// Calls the coordinator and returns the status of the cluster, restricted to what the principal
/// may see. With `seen`, the status contains the buckets whose figures of this kind the principal
/// may see; otherwise all that the principal may see.
pub async fn cluster_status(access: &Access, seen: Option<FigureKind>) -> Result<ClusterStatus> {
    let catalog = access.catalog_of(seen)?;
    let answer = match access.status().await {
        Ok(status) => CoordinatorAnswer::Status(status),
        Err(error) => CoordinatorAnswer::Unavailable { error },
    };
    Ok(ClusterStatus::new(&catalog, answer).with_catalog_age(access.knowledge()))
}

/// Returns the status of the cluster from the catalog alone, without the reports of nodes.
pub fn catalog_status(access: &Access, seen: Option<FigureKind>) -> Result<ClusterStatus> {
    let catalog = access.catalog_of(seen)?;
    Ok(ClusterStatus::new(&catalog, CoordinatorAnswer::NotAsked))
}

impl ClusterStatus {
    /// Returns the status of a catalog and an answer of the coordinator.
    pub fn new(catalog: &Catalog, coordinator: CoordinatorAnswer) -> Self {
        let reports = coordinator.status();
        let entries = entries(reports);
        let index = |info: &Arc<IndexInfo>| {
            let id = info.local_id();
            // This is the build of the index, or of the generation that will replace the serving
            // one.
            let first = Some(info).filter(|info| info.state == IndexState::Backfill);
            let built = catalog.next_generation(info.id).or(first);
            let build = reports.zip(built).and_then(|(reports, built)| reports.build_status(built));
            let built_percent = build.map(|build| build.percent.into());
            let entries = entries.get(&id).copied();
            let slice_bytes_max = catalog.slice_bytes_max.get(&info.id).copied();
            IndexStatus {
                built_percent,
                built_entries: build.map(|build| build.entries),
                seconds_left: build.and_then(|build| build.seconds_left),
                ..index(info, slice_bytes_max, entries, left_out(reports, id))
            }
        };
        Self {
            cas: catalog.cas,
            nodes: nodes(catalog, reports),
            buckets: buckets(catalog).map(|info| bucket(catalog, reports, info)).collect(),
            copies: copies::copies(catalog),
            indexes: catalog.indexes.values().map(index).collect(),
            slices: slices::slices(catalog, reports),
            moves: moves::moves(catalog, reports),
            rollbacks: rollbacks::rollbacks(catalog, reports),
            versions: versions::versions(catalog, reports),
            holds: holds::holds(catalog, reports),
            coordinator,
        }
    }

    /// Adds the age of the router's catalog to the status of this router.
    pub fn with_catalog_age(mut self, knowledge: Option<(NodeId, Knowledge)>) -> Self {
        let Some((router, knowledge)) = knowledge else { return self };
        for node in self.nodes.iter_mut().filter(|node| node.node == router) {
            node.note = catalog_age_remark(knowledge);
        }
        self
    }
}

/// Returns the registered nodes, then the nodes that were removed recently.
fn nodes(catalog: &Catalog, reports: Option<&CoordinatorStatus>) -> Vec<NodeStatus> {
    let present = catalog.nodes.values().map(|info| node(catalog, reports, info));
    let removed = catalog
        .removed
        .iter()
        .map(|info| NodeStatus { state: "removed".into(), ..node(catalog, None, info) });
    present.chain(removed).collect()
}

/// Returns a word for the state of a node, by its last heartbeat and the progress of its drain.
fn node_state(catalog: &Catalog, node: NodeId, silent_ms: Option<u64>) -> Cow<'static, str> {
    match silent_ms {
        None => "unknown".into(),
        Some(SILENT_MS_MAX..) => "silent".into(),
        Some(_) if catalog.draining.contains(&node) => match catalog.slices_on(node) {
            0 => "drained".into(),
            1 => "draining, 1 slice left".into(),
            left => format!("draining, {left} slices left").into(),
        },
        Some(_) => "alive".into(),
    }
}

/// Returns the status of a node, from the catalog and the node's report.
fn node(catalog: &Catalog, reports: Option<&CoordinatorStatus>, info: &NodeInfo) -> NodeStatus {
    let report = reports.and_then(|all| all.nodes.iter().find(|report| report.node == info.id));
    // A node may report a dropped bucket for a while.
    let bucket = |progress: &BucketProgress| {
        Some(NodeBucketStatus {
            bucket: catalog.buckets.get(&progress.bucket)?.name.clone(),
            applied_epoch: progress.applied,
            durable_epoch: progress.durable,
            queue_bytes: progress.queue_bytes,
            queue_bytes_max: progress.queue_bytes_max,
        })
    };
    let silent_ms = report.map(|report| report.silent_ms);
    NodeStatus {
        node: info.id,
        role: info.role.name(),
        address: info.address.clone(),
        zone: info.zone.clone(),
        state: node_state(catalog, info.id, silent_ms),
        silent_ms,
        scans: report.and_then(|report| report.scans),
        buckets: report.iter().flat_map(|report| &report.buckets).filter_map(bucket).collect(),
        note: reports.and_then(|all| vote_remark(&all.members, info)),
    }
}

/// Returns a remark about whether a coordinator votes; `None` if it votes as usual.
fn vote_remark(members: &CoordinatorMembers, node: &NodeInfo) -> Option<String> {
    let what = match node.role {
        Role::Coordinator if members.voters.contains(&node.id) => "voter",
        Role::Coordinator if members.learners.contains(&node.id) => {
            "learner: it gets the log, and then votes by itself"
        }
        _ => return None,
    };
    Some(what.to_owned())
}

/// Returns a remark about the age of a router's catalog; `None` while a coordinator answers the
/// router.
fn catalog_age_remark(knowledge: Knowledge) -> Option<String> {
    let age_ms = knowledge.age_ms?;
    let age_s = age_ms / 1000;
    if knowledge.is_from_disk {
        let what = format!("its catalog is from its disk and {age_s} s old");
        return Some(format!("{what}: no coordinator has answered since its start"));
    }
    (age_ms >= SILENT_MS_MAX).then(|| format!("no coordinator has answered it for {age_s} s"))
}

/// Returns the buckets that users see, without the versions of data sets.
fn buckets(catalog: &Catalog) -> impl Iterator<Item = &Arc<BucketInfo>> {
    catalog.buckets.values().filter(|info| catalog.version(info.id).is_none())
}

/// Returns the status of a bucket.
fn bucket(
    catalog: &Catalog,
    reports: Option<&CoordinatorStatus>,
    info: &BucketInfo,
) -> BucketStatus {
    let assignment = &info.assignment;
    let copies = catalog.copies.get(&info.id);
    let (in_sync, wanted) = (copies.map(|c| c.in_sync.len() as u64), copies.map(|c| c.wanted));
    let share = |node| ProjectorShare { node, vbuckets: assignment.owned_by(node).len() };
    BucketStatus {
        id: info.id,
        name: info.name.clone(),
        vbuckets: info.vbuckets,
        source: info.source.name(),
        indexes: catalog
            .indexes
            .values()
            .filter(|index| catalog.user_bucket(index.bucket) == info.id)
            .count(),
        projectors: assignment.projectors().into_iter().map(share).collect(),
        moving: assignment.transfers().len(),
        copies: in_sync.zip(wanted).map(|(in_sync, wanted)| format!("{in_sync} of {wanted}")),
        copies_in_sync: in_sync,
        copies_wanted: wanted.map(u64::from),
        held_ms: holds::held_ms(reports, info.id),
        epochs_past_slow_indexers: reports.map(|reports| {
            let of = reports.past_slow.iter().find(|(of, _)| *of == info.id);
            of.map_or(0, |(_, count)| *count)
        }),
        assignment: assignment.clone(),
        rollback: info.rollback.clone(),
        dead: info.dead.clone(),
    }
}

/// Returns the number of entries of each index that all nodes together have reported.
fn entries(reports: Option<&CoordinatorStatus>) -> BTreeMap<LocalIndexId, u64> {
    let mut entries = BTreeMap::new();
    for progress in reports.iter().flat_map(|all| &all.nodes).flat_map(|report| &report.slices) {
        *entries.entry(progress.slice.local_index()).or_default() += progress.entries;
    }
    entries
}

/// Returns the numbers of documents that are not in an index because they exceed a limit. Returns
/// `None` without an answer of the leader.
fn left_out(reports: Option<&CoordinatorStatus>, id: LocalIndexId) -> Option<LeftOut> {
    let status = reports.filter(|status| status.leader == Some(status.node))?;
    let counts = status.left_out.iter().find(|(index, _)| *index == id);
    Some(counts.map(|(_, counts)| *counts).unwrap_or_default())
}

/// Returns the status of an index.
fn index(
    info: &IndexInfo,
    slice_bytes_max: Option<u64>,
    entries: Option<u64>,
    left_out: Option<LeftOut>,
) -> IndexStatus {
    let spec = &info.spec;
    let keys = spec.keys.iter().map(|part| &part.name);
    let include = spec.include.iter().map(|column| &column.name);
    IndexStatus {
        id: info.id,
        name: spec.name.clone(),
        bucket: spec.bucket.clone(),
        state: info.state.name(),
        columns: ["id"]
            .into_iter()
            .map(str::to_owned)
            .chain(keys.chain(include).cloned())
            .collect(),
        slices: spec.slices,
        replicas: spec.replicas,
        definition: declaration(spec, slice_bytes_max),
        generation: info.generation,
        topology: info.topology.number,
        placement: info.topology.placement.clone(),
        entries,
        built_percent: None,
        built_entries: None,
        seconds_left: None,
        left_out: left_out.map(|counts| counts.total()),
        left_out_by_reason: left_out,
    }
}
