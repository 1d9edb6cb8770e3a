//! The functions of `information_schema` about the types of columns.

use proto::value::Value;

use super::table::rows_with;
use crate::data::FunctionRow;
use crate::error::Result;
use crate::functions::context::{Arguments, Context};
use crate::functions::signature::Scalar;
use crate::types::oid::{self, Oid};

/// The modifier that `varchar` and others have more than their length.
const HEADER: i64 = 4;

fn typed(a: &Arguments<'_>) -> Result<(Oid, i64)> {
    Ok((a.object(0)?, a.int(1)?))
}

fn int(number: Option<i64>) -> Result<Value> {
    Ok(number.map_or(Value::Null, Value::int))
}

/// Returns the length of a type of characters or bits.
fn max_length(a: &Arguments<'_>) -> Result<Option<i64>> {
    Ok(match typed(a)? {
        (_, -1) => None,
        (oid::BPCHAR | oid::VARCHAR, modifier) => Some(modifier - HEADER),
        // bit and varbit
        (1560 | 1562, modifier) => Some(modifier),
        _ => None,
    })
}

fn octet_length(_: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    let (ty, modifier) = typed(a)?;
    let is_text = matches!(ty, oid::TEXT | oid::BPCHAR | oid::VARCHAR);
    int(match modifier {
        _ if !is_text => None,
        // The longest text.
        -1 => Some(1 << 30),
        // A character of UTF-8 has four bytes at most.
        modifier => Some((modifier - HEADER) * 4),
    })
}

fn numeric_precision(_: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    int(match typed(a)? {
        (oid::INT2, _) => Some(16),
        (oid::INT4, _) => Some(32),
        (oid::INT8, _) => Some(64),
        (oid::NUMERIC, -1) => None,
        (oid::NUMERIC, modifier) => Some((modifier - HEADER) >> 16 & 65535),
        (oid::FLOAT4, _) => Some(24),
        (oid::FLOAT8, _) => Some(53),
        _ => None,
    })
}

fn numeric_scale(_: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    int(match typed(a)? {
        (oid::INT2 | oid::INT4 | oid::INT8, _) => Some(0),
        (oid::NUMERIC, modifier) if modifier != -1 => Some((modifier - HEADER) & 2047),
        _ => None,
    })
}

fn datetime_precision(_: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    int(match typed(a)? {
        (oid::DATE, _) => Some(0),
        (oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ | 1266, modifier) => {
            Some(if modifier < 0 { 6 } else { modifier })
        }
        (oid::INTERVAL, modifier) if modifier < 0 || modifier & 65535 == 65535 => Some(6),
        (oid::INTERVAL, modifier) => Some(modifier & 65535),
        _ => None,
    })
}

/// Returns the place of a column in the key of an index, from 1.
fn index_position(context: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    let rows = rows_with(context, "pg_index", "indexrelid", a.value(0))?;
    let Some(row) = rows.first() else { return Ok(Value::Null) };
    let at = row.array("indkey")?.iter().position(|column| column == a.value(1));
    int(at.map(|at| at as i64 + 1))
}

/// Returns the implementation of a function.
pub(super) fn find(row: &FunctionRow) -> Option<Scalar> {
    Some(match row.name.as_str() {
        "_pg_char_max_length" => |_, a| int(max_length(a)?),
        "_pg_char_octet_length" => octet_length,
        "_pg_numeric_precision" => numeric_precision,
        "_pg_numeric_precision_radix" => |_, a| {
            int(match a.object(0)? {
                oid::INT2 | oid::INT4 | oid::INT8 | oid::FLOAT4 | oid::FLOAT8 => Some(2),
                oid::NUMERIC => Some(10),
                _ => None,
            })
        },
        "_pg_numeric_scale" => numeric_scale,
        "_pg_datetime_precision" => datetime_precision,
        // The fields of an interval's modifier have no names here: none has them.
        "_pg_interval_type" => |_, _| Ok(Value::Null),
        "_pg_index_position" => index_position,
        _ => return None,
    })
}
