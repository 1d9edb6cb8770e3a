//! Registered processes and their roles.

use serde::{Deserialize, Serialize};

use crate::model::ids::NodeId;

/// The role of a process in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Role {
    /// A member of the replicated coordinator.
    Coordinator,
    /// Stores documents or receives them from a producer, and streams their index keys
    /// (key-versions).
    Projector,
    /// Stores slices of indexes.
    Indexer,
    /// Plans and runs scans.
    Router,
}

impl Role {
    /// Returns the name of the role on the command line and in SHOW NODES.
    pub fn name(self) -> &'static str {
        match self {
            Self::Coordinator => "coordinator",
            Self::Projector => "projector",
            Self::Indexer => "indexer",
            Self::Router => "router",
        }
    }
}

/// A registered process: its node id, role and address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeInfo {
    /// The node id, unique over all roles and stored in the node's data directory.
    pub id: NodeId,
    /// The role of the process.
    pub role: Role,
    /// The address that other processes call, `host:port`. A router, which no process calls, has
    /// the address of its gRPC port for users. If all roles are in one process, any unique name.
    pub address: String,
    /// The failure zone: copies of a slice are placed in different zones if possible. A node
    /// without a zone is treated as a separate zone.
    pub zone: String,
}
