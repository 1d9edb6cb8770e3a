//! Adds coordinators to the nodes and removes them, when a change of the log's members is
//! applied.

use proto::model::ids::NodeId;
use proto::model::node::{NodeInfo, Role};
use proto::{Error, ErrorCode, Result};

use crate::state::context::StateContext;
use crate::state::effect::{Effect, changed_if};
use crate::state::nodes::register_unproven;

impl StateContext {
    /// Registers a new coordinator. Returns an error, and changes nothing, if a process of another
    /// role has the node id.
    pub fn add_coordinator(
        &mut self,
        position: u64,
        node: NodeId,
        address: &str,
    ) -> Result<Vec<Effect>> {
        if let Some(known) = self.node(node).filter(|known| known.role != Role::Coordinator) {
            let what = format!("node {node} is registered as a {}", known.role.name());
            return Err(Error::new(ErrorCode::InvalidParameter, what).with_hint(
                "give the new coordinator a number of its own; SHOW NODES lists those in use",
            ));
        }
        let (role, zone) = (Role::Coordinator, String::new());
        let info = NodeInfo { id: node, role, address: address.to_owned(), zone };
        let (_, effects) = register_unproven(self, &info)?;
        Ok(self.coordinators_changed(position, effects))
    }

    /// Removes a coordinator from the nodes, if it is registered.
    pub fn remove_coordinator(&mut self, position: u64, node: NodeId) -> Vec<Effect> {
        let is_known = self.node(node).is_some_and(|known| known.role == Role::Coordinator);
        if is_known {
            self.nodes.remove(node);
        }
        self.coordinators_changed(position, changed_if(is_known))
    }

    /// Counts the change, and returns the effects of it.
    fn coordinators_changed(&mut self, position: u64, effects: Vec<Effect>) -> Vec<Effect> {
        self.clock.set_position(position);
        self.count_change(&effects);
        let broken = || if effects.is_empty() { Ok(()) } else { self.check() };
        debug_assert_eq!(broken(), Ok(()), "after a change of the coordinators");
        effects
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::tests::{node, with_bucket};

    #[test]
    fn coordinators_are_added_and_removed_as_nodes() {
        let mut state = with_bucket();
        let cas = state.catalog_cas();
        assert!(!state.add_coordinator(90, NodeId(4), "h:4").unwrap().is_empty());
        assert!(state.catalog_cas() > cas && state.node(NodeId(4)).is_some());
        assert!(!state.remove_coordinator(91, NodeId(4)).is_empty());
        assert!(state.node(NodeId(4)).is_none());
        assert_eq!(state.catalog().removed.last().map(|removed| removed.id), Some(NodeId(4)));
        assert_eq!(state.remove_coordinator(92, NodeId(4)), Vec::new(), "it is gone already");
        assert_eq!(state.position(), 92);
    }

    #[test]
    fn a_taken_node_id_is_refused() {
        let mut state = with_bucket();
        let indexer = node(40, Role::Indexer);
        register_unproven(&mut state, &indexer).unwrap();
        let before = state.clone();
        let refused =
            state.add_coordinator(90, NodeId(40), "h:4").expect_err("an indexer's number");
        assert_eq!(refused.code, ErrorCode::InvalidParameter);
        assert_eq!(state, before);
        state.remove_coordinator(91, NodeId(40));
        assert!(state.node(NodeId(40)).is_some(), "a coordinator of that number was no node");
    }
}
