//! Aggregates with WITHIN GROUP.

use proto::value::Value;

use super::arithmetic::double;
use super::signature::{OrderedSet, OrderedSetCall};
use crate::data::FunctionRow;
use crate::error::{Error, Result};
use crate::types::oid;

/// Returns the implementation of an aggregate.
pub(super) fn find(row: &FunctionRow) -> Option<OrderedSet> {
    Some(match row.name.as_str() {
        "mode" => |_, call| Ok(mode(&call.sorted)),
        "percentile_disc" => |_, call| percentiles(&call, discrete),
        "percentile_cont" => |_, call| percentiles(&call, continuous),
        "rank" => |_, call| Ok(Value::int(call.before as i64 + 1)),
        "dense_rank" => |_, call| Ok(Value::int(call.distinct_before as i64 + 1)),
        "percent_rank" => |_, call| match call.sorted.len() {
            0 => Ok(Value::int(0)),
            count => double(call.before as f64 / count as f64, oid::FLOAT8),
        },
        "cume_dist" => |_, call| {
            let count = call.sorted.len() as f64 + 1.0;
            double((call.before + call.peers + 1) as f64 / count, oid::FLOAT8)
        },
        _ => return None,
    })
}

fn key(row: &[Value]) -> Value {
    row.first().cloned().unwrap_or(Value::Null)
}

/// Returns the most frequent value; the first of several.
fn mode(sorted: &[Vec<Value>]) -> Value {
    let mut best: &[Vec<Value>] = &[];
    for group in sorted.chunk_by(|a, b| a == b) {
        if group.len() > best.len() {
            best = group;
        }
    }
    best.first().map_or(Value::Null, |row| key(row))
}

/// Returns the value at a fraction, or those at an array of fractions.
fn percentiles(
    call: &OrderedSetCall,
    at: fn(&[Vec<Value>], f64) -> Result<Value>,
) -> Result<Value> {
    let one = |fraction: &Value| match fraction.as_number() {
        Some(number) if (0.0..=1.0).contains(&number.as_f64()) => {
            if call.sorted.is_empty() {
                Ok(Value::Null)
            } else {
                at(&call.sorted, number.as_f64())
            }
        }
        Some(number) => {
            Err(Error::new("22003", format!("percentile value {number} is not between 0 and 1")))
        }
        None => Ok(Value::Null),
    };
    match call.direct.first() {
        Some(Value::Array(fractions)) if !call.sorted.is_empty() => {
            fractions.iter().map(one).collect::<Result<_>>().map(Value::Array)
        }
        Some(Value::Array(_)) | None => Ok(Value::Null),
        Some(fraction) => one(fraction),
    }
}

fn discrete(sorted: &[Vec<Value>], fraction: f64) -> Result<Value> {
    let at = (fraction * sorted.len() as f64).ceil() as usize;
    Ok(sorted.get(at.saturating_sub(1)).map_or(Value::Null, |row| key(row)))
}

fn continuous(sorted: &[Vec<Value>], fraction: f64) -> Result<Value> {
    let place = fraction * (sorted.len() - 1) as f64;
    let number = |at: usize| {
        sorted.get(at).and_then(|row| key(row).as_number()).map_or(0.0, |number| number.as_f64())
    };
    let (low, high) = (number(place.floor() as usize), number(place.ceil() as usize));
    double(low + (high - low) * place.fract(), oid::FLOAT8)
}
