//! Indexes: the user's definition of an index, and the state, topology and moves that the cluster
//! adds to it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::expr::{ColumnType, Expr, Fields};
use crate::model::ids::{BucketId, Generation, IndexId, LocalIndexId, NodeId, SliceNo, TopologyNo};
use crate::model::moves::SliceMove;
use crate::model::topology::{IndexTopology, PartitionKey, TopologyProvider};

/// Default number of slices of an index.
pub const SLICES_DEFAULT: u16 = 8;
/// Maximum number of generations of an index at a time: the one that serves, one that is being
/// built, and older ones that are still read.
pub const GENERATIONS_MAX: usize = 4;
/// Maximum number of slices of an index. A scan opens a cursor for each slice.
pub const SLICES_MAX: u16 = 1024;
/// The length limit of a split point (a bound between two slices), in bytes.
pub const BOUND_BYTES_MAX: usize = 4 << 10;
/// The smallest allowed value of the setting `slice_bytes_max`, in bytes: smaller slices cost
/// more than they help.
pub const SLICE_BYTES_MAX_LEAST: u64 = 64 << 10;
/// Maximum number of replicas of an index in addition to the first copy.
pub const REPLICAS_MAX: u8 = 7;
/// Maximum number of key parts and included expressions of an index, together.
pub const COLUMNS_MAX: usize = 32;
/// Default limit of the included values of one entry, in KiB. Equal to the size of sixteen keys,
/// so that the memory of a batch of rows is at most a small multiple of that without included
/// values.
pub const INCLUDED_KB_DEFAULT: u16 = 64;
/// The largest allowed limit of included values, in KiB: the length of the longest document.
pub const INCLUDED_KB_MAX: u16 = 1024;

/// The state of a generation of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum IndexState {
    /// The index is declared, and its build has not begun; BUILD INDEX begins it.
    Pending,
    /// The generation is being built, until every slice can be read.
    Backfill,
    /// The generation serves scans and follows the maintenance stream.
    Maintenance,
    /// A newer generation has replaced this one. It still follows the maintenance stream, and
    /// serves only scans, transactions and tokens that began on it. When there are none left, it
    /// is dropped.
    Retired,
}

impl IndexState {
    /// Returns the name of the state in SHOW INDEXES and in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Backfill => "backfill",
            Self::Maintenance => "online",
            Self::Retired => "retired",
        }
    }

    /// Returns true if scans may read a generation in this state.
    pub fn is_readable(self) -> bool {
        matches!(self, Self::Maintenance | Self::Retired)
    }
}

/// The compression of the blocks of an index's fragments. A block is compressed only if that
/// saves at least an eighth of it.
///
/// The default is no compression, because columns without their shared prefixes compress little.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// LZ4: fast; for long keys or repetitive included values.
    Lz4,
    /// zstd: smaller, but reads cost several times as much.
    Zstd,
}

impl Compression {
    /// All compressions, with their names in SQL.
    pub const NAMES: [(&'static str, Self); 3] =
        [("none", Self::None), ("lz4", Self::Lz4), ("zstd", Self::Zstd)];
}

/// One part of an index key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyPart {
    /// The expression that is evaluated for each document; `Expr::Unnest` for an array key.
    pub expr: Expr,
    /// The name of its column in results.
    pub name: String,
    /// The type of its column in results.
    pub column_type: ColumnType,
    /// True if the part is in descending order (DESC).
    pub descending: bool,
    /// True if documents are indexed too for which this leading part is MISSING. No effect on
    /// later parts, for which such documents are indexed in any case.
    pub include_missing: bool,
}

/// An included expression: its values are stored with the entries, and do not affect their order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IncludedColumn {
    /// The expression evaluated for each document.
    pub expr: Expr,
    /// The name of its column in results.
    pub name: String,
    /// The type of its column in results.
    pub column_type: ColumnType,
}

/// The rule that determines the slice of an entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PartitionBy {
    /// By the hash of the document's id: a mutation concerns one slice.
    DocumentId,
    /// By the hash of expressions over the document: a mutation concerns every slice.
    Exprs(Vec<Expr>),
    /// By the range that contains an expression's value: a mutation concerns every slice.
    Range(RangePartition),
}

impl PartitionBy {
    /// Returns the expressions that determine the slice; empty if the document's id determines
    /// it.
    pub fn exprs(&self) -> &[Expr] {
        match self {
            Self::DocumentId => &[],
            Self::Exprs(exprs) => exprs,
            Self::Range(range) => std::slice::from_ref(&range.expr),
        }
    }
}

/// A partition by ranges of values. Slice 0 has the values below the first bound; slice n has
/// those from bound n - 1, inclusive, to bound n, exclusive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RangePartition {
    /// The expression that is evaluated for each document.
    pub expr: Expr,
    /// The bounds as encoded key parts, ascending. There is one bound less than slices.
    pub bounds: Vec<Vec<u8>>,
}

impl RangePartition {
    /// Returns the slice of an encoded value.
    pub fn slice(&self, encoded: &[u8]) -> SliceNo {
        SliceNo(self.bounds.partition_point(|bound| &bound[..] <= encoded) as u16)
    }
}

