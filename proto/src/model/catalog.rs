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

/// The cluster's definitions, as sent to all services: the StateContext as of one change, without
/// the coordinator's internal records.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Catalog {
    /// The version of the catalog: the StateContext's `cas` after the last change.
    pub cas: u64,
    /// The id of the cluster; `None` until its first node joins.
    pub cluster: Option<ClusterId>,
    /// The largest index number ever assigned. A number up to this one that is missing in `indexes`
    /// belongs to a dropped index; a larger number is newer than this catalog.
    pub newest_index: IndexId,
    /// The random ids of buckets.
    pub bucket_ids: BTreeMap<BucketId, UniqueId>,
    /// The buckets that were dropped last, oldest first: the last 256 of them. A projector removes
    /// the documents of these buckets and of no others, because a number may belong to several
    /// buckets after a coordinator was restored from an older copy. A projector that was down
    /// during more drops keeps the files of the earlier ones, and does not serve them.
    pub dropped_buckets: Vec<(BucketId, UniqueId)>,
    /// Buckets by number.
    pub buckets: BTreeMap<BucketId, Arc<BucketInfo>>,
    /// Indexes by number.
    pub indexes: BTreeMap<IndexId, Arc<IndexInfo>>,
    /// Registered processes by number.
    pub nodes: BTreeMap<NodeId, Arc<NodeInfo>>,
    /// Indexers that receive no new slices and whose slices are moved away.
    pub draining: BTreeSet<NodeId>,
    /// The nodes that were removed last, oldest first, without those that have joined again; only a
    /// bounded number is kept.
    pub removed: Vec<Arc<NodeInfo>>,
    /// Moves that have ended, oldest first; only a bounded number is kept.
    pub ended_moves: Vec<EndedMove>,
    /// The copies of each embedded bucket. The leader owns all vbuckets of its bucket.
    pub copies: BTreeMap<BucketId, Copies>,
    /// The generations that are not in `indexes`. For each index, at most one is newer and being built as the replacement; the others are
    /// older and [retired](crate::model::index::IndexState::Retired).
    pub generations: BTreeMap<LocalIndexId, Arc<IndexInfo>>,
    /// The newest generation that was ever begun, for each index with more than one generation.
    pub newest_generations: BTreeMap<IndexId, Generation>,
    /// The versioned data sets, by the bucket that has the data set's name. That bucket has no
    /// documents; its name refers to it until a version is current.
    pub data_sets: BTreeMap<BucketId, DataSet>,
    /// The indexes that are split automatically, each with the size of a slice, in bytes, above
    /// which it is split.
    pub slice_bytes_max: BTreeMap<IndexId, u64>,
}

/// Returns the text with which messages name a bucket, given its record.
pub fn bucket_text(bucket: BucketId, info: Option<&BucketInfo>) -> String {
    match info {
        Some(info) => format!("bucket \"{}\"", info.name),
        None => format!("bucket {bucket}"),
    }
}

impl Catalog {
    /// The number of slices, of all generations, that a node has or still feeds.
    pub fn slices_on(&self, node: NodeId) -> usize {
        let of_index = |index: &Arc<IndexInfo>| {
            let slices = (0..index.topology.placement.len()).map(|slice| SliceNo(slice as u16));
            slices.filter(|slice| index.feeds(node, *slice)).count()
        };
        self.local_indexes().map(of_index).sum()
    }

    /// Returns the text with which messages name a bucket: its name, or its number if it is
    /// unknown.
    pub fn bucket_text(&self, bucket: BucketId) -> String {
        bucket_text(bucket, self.buckets.get(&bucket).map(|info| &**info))
    }

    /// Returns a bucket by name. A version's bucket has no name that can be used here.
    pub fn bucket(&self, name: &str) -> Option<&Arc<BucketInfo>> {
        let found = self.buckets.values().find(|bucket| bucket.name == name);
        found.filter(|bucket| self.version(bucket.id).is_none())
    }

    /// Returns the bucket whose documents a name refers to: the bucket of the current version for a
    /// data set, and the bucket itself otherwise.
    pub fn read_bucket(&self, name: &str) -> Option<&Arc<BucketInfo>> {
        let named = self.bucket(name)?;
        self.buckets.get(&self.current_of(named.id))
    }

    /// Returns the bucket that statements with this bucket's name read: the current version of a
    /// data set, otherwise `bucket` itself.
    pub fn current_of(&self, bucket: BucketId) -> BucketId {
        let current = self.data_sets.get(&bucket).and_then(DataSet::current);
        current.map_or(bucket, |(_, version)| version.bucket)
    }

    /// Returns the data set that a version's bucket belongs to, the number of the version, and the
    /// version; `None` for any other bucket.
    pub fn version(&self, bucket: BucketId) -> Option<(BucketId, u64, &Version)> {
        let mut sets = self.data_sets.iter();
        sets.find_map(|(id, set)| {
            set.version_of(bucket).map(|(number, version)| (*id, number, version))
        })
    }

    /// Returns the bucket under whose name users know a bucket: the data set for a version's
    /// bucket, and the bucket itself otherwise.
    pub fn user_bucket(&self, bucket: BucketId) -> BucketId {
        self.version(bucket).map_or(bucket, |(set, ..)| set)
    }

    /// The present members of the coordinator with their addresses.
    pub fn coordinators(&self) -> Vec<(NodeId, String)> {
        let members = self.nodes.values().filter(|node| node.role == Role::Coordinator);
        members.map(|node| (node.id, node.address.clone())).collect()
    }

    /// Returns true if the bucket with this number and this random id was dropped recently.
    pub fn has_dropped(&self, bucket: BucketId, unique: UniqueId) -> bool {
        self.dropped_buckets.contains(&(bucket, unique))
    }

    /// Returns true if a bucket was dropped: it is not in the catalog and its number is not larger
    /// than the newest one. Numbers of buckets only grow.
    pub fn is_dropped(&self, bucket: BucketId) -> bool {
        let dropped = self.dropped_buckets.iter().map(|(dropped, _)| *dropped);
        let newest = self.buckets.keys().copied().chain(dropped).max();
        !self.buckets.contains_key(&bucket) && newest.is_some_and(|newest| bucket <= newest)
    }

    /// A generation of an index, if the catalog has it.
    pub fn local_index(&self, id: LocalIndexId) -> Option<&Arc<IndexInfo>> {
        let shown = self.indexes.get(&id.index).filter(|index| index.local_id() == id);
        shown.or_else(|| self.generations.get(&id))
    }

    /// Returns all generations of all indexes; nodes store each of them separately.
    pub fn local_indexes(&self) -> impl Iterator<Item = &Arc<IndexInfo>> {
        self.indexes.values().chain(self.generations.values())
    }

    /// Returns the generation that is being built as a replacement of the serving one; `None` if
    /// there is none.
    pub fn next_generation(&self, index: IndexId) -> Option<&Arc<IndexInfo>> {
        let of_index = LocalIndexId::all_of(index);
        self.generations
            .range(of_index)
            .map(|(_, info)| info)
            .find(|info| info.state == IndexState::Backfill)
    }

    /// Returns true if a generation was dropped: its index was dropped, or has a newer record
    /// without this generation. Returns false for a generation that is newer than the catalog.
    pub fn is_gone(&self, id: LocalIndexId) -> bool {
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
