//! The StateContext's fields and the queries on them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto::model::catalog::Catalog;
use proto::model::copies::Copies;
use proto::model::data_set::{DataSet, FilesRead};
use proto::model::identity::{ClusterId, NodeProof, UniqueId};
use proto::model::ids::{BucketId, Generation, IndexId, LocalIndexId, NodeId};
use proto::model::index::IndexState;
use proto::model::moves::EndedMove;
use proto::model::node::NodeInfo;
use proto::model::users::Users;
use serde::{Deserialize, Serialize};

use super::buckets::record::BucketState;
use super::epochs::epoch_moments::EpochMoments;
use super::epochs::skipped::Skips;
use super::indexes::record::IndexRecord;
use super::requests::Requests;

/// Everything that the cluster has agreed on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StateContext {
    /// Counts the changes.
    pub(super) cas: u64,
    /// The value of `cas` after the last change of the catalog. Most changes are promotions, which leave the catalog
    /// alone.
    pub(super) catalog_cas: u64,
    /// The log position of the last command, and the newest time of all commands.
    pub(super) position: u64,
    pub(super) unix_ms: u64,
    /// The time of day in the last command.
    pub(super) told_ms: u64,
    /// A steady clock: a jump of the time of day moves it by `STEP_MS_MAX` (in `apply`) at most. Rollback points age
    /// by it.
    pub(super) steady_ms: u64,
    /// The last ids that were assigned. An id is never assigned twice.
    pub(super) last_bucket: u64,
    pub(super) last_index: u64,
    pub(super) last_move: u64,
    pub(super) buckets: BTreeMap<BucketId, BucketState>,
    pub(super) indexes: BTreeMap<IndexId, IndexRecord>,
    pub(super) nodes: BTreeMap<NodeId, Arc<NodeInfo>>,
    /// Indexers that receive no more slices.
    pub(super) draining: BTreeSet<NodeId>,
    /// The nodes that were removed last, the newest last.
    pub(super) removed: Vec<Arc<NodeInfo>>,
    /// The cluster; `None` until its first node joins.
    pub(super) cluster: Option<ClusterId>,
    /// The proof of each node that joined with a data directory.
    pub(super) proofs: BTreeMap<NodeId, NodeProof>,
    /// The last ended moves, the newest last.
    pub(super) ended_moves: Vec<EndedMove>,
    pub(super) requests: Requests,
    /// The random ids that buckets were made with.
    pub(super) bucket_ids: BTreeMap<BucketId, UniqueId>,
    /// The buckets that were dropped last, the newest last.
    pub(super) dropped_buckets: Vec<(BucketId, UniqueId)>,
    /// The numbers that `--skip-epochs` has passed over.
    pub(super) skips: Skips,
    /// The copies of the embedded buckets.
    pub(super) copies: BTreeMap<BucketId, Copies>,
    /// When the epochs of each bucket were published.
    pub(super) moments: BTreeMap<BucketId, EpochMoments>,
    /// The generations that are not in `indexes` ([`super::generations`]).
    pub(super) generations: BTreeMap<LocalIndexId, IndexRecord>,
    /// The newest generation that was begun of an index, for each index that had more than one.
    pub(super) newest_generations: BTreeMap<IndexId, Generation>,
    /// The versioned data sets, by their buckets.
    pub(super) data_sets: BTreeMap<BucketId, DataSet>,
    /// The sizes from which on indexes get more slices.
    pub(super) slice_bytes_max: BTreeMap<IndexId, u64>,
    /// The first projector's summary of the files of each version that is loading, by the version's bucket.
    pub(super) files_read: BTreeMap<BucketId, (NodeId, FilesRead)>,
    /// The users; not part of the catalog, since they have the hashes of secrets.
    pub(super) users: Arc<Users>,
    /// The buckets of the versions that may take the place of others without having a row.
    pub(super) empty_allowed: BTreeSet<BucketId>,
}

impl StateContext {
    /// The number of changes so far.
    #[cfg(any(test, feature = "testing"))]
    pub fn cas(&self) -> u64 {
        self.cas
    }

