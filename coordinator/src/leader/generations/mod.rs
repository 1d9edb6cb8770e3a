//! Finds the builds of generations that are complete.
//!
//! A new generation may replace the serving one under three conditions. First, some epoch can be
//! read in all of its slices: the newest epoch that all slices have applied is at or above their
//! floors (the oldest readable epochs). Second, that epoch is only slightly older than the newest
//! published one (`BEHIND_MS_MAX`), so that no session waits long for an epoch that it has
//! already read. Third, the bucket is not being rolled back, since the serving generation may
//! then be the better one.

pub mod growth;
pub mod retired;
pub mod splits;

use std::collections::BTreeSet;

use proto::model::ids::{NodeId, SliceId, SliceNo};
use proto::model::index::{IndexInfo, IndexState};
use proto::plant::{self, Plant};
use proto::rpc::command::{Command, IndexReady};

use crate::leader::epochs::Promotions;
use crate::leader::nodes::heartbeats::{Heartbeats, SILENT_MS_MAX};
use crate::state::StateContext;

/// The longest lag of a new generation that may begin to serve, in ms. Nodes report once per
/// second.
const BEHIND_MS_MAX: u64 = 1_500;

/// The progress of builds, according to the last heartbeats of the nodes.
pub(in crate::leader) struct Builds<'a> {
    state: &'a StateContext,
    heartbeats: &'a Heartbeats,
    promotions: &'a Promotions,
    now_ms: u64,
    readable: BTreeSet<(NodeId, SliceId)>,
}

impl<'a> Builds<'a> {
    pub(in crate::leader) fn new(
        state: &'a StateContext,
        heartbeats: &'a Heartbeats,
        promotions: &'a Promotions,
        now_ms: u64,
    ) -> Self {
        Self {
            state,
            heartbeats,
            promotions,
            now_ms,
            readable: heartbeats.readable_slices().collect(),
        }
    }

    /// Returns true if each slice of a generation is readable: on some node, and on all of its
    /// nodes that are alive.
    pub(in crate::leader) fn is_ready(&self, index: &IndexInfo) -> bool {
        // A node that has not reported to the new leader yet may be alive.
        let lives = |node: &&NodeId| self.heartbeats.silent_ms(**node, self.now_ms) < SILENT_MS_MAX;
        let is_ready = |(n, nodes): (usize, &Vec<NodeId>)| {
            let slice = index.local_id().slice(SliceNo(n as u16));
            let reads = |node: &&NodeId| self.readable.contains(&(**node, slice));
            nodes.iter().any(|node| reads(&node))
                && nodes.iter().filter(lives).all(|node| reads(&node))
        };
        let mut slices = index.topology.placement.iter().enumerate();
        match plant::is(Plant::ReadyInPart) {
            true => slices.any(is_ready),
            false => slices.all(is_ready),
        }
    }

    /// Returns true if a generation can replace the serving one.
    pub(in crate::leader) fn can_take_over(&self, index: &IndexInfo) -> bool {
        let floor = self.heartbeats.common_floor(index);
        let applied = self.heartbeats.newest_servable_epoch(index);
        let bucket = self.state.bucket(index.bucket).map(|bucket| bucket.info);
        let at_ms = self.now_ms.saturating_sub(BEHIND_MS_MAX);
        let published = self.promotions.published_at(index.bucket, at_ms);
        bucket.is_some_and(|bucket| bucket.rollback.is_none())
            && floor.is_some_and(|floor| floor <= applied)
            && published.is_some_and(|published| published <= applied)
    }
}

/// Returns the commands that let complete builds serve. The generations of a version of a data
/// set are switched together elsewhere ([`crate::leader::versions`]).
pub(in crate::leader) fn ready_indexes(
    state: &StateContext,
    heartbeats: &Heartbeats,
    promotions: &Promotions,
    now_ms: u64,
) -> Vec<Command> {
    // Hundreds of indexers report their slices in each second.
    if !state.indexes().any(|record| record.info.state == IndexState::Backfill) {
        return Vec::new();
    }
    let builds = Builds::new(state, heartbeats, promotions, now_ms);
    let may_serve = |index: &IndexInfo| {
        let is_first = state.serving(index.id).is_none();
        !state.is_of_next_version(index) && (is_first || builds.can_take_over(index))
    };
    state
        .indexes()
        .map(|record| &record.info)
        .filter(|index| {
            index.state == IndexState::Backfill && builds.is_ready(index) && may_serve(index)
        })
        .map(|index| {
            Command::IndexReady(IndexReady { index: index.id, generation: index.generation })
        })
        .collect()
}
