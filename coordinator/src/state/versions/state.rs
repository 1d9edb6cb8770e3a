//! The versioned data sets.

use std::collections::{BTreeMap, BTreeSet};

use proto::model::data_set::{DataSet, FilesRead, Version};
use proto::model::ids::{BucketId, NodeId};
use proto::plant::{self, Plant};
use serde::{Deserialize, Serialize};

use crate::state::consequence::Consequence;

/// The versioned data sets, and the facts about versions that are loading.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::state) struct VersionsState {
    /// The data sets, by their buckets.
    sets: BTreeMap<BucketId, DataSet>,
    /// By the version's bucket: the summary of the files of a loading version, and the projector
    /// that reported it first.
    files_read: BTreeMap<BucketId, (NodeId, FilesRead)>,
    /// The buckets of versions that may become current without a single row.
    empty_allowed: BTreeSet<BucketId>,
}

impl VersionsState {
    pub(in crate::state) fn sets(&self) -> &BTreeMap<BucketId, DataSet> {
        &self.sets
    }

    pub(in crate::state) fn get(&self, id: BucketId) -> Option<&DataSet> {
        self.sets.get(&id)
    }

    /// The data set and the number of the version that a bucket belongs to.
    pub(in crate::state) fn version_of(&self, bucket: BucketId) -> Option<(BucketId, u64)> {
        let mut sets = self.sets.iter();
        sets.find_map(|(id, set)| set.version_of(bucket).map(|(number, _)| (*id, number)))
    }

    /// The version that a bucket belongs to.
    pub(in crate::state) fn version(&self, bucket: BucketId) -> Option<&Version> {
        let (id, number) = self.version_of(bucket)?;
        self.sets.get(&id)?.versions.get(&number)
    }

    /// Returns the bucket that a bucket's name refers to. For a data set it is the bucket of the
    /// current version, for any other bucket the bucket itself.
    pub(in crate::state) fn current_bucket(&self, id: BucketId) -> BucketId {
        let current = self.sets.get(&id).and_then(DataSet::current);
        current.map_or(id, |(_, version)| version.bucket)
    }

    pub(super) fn files_read(&self, bucket: BucketId) -> Option<(NodeId, FilesRead)> {
        self.files_read.get(&bucket).copied()
    }

    pub(super) fn may_be_empty(&self, bucket: BucketId) -> bool {
        self.empty_allowed.contains(&bucket)
    }

    pub(super) fn create(&mut self, id: BucketId, set: DataSet) {
        self.sets.insert(id, set);
    }

    pub(super) fn get_mut(&mut self, id: BucketId) -> Option<&mut DataSet> {
        self.sets.get_mut(&id)
    }

    pub(super) fn version_mut(&mut self, bucket: BucketId) -> Option<&mut Version> {
        let (id, number) = self.version_of(bucket)?;
        self.sets.get_mut(&id)?.versions.get_mut(&number)
    }

    pub(super) fn allow_empty(&mut self, bucket: BucketId) {
        self.empty_allowed.insert(bucket);
    }

    /// Records the summary of the files of a version, unless another projector has reported one
    /// before.
    pub(super) fn record_files_read(&mut self, bucket: BucketId, read: (NodeId, FilesRead)) {
        self.files_read.entry(bucket).or_insert(read);
    }

    /// Drops the facts that are needed only while a version loads.
    pub(super) fn end_loading(&mut self, bucket: BucketId) {
        self.files_read.remove(&bucket);
        self.empty_allowed.remove(&bucket);
    }

    pub(in crate::state) fn on(&mut self, consequence: &Consequence) {
        match consequence {
            Consequence::BucketDropped(bucket) => {
                self.sets.remove(bucket);
                self.end_loading(*bucket);
            }
            Consequence::ProjectorAdded(node) if plant::is(Plant::PartitionsMoved) => {
                self.all_versions_mut().for_each(|version| version.nodes.push(*node));
            }
            // A version keeps the list of its projectors, because they all compute their partitions from it.
            Consequence::ProjectorRemoved(node) => {
                for partition in self.all_versions_mut().flat_map(|of| &mut of.partitions) {
                    partition.holders.retain(|holder| holder != node);
                }
            }
            _ => {}
        }
    }

    fn all_versions_mut(&mut self) -> impl Iterator<Item = &mut Version> {
        self.sets.values_mut().flat_map(|set| set.versions.values_mut())
    }
}
