//! The registered processes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto::model::identity::{ClusterId, NodeProof};
use proto::model::ids::NodeId;
use proto::model::node::{NodeInfo, Role};
use proto::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};

use crate::state::capacity::limits::REMOVED_NODES_MAX;
use crate::state::capacity::table::NODES;

/// The length limit of an address and of a zone, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// The registered processes, with the cluster's identity and the proofs of its nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::state) struct NodesState {
    infos: BTreeMap<NodeId, Arc<NodeInfo>>,
    /// The indexers that are being drained: they receive no more slices.
    draining: BTreeSet<NodeId>,
    /// The last removed nodes, the newest last.
    removed: Vec<Arc<NodeInfo>>,
    /// The cluster; `None` until its first node joins.
    cluster: Option<ClusterId>,
    /// The proof of each node that joined with a data directory.
    proofs: BTreeMap<NodeId, NodeProof>,
}

impl NodesState {
    pub(in crate::state) fn get(&self, id: NodeId) -> Option<&Arc<NodeInfo>> {
        self.infos.get(&id)
    }

    pub(in crate::state) fn all(&self) -> &BTreeMap<NodeId, Arc<NodeInfo>> {
        &self.infos
    }

    pub(in crate::state) fn draining(&self) -> &BTreeSet<NodeId> {
        &self.draining
    }

    pub(in crate::state) fn removed(&self) -> &[Arc<NodeInfo>] {
        &self.removed
    }

    pub(in crate::state) fn cluster(&self) -> Option<ClusterId> {
        self.cluster
    }

    pub(in crate::state) fn proof(&self, node: NodeId) -> Option<&NodeProof> {
        self.proofs.get(&node)
    }

    pub(in crate::state) fn has_role(&self, node: NodeId, role: Role) -> bool {
        self.infos.get(&node).is_some_and(|info| info.role == role)
    }

    pub(in crate::state) fn role_of(&self, node: NodeId) -> Result<Role> {
        let unknown = || Error::new(ErrorCode::Unknown, format!("node {node} is not registered"));
        self.infos.get(&node).map(|info| info.role).ok_or_else(unknown)
    }

    /// Iterates over the nodes of a role, ascending.
    pub(in crate::state) fn of_role(&self, role: Role) -> impl Iterator<Item = &NodeInfo> {
        self.infos.values().filter(move |node| node.role == role).map(|node| &**node)
    }

    /// Iterates over the indexers that may receive slices, ascending.
    pub(in crate::state) fn receiving(&self) -> impl Iterator<Item = &NodeInfo> {
        self.of_role(Role::Indexer).filter(|node| !self.draining.contains(&node.id))
    }

    /// True if an indexer may receive slices.
    pub(in crate::state) fn receives(&self, node: NodeId) -> bool {
        self.has_role(node, Role::Indexer) && !self.draining.contains(&node)
    }

    #[cfg(test)]
    pub(in crate::state) fn edit(
        &mut self,
    ) -> (&mut BTreeMap<NodeId, Arc<NodeInfo>>, &mut BTreeSet<NodeId>) {
        (&mut self.infos, &mut self.draining)
    }

    /// Registers a process or its new address; returns true if that changes the state.
    pub(super) fn register(&mut self, node: &NodeInfo) -> Result<bool> {
        let bad = |what: String| Err(Error::new(ErrorCode::InvalidParameter, what));
        if node.id.0 == 0 {
            return bad("0 is not a valid node id".into());
        }
        let lengths = [node.address.len(), node.zone.len()];
        if node.address.is_empty() || lengths.iter().any(|len| *len > NAME_BYTES_MAX) {
            return bad(format!(
                "node {}: the address is empty, or the address or the zone is too long",
                node.id
            ));
        }
        let was = self.removed.iter().find(|removed| removed.id == node.id);
        if node.role == Role::Coordinator && was.is_some_and(|was| was.role == node.role) {
            return bad(format!("coordinator {} was removed", node.id));
        }
        match self.infos.get(&node.id) {
            Some(known) if known.role != node.role => {
                return bad(format!("node {} is registered as a {}", node.id, known.role.name()));
            }
            Some(known) if **known == *node => return Ok(false),
            Some(_) => {}
            None => NODES.check(self.infos.len() + 1)?,
        }
        self.removed.retain(|removed| removed.id != node.id);
        self.infos.insert(node.id, Arc::new(node.clone()));
        Ok(true)
    }

    /// Records the proof of a node, and sets the cluster's id to `fresh` if it has none. Returns
    /// the id of the cluster, and true if the proof has changed.
    pub(super) fn record_proof(
        &mut self,
        node: NodeId,
        proof: NodeProof,
        fresh: ClusterId,
    ) -> (ClusterId, bool) {
        let cluster = *self.cluster.get_or_insert(fresh);
        (cluster, self.proofs.insert(node, proof) != Some(proof))
    }

    pub(super) fn drain(&mut self, node: NodeId, drain: bool) {
        match drain {
            true => drop(self.draining.insert(node)),
            false => drop(self.draining.remove(&node)),
        }
    }

    /// Removes a node, and adds it to the list of the last removed nodes.
    pub(super) fn remove(&mut self, node: NodeId) {
        self.removed.extend(self.infos.remove(&node));
        let surplus = self.removed.len().saturating_sub(REMOVED_NODES_MAX);
        self.removed.drain(..surplus);
        self.proofs.remove(&node);
        self.draining.remove(&node);
    }
}
