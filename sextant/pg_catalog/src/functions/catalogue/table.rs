//! Rows of the catalogue's tables, by the names of their columns.

use proto::value::{NULL, Number, Value};

use crate::data::{RelationRow, data};
use crate::error::{Error, Result};
use crate::functions::context::Context;
use crate::relations::Rows;
use crate::types::oid::{self, Oid};

/// A row of a table of `pg_catalog`.
pub(super) struct TableRow {
    relation: &'static RelationRow,
    rows: Rows,
    at: usize,
}

fn relation(name: &str) -> Result<&'static RelationRow> {
    let row = data().relation("pg_catalog", name);
    row.ok_or_else(|| Error::internal(format!("there is no relation pg_catalog.{name}")))
}

fn column(relation: &RelationRow, name: &str) -> Result<usize> {
    let at = relation.columns.iter().position(|column| column.name == name);
    at.ok_or_else(|| Error::internal(format!("there is no column {}.{name}", relation.name)))
}

/// Returns the OID of a table of `pg_catalog`; `None` if there is none with this name.
pub(super) fn table_oid(name: &str) -> Option<Oid> {
    data().relation("pg_catalog", name).map(|row| row.oid)
}

/// Returns the rows of a table whose column has a value.
pub(super) fn rows_with(
    context: &mut Context<'_>,
    table: &str,
    key: &str,
    value: &Value,
) -> Result<Vec<TableRow>> {
    let relation = relation(table)?;
    let column = column(relation, key)?;
    let positions = context.relations.rows_with(relation.index, column, value)?;
    context.limits.step(positions.len() as u64 + 1)?;
    let rows = context.relations.rows(relation.index)?;
    let row = |at: &u32| TableRow { relation, rows: rows.clone(), at: *at as usize };
    Ok(positions.iter().map(row).collect())
}

/// Returns the row of a table with an OID.
pub(super) fn row_of(context: &mut Context<'_>, table: &str, oid: Oid) -> Result<Option<TableRow>> {
    Ok(rows_with(context, table, "oid", &Value::int(oid.into()))?.into_iter().next())
}

/// Returns all rows of a table.
pub(super) fn all_rows(context: &mut Context<'_>, table: &str) -> Result<Vec<TableRow>> {
    let relation = relation(table)?;
    let rows = context.relations.rows(relation.index)?;
    context.limits.step(rows.len() as u64)?;
    Ok((0..rows.len()).map(|at| TableRow { relation, rows: rows.clone(), at }).collect())
}

impl TableRow {
    /// Returns the value of a column.
    pub fn value(&self, name: &str) -> Result<&Value> {
        let column = column(self.relation, name)?;
        Ok(self.rows.get(self.at).and_then(|row| row.get(column)).unwrap_or(&NULL))
    }

    /// Returns a text; empty for NULL.
    pub fn text(&self, name: &str) -> Result<&str> {
        Ok(self.value(name)?.as_str().unwrap_or_default())
    }

    /// Returns the object's name: the first column of this type; empty without one.
    pub fn name(&self) -> &str {
        let at = self.relation.columns.iter().position(|column| column.ty == oid::NAME);
        let row = self.rows.get(self.at);
        at.and_then(|at| row?.get(at)?.as_str()).unwrap_or_default()
    }

    /// Returns an integer; 0 for NULL.
    pub fn int(&self, name: &str) -> Result<i64> {
        Ok(self.value(name)?.as_number().and_then(Number::as_i64).unwrap_or(0))
    }

    /// Returns an OID; 0 for NULL.
    pub fn oid(&self, name: &str) -> Result<Oid> {
        Ok(self.int(name)? as Oid)
    }

    /// Returns the elements of an array; none for NULL.
    pub fn array(&self, name: &str) -> Result<&[Value]> {
        match self.value(name)? {
            Value::Array(items) => Ok(items),
            _ => Ok(&[]),
        }
    }

    /// Returns the elements of an array of OIDs.
    pub fn oids(&self, name: &str) -> Result<Vec<Oid>> {
        let oid = |value: &Value| value.as_number().and_then(Number::as_i64).unwrap_or(0) as Oid;
        Ok(self.array(name)?.iter().map(oid).collect())
    }
}
