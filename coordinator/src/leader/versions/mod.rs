//! Plans for versions of data sets ([`proto::model::data_set`]), from the loaded version to its
//! removal.
//!
//! - A version that is complete gets a generation of each index that serves, or that is first
//!   built over the current version. When all of these can replace the serving ones
//!   ([`crate::leader::generations`]), and no projector is still loading its partitions
//!   ([`crate::leader::versions::waits`]), the version becomes current in one command. First
//!   builds that are not complete by then are abandoned, so a first build never delays a version.
//!   Another build of an index (ALTER INDEX) delays the version. The exception is a build over a
//!   current version that has lost a partition, which the build would miss for ever: it is
//!   restarted over the new version. A build that is refused is proposed again after a pause that
//!   grows.
//! - An older version is dropped when it had no reader during the idle time. A reader of the
//!   version chose it by a catalog from before the switch, and each lease of a scan, a
//!   transaction or a token has the number of that catalog. The heartbeat of a router reports the
//!   oldest number (`RouterReport::reads_since`). While one of these catalogs is from before the
//!   switch, the idle time restarts. It also restarts with a new leader. A version of which no
//!   lease was ever reported has no token that could continue on it, so it is dropped without the
//!   idle time.
//! - A partition whose owner is silent is given to another projector that has loaded it.
//!
//! A version waits until `CANCEL VERSION` if a partition was loaded by a single projector that is
//! dead.

pub mod waits;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto::Error;
use proto::model::assignment::VbucketAssignment;
use proto::model::data_set::{DataSet, Version, VersionStage};
use proto::model::ids::{BucketId, IndexId, NodeId, VbucketId};
use proto::model::index::{GENERATIONS_MAX, IndexInfo, IndexState};
use proto::model::node::Role;
use proto::rpc::command::{
    BuildVersion, ChangePartitionOwners, Command, DropVersion, SwitchVersion,
};

use crate::leader::check_timer::CheckTimer;
use crate::leader::epochs::Promotions;
use crate::leader::epochs::horizon::{KEEP_WHOLE_MS, LEASE_AGE_MS_MAX, LEASE_MS};
use crate::leader::generations::Builds;
use crate::leader::nodes::heartbeats::{Heartbeats, SILENT_MS_MAX};
use crate::leader::plan::Plan;
use crate::leader::versions::waits::{
    LateProjector, Loads, late_projector_texts, late_projectors, shortened,
};
use crate::state::StateContext;

/// The interval between two checks, in ms.
const LOOK_EVERY_MS: u64 = 200;

/// The first and the longest pause, in ms, before a refused build is proposed again.
const PAUSES_MS: (u64, u64) = (1_000, 60_000);

/// The leader's memory of versions.
#[derive(Debug, Default)]
pub(in crate::leader) struct Versions {
    looks: CheckTimer<LOOK_EVERY_MS>,
    kept: BTreeMap<(BucketId, u64), RetainedVersion>,
    /// The versions that no router has reported a lease of, and that this leader knows since they
    /// were loading.
    unread: BTreeSet<(BucketId, u64)>,
    /// The proposals of each build, by the version's bucket and the index.
    builds: BTreeMap<(BucketId, IndexId), BuildProposals>,
    loads: Loads,
}

/// The proposals of one build so far.
#[derive(Debug, Default)]
struct BuildProposals {
    count: u32,
    /// The time of the next proposal.
    next_ms: u64,
    /// The reason why the last proposal was refused.
    refused: Option<String>,
}

impl BuildProposals {
    /// Returns true if the build may be proposed now, and starts the pause until the next
    /// proposal.
    fn is_due(&mut self, now_ms: u64) -> bool {
        if now_ms < self.next_ms {
            return false;
        }
        let (first, longest) = PAUSES_MS;
        self.next_ms = now_ms + (first << self.count.min(16)).min(longest);
        self.count += 1;
        true
    }
}

/// A version that was current, which is retained as long as it has readers.
#[derive(Debug)]
struct RetainedVersion {
    /// A catalog in which a newer version is current.
    catalog_cas: u64,
    since_ms: u64,
    /// The last time at which the version may have had a reader, in ms.
    asked_ms: u64,
}

