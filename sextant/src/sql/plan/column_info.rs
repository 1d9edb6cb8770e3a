//! The columns of a result.

use proto::expr::ColumnType;

/// Name and type of a column of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnInfo {
    /// The name of the column.
    pub name: String,
    /// The type of the column.
    pub column_type: ColumnType,
}
