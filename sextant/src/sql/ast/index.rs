//! The syntax tree of statements that define or change indexes.

use proto::expr::Expr;
use proto::model::index::Compression;

/// The statement `CREATE INDEX`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateIndex {
    /// The name of the new index.
    pub name: String,
    /// True if an existing index is no error.
    pub if_not_exists: bool,
    /// True with `PRIMARY`: the index has no keys.
    pub primary: bool,
    /// The name of the bucket.
    pub bucket: String,
    /// The key parts of the index.
    pub keys: Vec<KeyItem>,
    /// The included expressions: `INCLUDE (…)`.
    pub include: Vec<TextExpr>,
    /// The condition of `WHERE`.
    pub predicate: Option<Expr>,
    /// The partition of `PARTITION BY`; `None` to partition by document id.
    pub partition: Option<Partition>,
    /// The option `slices`, if given.
    pub slices: Option<u16>,
    /// The option `replicas`, if given.
    pub replicas: Option<u8>,
    /// The option `separate_included_columns`.
    pub separate_included_columns: bool,
    /// The option `included_kb_max`, if given.
    pub included_kb_max: Option<u16>,
    /// The option `compression`.
    pub compression: Compression,
    /// The option `slice_bytes_max`, if given: the size of a slice at which the index gets more
    /// slices, in bytes; 0 for no limit.
    pub slice_bytes_max: Option<u64>,
    /// The option `defer_build`.
    pub defer_build: bool,
    /// The statement, as written.
    pub sql: String,
}

/// One part of an index key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyItem {
    /// The expression that is evaluated for each document.
    pub key: TextExpr,
    /// True with `DESC`.
    pub descending: bool,
    /// True with `INCLUDE MISSING`.
    pub include_missing: bool,
}

/// An expression with its text, which may become the name of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct TextExpr {
    /// The expression.
    pub expr: Expr,
    /// The text of the expression, as written.
    pub text: String,
}

/// The partitioning of an index by `PARTITION BY`.
#[derive(Clone, Debug, PartialEq)]
pub enum Partition {
    /// `HASH (…)`.
    Hash(Vec<Expr>),
    /// `RANGE (expr) SPLIT AT (…)`.
    Range {
        /// The expression whose ranges form the partitions.
        expr: Expr,
        /// The split points as literals; empty if they are to be derived from documents.
        points: Vec<Expr>,
    },
}

/// A change of an index. A new generation of the index is built for it.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexChange {
    /// `REINDEX`, which builds a new generation without a change.
    Nothing,
    /// `SET (option = …, …)`.
    Options(IndexOptions),
    /// `SET KEYS (…)`.
    Keys(Vec<KeyItem>),
    /// `ADD INCLUDE (…)`.
    AddInclude(Vec<TextExpr>),
    /// `DROP INCLUDE (…)`.
    DropInclude(Vec<TextExpr>),
    /// `SET WHERE …` with the condition; `None` for `DROP WHERE`.
    Predicate(Option<Expr>),
    /// `PARTITION BY …`; `None` for the partition by document id.
    Partition(Option<Partition>),
}

/// The options of an index that a statement sets; `None` leaves an option unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexOptions {
    /// The option `slices`.
    pub slices: Option<u16>,
    /// The option `replicas`.
    pub replicas: Option<u8>,
    /// The option `separate_included_columns`.
    pub separate_included_columns: Option<bool>,
    /// The option `included_kb_max`.
    pub included_kb_max: Option<u16>,
    /// The option `compression`.
    pub compression: Option<Compression>,
    /// The option `slice_bytes_max`.
    pub slice_bytes_max: Option<u64>,
}
