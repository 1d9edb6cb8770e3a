//! The identity of a process with a data directory: its cluster, and the secret that proves its
//! right to its node id.

use std::path::PathBuf;
use std::sync::Mutex;

use tokio::sync::watch;

use crate::env::{DirectoryIdentity, Env};
use crate::error::{Error, ErrorCode, Result};
use crate::lock::lock;
use crate::model::identity::{ClusterId, JoinRequest, NodeProof};
use crate::model::node::NodeInfo;

/// The identity of a running process, stored in its data directory, and whether the coordinator
/// has accepted it.
pub struct NodeIdentity {
    env: Env,
    dir: PathBuf,
    identity: Mutex<DirectoryIdentity>,
    joined: watch::Sender<bool>,
}

impl NodeIdentity {
    /// Reads or creates the identity of a data directory, see [`DirectoryIdentity::open`]. Blocks
    /// the thread.
    pub fn open(env: &Env, dir: PathBuf, node: &NodeInfo, has_data: bool) -> Result<Self> {
        let who = (node.role, node.id);
        let identity = DirectoryIdentity::open(&*env.fs, &dir, who, &*env.random, has_data)?;
        let (identity, joined) = (Mutex::new(identity), watch::Sender::new(false));
        Ok(Self { env: env.clone(), dir, identity, joined })
    }

    /// Returns the cluster of the directory; `None` before it has joined one.
    pub fn cluster(&self) -> Option<ClusterId> {
        lock(&self.identity).cluster
    }

    /// Records whether the coordinator has accepted this process under its node id.
    pub fn set_joined(&self, joined: bool) {
        self.joined.send_replace(joined);
    }

    /// Returns true while the coordinator accepts this process under its node id.
    pub fn is_joined(&self) -> bool {
        *self.joined.borrow()
    }

    /// Waits until the coordinator has accepted this process under its node id. Until then another
    /// process may have the id, and the catalog's slices for the id belong to that process.
    pub async fn wait_joined(&self) {
        // The sender lives in `self`, so that the wait ends only with the value.
        drop(self.joined.subscribe().wait_for(|joined| *joined).await);
    }

    /// Returns the proof that this process owns its node id.
    pub fn proof(&self) -> NodeProof {
        lock(&self.identity).proof()
    }

    /// Removes the cluster from the stored identity, so that the process can join another one.
    /// Used only for an operator's `--force-new-cluster`.
    pub fn leave_cluster(&self) -> Result<()> {
        let mut identity = lock(&self.identity);
        let mut left = identity.clone();
        left.cluster = None;
        left.write(&*self.env.fs, &self.dir)?;
        *identity = left;
        Ok(())
    }

    /// Returns the request to register `node` and to join the coordinator's cluster.
    pub fn join_request(&self, node: NodeInfo) -> JoinRequest {
        let random = &*self.env.random;
        let fresh = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
        let (cluster, proof) = (self.cluster(), self.proof());
        JoinRequest { node, cluster, fresh: ClusterId(fresh), proof }
    }

    /// Checks that a coordinator's answer is from the cluster of the directory. If the directory
    /// has no cluster yet, stores `cluster` in it, before any data is stored. Blocks for a short
    /// write.
    pub fn accept_cluster(&self, cluster: Option<ClusterId>) -> Result<()> {
        let mut identity = lock(&self.identity);
        match (identity.cluster, cluster) {
            (None, None) => Ok(()),
            (Some(own), Some(other)) if own == other => Ok(()),
            (None, Some(cluster)) => {
                let mut joined = identity.clone();
                joined.cluster = Some(cluster);
                joined.write(&*self.env.fs, &self.dir)?;
                *identity = joined;
                Ok(())
            }
            (Some(own), other) => {
                Err(other_cluster_error(&self.dir.display().to_string(), own, other))
            }
        }
    }
}

/// Returns the error for data of the cluster `own` if the coordinator is of the cluster `other`,
/// or has no data (`None`). `whose` names the data in the message.
pub fn other_cluster_error(whose: &str, own: ClusterId, other: Option<ClusterId>) -> Error {
    match other {
        None => Error::new(
            ErrorCode::InvalidParameter,
            format!("{whose} belongs to cluster {own}, but the coordinator has no data at all"),
        )
        .with_hint(
            "restore the coordinators' data directories; if they are lost for good, give every process an empty directory",
        ),
        Some(other) => Error::new(
            ErrorCode::InvalidParameter,
            format!("{whose} belongs to cluster {own}, but the coordinator is of cluster {other}"),
        )
        .with_hint(
            "check --coordinators and --data; a coordinator that began anew does not know this data, \
             and an empty directory joins its cluster",
        ),
    }
}
