//! The StateContext: one sub-state for each family of commands, and the queries on them.

use std::collections::BTreeSet;
use std::sync::Arc;

use proto::Result;
use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::copies::Copies;
use proto::model::data_set::DataSet;
use proto::model::identity::{ClusterId, NodeProof};
use proto::model::ids::{BucketId, Epoch, Generation, IndexId, LocalIndexId, NodeId, TopologyNo};
use proto::model::index::{IndexInfo, IndexState};
use proto::model::node::NodeInfo;
use proto::model::topology::IndexTopology;
use proto::model::users::Users;
use serde::{Deserialize, Serialize};

use super::bucket_view::BucketView;
use super::buckets::state::BucketsState;
use super::clock::Clock;
use super::copies::state::CopiesState;
use super::epochs::epoch_moments::EpochMoments;
use super::epochs::state::{BucketEpochs, EpochsState};
use super::indexes::record::IndexRecord;
use super::indexes::state::IndexesState;
use super::moves::state::MovesState;
use super::nodes::state::NodesState;
use super::requests::Requests;
use super::users::state::UsersState;
use super::versions::state::VersionsState;

/// The replicated state of the cluster: everything that the log's commands have decided.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StateContext {
    pub(super) clock: Clock,
    pub(super) buckets: BucketsState,
    pub(super) indexes: IndexesState,
    pub(super) moves: MovesState,
    pub(super) nodes: NodesState,
    pub(super) copies: CopiesState,
    pub(super) epochs: EpochsState,
    pub(super) versions: VersionsState,
    pub(super) users: UsersState,
    pub(super) requests: Requests,
}

impl StateContext {
    /// The number of changes so far.
    #[cfg(any(test, feature = "testing"))]
    pub fn cas(&self) -> u64 {
        self.clock.cas()
    }

    /// Returns the newest time of all commands, in Unix milliseconds.
    #[cfg(any(test, feature = "testing"))]
    pub fn unix_ms(&self) -> u64 {
        self.clock.now().unix_ms
    }

    /// Returns the value of `cas` at the last change of the catalog.
    pub fn catalog_cas(&self) -> u64 {
        self.clock.catalog_cas()
    }

    /// Returns the log position of the last command, which is the present moment.
    pub fn position(&self) -> u64 {
        self.clock.now().position
    }

