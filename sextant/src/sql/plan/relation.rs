//! The source of a SELECT, and the columns of its result.

use std::sync::Arc;

use proto::expr::ColumnType;
use proto::model::bucket::BucketInfo;
use proto::model::index::IndexInfo;

/// The index or bucket that a SELECT reads.
#[derive(Clone, Debug)]
pub enum Relation {
    /// An index: scanned.
    Index(Arc<IndexInfo>),
    /// A bucket: its documents are read by id.
    Bucket(Arc<BucketInfo>),
}

/// Name and type of a column of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnInfo {
    /// The name of the column.
    pub name: String,
    /// The type of the column.
    pub column_type: ColumnType,
}
