//! The syntax tree of statements that create buckets and data sets, and of INSERT.

use proto::expr::Expr;
use proto::model::bucket::SourceKind;

/// The statement `CREATE BUCKET`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateBucket {
    /// The name of the new bucket.
    pub name: String,
    /// True if an existing bucket is no error.
    pub if_not_exists: bool,
    /// The source of the bucket's documents, which numbers their mutations.
    pub source: SourceKind,
    /// `vbuckets`, if given.
    pub vbuckets: Option<u16>,
    /// `projectors`, if given.
    pub projectors: Option<u16>,
    /// `copies`, if given.
    pub copies: Option<u8>,
}

/// The statement `CREATE BUCKET … FROM FILES`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateDataSet {
    /// The name of the data set.
    pub name: String,
    /// True if an existing bucket is no error (IF NOT EXISTS).
    pub if_not_exists: bool,
    /// The number of partitions of each version.
    pub partitions: Option<u16>,
    /// The number of projectors that have each partition.
    pub replication: Option<u16>,
    /// The time for which an old version is kept after the last request for it, in milliseconds.
    pub idle_ms: Option<u64>,
}

/// The statement `INSERT INTO b (id, doc) VALUES …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// The name of the bucket.
    pub bucket: String,
    /// The id and the document of each row.
    pub rows: Vec<(Expr, Expr)>,
    /// True with `ON CONFLICT (id) DO UPDATE SET doc = excluded.doc`.
    pub replace: bool,
}
