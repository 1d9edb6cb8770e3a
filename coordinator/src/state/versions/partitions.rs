//! The partitions of versions: the reports of projectors, their owners, and the epoch of a complete version.
//!
//! The holders of a partition all have the same documents, so any of them may own it: the owner streams the partition to indexers, and is
//! the first to be asked for documents. Before the load the owner is the projector that is to load the partition, afterwards always a
//! holder.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::assignment::VbucketAssignment;
use proto::model::cut::Position;
use proto::model::data_set::{
    FailedVersion, FilesRead, Partition, PartitionContent, Version, VersionStage,
    branch_of_partition,
};
use proto::model::history::FailoverLogs;
use proto::model::ids::{BucketId, Epoch, NodeId, Seqno, VbucketId};
use proto::model::node::Role;
use proto::plant::{self, Plant};
use proto::rpc::command::{Outcome, Promotion};
use proto::{Error, ErrorCode, Result};

use crate::state::capacity::limits::beginning;
use crate::state::context::StateContext;
use crate::state::effect::{Change, Effect, catalog_changed, nothing};

/// The length limit of the reason why a version failed.
const WHY_BYTES_MAX: usize = 1_024;

fn bad(what: String) -> Error {
    Error::new(ErrorCode::InvalidParameter, what)
}
impl StateContext {
    /// Records partitions that a projector has loaded. The last one completes the version.
    pub(in crate::state) fn partitions_loaded(
        &mut self,
        bucket: BucketId,
        node: NodeId,
        partitions: &[(VbucketId, PartitionContent)],
        read: Option<FilesRead>,
    ) -> Change {
        // The version may have been cancelled or dropped.
        let Some((id, number)) = self.version_of(bucket) else { return nothing() };
        let Some(set) = self.data_sets.get_mut(&id) else { return nothing() };
        let replication = set.replication;
        let Some(version) = set.versions.get_mut(&number) else { return nothing() };
        let mine = version.partitions_of(node, replication);
        if let Some((stranger, _)) = partitions.iter().find(|(p, _)| !mine.contains(p)) {
            let what = format!(
                "partition {stranger} of version '{}' is not projector {node}'s",
                version.name
            );
            return Err(bad(what));
        }
        if let Some(differs) = differing(version, partitions) {
            let why = format!(
                "partition {differs} has other documents on projector {node} than on projector {}: the files have changed, or differ between the projectors",
                version.holders(differs).first().copied().unwrap_or_default()
            );
            return match version.stage {
                VersionStage::Loading => self.fail(id, number, why),
                _ => Err(bad(why)),
            };
        }
        let is_loading = version.stage == VersionStage::Loading;
        if let Some(read) = read.filter(|_| is_loading) {
            let known = self.files_read.get(&bucket);
            if let Some(known) = known.filter(|(_, known)| !known.has_same_rows(&read)) {
                let why = differing_files(*known, (node, read));
                return self.fail(id, number, why);
            }
        }
        if is_loading
            && read.is_some_and(|read| read.rows == 0)
            && !self.empty_allowed.contains(&bucket)
            && let Some((_, serves)) = set.current()
        {
            let why = format!(
                "the files have no rows, and version '{}' serves on (LOAD VERSION … WITH (allow_empty) puts no documents in its place)",
                serves.name
            );
            return self.fail(id, number, why);
        }
        let Some(version) = set.versions.get_mut(&number) else { return nothing() };
        let mut is_changed = false;
        for (partition, content) in partitions {
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
        if let Some(read) = read.filter(|_| is_loading) {
            self.files_read.entry(bucket).or_insert((node, read));
        }
        let mut effects = vec![Effect::CatalogChanged];
        self.give_to_holders(id, number);
        effects.extend(self.publish_version(id, number));
        Ok((Outcome::Done, effects))
    }

    pub(in crate::state) fn partitions_lost(
        &mut self,
        bucket: BucketId,
        node: NodeId,
        partitions: &[VbucketId],
    ) -> Change {
        let Some((id, number)) = self.version_of(bucket) else { return nothing() };
        let set = self.data_sets.get_mut(&id);
        let Some(version) = set.and_then(|set| set.versions.get_mut(&number)) else {
            return nothing();
        };
        let mut is_changed = false;
        for partition in partitions {
            if let Some(known) = version.partitions.get_mut(usize::from(partition.0)) {
                let before = known.holders.len();
                known.holders.retain(|holder| *holder != node);
                is_changed |= known.holders.len() < before;
            }
        }
        if !is_changed {
            return nothing();
        }
        self.give_to_holders(id, number);
        catalog_changed()
    }

    pub(in crate::state) fn version_failed(
        &mut self,
        bucket: BucketId,
        node: NodeId,
        error: &Error,
    ) -> Change {
        let Some((id, number)) = self.version_of(bucket) else { return nothing() };
        let version = &self.data_sets[&id].versions[&number];
        // A version that is complete does not need this projector: it serves with the other projectors, and SHOW VERSIONS shows the report.
        if version.stage != VersionStage::Loading
            || version.is_complete()
            || !version.nodes.contains(&node)
        {
            return nothing();
        }
        let hint = error.hint.as_ref().map_or_else(String::new, |hint| format!(" ({hint})"));
        self.fail(id, number, format!("projector {node}: {}{hint}", error.message))
    }

    /// Removes a version that cannot be loaded, and remembers why.
    fn fail(&mut self, id: BucketId, number: u64, mut why: String) -> Change {
        why.truncate(beginning(&why, WHY_BYTES_MAX).len());
        let Some(set) = self.data_sets.get_mut(&id) else { return nothing() };
        let name = set.versions.get(&number).map(|version| version.name.clone());
        set.failed = name.map(|name| FailedVersion { number, name, why });
        self.remove_version(id, number)
    }

    /// Makes other holders the owners of partitions.
    pub(in crate::state) fn own_partitions(
        &mut self,
        bucket: BucketId,
        owners: &[(VbucketId, NodeId)],
    ) -> Change {
        let Some((id, number)) = self.version_of(bucket) else { return nothing() };
        let version = &self.data_sets[&id].versions[&number];
        let possible =
            |(partition, node): &&(VbucketId, NodeId)| version.holders(*partition).contains(node);
        let owners: BTreeMap<_, _> = owners.iter().filter(possible).copied().collect();
        match self.set_owners(bucket, |partition, _| owners.get(&partition).copied()) {
            true => catalog_changed(),
            false => nothing(),
        }
    }

    /// Reassigns each partition whose owner does not hold it to a holder.
    fn give_to_holders(&mut self, id: BucketId, number: u64) {
        let version = self.data_sets[&id].versions[&number].clone();
        self.set_owners(version.bucket, |partition, owner| {
            let holders = version.holders(partition);
            holders.first().copied().filter(|_| !holders.contains(&owner))
        });
    }

    /// Changes the owners of partitions. Returns true if any has changed.
    fn set_owners(
        &mut self,
        bucket: BucketId,
        next: impl Fn(VbucketId, NodeId) -> Option<NodeId>,
    ) -> bool {
        let Some(known) = self.buckets.get_mut(&bucket) else { return false };
        let owner = |partition| {
            let owner = known.info.assignment.owner(partition).unwrap_or_default();
            next(partition, owner).unwrap_or(owner)
        };
        let owners = (0..known.info.vbuckets).map(VbucketId).map(owner).collect();
        let assignment = VbucketAssignment::of_owners(owners);
        if *known.info.assignment == assignment {
            return false;
        }
        Arc::make_mut(&mut known.info).assignment = Arc::new(assignment);
        true
    }

    /// Publishes the epoch of a version that is complete.
    fn publish_version(&mut self, id: BucketId, number: u64) -> Option<Effect> {
        let version = &self.data_sets[&id].versions[&number];
        let (bucket, changes) = (version.bucket, end_of(version)?);
        let epochs_max = self.epochs_max();
        let known = self.buckets.get_mut(&bucket)?;
        let branches = (0..known.info.vbuckets)
            .map(|partition| vec![(branch_of_partition(bucket, VbucketId(partition)), 0)]);
        known.logs = Arc::new(FailoverLogs::new(branches.collect()));
        let promotion = Promotion { bucket, changes, horizon: Epoch(1) };
        let mark = known.epochs.promote(&promotion, self.steady_ms, epochs_max).cloned()?;
        self.note_published(bucket);
        Some(Effect::EpochPublished(mark))
    }

    /// True if the epoch of a version is published, and covers all of it.
    pub fn is_published(&self, version: &Version) -> bool {
        let Some(known) = self.buckets.get(&version.bucket) else { return false };
        let cut = &known.epochs.last().cut;
        let is_covered =
            |(partition, position): &(VbucketId, Position)| cut.get(*partition) == *position;
        let end = end_of(version);
        end.map_or(plant::is(Plant::VersionInPart), |end| end.iter().all(is_covered))
    }

    /// Checks that a projector may be removed: it loads no version, and each of its partitions has another holder.
    pub(in crate::state) fn check_versions_without(&self, node: NodeId) -> Result<()> {
        for (id, set) in &self.data_sets {
            let name = self.buckets.get(id).map_or("", |bucket| &bucket.info.name);
            for version in set.versions.values() {
                if version.stage == VersionStage::Loading && version.nodes.contains(&node) {
                    let what = format!(
                        "node {node} loads version '{}' of bucket \"{name}\"",
                        version.name
                    );
                    return Err(bad(what).with_hint(
                        "wait until it is complete, or use ALTER BUCKET … CANCEL VERSION",
                    ));
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

    /// Reassigns the data set partitions that a projector owns to others. [`Self::check_versions_without`] comes first. A version keeps the
    /// list of its projectors, because they all compute their partitions from it.
    pub(in crate::state) fn leave_versions(&mut self, node: NodeId) {
        let mut versions = Vec::new();
        for (id, set) in &mut self.data_sets {
            for (number, version) in &mut set.versions {
                let holders = version.partitions.iter_mut().map(|partition| &mut partition.holders);
                holders.for_each(|holders| holders.retain(|holder| *holder != node));
                versions.push((*id, *number));
            }
        }
        versions.into_iter().for_each(|(id, number)| self.give_to_holders(id, number));
        // The bucket of the data set itself has no documents.
        let others = self.nodes.values().filter(|other| other.role == Role::Projector);
        if let Some(other) = others.map(|other| other.id).find(|other| *other != node) {
            let sets: Vec<BucketId> = self.data_sets.keys().copied().collect();
            for id in sets {
                self.set_owners(id, |_, owner| (owner == node).then_some(other));
            }
        }
    }
}

/// The first partition that another holder has with other documents.
fn differing(version: &Version, partitions: &[(VbucketId, PartitionContent)]) -> Option<VbucketId> {
    let differs = |(partition, content): &&(VbucketId, PartitionContent)| {
        let known = version.partitions[usize::from(partition.0)].content;
        known.is_some_and(|known| known != *content)
    };
    partitions.iter().find(differs).map(|(partition, _)| *partition)
}

/// Says that two projectors have read other rows.
fn differing_files(
    (first, known): (NodeId, FilesRead),
    (second, read): (NodeId, FilesRead),
) -> String {
    format!(
        "projector {second} has read other rows than projector {first}: {} rows of {} files, and {} rows of {} files; the files differ between the projectors, or have changed",
        read.rows, read.files, known.rows, known.files
    )
}

/// The end of each partition that has documents; `None` while a partition is not known.
fn end_of(version: &Version) -> Option<Vec<(VbucketId, Position)>> {
    let end = |(partition, known): (VbucketId, &Partition)| {
        let vbuuid = branch_of_partition(version.bucket, partition);
        Some((partition, Position { vbuuid, seqno: Seqno(known.content?.rows) }))
    };
    let ends: Option<Vec<_>> = (0..).map(VbucketId).zip(&version.partitions).map(end).collect();
    Some(ends?.into_iter().filter(|(_, position)| position.seqno.0 > 0).collect())
}
