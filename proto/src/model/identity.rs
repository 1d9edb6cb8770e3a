//! The identity of a cluster and of the processes in it.
//!
//! Numbers of nodes, buckets and indexes are valid only within one cluster, which has a random
//! *cluster id*. The id is drawn when the first node joins a coordinator without data. It is
//! stored in the StateContext, in the catalog, and in every data directory. A *proof* shows that
//! a process is the one that registered under a node id. The proof is derived from a secret in
//! the process's data directory, and the coordinator stores it.
//!
//! - The first node that joins a coordinator without data founds the cluster. A coordinator
//!   refuses data of another cluster. Each call carries the cluster of its caller, and a process
//!   of another cluster refuses it.
//! - A process applies no catalog before it has joined, and none of another cluster. A process
//!   without the proof gets a node id only after the node with this id has been silent for
//!   `SILENT_MS_MAX`.
//! - A router registers without proof, because its directory is a cache: it switches to another
//!   cluster with the next catalog. Its heartbeats carry a random number of the process instead.
//!   While the leader receives heartbeats with one number, it refuses those with another one.
//! - Buckets and indexes have a random id in addition to their number ([`UniqueId`]). Data under
//!   a number with another id is not served, and is removed only if the catalog names its id as
//!   dropped.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::model::ids::Generation;
use crate::model::node::NodeInfo;

/// The random id of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClusterId(pub u128);

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for ClusterId {
    type Err = ();

    /// Parses an id of 32 hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, ()> {
        match text.len() {
            32 => u128::from_str_radix(text, 16).map(Self).map_err(|_| ()),
            _ => Err(()),
        }
    }
}

/// The random id of a bucket or an index in addition to its number, drawn when it is created. A
/// coordinator that was restored from an older copy may assign a number again. The random id then
/// shows that older data under the same number belongs to another object.
///
/// A bucket stores the complete id. An index uses a part of it as the number of its first
/// generation, which all data of the index contain
/// ([`LocalIndexId`](crate::model::ids::LocalIndexId)).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct UniqueId(pub u128);

impl UniqueId {
    /// Creates an id from two random numbers.
    pub fn of(random: [u64; 2]) -> Self {
        Self(u128::from(random[0]) << 64 | u128::from(random[1]))
    }

    /// Returns the number of an index's first generation: 1 to 2^31, so that enough larger
    /// numbers remain.
    pub fn first_generation(self) -> Generation {
        Generation((self.0 as u32 >> 1) + 1)
    }

    /// Returns the number of the generation after `newest`: larger by a random 1 to 2^16. So a
    /// coordinator that was restored from an older copy does not reuse a number under which nodes
    /// have other contents. Returns `None` if the numbers are used up.
    pub fn generation_after(self, newest: Generation) -> Option<Generation> {
        newest.0.checked_add(u32::from(self.0 as u16) + 1).map(Generation)
    }
}

impl fmt::Display for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The proof that a process owns its node id: a number that only this process can send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeProof(pub u128);

/// The request of a process with a data directory to join the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinRequest {
    /// The process that joins.
    pub node: NodeInfo,
    /// The cluster of its data directory; `None` for a directory that has not joined a cluster yet.
    pub cluster: Option<ClusterId>,
    /// A random id, which becomes the cluster's id if this is its first node.
    pub fresh: ClusterId,
    /// The proof that the coordinator stores for this node id, and expects in later calls.
    pub proof: NodeProof,
}
