//! Look-ups of buckets, indexes and nodes that commands need before they change the state.

use std::sync::Arc;

use proto::model::bucket::BucketInfo;
use proto::model::catalog::bucket_text;
use proto::model::ids::{BucketId, IndexId, NodeId};
use proto::model::index::IndexInfo;
use proto::model::node::NodeInfo;
use proto::{Error, ErrorCode, Result};

use super::context::StateContext;
use super::indexes::placement::placement_after_moves;
use crate::planner::NodeLoad;

impl StateContext {
    /// Returns the text for a bucket in messages: its name, or its number if the bucket is not
    /// known.
    pub(crate) fn bucket_text(&self, bucket: BucketId) -> String {
        bucket_text(bucket, self.buckets.get(bucket).map(|info| &**info))
    }

    /// Finds a bucket by name. The buckets of versions are not found.
    pub(crate) fn bucket_named(&self, name: &str) -> Option<BucketId> {
        self.buckets.named(name).filter(|id| self.version_of(*id).is_none())
    }

    /// Returns the bucket that a command is about. Returns an error for the bucket of a version,
    /// which users cannot change directly.
    pub(super) fn bucket_of_command(&self, id: BucketId) -> Result<Arc<BucketInfo>> {
        let found = self.buckets.get(id).filter(|_| self.version_of(id).is_none());
        found.cloned().ok_or_else(|| changed_error(format!("bucket {id} was dropped meanwhile")))
    }

    /// Returns the index that a command is about: the generation that its name refers to.
    pub(crate) fn index_of_command(&self, id: IndexId) -> Result<Arc<IndexInfo>> {
        let found = self.indexes.get(id).cloned();
        found.ok_or_else(|| changed_error(format!("index {id} was dropped meanwhile")))
    }

    /// Checks that no bucket and no index has this name.
    pub(super) fn check_name_is_free(&self, name: &str) -> Result<()> {
        let kind = match (self.buckets.named(name), self.indexes.id_of(name)) {
            (Some(_), _) => "a bucket",
            (_, Some(_)) => "an index",
            (None, None) => return Ok(()),
        };
        Err(Error::new(ErrorCode::Exists, format!("{kind} \"{name}\" exists already"))
            .with_hint("buckets and indexes share one namespace; choose another name"))
    }

    /// Checks that an index still has the name and the definition from which a command was made.
    pub(super) fn check_defined(&self, id: IndexId, defined: u64) -> Result<()> {
        let info = self.index_of_command(id)?;
        let what =
            || format!("index \"{}\" was changed by another statement meanwhile", info.spec.name);
        if info.defined == defined { Ok(()) } else { Err(changed_error(what())) }
    }

    /// Returns the indexers that may receive slices, with the load that they will have after all
    /// moves.
    pub(super) fn indexer_loads(&self, silent: &[NodeId]) -> Vec<NodeLoad> {
        let placements: Vec<Vec<NodeId>> =
            self.indexes.infos().flat_map(|of| placement_after_moves(of)).collect();
        let load = |node: &NodeInfo| NodeLoad {
            node: node.id,
            zone: node.zone.clone(),
            copies: placements.iter().filter(|nodes| nodes.contains(&node.id)).count(),
            first_copies: placements.iter().filter(|nodes| nodes.first() == Some(&node.id)).count(),
            is_silent: silent.contains(&node.id),
        };
        self.nodes.receiving().map(load).collect()
    }

    /// Returns true if each node that has a slice of an index may receive slices.
    pub(crate) fn hosts_receive(&self, info: &IndexInfo, silent: &[NodeId]) -> bool {
        let mut hosts = info.topology.placement.iter().flatten();
        hosts.all(|node| !silent.contains(node) && self.nodes.receives(*node))
    }
}

/// Returns the refusal of a command because an object has changed since the command was made.
fn changed_error(what: String) -> Error {
    Error::new(ErrorCode::Changed, what).with_hint(
        "SHOW INDEXES and SHOW BUCKETS show what there is; repeat the statement if it still fits",
    )
}
