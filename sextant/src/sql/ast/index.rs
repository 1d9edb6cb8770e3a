//! Definitions of indexes, and their changes.

use proto::expr::Expr;
use proto::model::index::Compression;

/// `CREATE INDEX`.
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
    /// The key parts.
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

/// An expression and its text, which may become a column's name.
#[derive(Clone, Debug, PartialEq)]
pub struct TextExpr {
    /// The expression.
    pub expr: Expr,
    /// The text of the expression, as written.
    pub text: String,
}

/// `PARTITION BY` of an index.
#[derive(Clone, Debug, PartialEq)]
pub enum Partition {
    /// `HASH (…)`.
    Hash(Vec<Expr>),
    /// `RANGE (expr) SPLIT AT (…)`.
    Range {
        /// The expression.
        expr: Expr,
        /// The split points as literals; empty if they are to be derived from documents.
        points: Vec<Expr>,
    },
}

/// A change of an index for which a new generation is built.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexChange {
    /// `REINDEX`: no change.
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

/// Options of an index; `None` leaves an option unchanged.
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
