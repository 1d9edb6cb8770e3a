//! Which builds are done.

use std::collections::BTreeSet;

use proto::model::ids::{NodeId, SliceId, SliceNo};
use proto::model::index::{IndexInfo, IndexState};
use proto::rpc::command::Command;

use super::heartbeats::{Heartbeats, SILENT_MS_MAX, readable};
use crate::state::StateContext;

/// The indexes whose build is done: each slice can be read somewhere, and no living copy is behind.
pub(super) fn ready_indexes(
    state: &StateContext,
    heartbeats: &Heartbeats,
    now_ms: u64,
) -> Vec<Command> {
    let readable: BTreeSet<(NodeId, SliceId)> =
        heartbeats.nodes.values().flat_map(|heard| readable(&heard.heartbeat)).collect();
    // A node that the new leader has not heard of yet may be alive.
    let lives = |node: &NodeId| {
        let heard_ms = heartbeats.nodes.get(node).map_or(0, |heard| heard.at_ms);
        now_ms.saturating_sub(heard_ms.max(heartbeats.since_ms)) < SILENT_MS_MAX
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
