//! Queries that commands make before they change the state.

use proto::model::catalog::bucket_text;
use proto::model::data_set::DataSet;
use proto::model::ids::{BucketId, IndexId, NodeId};
use proto::model::index::IndexInfo;
use proto::model::node::Role;
use proto::rpc::command::{Command, Need, ObjectName};
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

    /// Finds a bucket by name, also that of a version.
    pub(super) fn any_bucket_named(&self, name: &str) -> Option<BucketId> {
        self.buckets.iter().find(|(_, bucket)| bucket.info.name == name).map(|(id, _)| *id)
    }

    pub(super) fn index_named(&self, name: &str) -> Option<IndexId> {
        self.indexes.iter().find(|(_, index)| index.info.spec.name == name).map(|(id, _)| *id)
    }

    /// Checks that a command still names the bucket that its sender has looked up. The bucket may have been dropped since, and another one
    /// of its name created.
    pub(super) fn check_names(&self, meant: BucketId, command: &Command) -> Result<()> {
        let of_index = |name: &str| {
            let index = self.indexes.get(&self.index_named(name)?)?;
            self.bucket_named(&index.info.spec.bucket)
        };
        let (found, gone) = match command.need() {
            Need::Bucket(_, ObjectName { name, .. }) | Need::Generation(_, _, Some(name)) => {
                (self.bucket_named(&name), no_bucket(&name))
            }
            Need::Index(_, ObjectName { name, .. }) => (of_index(&name), no_index(&name)),
            _ => return Err(Error::internal("the command names no bucket")),
        };
        // A name that means nothing is left to the command itself: with IF EXISTS it does nothing.
        if found.is_none_or(|found| found == meant) { Ok(()) } else { Err(gone) }
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

pub(super) fn no_bucket(name: &str) -> Error {
    Error::new(ErrorCode::Unknown, format!("bucket \"{name}\" does not exist"))
}

pub(super) fn no_index(name: &str) -> Error {
    Error::new(ErrorCode::Unknown, format!("index \"{name}\" does not exist"))
}
