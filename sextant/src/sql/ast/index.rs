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
    /// `PRIMARY`: no keys.
    pub primary: bool,
    /// The bucket to index.
    pub bucket: String,
    /// The key parts.
    pub keys: Vec<KeyItem>,
    /// `INCLUDE (…)`.
    pub include: Vec<TextExpr>,
    /// `WHERE`.
    pub predicate: Option<Expr>,
    /// `PARTITION BY`; `None` partitions by document id.
    pub partition: Option<Partition>,
    /// `slices`, if given.
    pub slices: Option<u16>,
    /// `replicas`, if given.
    pub replicas: Option<u8>,
    /// `separate_included_columns`.
    pub separate_included_columns: bool,
    /// `included_kb_max`, if given.
    pub included_kb_max: Option<u16>,
    /// `compression`.
    pub compression: Compression,
    /// `slice_bytes_max`: the size of a slice in bytes from which on the index gets more of them; 0 means never.
    pub slice_bytes_max: Option<u64>,
    /// `defer_build`.
    pub defer_build: bool,
    /// The statement, as written.
    pub sql: String,
}

/// One part of an index key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyItem {
    /// The expression that is evaluated for each document.
    pub key: TextExpr,
    /// `DESC`.
    pub descending: bool,
    /// `INCLUDE MISSING`.
    pub include_missing: bool,
}

/// An expression with its text, which may become a column's name.
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
        /// The split points, literals; none if they are to be taken from documents.
        points: Vec<Expr>,
    },
}

/// A change of an index that needs a new generation.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexChange {
    /// `REINDEX`: none.
    Nothing,
    /// `SET (option = …, …)`.
    Options(IndexOptions),
    /// `SET KEYS (…)`.
    Keys(Vec<KeyItem>),
    /// `ADD INCLUDE (…)`.
    AddInclude(Vec<TextExpr>),
    /// `DROP INCLUDE (…)`.
    DropInclude(Vec<TextExpr>),
    /// `SET WHERE …`; `None` for `DROP WHERE`.
    Predicate(Option<Expr>),
    /// `PARTITION BY HASH (…)`; `None` for the document's id.
    Partition(Option<Partition>),
}

/// Options of an index; `None` leaves an option unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexOptions {
    /// `slices`.
    pub slices: Option<u16>,
    /// `replicas`.
    pub replicas: Option<u8>,
    /// `separate_included_columns`.
    pub separate_included_columns: Option<bool>,
    /// `included_kb_max`.
    pub included_kb_max: Option<u16>,
    /// `compression`.
    pub compression: Option<Compression>,
    /// `slice_bytes_max`.
    pub slice_bytes_max: Option<u64>,
}
