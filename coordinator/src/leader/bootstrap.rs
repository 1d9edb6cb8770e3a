//! The beginning of a term (seed 003, "Index-Coordinator bootstrap"): what a new leader must hear before it is
//! *active*.
//!
//! | handshake | what it gives |
//! |---|---|
//! | with the replicas | the newest StateContext: Raft elects nobody who lacks a committed entry |
//! | with each indexer | its slices, which are compared with the topology ([`differences`]), and its high watermarks |
//! | with each bucket's projector | the failover logs, which are compared with the last epoch's cut ([`super::sources`]) |
//!
//! A node that says nothing for `SILENT_MS_MAX` is not waited for. Until then commands that change the
//! membership wait; DDL and promotions do not, since they need nobody's word. The *restart timestamp* of a
//! bucket is the lowest high watermark of its indexers: where its source must be able to begin. Streams are
//! asked for by the indexers themselves, each from its own watermark, so nothing is restarted by it.
//!
//! What differs is repaired by the node that it is about: slices that the catalog does not have there are
//! dropped, slices that it has and the node has not are built.

use std::collections::BTreeMap;

use proto::model::cut::{Cut, Position};
use proto::model::ids::{BucketId, NodeId, SliceId, SliceNo, VbucketId};
use proto::model::index::IndexState;
use proto::model::node::Role;
use proto::rpc::api::SliceProgress;
use proto::rpc::command::Command;

use super::heartbeats::{Heartbeats, SILENT_MS_MAX};
use super::sources::Sources;
use crate::state::StateContext;

/// Is a command one that changes who is of the cluster?
pub fn changes_membership(state: &StateContext, command: &Command) -> bool {
    match command {
        // One that comes back elsewhere is whom the leader waits for.
        Command::RegisterNode(node) => state.node(node.id).is_none(),
        Command::RemoveNode { .. } | Command::DrainNode { .. } => true,
        _ => false,
    }
}

/// Has the leader heard of everybody whom it waits for?
pub(super) fn is_over(
    state: &StateContext,
    heartbeats: &Heartbeats,
    sources: &Sources,
    now_ms: u64,
) -> bool {
    heartbeats.leads_ms(now_ms) >= SILENT_MS_MAX
        || (indexers_are_heard(state, heartbeats) && sources.are_heard(state))
}

fn indexers_are_heard(state: &StateContext, heartbeats: &Heartbeats) -> bool {
    let mut indexers = state.nodes().filter(|node| node.role == Role::Indexer);
    indexers.all(|node| heartbeats.nodes.contains_key(&node.id))
}

pub(super) fn tell_what_it_found(state: &StateContext, heartbeats: &Heartbeats) {
    for difference in differences(state, heartbeats) {
        tracing::info!(%difference, "an indexer and the topology differ");
    }
    for (bucket, cut) in restart_timestamps(state, heartbeats) {
        let mutations: u64 = cut.iter().map(|(_, position)| position.seqno.0).sum();
        tracing::debug!(%bucket, mutations, "the restart timestamp");
    }
}

/// For each bucket with indexers that were heard of, the lowest high watermark of each vbucket.
pub(super) fn restart_timestamps(
    state: &StateContext,
    heartbeats: &Heartbeats,
) -> Vec<(BucketId, Cut)> {
    let lowest = |bucket: BucketId, vbuckets: u16| {
        let of_bucket = heartbeats.nodes.values().flat_map(|heard| &heard.heartbeat.buckets);
        let heard: Vec<&Cut> = of_bucket
            .filter(|progress| progress.bucket == bucket)
            .map(|progress| &progress.high_watermark)
            .filter(|cut| cut.vbuckets() == vbuckets)
            .collect();
        let lowest = |vbucket: u16| {
            let at = heard.iter().map(|cut| cut.get(VbucketId(vbucket)));
            at.min_by_key(|position: &Position| position.seqno)
        };
        let positions: Option<Vec<Position>> = (0..vbuckets).map(lowest).collect();
        positions.map(|positions| (bucket, Cut::from_positions(positions)))
    };
    state.buckets().filter_map(|(id, bucket)| lowest(id, bucket.info.vbuckets)).collect()
}

/// Where what the indexers have told of their slices is not what the topology has on them, in words. A node
/// of which nothing was heard is not judged.
pub(super) fn differences(state: &StateContext, heartbeats: &Heartbeats) -> Vec<String> {
    let mut found = Vec::new();
    let has = |node: NodeId| -> Option<BTreeMap<SliceId, &SliceProgress>> {
        let heard = heartbeats.nodes.get(&node)?;
        Some(heard.heartbeat.slices.iter().map(|told| (told.slice, told)).collect())
    };
    for node in state.nodes().filter(|node| node.role == Role::Indexer) {
        let Some(mut slices) = has(node.id) else { continue };
        let indexes = state.indexes().map(|record| &record.info);
        for index in indexes.filter(|index| index.state != IndexState::Pending) {
            let (id, generation, name) = (index.id, index.generation, &index.spec.name);
            for slice in (0..index.topology.placement.len() as u16).map(SliceNo) {
                let told = slices.remove(&SliceId { index: id, generation, slice });
                let there = told.is_some();
                let serves = index.state == IndexState::Maintenance;
                if let Some(from) = told.filter(|_| serves).and_then(built_from) {
                    let what = format!("node {} builds slice {slice} of {name:?}", node.id);
                    found.push(format!("{what} anew, from {from}"));
                }
                if there && !index.may_keep(node.id, slice) {
                    found.push(format!(
                        "node {} has slice {slice} of {name:?}, which is not its own",
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
            .extend(unknown.map(|slice| format!("node {} has {slice}, which is unknown", node.id)));
    }
    found
}

/// What a slice is built from that is not readable.
fn built_from(told: &SliceProgress) -> Option<String> {
    match (told.floor, told.copied_from) {
        (Some(_), _) => None,
        (None, Some(copy)) => Some(format!("the copy on node {copy}")),
        (None, None) => Some("the source".to_owned()),
    }
}

#[cfg(test)]
#[path = "bootstrap_tests.rs"]
mod tests;
