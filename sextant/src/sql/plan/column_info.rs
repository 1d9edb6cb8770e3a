//! The columns of a result.

use proto::expr::ColumnType;

/// The name and the type of a result column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnInfo {
    /// The name of the column.
    pub name: String,
    /// The type of the column.
    pub column_type: ColumnType,
}
