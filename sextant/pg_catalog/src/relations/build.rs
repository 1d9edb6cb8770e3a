//! Rows of a relation from some of its columns: the others have defaults.

use std::sync::Arc;

use proto::value::Value;

use super::Rows;
use crate::data::{Column, RelationRow, data};
use crate::error::{Error, Result};
use crate::types::oid::{self, Oid};

/// Returns the rows of a relation of `pg_catalog`. Each gives the values of the named columns. Others are NULL, or
/// the zero of their type where NULL is not allowed.
pub(super) fn rows<const N: usize>(
    relation: &str,
    names: [&str; N],
    values: impl IntoIterator<Item = [Value; N]>,
) -> Result<Rows> {
    let relation = relation_of(relation)?;
    let mut at = [0; N];
    for (at, name) in at.iter_mut().zip(names) {
        let found = relation.columns.iter().position(|column| column.name == name);
        *at = found
            .ok_or_else(|| Error::internal(format!("{} has no column {name}", relation.name)))?;
    }
    let defaults: Vec<Value> = relation.columns.iter().map(default_value).collect();
    let row = |values: [Value; N]| {
        let mut row = defaults.clone();
        for (at, value) in at.into_iter().zip(values) {
            row[at] = value;
        }
        row.into_boxed_slice()
    };
    Ok(Arc::new(values.into_iter().map(row).collect()))
}

/// Returns rows and more rows of one relation.
pub(super) fn concat(parts: impl IntoIterator<Item = Rows>) -> Rows {
    let mut all = Vec::new();
    for part in parts {
        all.extend(part.iter().cloned());
    }
    Arc::new(all)
}

fn relation_of(name: &str) -> Result<&'static RelationRow> {
    data()
        .relation("pg_catalog", name)
        .ok_or_else(|| Error::internal(format!("there is no relation {name}")))
}

fn default_value(column: &Column) -> Value {
    if !column.not_null {
        return Value::Null;
    }
    let row = data().type_row(column.ty);
    match (column.ty, row.map_or(' ', |row| row.category)) {
        (oid::BOOL, _) => Value::Bool(false),
        (_, 'A') => Value::Array(Vec::new()),
        (_, 'N') | (oid::XID | oid::CID, _) => Value::int(0),
        _ => Value::from(""),
    }
}

/// Returns a text as a value of a column.
pub(super) fn text(text: impl Into<String>) -> Value {
    Value::String(text.into())
}

/// An integer or OID.
pub(super) fn int(int: impl Into<i64>) -> Value {
    Value::int(int.into())
}

/// A boolean.
pub(super) fn truth(truth: bool) -> Value {
    Value::Bool(truth)
}

/// A text, or NULL.
pub(super) fn optional(value: Option<impl Into<String>>) -> Value {
    value.map_or(Value::Null, |value| text(value))
}

/// An array of integers or OIDs.
pub(super) fn ints(list: impl IntoIterator<Item = impl Into<i64>>) -> Value {
    Value::Array(list.into_iter().map(int).collect())
}

/// The OIDs of schemas.
pub(super) mod schema {
    use super::Oid;

    pub(in crate::relations) const PG_CATALOG: Oid = 11;
    pub(in crate::relations) const PUBLIC: Oid = 2200;
    pub(in crate::relations) const INFORMATION_SCHEMA: Oid = 13_127;

    /// Returns the OID of a schema of the fixed data.
    pub(in crate::relations) fn of(name: &str) -> Oid {
        if name == "information_schema" { INFORMATION_SCHEMA } else { PG_CATALOG }
    }
}
