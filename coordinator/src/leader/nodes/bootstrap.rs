//! The beginning of a term (seed 003, "Index-Coordinator bootstrap"): what a new leader must know before it is
//! *active*.
//!
//! | handshake | result |
//! |---|---|
//! | with the replicas | the newest StateContext: Raft elects no member that lacks a committed entry |
//! | with each indexer | its slices, which are compared with the topology ([`differences`]), and its high watermarks |
//! | with each bucket's projector | the failover logs, which are compared with the last epoch's cut ([`crate::leader::epochs::sources`]) |
//!
//! The leader does not wait for a node that is silent for `SILENT_MS_MAX`. Commands that change the membership wait
//! until the leader is active. DDL and promotions do not wait, because they need no reports of nodes. The *restart
//! timestamp* of a bucket is the lowest high watermark of its indexers: the position from which its source must be
//! able to start. The coordinator uses it for no restart, because each indexer requests its stream from its own watermark.
//!
//! Each node repairs its own differences: it drops slices that the catalog does not assign to it, and builds assigned
//! slices that it lacks.

use std::collections::BTreeMap;

use proto::model::cut::{Cut, Position};
use proto::model::ids::{BucketId, NodeId, SliceId, SliceNo, VbucketId};
use proto::model::index::IndexState;
use proto::model::node::Role;
use proto::rpc::api::SliceProgress;
use proto::rpc::command::{Command, Join, RegisterNode, SkipEpochs};

use crate::leader::epochs::sources::Sources;
use crate::leader::nodes::heartbeats::{Heartbeats, SILENT_MS_MAX};
use crate::state::StateContext;

/// Returns true if the command adds a node to the cluster, removes or drains one, or depends on the
/// reports of all nodes.
pub fn changes_membership(state: &StateContext, command: &Command) -> bool {
    match command {
        // A known node that returns under another address does not wait: the leader waits for its report.
        Command::RegisterNode(RegisterNode { node }) => state.node(node.id).is_none(),
        Command::Join(Join { request }) => state.node(request.node.id).is_none(),
        Command::RemoveNode(_) | Command::DrainNode(_) => true,
        // The numbers continue above all numbers that the nodes report.
        Command::SkipEpochs(SkipEpochs) => true,
        _ => false,
    }
}

/// Returns true if all nodes and sources that the leader waits for have reported.
pub(in crate::leader) fn is_complete(
    state: &StateContext,
    heartbeats: &Heartbeats,
    sources: &Sources,
    now_ms: u64,
) -> bool {
    heartbeats.term_ms(now_ms) >= SILENT_MS_MAX
        || (all_indexers_reported(state, heartbeats) && sources.all_compared(state))
}

/// Returns true if all indexers have reported in this term.
fn all_indexers_reported(state: &StateContext, heartbeats: &Heartbeats) -> bool {
    let mut indexers = state.nodes().filter(|node| node.role == Role::Indexer);
    indexers.all(|node| heartbeats.nodes.contains_key(&node.id))
}

/// Logs the differences between the reported slices and the topology, and the restart timestamps.
pub(in crate::leader) fn log_findings(state: &StateContext, heartbeats: &Heartbeats) {
    for difference in differences(state, heartbeats) {
        tracing::info!(%difference, "the slices of an indexer differ from the topology");
    }
    for (bucket, cut) in restart_timestamps(state, heartbeats) {
        let mutations: u64 = cut.iter().map(|(_, position)| position.seqno.0).sum();
        tracing::debug!(%bucket, mutations, "restart timestamp");
    }
}

/// Returns, for each bucket with indexers that have reported, the lowest high watermark of each
/// vbucket.
pub(in crate::leader) fn restart_timestamps(
    state: &StateContext,
    heartbeats: &Heartbeats,
) -> Vec<(BucketId, Cut)> {
    let lowest = |bucket: BucketId, vbuckets: u16| {
        let of_bucket = heartbeats.indexers().flat_map(|(_, report)| &report.buckets);
        let reported: Vec<&Cut> = of_bucket
            .filter(|progress| progress.bucket == bucket)
            .map(|progress| &progress.high_watermark)
            .filter(|cut| cut.vbuckets() == vbuckets)
            .collect();
        let lowest = |vbucket: u16| {
            let at = reported.iter().map(|cut| cut.get(VbucketId(vbucket)));
            at.min_by_key(|position: &Position| position.seqno)
        };
        let positions: Option<Vec<Position>> = (0..vbuckets).map(lowest).collect();
        positions.map(|positions| (bucket, Cut::from_positions(positions)))
    };
    state.buckets().filter_map(|(id, bucket)| lowest(id, bucket.info.vbuckets)).collect()
}

/// Returns texts that describe where the slices that nodes report differ from the topology. Nodes
/// that have not reported are skipped.
pub(in crate::leader) fn differences(state: &StateContext, heartbeats: &Heartbeats) -> Vec<String> {
    let mut found = Vec::new();
    let has = |node: NodeId| -> Option<BTreeMap<SliceId, &SliceProgress>> {
        let slices = &heartbeats.indexer(node)?.slices;
        Some(slices.iter().map(|reported| (reported.slice, reported)).collect())
    };
    for node in state.nodes().filter(|node| node.role == Role::Indexer) {
        let Some(mut slices) = has(node.id) else { continue };
        let indexes = state.indexes().map(|record| &record.info);
        for index in indexes.filter(|index| index.state != IndexState::Pending) {
            let (id, generation, name) = (index.id, index.generation, &index.spec.name);
            for slice in (0..index.topology.placement.len() as u16).map(SliceNo) {
                let reported = slices.remove(&SliceId { index: id, generation, slice });
                let there = reported.is_some();
                let serves = index.state == IndexState::Maintenance;
                if let Some(from) = reported.filter(|_| serves).and_then(built_from) {
                    let what = format!("node {} rebuilds slice {slice} of {name:?}", node.id);
                    found.push(format!("{what} from {from}"));
                }
                if there && !index.may_keep(node.id, slice) {
                    found.push(format!(
                        "node {} has slice {slice} of {name:?}, which is not assigned to it",
                        node.id
                    ));
                }
                if !there && index.topology.hosts(node.id, slice) {
                    found.push(format!("node {} lacks slice {slice} of {name:?}", node.id));
                }
            }
        }
        let unknown = slices.into_keys();
        found
            .extend(unknown.map(|slice| format!("node {} has the unknown slice {slice}", node.id)));
    }
    found
}

/// Returns a text about the source from which an unreadable slice is being built; `None` if the
/// slice is not being built.
fn built_from(reported: &SliceProgress) -> Option<String> {
    match (reported.floor, reported.copied_from) {
        (Some(_), _) => None,
        (None, Some(copy)) => Some(format!("the copy on node {copy}")),
        (None, None) => Some("the source".to_owned()),
    }
}

#[cfg(test)]
#[path = "bootstrap_tests.rs"]
mod tests;
