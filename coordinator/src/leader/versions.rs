//! Carries the versions of data sets through their lives ([`proto::model::data_set`]).
//!
//! - A version that is complete gets a generation of each index that serves. When all of these can take the place of the generations that
//!   serve ([`super::builds`]), the version becomes current in one command.
//! - A version that is kept goes when nobody has asked for it during the idle time. Whoever may ask for it has chosen it by a catalog from
//!   before the switch, and each lease of a scan, a transaction or a token has the number of that catalog: the heartbeat of a router tells the
//!   oldest (`Heartbeat::reads_since`). As long as one is from before the switch, the time begins anew. A new leader begins anew as well.
//! - A partition whose owner is silent is given to another holder.

use std::collections::BTreeMap;

use proto::model::assignment::VbucketAssignment;
use proto::model::data_set::{DataSet, Version, VersionStage};
use proto::model::ids::{BucketId, NodeId, VbucketId};
use proto::model::index::{GENERATIONS_MAX, IndexState};
use proto::model::node::Role;
use proto::rpc::command::Command;

use super::builds::Builds;
use super::heartbeats::{Heartbeats, SILENT_MS_MAX};
use super::horizon::{KEEP_WHOLE_MS, LEASE_MS};
use super::plan::Plan;
use super::promotions::Promotions;
use crate::state::StateContext;

/// The time between two looks.
const LOOK_EVERY_MS: u64 = 200;

/// The leader's memory of versions.
#[derive(Debug, Default)]
pub(super) struct Versions {
    looked_ms: Option<u64>,
    kept: BTreeMap<(BucketId, u64), Kept>,
}

/// A version that is kept.
#[derive(Debug)]
struct Kept {
    /// A catalog that shows a newer version as current.
    catalog_cas: u64,
    /// The last time at which somebody could read it.
    asked_ms: u64,
}

impl Versions {
    pub(super) fn plan(
        &mut self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        promotions: &Promotions,
        now_ms: u64,
        plan: &mut Plan,
    ) {
        if state.data_sets().all(|(_, set)| set.versions.is_empty()) {
            self.kept.clear();
            return;
        }
        plan.look_at(now_ms + LOOK_EVERY_MS);
        if self.looked_ms.is_some_and(|looked_ms| now_ms < looked_ms + LOOK_EVERY_MS) {
            return;
        }
        self.looked_ms = Some(now_ms);
        for (id, set) in state.data_sets() {
            if let Some((number, version)) = set.loading().filter(|(_, v)| state.is_published(v)) {
                let builds = Builds::new(state, heartbeats, promotions, now_ms);
                plan.commands.extend(next_step(state, &builds, (id, number, version)));
            }
            for version in set.versions.values() {
                plan.commands.extend(new_owners(state, heartbeats, version, now_ms));
            }
        }
        self.drop_idle(state, heartbeats, now_ms, plan);
    }

    /// Plans to drop the versions that nobody has asked for during their idle time.
    fn drop_idle(
        &mut self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        now_ms: u64,
        plan: &mut Plan,
    ) {
        let kept_of = |(id, set): (BucketId, &DataSet)| {
            let kept = set.versions.iter().filter(|(_, v)| v.stage == VersionStage::Kept);
            kept.map(|(number, v)| ((id, *number), (v.bucket, set.idle_ms))).collect::<Vec<_>>()
        };
        let kept: BTreeMap<_, _> = state.data_sets().flat_map(kept_of).collect();
        self.kept.retain(|version, _| kept.contains_key(version));
        if kept.is_empty() {
            return;
        }
        for ((data_set, version), (bucket, idle_ms)) in kept {
            let fresh = Kept { catalog_cas: state.catalog_cas(), asked_ms: now_ms };
            let seen = self.kept.entry((data_set, version)).or_insert(fresh);
            if is_asked(state, heartbeats, (bucket, seen.catalog_cas), now_ms) {
                seen.asked_ms = now_ms;
            }
            // A statement that has chosen the version has some seconds to come to its router.
            if now_ms.saturating_sub(seen.asked_ms) >= idle_ms.max(KEEP_WHOLE_MS) {
                plan.commands.push(Command::DropVersion { data_set, version });
            }
        }
    }
}

/// True if somebody may read a version whose successor a catalog shows.
fn is_asked(
    state: &StateContext,
    heartbeats: &Heartbeats,
    (bucket, catalog_cas): (BucketId, u64),
    now_ms: u64,
) -> bool {
    if heartbeats.term_ms(now_ms) < LEASE_MS || heartbeats.leases(bucket, now_ms).next().is_some() {
        return true;
    }
    let mut routers = state.nodes().filter(|node| node.role == Role::Router);
    routers.any(|router| {
        let last = heartbeats.nodes.get(&router.id);
        let is_past = last.is_some_and(|last| last.heartbeat.reads_since >= catalog_cas);
        !is_past && heartbeats.silent_ms(router.id, now_ms) < LEASE_MS
    })
}

/// The next command of a version whose epoch is published: it builds the generations that lack, or switches to them.
fn next_step(
    state: &StateContext,
    builds: &Builds<'_>,
    (data_set, number, version): (BucketId, u64, &Version),
) -> Vec<Command> {
    let from = state.current_bucket(data_set);
    let of_set = state.indexes().map(|record| &record.info);
    let of_set = of_set.filter(|info| info.bucket == from && info.state != IndexState::Retired);
    let (mut missing, mut is_ready) = (Vec::new(), true);
    for info in of_set.filter(|info| info.state != IndexState::Pending) {
        let all = state.indexes().map(|record| &record.info).filter(|of| of.id == info.id);
        let all: Vec<_> = all.collect();
        let next = all.iter().find(|next| next.bucket == version.bucket);
        is_ready &= next.is_some_and(|next| builds.is_ready(next) && builds.can_take_over(next));
        let is_built = all.iter().any(|other| other.state == IndexState::Backfill);
        if next.is_none() && !is_built && all.len() < GENERATIONS_MAX {
            let build = Command::BuildVersion { from: info.local_id(), bucket: version.bucket };
            missing.push(builds.avoiding_silent(build));
        }
    }
    match is_ready {
        true => vec![Command::SwitchVersion { data_set, version: number }],
        false => missing,
    }
}

/// Gives the partitions of silent owners to other holders.
fn new_owners(
    state: &StateContext,
    heartbeats: &Heartbeats,
    version: &Version,
    now_ms: u64,
) -> Option<Command> {
    let assignment: &VbucketAssignment = &state.bucket(version.bucket)?.info.assignment;
    let is_silent = |node: NodeId| heartbeats.silent_ms(node, now_ms) >= SILENT_MS_MAX;
    let next = |partition: VbucketId| {
        let owner = assignment.owner(partition)?;
        let mut holders = version.holders(partition).iter().copied();
        let other = holders.find(|node| heartbeats.is_alive(*node, now_ms));
        other.filter(|other| is_silent(owner) && *other != owner).map(|other| (partition, other))
    };
    let partitions = (0..version.partitions.len() as u16).map(VbucketId);
    let owners: Vec<_> = partitions.filter_map(next).collect();
    (!owners.is_empty()).then_some(Command::OwnPartitions { bucket: version.bucket, owners })
}

#[cfg(test)]
#[path = "versions_tests.rs"]
mod tests;