impl Versions {
    pub(in crate::leader) fn plan(
        &mut self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        promotions: &Promotions,
        now_ms: u64,
        plan: &mut Plan,
    ) {
        if state.data_sets().all(|(_, set)| set.versions.is_empty()) {
            *self = Self::default();
            return;
        }
        if !self.looks.is_due_in(plan, now_ms) {
            return;
        }
        self.loads.record_progress(state, heartbeats, now_ms);
        let loading = state.data_sets().filter_map(|(_, set)| set.loading());
        let loading: BTreeSet<BucketId> = loading.map(|(_, version)| version.bucket).collect();
        self.builds.retain(|(bucket, _), _| loading.contains(bucket));
        for (id, set) in state.data_sets() {
            if let Some((number, version)) = set.loading().filter(|(_, v)| state.is_published(v)) {
                let builds = Builds::new(state, heartbeats, promotions, now_ms);
                let (missing, is_ready) =
                    self.missing_builds(state, &builds, (id, version), now_ms);
                plan.commands.extend(missing);
                let is_awaited =
                    |late: &LateProjector| self.loads.is_awaited(version.bucket, late, now_ms);
                if is_ready
                    && !late_projectors(state, heartbeats, (set, version), now_ms)
                        .iter()
                        .any(is_awaited)
                {
                    plan.commands.push(Command::SwitchVersion(SwitchVersion {
                        data_set: id,
                        version: number,
                    }));
                }
            }
            for version in set.versions.values() {
                plan.commands.extend(new_owners(state, heartbeats, version, now_ms));
            }
        }
        self.note_readers(state, heartbeats, now_ms);
        self.drop_idle(state, heartbeats, now_ms, plan);
    }

    /// Records which versions routers have read: those that are still loading or had no lease so
    /// far stay unread.
    fn note_readers(&mut self, state: &StateContext, heartbeats: &Heartbeats, now_ms: u64) {
        let mut unread = BTreeSet::new();
        for (id, set) in state.data_sets() {
            for (number, version) in &set.versions {
                let is_read = || heartbeats.leases(version.bucket, now_ms).next().is_some();
                let is_unread = self.unread.contains(&(id, *number)) && !is_read();
                if version.stage == VersionStage::Loading || is_unread {
                    unread.insert((id, *number));
                }
            }
        }
        self.unread = unread;
    }

    /// Returns the commands for missing builds of a version whose partitions are all loaded. Also
    /// returns true if the generations of all indexes can take over.
    fn missing_builds(
        &mut self,
        state: &StateContext,
        builds: &Builds<'_>,
        (data_set, version): (BucketId, &Version),
        now_ms: u64,
    ) -> (Vec<Command>, bool) {
        let (mut missing, mut is_ready) = (Vec::new(), true);
        for (info, all) in generations(state, data_set) {
            let next = all.iter().find(|next| next.bucket == version.bucket);
            is_ready &=
                next.is_some_and(|next| builds.is_ready(next) && builds.can_take_over(next));
            if next.is_some() {
                self.builds.remove(&(version.bucket, info.id));
            } else if build_blocker(state, data_set, (info, &all)).is_none()
                && self.builds.entry((version.bucket, info.id)).or_default().is_due(now_ms)
            {
                let build = Command::BuildVersion(BuildVersion {
                    from: info.local_id(),
                    bucket: version.bucket,
                });
                missing.push(build);
            }
        }
        (missing, is_ready)
    }

    /// Records that a command was refused, to report the reason while its build waits.
    pub(in crate::leader) fn record_refusal(&mut self, command: &Command, error: &Error) {
        if let Command::BuildVersion(BuildVersion { from, bucket }) = command {
            let tries = self.builds.entry((*bucket, from.index)).or_default();
            tries.refused = Some(error.message.clone());
        }
    }

    /// Returns the reasons why a version is not current yet, or why projectors still lack
    /// partitions of it, by the versions' buckets.
    pub(in crate::leader) fn wait_reasons(
        &self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        now_ms: u64,
    ) -> Vec<(BucketId, String)> {
        let mut waits = Vec::new();
        for (id, set) in state.data_sets() {
            for version in set.versions.values().filter(|v| v.stage != VersionStage::Kept) {
                let mut why = late_projector_texts(&late_projectors(
                    state,
                    heartbeats,
                    (set, version),
                    now_ms,
                ));
                if version.stage == VersionStage::Loading && state.is_published(version) {
                    why.extend(self.waiting_builds(state, (id, version)));
                }
                if !why.is_empty() {
                    waits.push((version.bucket, shortened(&why.join("; "))));
                }
            }
        }
        waits
    }

