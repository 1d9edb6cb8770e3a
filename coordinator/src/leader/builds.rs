//! Finds the builds that are complete.
//!
//! A new generation must besides be about as far as the one whose place it takes. Otherwise a session that has read the newest epoch of
//! the old one would wait for the new one to reach it.

use std::collections::BTreeSet;

use proto::model::ids::{NodeId, SliceId, SliceNo};
use proto::model::index::{IndexInfo, IndexState};
use proto::rpc::command::Command;

use super::heartbeats::{Heartbeats, SILENT_MS_MAX, readable};
use crate::state::StateContext;

/// The epochs by which a node may be behind when a new generation begins to serve: those of two seconds of steady writes. Nodes report
/// once a second.
const BEHIND_MAX: u64 = 100;

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
    let keeps_up = |index: &IndexInfo| {
        let Some(newest) = state.bucket(index.bucket).map(|bucket| bucket.epochs.last().epoch)
        else {
            return false;
        };
        let mut hosts = index.topology.nodes().into_iter().filter(lives);
        state.serving(index.id).is_none()
            || hosts.all(|node| heartbeats.applied(node, index.bucket).0 + BEHIND_MAX >= newest.0)
    };
    state
        .indexes()
        .map(|record| &record.info)
        .filter(|index| index.state == IndexState::Backfill && is_ready(index) && keeps_up(index))
        .map(|index| Command::IndexReady { index: index.id, generation: index.generation })
        .collect()
}
