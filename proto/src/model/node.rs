//! Registered processes and their roles.

use serde::{Deserialize, Serialize};

use crate::model::ids::NodeId;

/// The role of a process in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Role {
    /// A member of the replicated coordinator.
    Coordinator,
    /// Keeps documents or follows a source, and streams key-versions.
    Projector,
    /// Stores slices of indexes.
    Indexer,
    /// Runs scans.
    Router,
}

impl Role {
    /// The name of the role on the command line and in SHOW NODES.
    pub fn name(self) -> &'static str {
        match self {
            Self::Coordinator => "coordinator",
            Self::Projector => "projector",
            Self::Indexer => "indexer",
            Self::Router => "router",
        }
    }
}

/// A registered process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeInfo {
    /// The node id, unique over all roles and stored in the node's data directory.
    pub id: NodeId,
    /// The role of the process.
    pub role: Role,
    /// The address that other processes call, `host:port`. For a router, which no process calls,
    /// the gRPC port for users. Any unique name if all roles are in one process.
    pub address: String,
    /// The failure zone: copies of a slice are placed in different zones if possible. A node
    /// without a zone is treated as a separate zone.
    pub zone: String,
}
