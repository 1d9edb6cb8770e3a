//! What a rebalance is planned from.

use proto::model::ids::{Generation, IndexId, NodeId};

/// The cluster, as far as a plan looks at it. Moves under way count as if they were done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The registered indexers.
    pub nodes: Vec<Node>,
    /// The indexes.
    pub indexes: Vec<Index>,
}

/// An indexer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The node.
    pub node: NodeId,
    /// Its zone; empty is a zone of its own.
    pub zone: String,
    /// It gets no more slices and gives away what it has.
    pub draining: bool,
    /// Was it heard of?
    pub health: Health,
}

/// Whether a node was heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// Just now: it can give and get copies.
    Alive,
    /// Not just now: it gives and gets nothing, but it is expected back with what it has.
    Silent,
    /// Not for so long that its copies count as lost.
    Gone,
}

/// An index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its number.
    pub index: IndexId,
    /// Its generation.
    pub generation: Generation,
    /// Its name.
    pub name: String,
    /// How many copies of each slice there are to be.
    pub copies: usize,
    /// May its slices move? Else they only weigh.
    pub movable: bool,
    /// Its slices by number.
    pub slices: Vec<Slice>,
}

/// A slice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// The nodes that have a copy, the one that is asked first at the front.
    pub copies: Vec<NodeId>,
    /// It has a move under way and gets no other one.
    pub busy: bool,
    /// Nodes whose copy has gone but is still read: it cannot come back to them yet.
    pub leaving: Vec<NodeId>,
    /// The bytes of a copy.
    pub bytes: u64,
    /// What else a copy costs its node, in any unit; entries, as long as nodes do not count scans.
    pub load: u64,
}
