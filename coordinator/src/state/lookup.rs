//! Queries that commands make before they change the state.

use std::sync::Arc;

use proto::model::bucket::BucketInfo;
use proto::model::catalog::bucket_text;
use proto::model::data_set::DataSet;
use proto::model::ids::{BucketId, IndexId, NodeId};
use proto::model::index::IndexInfo;
use proto::model::node::Role;
use proto::{Error, ErrorCode, Result};

use super::context::StateContext;
use super::indexes::placement::settled;
use crate::planner::Load;

impl StateContext {
    /// A bucket in a message: its name, or its number if it is not known.
    pub(crate) fn bucket_text(&self, bucket: BucketId) -> String {
        bucket_text(bucket, self.buckets.get(&bucket).map(|known| &*known.info))
    }

    /// Finds a bucket by name. The buckets of versions are not named.
    pub(crate) fn bucket_named(&self, name: &str) -> Option<BucketId> {
        self.any_bucket_named(name).filter(|id| self.version_of(*id).is_none())
    }

    /// The bucket that a command is about. Users do not change the buckets of versions.
    pub(super) fn bucket_of_command(&self, id: BucketId) -> Result<Arc<BucketInfo>> {
        let found = self.buckets.get(&id).filter(|_| self.version_of(id).is_none());
        let found = found.map(|found| Arc::clone(&found.info));
        found.ok_or_else(|| changed(format!("bucket {id} was dropped meanwhile")))
    }

    /// The index that a command is about, as its name means it.
    pub(crate) fn index_of_command(&self, id: IndexId) -> Result<Arc<IndexInfo>> {
        let found = self.indexes.get(&id).map(|record| Arc::clone(&record.info));
        found.ok_or_else(|| changed(format!("index {id} was dropped meanwhile")))
    }

    /// Finds a bucket by name, also that of a version.
    pub(super) fn any_bucket_named(&self, name: &str) -> Option<BucketId> {
        self.buckets.iter().find(|(_, bucket)| bucket.info.name == name).map(|(id, _)| *id)
    }

    pub(super) fn index_named(&self, name: &str) -> Option<IndexId> {
        self.indexes.iter().find(|(_, index)| index.info.spec.name == name).map(|(id, _)| *id)
    }

    /// Checks that an index has the name and the definition from which a command was made.
    pub(super) fn check_defined(&self, id: IndexId, defined: u64) -> Result<()> {
        let info = self.index_of_command(id)?;
        let what =
            || format!("index \"{}\" was changed by another statement meanwhile", info.spec.name);
        if info.defined == defined { Ok(()) } else { Err(changed(what())) }
    }

    /// The indexers that may receive slices, and their load once all moves are done.
    pub(super) fn indexer_loads(&self, silent: &[NodeId]) -> Vec<Load> {
        let placements: Vec<Vec<NodeId>> =
            self.indexes().flat_map(|index| settled(&index.info)).collect();
        self.receiving()
            .map(|(id, zone)| Load {
                node: id,
                zone: zone.to_owned(),
                copies: placements.iter().filter(|nodes| nodes.contains(&id)).count(),
                first_copies: placements.iter().filter(|nodes| nodes.first() == Some(&id)).count(),
                is_silent: silent.contains(&id),
            })
            .collect()
    }

    /// The indexers that may receive slices, ascending.
    pub(super) fn receiving_indexers(&self) -> impl Iterator<Item = NodeId> {
        self.receiving().map(|(id, _)| id)
    }

    /// The indexers that may receive slices, each with its zone.
    fn receiving(&self) -> impl Iterator<Item = (NodeId, &str)> {
        let indexers = self.nodes.values().filter(|node| node.role == Role::Indexer);
        let indexers = indexers.filter(|node| !self.draining.contains(&node.id));
        indexers.map(|node| (node.id, &*node.zone))
    }

    /// The number of vbuckets in all buckets.
    pub(super) fn vbuckets_in_all(&self) -> usize {
        self.buckets.values().map(|bucket| usize::from(bucket.info.vbuckets)).sum()
    }

    pub(super) fn role_of(&self, node: NodeId) -> Result<Role> {
        let unknown = || Error::new(ErrorCode::Unknown, format!("node {node} is not registered"));
        self.nodes.get(&node).map(|info| info.role).ok_or_else(unknown)
    }

    /// The data set and the number of the version that a bucket belongs to.
    pub fn version_of(&self, bucket: BucketId) -> Option<(BucketId, u64)> {
        let mut sets = self.data_sets.iter();
        sets.find_map(|(id, set)| set.version_of(bucket).map(|(number, _)| (*id, number)))
    }

    /// The bucket whose documents the name of a bucket means.
    pub fn current_bucket(&self, id: BucketId) -> BucketId {
        let current = self.data_sets.get(&id).and_then(DataSet::current);
        current.map_or(id, |(_, version)| version.bucket)
    }

    /// True if a generation is built over a version that is not current.
    pub(crate) fn is_of_next_version(&self, info: &IndexInfo) -> bool {
        let shown = self.indexes.get(&info.id);
        shown.is_some_and(|shown| shown.info.bucket != info.bucket)
    }
}

/// The refusal of a command that was made from an earlier state of an object.
fn changed(what: String) -> Error {
    Error::new(ErrorCode::Changed, what).with_hint(
        "SHOW INDEXES and SHOW BUCKETS show what there is; repeat the statement if it still fits",
    )
}
