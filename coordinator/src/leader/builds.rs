//! Finds the builds that are complete.

use std::collections::BTreeSet;

use proto::model::ids::{NodeId, SliceId, SliceNo};
use proto::model::index::{IndexInfo, IndexState};
use proto::rpc::command::Command;

use super::heartbeats::{Heartbeats, SILENT_MS_MAX, readable};
use crate::state::StateContext;

/// Returns a command for each index whose build is complete: each slice is readable on some node, and no live copy is
/// behind.
pub(super) fn ready_indexes(
    state: &StateContext,
    heartbeats: &Heartbeats,
    now_ms: u64,
) -> Vec<Command> {
    // Hundreds of indexers report their slices in each second.
    if !state.indexes().any(|record| record.info.state == IndexState::Backfill) {
        return Vec::new();
    }
    let readable: BTreeSet<(NodeId, SliceId)> =
        heartbeats.nodes.values().flat_map(|last| readable(&last.heartbeat)).collect();
    // A node that has not reported to the new leader yet may be alive.
    let lives = |node: &NodeId| {
        let last_ms = heartbeats.nodes.get(node).map_or(0, |last| last.at_ms);
        now_ms.saturating_sub(last_ms.max(heartbeats.since_ms)) < SILENT_MS_MAX
    };
    let is_ready = |index: &IndexInfo| {
        index.topology.placement.iter().enumerate().all(|(n, nodes)| {
            let slice =
                SliceId { index: index.id, generation: index.generation, slice: SliceNo(n as u16) };
            let reads = |node: &&NodeId| readable.contains(&(**node, slice));
            nodes.iter().any(|node| reads(&node))
                && nodes.iter().filter(|node| lives(node)).all(|node| reads(&node))
        })
    };
    state
        .indexes()
        .map(|record| &record.info)
        .filter(|index| index.state == IndexState::Backfill && is_ready(index))
        .map(|index| Command::IndexReady { index: index.id, generation: index.generation })
        .collect()
}
