//! Identity of clusters and of the processes in them.
//!
//! Numbers of nodes, buckets and indexes mean something only within one cluster. A *cluster id* says which cluster that
//! is. It is drawn when the first node joins a coordinator without data, and stands in the StateContext, in the catalog,
//! and in every data directory. A *proof* says that a process is the one that registered under a node's number: it is
//! derived from a secret in the process's data directory, and the coordinator keeps it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::model::ids::{BucketId, Generation};
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

    /// Reads 32 hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, ()> {
        match text.len() {
            32 => u128::from_str_radix(text, 16).map(Self).map_err(|_| ()),
            _ => Err(()),
        }
    }
}

/// The random id of a bucket or an index beside its number, drawn when it is created, or derived by
/// [`UniqueId::of_earlier_build`]. A coordinator that was restored from an
/// older copy may give a number again; data under the number with another random id belongs to another object.
///
/// A bucket keeps it whole. An index keeps a part of it as its first generation, which all that belongs to the index names
/// ([`LocalIndexId`](crate::model::ids::LocalIndexId)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UniqueId(pub u128);

impl UniqueId {
    /// Makes an id of two random numbers.
    pub fn of(random: [u64; 2]) -> Self {
        Self(u128::from(random[0]) << 64 | u128::from(random[1]))
    }

    /// The id of a bucket that an earlier build made without one. It depends on nothing else, so that the bucket has the same
    /// id after a coordinator was restored from a copy of that build's data.
    pub fn of_earlier_build(cluster: ClusterId, bucket: BucketId) -> Self {
        let mut bytes = b"bucket of an earlier build".to_vec();
        bytes.extend(cluster.0.to_be_bytes());
        bytes.extend(bucket.0.to_be_bytes());
        Self(xxhash_rust::xxh3::xxh3_128(&bytes))
    }

    /// The first generation of an index: 1 to 2^31, so that there is room for later ones.
    pub fn first_generation(self) -> Generation {
        Generation((self.0 as u32 >> 1) + 1)
    }

    /// A generation behind another: 1 to 2^16 further. A coordinator that was restored from an older copy does not give the number again
    /// that nodes know with other contents. `None` if there is none left.
    pub fn generation_behind(self, newest: Generation) -> Option<Generation> {
        newest.0.checked_add(u32::from(self.0 as u16) + 1).map(Generation)
    }
}

impl fmt::Display for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The proof that a process is the one that registered under its node number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeProof(pub u128);

/// A process with a data directory asks to join the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinRequest {
    /// The process.
    pub node: NodeInfo,
    /// The cluster of its data directory; `None` for a directory that has not joined a cluster yet.
    pub cluster: Option<ClusterId>,
    /// The id of the cluster, if this is its first node.
    pub fresh: ClusterId,
    /// Proves later that this process is the one that joined.
    pub proof: NodeProof,
    /// Set by the leader: the proof of a silent holder of the number, whose place this process takes.
    pub replaces: Option<NodeProof>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Projectors have stored these ids.
    #[test]
    fn ids_of_an_earlier_builds_buckets_never_change() {
        let id = |cluster, bucket| UniqueId::of_earlier_build(ClusterId(cluster), BucketId(bucket));
        assert_eq!(id(5, 1).to_string(), "29841462e160daefcdc4f28b6a9e98d3");
        assert_ne!(id(5, 1), id(5, 2));
        assert_ne!(id(5, 1), id(6, 1));
    }
}
