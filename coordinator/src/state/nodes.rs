//! Registration: which processes belong to the cluster, and where they listen.

use std::sync::Arc;

use proto::command::Outcome;
use proto::index::NodeInfo;
use proto::{Error, ErrorCode};

use super::{Change, Effect, StateContext};

/// No address and no zone is longer.
const NAME_BYTES_MAX: usize = 255;

impl StateContext {
    pub(super) fn register_node(&mut self, node: &NodeInfo) -> Change {
        let bad = |what: String| Err(Error::new(ErrorCode::InvalidParameter, what));
        if node.id.0 == 0 {
            return bad("node 0 does not exist".into());
        }
        let lengths = [node.address.len(), node.zone.len()];
        if node.address.is_empty() || lengths.iter().any(|len| *len > NAME_BYTES_MAX) {
            return bad(format!("node {}: the address or the zone has no valid length", node.id));
        }
        match self.nodes.get(&node.id) {
            Some(known) if known.role != node.role => {
                bad(format!("node {} is a {} already", node.id, known.role.name()))
            }
            Some(known) if **known == *node => Ok((Outcome::Done, Vec::new())),
            _ => {
                self.nodes.insert(node.id, Arc::new(node.clone()));
                Ok((Outcome::Done, vec![Effect::CatalogChanged]))
            }
        }
    }
}
