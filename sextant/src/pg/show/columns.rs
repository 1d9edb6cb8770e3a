//! Descriptions of result columns.

use proto::expr::ColumnType;

use crate::sql::plan::ColumnInfo;

/// Describes columns by name and type.
pub(super) fn named(columns: &[(&str, ColumnType)]) -> Vec<ColumnInfo> {
    let column = |(name, column_type): &(&str, ColumnType)| ColumnInfo {
        name: (*name).to_owned(),
        column_type: *column_type,
    };
    columns.iter().map(column).collect()
}