    /// Returns the reasons why builds of a version have not begun.
    fn waiting_builds(
        &self,
        state: &StateContext,
        (data_set, version): (BucketId, &Version),
    ) -> Vec<String> {
        let why = |(info, all): (&IndexInfo, Vec<&Arc<IndexInfo>>)| {
            if all.iter().any(|next| next.bucket == version.bucket) {
                return None;
            }
            let tries = self.builds.get(&(version.bucket, info.id));
            let refused = || tries.and_then(|tries| tries.refused.clone());
            let why = build_blocker(state, data_set, (info, &all)).or_else(refused)?;
            Some(format!("index \"{}\" is not built yet: {why}", info.spec.name))
        };
        generations(state, data_set).into_iter().filter_map(why).collect()
    }

    /// Plans to drop the versions that had no reader during their idle time.
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
            let fresh = RetainedVersion {
                catalog_cas: state.catalog_cas(),
                since_ms: now_ms,
                asked_ms: now_ms,
            };
            let seen = self.kept.entry((data_set, version)).or_insert(fresh);
            // A scan or a transaction from before the switch holds a version for as long as it would hold a retired generation.
            let is_held = now_ms.saturating_sub(seen.since_ms) < LEASE_AGE_MS_MAX + LEASE_MS;
            if is_held && may_have_reader(state, heartbeats, (bucket, seen.catalog_cas), now_ms) {
                seen.asked_ms = now_ms;
            }
            let idle_ms = if self.unread.contains(&(data_set, version)) { 0 } else { idle_ms };
            // A statement that has chosen the version has some seconds to come to its router.
            if now_ms.saturating_sub(seen.asked_ms) >= idle_ms.max(KEEP_WHOLE_MS) {
                plan.commands.push(Command::DropVersion(DropVersion { data_set, version }));
            }
        }
    }
}

/// Returns true if a router may still read a version. `catalog_cas` is the catalog in which a
/// newer version became current.
fn may_have_reader(
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
        let last = heartbeats.router(router.id);
        let is_past = last.is_some_and(|last| last.reads_since >= catalog_cas);
        !is_past && heartbeats.silent_ms(router.id, now_ms) < LEASE_MS
    })
}

/// Returns the indexes of a data set that serve or are being built, each with all of its
/// generations.
fn generations(
    state: &StateContext,
    data_set: BucketId,
) -> Vec<(&IndexInfo, Vec<&Arc<IndexInfo>>)> {
    let from = state.current_bucket(data_set);
    let is_begun = |info: &&Arc<IndexInfo>| {
        info.bucket == from && matches!(info.state, IndexState::Maintenance | IndexState::Backfill)
    };
    let named = state.named_indexes().map(|record| &record.info).filter(is_begun);
    let all = || state.indexes().map(|record| &record.info);
    named.map(|info| (&**info, all().filter(|of| of.id == info.id).collect())).collect()
}

/// Returns the reason why no generation of an index can be begun now; `None` if one can. A
/// generation from before the first version of the data set has no entries, so it does not count
/// towards the limit of generations.
fn build_blocker(
    state: &StateContext,
    data_set: BucketId,
    (info, all): (&IndexInfo, &[&Arc<IndexInfo>]),
) -> Option<String> {
    let mut beside = all.iter().filter(|other| other.local_id() != info.local_id());
    let built = beside.find(|other| other.state == IndexState::Backfill);
    let is_replaced = built.is_some_and(|other| state.waits_for_lost_partition(other));
    if built.is_some() && !is_replaced {
        let name = &info.spec.name;
        return Some(format!("another build of it is running; CANCEL BUILD {name} ends that"));
    }
    let counted = all.iter().filter(|other| other.bucket != data_set).count();
    (counted - usize::from(is_replaced) >= GENERATIONS_MAX).then(|| {
        let minutes = LEASE_AGE_MS_MAX / 60_000;
        format!(
            "it has {GENERATIONS_MAX} generations that scans, transactions or tokens may still read; one goes when these have ended, after {minutes} minutes at the latest, or with its version"
        )
    })
}

/// Returns the command that gives the partitions of silent owners to other projectors that have
/// loaded them; `None` if there are none.
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
    (!owners.is_empty()).then_some(Command::ChangePartitionOwners(ChangePartitionOwners {
        bucket: version.bucket,
        owners,
    }))
}

#[cfg(test)]
mod tests;
