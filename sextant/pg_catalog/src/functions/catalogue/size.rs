//! Sizes of relations and values.

use proto::value::Value;

use super::table::{all_rows, row_of, rows_with};
use crate::data::{FunctionRow, data};
use crate::error::{Error, Result};
use crate::functions::context::{Arguments, Context};
use crate::functions::signature::Scalar;
use crate::types::oid;
use crate::types::text::print;

fn relation_size(context: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    let object = a.object(0)?;
    if row_of(context, "pg_class", object)?.is_none() {
        return Ok(Value::Null);
    }
    // A size that is not known is NULL.
    Ok(context.session.relation_size(object).map_or(Value::Null, Value::int))
}

/// Returns the size of a table with its indexes, or of its indexes.
fn total_size(context: &mut Context<'_>, a: &Arguments<'_>, with_table: bool) -> Result<Value> {
    let own = relation_size(context, a)?;
    let Some(own) = own.as_number().and_then(|number| number.as_i64()) else {
        return Ok(Value::Null);
    };
    let mut total = if with_table { own } else { 0 };
    for index in rows_with(context, "pg_index", "indrelid", a.value(0))? {
        let size = context.session.relation_size(index.oid("indexrelid")?);
        total = total.saturating_add(size.unwrap_or(0));
    }
    Ok(Value::int(total))
}

fn database_size(context: &mut Context<'_>, _: &Arguments<'_>) -> Result<Value> {
    let mut total: i64 = 0;
    for row in all_rows(context, "pg_class")? {
        let size = context.session.relation_size(row.oid("oid")?);
        total = total.saturating_add(size.unwrap_or(0));
    }
    Ok(Value::int(total))
}

/// Returns the bytes that PostgreSQL stores a value in: a short text has a header of one byte.
fn column_size(context: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    let ty = data().base(a.oid(0));
    let size = data().type_row(ty).map_or(-1, |row| row.size);
    if size > 0 {
        return Ok(Value::int(size.into()));
    }
    let length = match a.value(0) {
        Value::String(text) => text.len(),
        Value::Array(items) => items.len() * 8 + 20,
        value => print(value, &a.ty(0), &context.names())?.len(),
    };
    let header = if ty == oid::CSTRING || length < 127 { 1 } else { 4 };
    Ok(Value::int((length + header) as i64))
}

/// Returns the implementation of a function.
pub(super) fn find(row: &FunctionRow) -> Option<Scalar> {
    Some(match row.name.as_str() {
        "pg_relation_size" if row.arguments.len() > 1 => |context, a| match a.text(1)? {
            "main" => relation_size(context, a),
            "fsm" | "vm" | "init" => Ok(Value::int(0)),
            fork => Err(Error::new("22023", format!("invalid fork name: \"{fork}\""))
                .with_hint("Valid fork names are \"main\", \"fsm\", \"vm\", and \"init\".")),
        },
        "pg_relation_size" | "pg_table_size" => relation_size,
        "pg_total_relation_size" => |context, a| total_size(context, a, true),
        "pg_indexes_size" => |context, a| total_size(context, a, false),
        "pg_database_size" | "pg_tablespace_size" => database_size,
        "pg_column_size" => column_size,
        "pg_stat_get_live_tuples" => |context, a| {
            let row = row_of(context, "pg_class", a.object(0)?)?;
            let rows = row.map_or(Ok(0), |row| {
                Ok(row.value("reltuples")?.as_number().map_or(0, |n| n.as_f64() as i64))
            });
            rows.map(|rows: i64| Value::int(rows.max(0)))
        },
        "pg_stat_get_numscans" => |_, _| Ok(Value::int(0)),
        _ => return None,
    })
}
