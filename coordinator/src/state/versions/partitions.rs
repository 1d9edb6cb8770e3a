//! The partitions of versions: the reports of projectors, the owners of partitions, and the epoch
//! of a complete version.
//!
//! The projectors that have loaded a partition are its *holders*. They all have the same
//! documents, so any of them may own it: the owner streams the partition to indexers, and is the
//! first to be asked for documents. Before the load the owner is the projector that will load the
//! partition, afterwards always a holder.

use std::collections::BTreeMap;

use proto::model::assignment::VbucketAssignment;
use proto::model::data_set::{FailedVersion, FilesRead, PartitionContent, Version, VersionStage};
use proto::model::ids::{BucketId, NodeId, VbucketId};
use proto::model::node::Role;
use proto::rpc::command::{
    ChangePartitionOwners, Outcome, PartitionsLoaded, PartitionsLost, VersionFailed,
};
use proto::{Error, ErrorCode, Result};

use crate::state::capacity::limits::longest_prefix;
use crate::state::consequence::Consequence;
use crate::state::context::StateContext;
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, Effect, catalog_changed, nothing};
use crate::state::versions::queries::partition_ends;
use crate::state::versions::removal::remove_version;

/// The length limit of the reason why a version failed, in bytes.
const WHY_BYTES_MAX: usize = 1_024;

fn bad(what: String) -> Error {
    Error::new(ErrorCode::InvalidParameter, what)
}

impl Apply for PartitionsLoaded {
    /// Records partitions that a projector has loaded. The last one completes the version.
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let (bucket, node) = (self.bucket, self.node);
        // The version may have been cancelled or dropped.
        let Some(version) = state.versions.version(bucket) else { return nothing() };
        let is_loading = version.stage == VersionStage::Loading;
        match report_contradiction(state, version, self)? {
            Some(why) if is_loading => return fail(state, bucket, why),
            Some(why) => return Err(bad(why)),
            None => {}
        }
        let Some(version) = state.versions.version_mut(bucket) else { return nothing() };
        let mut is_changed = false;
        for (partition, content) in &self.partitions {
            let known = &mut version.partitions[usize::from(partition.0)];
            known.content = Some(*content);
            if let Err(at) = known.holders.binary_search(&node) {
                known.holders.insert(at, node);
                is_changed = true;
            }
        }
        if !is_changed {
            return nothing();
        }
        if let Some(read) = self.read.filter(|_| is_loading) {
            state.versions.record_files_read(bucket, (node, read));
        }
        assign_owners_to_holders(state, bucket);
        let mut effects = vec![Effect::CatalogChanged];
        if let Some(ends) = state.versions.version(bucket).and_then(partition_ends) {
            effects.extend(state.carry_out(&Consequence::VersionLoaded { bucket, ends }));
        }
        Ok((Outcome::Done, effects))
    }
}

/// Returns the reason why a report of loaded partitions contradicts the known facts of the
/// version; `None` if it does not.
fn report_contradiction(
    state: &StateContext,
    version: &Version,
    report: &PartitionsLoaded,
) -> Result<Option<String>> {
    let PartitionsLoaded { bucket, node, partitions, read } = report;
    let known = state.versions.version_of(*bucket).and_then(|(id, _)| state.versions.get(id));
    let Some(set) = known else { return Ok(None) };
    let mine = version.partitions_of(*node, set.replication);
    if let Some((stranger, _)) = partitions.iter().find(|(p, _)| !mine.contains(p)) {
        let name = &version.name;
        let what = format!("partition {stranger} of version '{name}' is not projector {node}'s");
        return Err(bad(what));
    }
    if let Some(differs) = differing_partition(version, partitions) {
        return Ok(Some(format!(
            "partition {differs} has other documents on projector {node} than on projector {}: the files have changed, or differ between the projectors",
            version.holders(differs).first().copied().unwrap_or_default()
        )));
    }
    let Some(read) = read.filter(|_| version.stage == VersionStage::Loading) else {
        return Ok(None);
    };
    let first = state.versions.files_read(*bucket);
    if let Some(first) = first.filter(|(_, first)| !first.has_same_rows(&read)) {
        return Ok(Some(differing_files(first, (*node, read))));
    }
    let serves = set.current().filter(|_| read.rows == 0);
    let serves = serves.filter(|_| !state.versions.may_be_empty(*bucket));
    Ok(serves.map(|(_, serves)| {
        format!(
            "the files have no rows, and version '{}' serves on (LOAD VERSION … WITH (allow_empty) puts no documents in its place)",
            serves.name
        )
    }))
}

impl Apply for PartitionsLost {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let Some(version) = state.versions.version_mut(self.bucket) else { return nothing() };
        let mut is_changed = false;
        for partition in &self.partitions {
            if let Some(known) = version.partitions.get_mut(usize::from(partition.0)) {
                let before = known.holders.len();
                known.holders.retain(|holder| *holder != self.node);
                is_changed |= known.holders.len() < before;
            }
        }
        if !is_changed {
            return nothing();
        }
        assign_owners_to_holders(state, self.bucket);
        catalog_changed()
    }
}