    /// The newest time of all commands.
    #[cfg(any(test, feature = "testing"))]
    pub fn unix_ms(&self) -> u64 {
        self.unix_ms
    }

    /// The revision of an index that the present command changes.
    pub(super) fn revision(&self) -> u64 {
        self.position + self.skips.above
    }

    /// The `cas` of the newest catalog.
    pub fn catalog_cas(&self) -> u64 {
        self.catalog_cas
    }

    /// The random id of a bucket, which every bucket has.
    pub(super) fn unique_id(&self, bucket: BucketId) -> UniqueId {
        self.bucket_ids.get(&bucket).copied().unwrap_or_default()
    }

    /// Returns a bucket.
    pub fn bucket(&self, id: BucketId) -> Option<&BucketState> {
        self.buckets.get(&id)
    }

    /// The copies of an embedded bucket.
    #[cfg(any(test, feature = "testing"))]
    pub fn copies(&self, bucket: BucketId) -> Option<&Copies> {
        self.copies.get(&bucket)
    }

    /// The copies of all embedded buckets, by bucket.
    pub fn all_copies(&self) -> impl Iterator<Item = (BucketId, &Copies)> {
        self.copies.iter().map(|(id, copies)| (*id, copies))
    }

    /// All buckets, by id.
    pub fn buckets(&self) -> impl Iterator<Item = (BucketId, &BucketState)> {
        self.buckets.iter().map(|(id, bucket)| (*id, bucket))
    }

    /// All generations of all indexes: first the serving or first generation of each index, by id, then the others.
    pub fn indexes(&self) -> impl Iterator<Item = &IndexRecord> {
        self.indexes.values().chain(self.generations.values())
    }

    /// The generations that the names of indexes mean, by id.
    pub fn named_indexes(&self) -> impl Iterator<Item = &IndexRecord> {
        self.indexes.values()
    }

    /// The generation of an index that serves scans.
    pub fn serving(&self, index: IndexId) -> Option<&IndexRecord> {
        let serves = |record: &&IndexRecord| record.info.state == IndexState::Maintenance;
        self.indexes.get(&index).filter(serves)
    }

    /// Returns a registered node.
    pub fn node(&self, id: NodeId) -> Option<&Arc<NodeInfo>> {
        self.nodes.get(&id)
    }

    /// The cluster; `None` until its first node joins.
    pub fn cluster(&self) -> Option<ClusterId> {
        self.cluster
    }

    /// The proof of the process that joined as a node.
    pub fn proof(&self, node: NodeId) -> Option<NodeProof> {
        self.proofs.get(&node).copied()
    }

    /// The users; the same `Arc` until they change.
    pub fn users(&self) -> &Arc<Users> {
        &self.users
    }

    /// All registered nodes, by id.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<NodeInfo>> {
        self.nodes.values()
    }

    /// The indexers that receive no more slices.
    pub fn draining(&self) -> &BTreeSet<NodeId> {
        &self.draining
    }

    /// True if the node is an indexer that receives no more slices.
    pub fn is_draining(&self, node: NodeId) -> bool {
        self.draining.contains(&node)
    }

    /// Builds the catalog, which every service may read.
    pub fn catalog(&self) -> Catalog {
        let info = |(id, bucket): (&BucketId, &BucketState)| (*id, bucket.info.clone());
        Catalog {
            cas: self.catalog_cas,
            cluster: self.cluster,
            newest_index: IndexId(self.last_index),
            bucket_ids: self.bucket_ids.clone(),
            dropped_buckets: self.dropped_buckets.clone(),
            buckets: self.buckets.iter().map(info).collect(),
            indexes: self.indexes.iter().map(|(id, index)| (*id, index.info.clone())).collect(),
            nodes: self.nodes.clone(),
            draining: self.draining.clone(),
            removed: self.removed.clone(),
            ended_moves: self.ended_moves.clone(),
            copies: self.copies.clone(),
            generations: self
                .generations
                .iter()
                .map(|(id, record)| (*id, Arc::clone(&record.info)))
                .collect(),
            newest_generations: self.newest_generations.clone(),
            data_sets: self.data_sets.clone(),
            slice_bytes_max: self.slice_bytes_max.clone(),
        }
    }
}
