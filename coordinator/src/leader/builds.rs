//! Finds the builds that are complete.
//!
//! A new generation must besides be able to take the place of the one that serves. Some epoch can be read in all of its slices: the newest
//! that all have applied is not below a floor. It is as far as what was published a moment before, so that no session waits for long
//! for an epoch that it has seen. And its bucket is not being rolled back: then what serves may be the better one.

use std::collections::BTreeSet;

use proto::model::ids::{NodeId, SliceId, SliceNo};
use proto::model::index::{IndexInfo, IndexState};
use proto::rpc::command::Command;

use super::heartbeats::{Heartbeats, SILENT_MS_MAX, readable};
use super::promotions::Promotions;
use crate::state::StateContext;

/// A new generation has applied what was published so long ago. Nodes report once a second.
const BEHIND_MS_MAX: u64 = 1_500;

/// Returns a command for each index whose build is complete: each slice is readable on some node, and no live copy is
/// behind.
pub(super) fn ready_indexes(
    state: &StateContext,
    heartbeats: &Heartbeats,
    promotions: &Promotions,
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
    let can_take_over = |index: &IndexInfo| {
        let floor = heartbeats.common_floor(index);
        let applied = heartbeats.servable(index);
        let bucket = state.bucket(index.bucket).map(|bucket| &bucket.info);
        let published = promotions.published_at(index.bucket, now_ms.saturating_sub(BEHIND_MS_MAX));
        bucket.is_some_and(|bucket| bucket.rollback.is_none())
            && floor.is_some_and(|floor| floor <= applied)
            && published.is_some_and(|published| published <= applied)
    };
    let may_serve = |index: &IndexInfo| state.serving(index.id).is_none() || can_take_over(index);
    state
        .indexes()
        .map(|record| &record.info)
        .filter(|index| index.state == IndexState::Backfill && is_ready(index) && may_serve(index))
        .map(|index| Command::IndexReady { index: index.id, generation: index.generation })
        .collect()
}
