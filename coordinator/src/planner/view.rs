//! The input of the planner: the nodes and the indexes of the cluster.

use proto::model::ids::{Generation, IndexId, NodeId};

/// The cluster in the form that the planner reads. Unfinished moves count as done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterView {
    /// The registered indexers.
    pub nodes: Vec<NodeView>,
    /// The indexes whose slices the planner may move.
    pub indexes: Vec<IndexView>,
}

/// An indexer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    /// The id of the node.
    pub node: NodeId,
    /// The zone of the node. A node without a zone name counts as a separate zone.
    pub zone: String,
    /// True if the node receives no more slices and gives its slices away.
    pub draining: bool,
    /// The health of the node.
    pub health: Health,
}

/// The health of a node, from the age of its last heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// The node reported recently. It can give and receive copies.
    Alive,
    /// The node has not reported recently. It gives and receives nothing, but it is expected back with its copies.
    Silent,
    /// The node has been silent so long that its copies count as lost.
    Gone,
}

/// The facts about an index that the planner needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexView {
    /// The number of the index.
    pub index: IndexId,
    /// The generation whose slices are placed.
    pub generation: Generation,
    /// The name of the index, for messages.
    pub name: String,
    /// The desired number of copies of each slice.
    pub copies: usize,
    /// True if the slices may move. Otherwise they only count as weight.
    pub movable: bool,
    /// The slices, in the order of their numbers.
    pub slices: Vec<SliceView>,
}

/// One slice with its size, load and copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SliceView {
    /// The nodes with a copy. The first node is read first.
    pub copies: Vec<NodeId>,
    /// True if the slice cannot get another move: it has an unfinished move, or no copy to copy
    /// from yet.
    pub busy: bool,
    /// The nodes that have lost their copy in the topology, while scans may still read it. They
    /// cannot receive a copy yet.
    pub leaving: Vec<NodeId>,
    /// The bytes of a copy.
    pub bytes: u64,
    /// A further cost of a copy. At present this is the number of entries, because nodes do not
    /// count scans.
    pub load: u64,
}
