//! The placement of an index's slices on nodes, and the assignment of documents to slices.
//!
//! A *slice* has *replicas* on several nodes, in a list that begins with the node that scans
//! prefer. All slices of an index on one node are its *shard* on that node.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::model::ids::{NodeId, SliceNo, TopologyNo, hash_id};

/// An index's assignment of documents to slices, and of slices to nodes.
pub trait TopologyProvider: Send + Sync {
    /// Returns the slice for a document's entries. If the index is partitioned by id, the slice
    /// follows from the document's id, otherwise from the encoded values of the partition
    /// expressions.
    fn partition(&self, key: PartitionKey<'_>) -> SliceNo;
    /// Returns the nodes that have a replica of a slice, the preferred one first.
    fn replicas(&self, slice: SliceNo) -> &[NodeId];
    /// Returns the number of slices.
    fn slices(&self) -> u16;
}

/// The value that determines the slice of a document's entries.
#[derive(Clone, Copy, Debug)]
pub enum PartitionKey<'a> {
    /// The document's id.
    Id(&'a str),
    /// The encoded values of the partition expressions.
    Encoded(&'a [u8]),
}

/// The topology of one index: the number of its slices, to which documents are assigned by hash,
/// and the nodes of each slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexTopology {
    /// The version number of the index's topology.
    pub number: TopologyNo,
    /// The nodes with a replica, for each slice.
    pub placement: Vec<Vec<NodeId>>,
}

impl TopologyProvider for IndexTopology {
    fn partition(&self, key: PartitionKey<'_>) -> SliceNo {
        // The upper half of the hash: vbuckets are taken from the lower bits.
        let hash = match key {
            PartitionKey::Id(id) => hash_id(id),
            PartitionKey::Encoded(bytes) => xxh3_64(bytes),
        } >> 32;
        SliceNo((hash % self.placement.len().max(1) as u64) as u16)
    }

    fn replicas(&self, slice: SliceNo) -> &[NodeId] {
        self.placement.get(usize::from(slice.0)).map_or(&[], Vec::as_slice)
    }

    fn slices(&self) -> u16 {
        self.placement.len() as u16
    }
}

impl IndexTopology {
    /// Returns true if a node has a replica of a slice.
    pub fn hosts(&self, node: NodeId, slice: SliceNo) -> bool {
        self.replicas(slice).contains(&node)
    }

    /// Returns the slices that a node has, ascending; together they are its shard of the index.
    pub fn slices_on(&self, node: NodeId) -> Vec<SliceNo> {
        (0..self.slices()).map(SliceNo).filter(|slice| self.hosts(node, *slice)).collect()
    }

    /// Returns all nodes that have a slice of the index, ascending.
    pub fn nodes(&self) -> Vec<NodeId> {
        let mut nodes: Vec<_> = self.placement.iter().flatten().copied().collect();
        nodes.sort();
        nodes.dedup();
        nodes
    }
}
