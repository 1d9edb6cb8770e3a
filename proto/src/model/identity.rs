//! Identity of clusters and of the processes in them.
//!
//! Numbers of nodes, buckets and indexes are valid only within one cluster. A *cluster id*
//! identifies that cluster. It is drawn when the first node joins a coordinator without data, and
//! is stored in the StateContext, in the catalog, and in every data directory. A *proof* shows that
//! a process is the one that registered under a node id: it is derived from a secret in the
//! process's data directory, and the coordinator stores it.
//!
//! - The first node that joins a coordinator without data founds the cluster. A coordinator refuses
//!   data of another cluster, and a call carries the cluster of its caller, so a process of another
//!   cluster refuses it.
//! - A process applies no catalog before it has joined, and none of another cluster. A process
//!   without the proof gets a node id only after the node with this id has been silent for
//!   `SILENT_MS_MAX`.
//! - A router registers without proof, because its directory is a cache: it switches to another
//!   cluster with the next catalog. Its heartbeats carry a random mark of the process, and the
//!   leader refuses another mark while it receives the first.
//! - Buckets and indexes have a random id in addition to their number ([`UniqueId`]). Data under a
//!   number with another id is not served, and is removed only if the catalog names its id as
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

    /// Parses 32 hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, ()> {
        match text.len() {
            32 => u128::from_str_radix(text, 16).map(Self).map_err(|_| ()),
            _ => Err(()),
        }
    }
}

/// The random id of a bucket or an index in addition to its number, drawn when it is created. A
/// coordinator that was restored from an older copy may assign a number again; data under the
/// number with another random id belongs to another object.
///
/// A bucket stores the complete id. An index uses a part of it as its first generation, which all
/// data of the index contain ([`LocalIndexId`](crate::model::ids::LocalIndexId)).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct UniqueId(pub u128);

impl UniqueId {
    /// Creates an id from two random numbers.
    pub fn of(random: [u64; 2]) -> Self {
        Self(u128::from(random[0]) << 64 | u128::from(random[1]))
    }

    /// Returns the first generation of an index: 1 to 2^31, which leaves enough larger numbers.
    pub fn first_generation(self) -> Generation {
        Generation((self.0 as u32 >> 1) + 1)
    }

    /// Returns the generation after `newest`: 1 to 2^16 larger, so that a coordinator that was
    /// restored from an older copy does not reuse a number under which nodes have other contents.
    /// `None` if the numbers are used up.
    pub fn generation_behind(self, newest: Generation) -> Option<Generation> {
        newest.0.checked_add(u32::from(self.0 as u16) + 1).map(Generation)
    }
}

impl fmt::Display for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The proof that a process is the one that registered under its node id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeProof(pub u128);

/// The request of a process with a data directory to join the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinRequest {
    /// The process that joins.
    pub node: NodeInfo,
    /// The cluster of its data directory; `None` for a directory that has not joined a cluster yet.
    pub cluster: Option<ClusterId>,
    /// The id that the cluster gets if this is its first node.
    pub fresh: ClusterId,
    /// The proof by which this process is recognized later.
    pub proof: NodeProof,
}
