//! The catalog: the part of the coordinators' StateContext that every service receives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::bucket::BucketInfo;
use crate::model::copies::Copies;
use crate::model::data_set::{DataSet, Version};
use crate::model::identity::{ClusterId, UniqueId};
use crate::model::ids::{BucketId, Generation, IndexId, LocalIndexId, NodeId, SliceNo};
use crate::model::index::{IndexInfo, IndexState};
use crate::model::moves::EndedMove;
use crate::model::node::{NodeInfo, Role};

/// The definitions of the cluster, as sent to all services: a copy of the StateContext after one
/// change, without the coordinator's internal records.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Catalog {
    /// The version of the catalog: the StateContext's `cas` after the last change.
    pub cas: u64,
    /// The id of the cluster; `None` until its first node joins.
    pub cluster: Option<ClusterId>,
    /// The largest index number ever assigned. A number up to this one that is missing in `indexes`
    /// belongs to a dropped index; a larger number is newer than this catalog.
    pub newest_index: IndexId,
    /// The random id of each bucket.
    pub bucket_ids: BTreeMap<BucketId, UniqueId>,
    /// The last 256 buckets that were dropped, oldest first. A projector removes the documents of
    /// exactly these buckets: the number alone is not sufficient, because it may be assigned
    /// again after a coordinator was restored from an older copy. A projector that was down
    /// during more drops keeps the files of the earlier buckets, and does not serve them.
    pub dropped_buckets: Vec<(BucketId, UniqueId)>,
    /// Buckets by number.
    pub buckets: BTreeMap<BucketId, Arc<BucketInfo>>,
    /// Indexes by number.
    pub indexes: BTreeMap<IndexId, Arc<IndexInfo>>,
    /// Registered processes by number.
    pub nodes: BTreeMap<NodeId, Arc<NodeInfo>>,
    /// Indexers that receive no new slices and whose slices are moved away.
    pub draining: BTreeSet<NodeId>,
    /// The nodes that were removed last, oldest first, without those that have joined again.
    /// Their number is bounded; the oldest are dropped.
    pub removed: Vec<Arc<NodeInfo>>,
    /// The moves that have ended, oldest first. Their number is bounded; the oldest are dropped.
    pub ended_moves: Vec<EndedMove>,
    /// The copies of each embedded bucket. The copy that leads owns all vbuckets of the bucket.
    pub copies: BTreeMap<BucketId, Copies>,
    /// The generations that do not serve, and so are not in `indexes`. For each index, at most
    /// one is newer and being built as the replacement; the others are older and
    /// [retired](crate::model::index::IndexState::Retired).
    pub generations: BTreeMap<LocalIndexId, Arc<IndexInfo>>,
    /// The newest generation that was ever begun, for each index that has had more than one.
    pub newest_generations: BTreeMap<IndexId, Generation>,
    /// The versioned data sets, by the bucket with the data set's name. That bucket has no
    /// documents; statements that name it read the bucket of the current version.
    pub data_sets: BTreeMap<BucketId, DataSet>,
    /// The size of a slice, in bytes, above which it is split automatically, for the indexes with
    /// this setting.
    pub slice_bytes_max: BTreeMap<IndexId, u64>,
}

/// Returns the text with which messages name a bucket, from its number and its record.
pub fn bucket_text(bucket: BucketId, info: Option<&BucketInfo>) -> String {
    match info {
        Some(info) => format!("bucket \"{}\"", info.name),
        None => format!("bucket {bucket}"),
    }
}

impl Catalog {
    /// Returns the number of slices that a node stores or must receive mutations for, of all
    /// generations.
    pub fn slices_on(&self, node: NodeId) -> usize {
        let of_index = |index: &Arc<IndexInfo>| {
            let slices = (0..index.topology.placement.len()).map(|slice| SliceNo(slice as u16));
            slices.filter(|slice| index.is_fed(node, *slice)).count()
        };
        self.local_indexes().map(of_index).sum()
    }

    /// Returns the text with which messages name a bucket: its name, or its number if it is
    /// unknown.
    pub fn bucket_text(&self, bucket: BucketId) -> String {
        bucket_text(bucket, self.buckets.get(&bucket).map(|info| &**info))
    }

    /// Returns a bucket by name. The bucket of a data set's version cannot be found by its name.
    pub fn bucket(&self, name: &str) -> Option<&Arc<BucketInfo>> {
        let found = self.buckets.values().find(|bucket| bucket.name == name);
        found.filter(|bucket| self.version(bucket.id).is_none())
    }