    /// Returns a bucket.
    pub fn bucket(&self, id: BucketId) -> Option<BucketView<'_>> {
        Some(view(self.buckets.get(id)?, self.epochs.get(id)?))
    }

    /// All buckets, by id.
    pub fn buckets(&self) -> impl Iterator<Item = (BucketId, BucketView<'_>)> {
        let infos = self.buckets.all().iter();
        infos.filter_map(|(id, info)| Some((*id, view(info, self.epochs.get(*id)?))))
    }

    /// Returns the log positions at which the retained epochs of a bucket were published.
    pub fn moments(&self, bucket: BucketId) -> Option<&EpochMoments> {
        self.epochs.get(bucket).map(|known| &known.moments)
    }

    /// Returns the epoch up to which `--skip-epochs` will make all epochs of a bucket dead.
    /// Returns zero if this is not planned or has been done.
    pub fn skips_to(&self, bucket: BucketId) -> Epoch {
        self.epochs.get(bucket).and_then(|known| known.skips_to).unwrap_or_default()
    }

    /// The copies of an embedded bucket.
    #[cfg(any(test, feature = "testing"))]
    pub fn copies(&self, bucket: BucketId) -> Option<&Copies> {
        self.copies.get(bucket)
    }

    /// The copies of all embedded buckets, by bucket.
    pub fn all_copies(&self) -> impl Iterator<Item = (BucketId, &Copies)> {
        self.copies.all().iter().map(|(id, copies)| (*id, copies))
    }

    /// Iterates over the versioned data sets, each with its bucket.
    pub fn data_sets(&self) -> impl Iterator<Item = (BucketId, &DataSet)> {
        self.versions.sets().iter().map(|(id, set)| (*id, set))
    }

    /// The data set and the number of the version that a bucket belongs to.
    pub fn version_of(&self, bucket: BucketId) -> Option<(BucketId, u64)> {
        self.versions.version_of(bucket)
    }

    /// Returns the bucket that a bucket's name refers to. For a data set it is the bucket of the
    /// current version, for any other bucket the bucket itself.
    pub fn current_bucket(&self, id: BucketId) -> BucketId {
        self.versions.current_bucket(id)
    }

    /// Iterates over all generations of all indexes. First come the generations that the names of
    /// indexes refer to (the serving one, or the first one during its build), by id, then the
    /// others.
    pub fn indexes(&self) -> impl Iterator<Item = &IndexRecord> {
        self.indexes.all()
    }

    /// Iterates over the generations that the names of indexes refer to, by id.
    pub fn named_indexes(&self) -> impl Iterator<Item = &IndexRecord> {
        self.indexes.named().values()
    }

    /// Returns the serving generation of an index.
    pub fn serving(&self, index: IndexId) -> Option<&IndexRecord> {
        let serves = |record: &&IndexRecord| record.info.state == IndexState::Maintenance;
        self.indexes.named().get(&index).filter(serves)
    }

    /// Returns the newest generation that was ever begun for an index, including cancelled ones.
    pub(crate) fn newest_generation(&self, index: IndexId) -> Option<Generation> {
        self.indexes.newest_generation(index)
    }

    /// Returns true if a generation is built over a version of a data set that is not current.
    pub(crate) fn is_of_next_version(&self, info: &IndexInfo) -> bool {
        self.indexes.is_of_next_version(info)
    }

    /// Iterates over the indexes that grow automatically, each with the slice size in bytes from
    /// which it grows.
    pub(crate) fn slice_bytes_max(&self) -> impl Iterator<Item = (IndexId, u64)> {
        self.indexes.slice_bytes_max().iter().map(|(index, bytes)| (*index, *bytes))
    }

    /// Returns true if a generation with more slices may be begun for a serving index.
    pub(crate) fn can_grow(&self, from: LocalIndexId) -> bool {
        self.indexes.can_grow(from)
    }

    /// Returns a topology of a generation by its number. Returns an error if it is not known:
    /// this member may lag, or the topology was dropped.
    pub fn topology(&self, id: LocalIndexId, number: TopologyNo) -> Result<Arc<IndexTopology>> {
        self.indexes.topology(id, number)
    }

    /// Returns a registered node.
    pub fn node(&self, id: NodeId) -> Option<&Arc<NodeInfo>> {
        self.nodes.get(id)
    }

    /// All registered nodes, by id.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<NodeInfo>> {
        self.nodes.all().values()
    }

    /// The indexers that receive no more slices.
    pub fn draining(&self) -> &BTreeSet<NodeId> {
        self.nodes.draining()
    }

    /// True if the node is an indexer that receives no more slices.
    pub fn is_draining(&self, node: NodeId) -> bool {
        self.nodes.draining().contains(&node)
    }

    /// The id of the cluster; `None` until its first node joins.
    pub fn cluster(&self) -> Option<ClusterId> {
        self.nodes.cluster()
    }

    /// Returns the proof that the process of a node presented when it joined.
    pub fn proof(&self, node: NodeId) -> Option<NodeProof> {
        self.nodes.proof(node).copied()
    }

    /// Returns the users. The same `Arc` is returned until they change.
    pub fn users(&self) -> &Arc<Users> {
        self.users.current()
    }

    /// Builds the catalog, which every service may read.
    pub fn catalog(&self) -> Catalog {
        let info = |record: &IndexRecord| Arc::clone(&record.info);
        let (named, others) = (self.indexes.named().iter(), self.indexes.others().iter());
        Catalog {
            cas: self.clock.catalog_cas(),
            cluster: self.nodes.cluster(),
            newest_index: self.indexes.last(),
            bucket_ids: self.buckets.unique_ids().clone(),
            dropped_buckets: self.buckets.dropped().to_vec(),
            buckets: self.buckets.all().clone(),
            indexes: named.map(|(id, record)| (*id, info(record))).collect(),
            nodes: self.nodes.all().clone(),
            draining: self.nodes.draining().clone(),
            removed: self.nodes.removed().to_vec(),
            ended_moves: self.moves.ended().to_vec(),
            copies: self.copies.all().clone(),
            generations: others.map(|(id, record)| (*id, info(record))).collect(),
            newest_generations: self.indexes.newest().clone(),
            data_sets: self.versions.sets().clone(),
            slice_bytes_max: self.indexes.slice_bytes_max().clone(),
        }
    }
}

fn view<'a>(info: &'a Arc<BucketInfo>, known: &'a BucketEpochs) -> BucketView<'a> {
    BucketView { info, epochs: &known.history, logs: &known.logs }
}
