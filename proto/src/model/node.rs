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
    /// Keeps slices.
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
    /// The number of the node; unique over all roles, and stored in its data directory.
    pub id: NodeId,
    /// The role of the process.
    pub role: Role,
    /// The address that other processes call, `host:port`. For a router, which no process calls, its gRPC port for users.
    /// In one process any unique name.
    pub address: String,
    /// The failure zone: copies of a slice avoid sharing one. A node without a zone counts as a zone of its own.
    pub zone: String,
}
