//! Indexes: what the user declared, and the state, places and moves that the cluster adds to it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::expr::{ColumnType, Expr};
use crate::model::ids::{BucketId, Generation, IndexId, NodeId, SliceNo, TopologyNo};
use crate::model::moves::SliceMove;
use crate::model::topology::IndexTopology;

/// Slices of an index that does not say how many it wants.
pub const SLICES_DEFAULT: u16 = 8;
/// Most slices of an index: a scan opens a cursor for each.
pub const SLICES_MAX: u16 = 1024;
/// Most replicas of an index besides the first copy.
pub const REPLICAS_MAX: u8 = 7;
/// Most key parts and included expressions of an index together.
pub const COLUMNS_MAX: usize = 32;

/// The states of an index, as the index-manager design names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum IndexState {
    /// Defined, not being built; BUILD INDEX moves it on.
    Pending,
    /// Being built; the coordinator moves it on when every slice is readable.
    Backfill,
    /// Serves scans and follows the maintenance stream.
    Maintenance,
}

impl IndexState {
    /// Its name in SHOW INDEXES and in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Backfill => "backfill",
            Self::Maintenance => "maintenance",
        }
    }
}

/// One part of an index key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyPart {
    /// What is evaluated for each document; `Expr::Unnest` for an array key.
    pub expr: Expr,
    /// The name of its column in results.
    pub name: String,
    /// The type of its column in results.
    pub column_type: ColumnType,
    /// DESC.
    pub descending: bool,
    /// On the leading part: documents where it is MISSING are indexed too. On later parts it changes
    /// nothing, since these are indexed with MISSING in any case.
    pub include_missing: bool,
}

/// An included expression: kept beside the key, not part of the order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IncludedColumn {
    /// What is evaluated for each document.
    pub expr: Expr,
    /// The name of its column in results.
    pub name: String,
    /// The type of its column in results.
    pub column_type: ColumnType,
}

/// What decides which slice an entry belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PartitionBy {
    /// The hash of the document's id: a mutation concerns one slice.
    DocumentId,
    /// The hash of expressions over the document: a mutation concerns every slice.
    Exprs(Vec<Expr>),
}

/// What the user declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexSpec {
    /// The name, folded as SQL folds it.
    pub name: String,
    /// The name of the bucket.
    pub bucket: String,
    /// PRIMARY: no key parts, one entry per document.
    pub primary: bool,
    /// The key parts, in order.
    pub keys: Vec<KeyPart>,
    /// The included expressions, in order.
    pub include: Vec<IncludedColumn>,
    /// WHERE: documents for which it is not true are left out.
    pub predicate: Option<Expr>,
    /// How entries are spread over slices.
    pub partition: PartitionBy,
    /// How many slices.
    pub slices: u16,
    /// How many copies besides the first.
    pub replicas: u8,
    /// The included values have fragments of their own, which scans that do not ask for them never read.
    pub include_apart: bool,
    /// The statement that declared it, for SHOW INDEXES.
    pub sql: String,
}

impl IndexSpec {
    /// A primary index of one slice without copies, partitioned by document: what a definition begins
    /// with.
    pub fn new(name: impl Into<String>, bucket: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            bucket: bucket.into(),
            primary: true,
            keys: Vec::new(),
            include: Vec::new(),
            predicate: None,
            partition: PartitionBy::DocumentId,
            slices: 1,
            replicas: 0,
            include_apart: false,
            sql: String::new(),
        }
    }

    /// Is there an array key, and which part is it?
    pub fn array_part(&self) -> Option<usize> {
        self.keys.iter().position(|part| matches!(part.expr, Expr::Unnest(_)))
    }

    /// DESC flags of the key parts, as the key decoders want them.
    pub fn descending(&self) -> Vec<bool> {
        self.keys.iter().map(|part| part.descending).collect()
    }
}

/// An index with all that the services must know of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexInfo {
    /// Its number.
    pub id: IndexId,
    /// Its bucket.
    pub bucket: BucketId,
    /// What the user declared.
    pub spec: Arc<IndexSpec>,
    /// Where it is in its life.
    pub state: IndexState,
    /// The generation that is built or served.
    pub generation: Generation,
    /// Where its slices are.
    pub topology: Arc<IndexTopology>,
    /// The moves of its slices that are under way, by number.
    pub moves: Vec<SliceMove>,
    /// Grows with each change of all this: who knows a larger one does not go by a smaller one.
    pub revision: u64,
}

impl IndexInfo {
    /// Does a node get the mutations of a slice: because it keeps a copy, is about to have one, or still
    /// has one that scans may need?
    pub fn feeds(&self, node: NodeId, slice: SliceNo) -> bool {
        self.topology.hosts(node, slice)
            || self.moves.iter().any(|m| m.slice == slice && m.feeds(node))
    }

    /// Does a node get the mutations of any slice?
    pub fn feeds_any(&self, node: NodeId) -> bool {
        self.topology.placement.iter().flatten().any(|host| *host == node)
            || self.moves.iter().any(|m| m.feeds(node))
    }

    /// May a node have a copy of a slice: what it has else can go?
    pub fn may_keep(&self, node: NodeId, slice: SliceNo) -> bool {
        self.topology.hosts(node, slice)
            || self.moves.iter().any(|m| m.slice == slice && m.concerns(node))
    }
}

impl IndexInfo {
    /// The first generation of an index, before it is built; for each slice, the nodes that have it.
    pub fn new(
        id: IndexId,
        bucket: BucketId,
        spec: IndexSpec,
        placement: Vec<Vec<NodeId>>,
    ) -> Self {
        Self {
            id,
            bucket,
            spec: Arc::new(spec),
            state: IndexState::Backfill,
            generation: Generation(0),
            topology: Arc::new(IndexTopology { number: TopologyNo(1), placement }),
            moves: Vec::new(),
            revision: 0,
        }
    }
}