    /// Returns the bucket whose documents a name refers to: for a data set the bucket of its
    /// current version, otherwise the bucket with that name.
    pub fn read_bucket(&self, name: &str) -> Option<&Arc<BucketInfo>> {
        let named = self.bucket(name)?;
        self.buckets.get(&self.current_bucket_of(named.id))
    }

    /// Returns the bucket that statements read if they name `bucket`: the bucket of the current
    /// version if it is a data set, otherwise `bucket` itself.
    pub fn current_bucket_of(&self, bucket: BucketId) -> BucketId {
        let current = self.data_sets.get(&bucket).and_then(DataSet::current);
        current.map_or(bucket, |(_, version)| version.bucket)
    }

    /// Returns, for the bucket of a version: its data set, the number of the version, and the
    /// version. Returns `None` for any other bucket.
    pub fn version(&self, bucket: BucketId) -> Option<(BucketId, u64, &Version)> {
        let mut sets = self.data_sets.iter();
        sets.find_map(|(id, set)| {
            set.version_of(bucket).map(|(number, version)| (*id, number, version))
        })
    }

    /// Returns the bucket under whose name users know a bucket: for a version's bucket the data
    /// set, otherwise the bucket itself.
    pub fn user_bucket(&self, bucket: BucketId) -> BucketId {
        self.version(bucket).map_or(bucket, |(set, ..)| set)
    }

    /// Returns the present members of the coordinator with their addresses.
    pub fn coordinators(&self) -> Vec<(NodeId, String)> {
        let members = self.nodes.values().filter(|node| node.role == Role::Coordinator);
        members.map(|node| (node.id, node.address.clone())).collect()
    }

    /// Returns true if the bucket with this number and this random id was dropped recently.
    pub fn has_dropped(&self, bucket: BucketId, unique: UniqueId) -> bool {
        self.dropped_buckets.contains(&(bucket, unique))
    }

    /// Returns true if a bucket was dropped: its number was assigned, and the bucket is not in
    /// the catalog.
    pub fn is_dropped(&self, bucket: BucketId) -> bool {
        let dropped = self.dropped_buckets.iter().map(|(dropped, _)| *dropped);
        let newest = self.buckets.keys().copied().chain(dropped).max();
        !self.buckets.contains_key(&bucket) && newest.is_some_and(|newest| bucket <= newest)
    }

    /// Returns the record of a generation of an index, if the catalog has it.
    pub fn local_index(&self, id: LocalIndexId) -> Option<&Arc<IndexInfo>> {
        let shown = self.indexes.get(&id.index).filter(|index| index.local_id() == id);
        shown.or_else(|| self.generations.get(&id))
    }

    /// Returns all generations of all indexes; nodes store each of them separately.
    pub fn local_indexes(&self) -> impl Iterator<Item = &Arc<IndexInfo>> {
        self.indexes.values().chain(self.generations.values())
    }

    /// Returns the generation that is being built to replace the serving one; `None` if there is
    /// none.
    pub fn next_generation(&self, index: IndexId) -> Option<&Arc<IndexInfo>> {
        let of_index = LocalIndexId::all_of(index);
        self.generations
            .range(of_index)
            .map(|(_, info)| info)
            .find(|info| info.state == IndexState::Backfill)
    }

    /// Returns true if a generation was dropped, alone or with its index. Returns false for a
    /// generation that is newer than this catalog.
    pub fn is_generation_dropped(&self, id: LocalIndexId) -> bool {
        match self.indexes.get(&id.index) {
            Some(shown) => {
                let newest = self.newest_generations.get(&id.index);
                self.local_index(id).is_none()
                    && id.generation <= *newest.unwrap_or(&shown.generation)
            }
            None => id.index <= self.newest_index,
        }
    }

    /// Finds an index by name.
    pub fn index(&self, name: &str) -> Option<&Arc<IndexInfo>> {
        self.indexes.values().find(|index| index.spec.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::bucket::SourceKind;

    #[test]
    fn a_bucket_that_is_younger_than_the_catalog_was_not_dropped() {
        let info = BucketInfo::new(BucketId(5), "b", 1, SourceKind::Embedded, NodeId(1));
        let mut catalog =
            Catalog { buckets: [(info.id, Arc::new(info))].into(), ..Catalog::default() };
        let dropped = |catalog: &Catalog| {
            (3..=8).filter(|id| catalog.is_dropped(BucketId(*id))).collect::<Vec<_>>()
        };
        assert_eq!(dropped(&catalog), [3, 4]);
        catalog.dropped_buckets.push((BucketId(7), UniqueId::of([1, 2])));
        assert_eq!(dropped(&catalog), [3, 4, 6, 7]);
    }
}
