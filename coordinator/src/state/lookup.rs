//! Queries that commands make before they change the state.

use proto::model::catalog::bucket_text;
use proto::model::ids::{BucketId, IndexId, NodeId};
use proto::model::node::Role;
use proto::rpc::command::{Command, NamedBucket};
use proto::{Error, ErrorCode, Result};

use super::context::StateContext;
use super::placement::settled;
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

    /// Checks that a command still names the bucket that its sender has looked up. Between the two the bucket may have been dropped, and
    /// somebody else may have made one of its name.
    pub(super) fn check_names(&self, meant: BucketId, command: &Command) -> Result<()> {
        let of_index = |name| {
            let index = self.indexes.get(&self.index_named(name)?)?;
            self.bucket_named(&index.info.spec.bucket)
        };
        let mut asked = command;
        // The leader puts its own part around the command of a client.
        while let Command::Create { command, .. } | Command::Avoiding { command, .. } = asked {
            asked = command;
        }
        let (found, gone) = match asked.names_bucket() {
            Some(NamedBucket::Bucket(name)) => (self.bucket_named(name), no_bucket(name)),
            Some(NamedBucket::OfIndex(name)) => (of_index(name), no_index(name)),
            None => return Err(Error::internal("the command names no bucket")),
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

    /// The same with their zones.
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
}

pub(super) fn no_bucket(name: &str) -> Error {
    Error::new(ErrorCode::Unknown, format!("bucket \"{name}\" does not exist"))
}

pub(super) fn no_index(name: &str) -> Error {
    Error::new(ErrorCode::Unknown, format!("index \"{name}\" does not exist"))
}