/// The definition of an index, as the user declared it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexSpec {
    /// The name of the index, case-folded as in SQL.
    pub name: String,
    /// The name of the bucket.
    pub bucket: String,
    /// True for a PRIMARY index: no key parts, one entry per document.
    pub primary: bool,
    /// The key parts, in order.
    pub keys: Vec<KeyPart>,
    /// The included expressions, in order.
    pub include: Vec<IncludedColumn>,
    /// The WHERE condition. Only documents for which it is true are indexed.
    pub predicate: Option<Expr>,
    /// The distribution of entries over slices.
    pub partition: PartitionBy,
    /// The number of slices.
    pub slices: u16,
    /// The number of copies of each slice in addition to the first.
    pub replicas: u8,
    /// True if the included values are stored in separate fragments, which a scan without included values never reads.
    pub separate_included_columns: bool,
    /// The limit of the included values of one entry, in KiB. The definition of the index has
    /// this limit, and not the settings of a projector, so that all copies of a slice leave out
    /// the same documents.
    pub included_kb_max: u16,
    /// Compression of the index's fragments; a scan decompresses the blocks that it reads.
    pub compression: Compression,
    /// The statement that declared the index, for SHOW INDEXES.
    pub sql: String,
}

impl IndexSpec {
    /// Returns the fields of a document that the index's expressions read.
    pub fn fields(&self) -> Fields {
        let partition = self.partition.exprs();
        let keys = self.keys.iter().map(|part| &part.expr);
        let include = self.include.iter().map(|column| &column.expr);
        Fields::of(keys.chain(include).chain(&self.predicate).chain(partition))
    }

    /// Creates the definition of a primary index with one slice and no replicas, partitioned by document id.
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
            separate_included_columns: false,
            included_kb_max: INCLUDED_KB_DEFAULT,
            compression: Compression::None,
            sql: String::new(),
        }
    }

    /// Returns the position of the array key among the key parts; `None` if there is none.
    pub fn array_part(&self) -> Option<usize> {
        self.keys.iter().position(|part| matches!(part.expr, Expr::Unnest(_)))
    }

    /// Returns the descending flag of each key part, for the key decoders.
    pub fn descending(&self) -> Vec<bool> {
        self.keys.iter().map(|part| part.descending).collect()
    }
}

/// The record of a generation of an index in the catalog: its definition, state and topology.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexInfo {
    /// The number of the index.
    pub id: IndexId,
    /// The bucket of the index.
    pub bucket: BucketId,
    /// The definition that the user declared.
    pub spec: Arc<IndexSpec>,
    /// The state of the generation.
    pub state: IndexState,
    /// The number of the generation.
    pub generation: Generation,
    /// The topology: for each slice, the nodes that store it.
    pub topology: Arc<IndexTopology>,
    /// The moves of its slices that are in progress, by number.
    pub moves: Vec<SliceMove>,
    /// The version of this record, which grows with each change. A service ignores a record with
    /// a smaller revision than that of its present one.
    pub revision: u64,
    /// The `revision` at the last change of the definition: of the name, a column, or a setting.
    pub defined: u64,
}

impl IndexInfo {
    /// Returns the number of the index with this generation.
    pub fn local_id(&self) -> LocalIndexId {
        LocalIndexId { index: self.id, generation: self.generation }
    }

    /// Returns the slice for a partition key.
    pub fn slice_of(&self, key: PartitionKey<'_>) -> SliceNo {
        match (&self.spec.partition, key) {
            (PartitionBy::Range(range), PartitionKey::Encoded(encoded)) => range.slice(encoded),
            _ => self.topology.partition(key),
        }
    }

    /// Returns true if a node must receive the mutations of a slice: it has a copy, catches up in
    /// a move to get one, or still has an old copy that scans may need.
    pub fn is_fed(&self, node: NodeId, slice: SliceNo) -> bool {
        self.topology.hosts(node, slice)
            || self.moves.iter().any(|m| m.slice == slice && m.feeds(node))
    }

    /// Returns true if a node must receive the mutations of any slice.
    pub fn is_fed_any(&self, node: NodeId) -> bool {
        self.topology.placement.iter().flatten().any(|host| *host == node)
            || self.moves.iter().any(|m| m.feeds(node))
    }

    /// Returns true if each slice that a node stores is being moved away from the node.
    pub fn moves_all_from(&self, node: NodeId) -> bool {
        let is_moved =
            |slice: SliceNo| self.moves.iter().any(|m| m.slice == slice && m.from == Some(node));
        let slices = (0..self.topology.placement.len()).map(|slice| SliceNo(slice as u16));
        slices.filter(|slice| self.topology.hosts(node, *slice)).all(is_moved)
    }

    /// Returns true if a node may have a copy of a slice. A node deletes any other copy.
    pub fn may_keep(&self, node: NodeId, slice: SliceNo) -> bool {
        self.topology.hosts(node, slice)
            || self.moves.iter().any(|m| m.slice == slice && m.concerns(node))
    }
}

impl IndexInfo {
    /// Creates the first generation of an index, before its build. `placement` has the nodes of each slice.
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
            defined: 0,
        }
    }
}
