//! The placement of an index's slices on nodes, and the assignment of documents to slices.
//!
//! In the index-manager design the partition algorithm determines a *partition*; a partition has *replicas*; and in a
//! replica a key is in a *slice* on a *shard* (all slices of one index on one node). Here a partition is a slice
//! number, and a replica is a place in the slice's list of nodes, of which scans prefer the first one.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::model::ids::{NodeId, SliceNo, TopologyNo, hash_id};

/// The partition algorithm of an index: the slice of a key, and the nodes of a slice.
pub trait TopologyProvider: Send + Sync {
    /// Returns the slice that holds the entries of a document, from its id if the index is partitioned by id, else from the
    /// encoded values of the partition expressions.
    fn partition(&self, key: PartitionKey<'_>) -> SliceNo;
    /// The nodes that keep a slice, the preferred one first.
    fn replicas(&self, slice: SliceNo) -> &[NodeId];
    /// The number of slices.
    fn slices(&self) -> u16;
}

/// The partition key of one document.
#[derive(Clone, Copy, Debug)]
pub enum PartitionKey<'a> {
    /// The document's id.
    Id(&'a str),
    /// The encoded values of the partition expressions.
    Encoded(&'a [u8]),
}

/// The topology of one index: hash partitioning, and a list of nodes for each slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexTopology {
    /// The number of this state in the index's topology history.
    pub number: TopologyNo,
    /// For each slice, the nodes that keep it.
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
    /// True if a node keeps a slice.
    pub fn hosts(&self, node: NodeId, slice: SliceNo) -> bool {
        self.replicas(slice).contains(&node)
    }

    /// The slices that a node keeps, ascending: its shard of the index.
    pub fn slices_on(&self, node: NodeId) -> Vec<SliceNo> {
        (0..self.slices()).map(SliceNo).filter(|slice| self.hosts(node, *slice)).collect()
    }

    /// All nodes that keep a slice, ascending.
    pub fn nodes(&self) -> Vec<NodeId> {
        let mut nodes: Vec<_> = self.placement.iter().flatten().copied().collect();
        nodes.sort();
        nodes.dedup();
        nodes
    }
}