impl Apply for VersionFailed {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let Self { bucket, node, error } = self;
        let Some(version) = state.versions.version(*bucket) else { return nothing() };
        // A version that is complete does not need this projector: it serves with the other projectors, and SHOW VERSIONS shows the report.
        if version.stage != VersionStage::Loading
            || version.is_complete()
            || !version.nodes.contains(node)
        {
            return nothing();
        }
        let hint = error.hint.as_ref().map_or_else(String::new, |hint| format!(" ({hint})"));
        fail(state, *bucket, format!("projector {node}: {}{hint}", error.message))
    }
}

/// Removes a version that cannot be loaded, and records the reason.
fn fail(state: &mut StateContext, bucket: BucketId, mut why: String) -> Change {
    why.truncate(longest_prefix(&why, WHY_BYTES_MAX).len());
    let Some((id, number)) = state.versions.version_of(bucket) else { return nothing() };
    let Some(set) = state.versions.get_mut(id) else { return nothing() };
    let name = set.versions.get(&number).map(|version| version.name.clone());
    set.failed = name.map(|name| FailedVersion { number, name, why });
    remove_version(state, id, number)
}

impl Apply for ChangePartitionOwners {
    /// Makes other holders the owners of partitions.
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let Some(version) = state.versions.version(self.bucket) else { return nothing() };
        let possible =
            |(partition, node): &&(VbucketId, NodeId)| version.holders(*partition).contains(node);
        let owners: BTreeMap<_, _> = self.owners.iter().filter(possible).copied().collect();
        match set_owners(state, self.bucket, |partition, _| owners.get(&partition).copied()) {
            true => catalog_changed(),
            false => nothing(),
        }
    }
}

/// Gives each partition whose owner has not loaded it to a holder (a projector that has loaded
/// it).
fn assign_owners_to_holders(state: &mut StateContext, bucket: BucketId) {
    let Some(version) = state.versions.version(bucket).cloned() else { return };
    set_owners(state, bucket, |partition, owner| {
        let holders = version.holders(partition);
        holders.first().copied().filter(|_| !holders.contains(&owner))
    });
}

/// Changes the owners of partitions: `next` returns the new owner, or `None` to leave it. Returns
/// true if any owner has changed.
fn set_owners(
    state: &mut StateContext,
    bucket: BucketId,
    next: impl Fn(VbucketId, NodeId) -> Option<NodeId>,
) -> bool {
    let Some(info) = state.buckets.get(bucket) else { return false };
    let owner = |partition| {
        let owner = info.assignment.owner(partition).unwrap_or_default();
        next(partition, owner).unwrap_or(owner)
    };
    let owners = (0..info.vbuckets).map(VbucketId).map(owner).collect();
    let assignment = VbucketAssignment::of_owners(owners);
    if *info.assignment == assignment {
        return false;
    }
    state.carry_out(&Consequence::Assigned { bucket, assignment });
    true
}

/// Checks that a projector may be removed: it loads no version, and each of its partitions is
/// also on another projector.
pub(in crate::state) fn check_versions_without(state: &StateContext, node: NodeId) -> Result<()> {
    for (id, set) in state.versions.sets() {
        let name = state.buckets.name(*id);
        for version in set.versions.values() {
            if version.stage == VersionStage::Loading && version.nodes.contains(&node) {
                let what =
                    format!("node {node} loads version '{}' of bucket \"{name}\"", version.name);
                return Err(bad(what)
                    .with_hint("wait until it is complete, or use ALTER BUCKET … CANCEL VERSION"));
            }
            if version.partitions.iter().any(|partition| partition.holders == [node]) {
                let what = format!(
                    "node {node} has the only copy of a partition of version '{}' of bucket \"{name}\"",
                    version.name
                );
                return Err(bad(what).with_hint(
                    "load the next version without it (stop its process first), or use DROP BUCKET",
                ));
            }
        }
    }
    Ok(())
}

/// Gives the partitions of a removed projector to other projectors that have loaded them. Call
/// [`check_versions_without`] first.
pub(in crate::state) fn give_partitions_away(state: &mut StateContext, node: NodeId) {
    let sets = state.versions.sets().values();
    let versions = sets.flat_map(|set| set.versions.values());
    let versions: Vec<BucketId> = versions.map(|version| version.bucket).collect();
    versions.into_iter().for_each(|bucket| assign_owners_to_holders(state, bucket));
    // The bucket of the data set itself has no documents.
    let other = state.nodes.of_role(Role::Projector).map(|other| other.id).find(|id| *id != node);
    if let Some(other) = other {
        let sets: Vec<BucketId> = state.versions.sets().keys().copied().collect();
        for id in sets {
            set_owners(state, id, |_, owner| (owner == node).then_some(other));
        }
    }
}

/// Returns the first of these partitions of which another projector has loaded different
/// documents; `None` if there is none.
fn differing_partition(
    version: &Version,
    partitions: &[(VbucketId, PartitionContent)],
) -> Option<VbucketId> {
    let differs = |(partition, content): &&(VbucketId, PartitionContent)| {
        let known = version.partitions[usize::from(partition.0)].content;
        known.is_some_and(|known| known != *content)
    };
    partitions.iter().find(differs).map(|(partition, _)| *partition)
}

/// Returns the text about two projectors that have read different rows.
fn differing_files(
    (first, known): (NodeId, FilesRead),
    (second, read): (NodeId, FilesRead),
) -> String {
    format!(
        "projector {second} has read other rows than projector {first}: {} rows of {} files, and {} rows of {} files; the files differ between the projectors, or have changed",
        read.rows, read.files, known.rows, known.files
    )
}
