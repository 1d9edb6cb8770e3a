//! The operators.

use std::borrow::Cow;

use proto::value::{Number, Value};

use super::arithmetic::{binary, double, is_integer};
use super::cast::cast;
use super::context::{Arguments, Context};
use super::signature::Scalar;
use super::{array, json, later};
use crate::data::OperatorRow;
use crate::error::{Error, Result};
use crate::types::oid;
use crate::types::order::{comparable, compare};

/// Returns the implementation of an operator.
pub(super) fn find(row: &OperatorRow) -> Option<Scalar> {
    if later::is_later_operator(row) {
        return None;
    }
    comparison(row)
        .or_else(|| pattern(row))
        .or_else(|| collection(row))
        .or_else(|| if row.left == 0 { prefix(row) } else { arithmetic(row) })
}

fn order(arguments: &Arguments<'_>) -> std::cmp::Ordering {
    compare(arguments.value(0), arguments.value(1))
}

/// Compares two texts without the spaces at their ends.
fn padded_order(arguments: &Arguments<'_>) -> std::cmp::Ordering {
    let side = |at| comparable(arguments.value(at).clone(), oid::BPCHAR);
    compare(&side(0), &side(1))
}

fn comparison(row: &OperatorRow) -> Option<Scalar> {
    if row.result != oid::BOOL || row.left == 0 {
        return None;
    }
    if row.left == oid::JSONB {
        return json::comparison(&row.name);
    }
    let is_padded = row.left == oid::BPCHAR;
    // `*=` and others compare the bytes of rows, `~<~` and others texts without a collation.
    Some(match (row.name.trim_matches(['*', '~']), is_padded) {
        _ if row.name.len() > 2 && !is_comparison(row.name.trim_matches(['*', '~'])) => {
            return None;
        }
        _ if matches!(row.name.as_str(), "~" | "*" | "~~" | "~*" | "~=") => return None,
        ("=", false) => |_, a| Ok(Value::Bool(order(a).is_eq())),
        ("<>", false) => |_, a| Ok(Value::Bool(order(a).is_ne())),
        ("<", false) => |_, a| Ok(Value::Bool(order(a).is_lt())),
        ("<=", false) => |_, a| Ok(Value::Bool(order(a).is_le())),
        (">", false) => |_, a| Ok(Value::Bool(order(a).is_gt())),
        (">=", false) => |_, a| Ok(Value::Bool(order(a).is_ge())),
        ("=", true) => |_, a| Ok(Value::Bool(padded_order(a).is_eq())),
        ("<>", true) => |_, a| Ok(Value::Bool(padded_order(a).is_ne())),
        ("<", true) => |_, a| Ok(Value::Bool(padded_order(a).is_lt())),
        ("<=", true) => |_, a| Ok(Value::Bool(padded_order(a).is_le())),
        (">", true) => |_, a| Ok(Value::Bool(padded_order(a).is_gt())),
        (">=", true) => |_, a| Ok(Value::Bool(padded_order(a).is_ge())),
        _ => return None,
    })
}

fn is_comparison(name: &str) -> bool {
    matches!(name, "=" | "<>" | "<" | "<=" | ">" | ">=")
}

/// LIKE and regular expressions.
fn pattern(row: &OperatorRow) -> Option<Scalar> {
    if row.right != oid::TEXT || !matches!(row.left, oid::TEXT | oid::NAME | oid::BPCHAR) {
        return None;
    }
    fn matches(
        context: &mut Context<'_>,
        a: &Arguments<'_>,
        ignores_case: bool,
        wanted: bool,
    ) -> Result<Value> {
        let flags = if ignores_case { "i" } else { "" };
        let pattern = context.patterns.regex(a.text(1)?, flags)?;
        context.limits.step(a.text(0)?.len() as u64 / 64)?;
        Ok(Value::Bool(pattern.is_match(a.text(0)?) == wanted))
    }
    fn like(
        context: &mut Context<'_>,
        a: &Arguments<'_>,
        ignores_case: bool,
        wanted: bool,
    ) -> Result<Value> {
        let pattern = context.patterns.like(a.text(1)?, ignores_case)?;
        context.limits.step(a.text(0)?.len() as u64 / 64)?;
        Ok(Value::Bool(pattern.is_match(a.text(0)?) == wanted))
    }
    Some(match row.name.as_str() {
        "~" => |c, a| matches(c, a, false, true),
        "~*" => |c, a| matches(c, a, true, true),
        "!~" => |c, a| matches(c, a, false, false),
        "!~*" => |c, a| matches(c, a, true, false),
        "~~" => |c, a| like(c, a, false, true),
        "~~*" => |c, a| like(c, a, true, true),
        "!~~" => |c, a| like(c, a, false, false),
        "!~~*" => |c, a| like(c, a, true, false),
        "^@" => |_, a| Ok(Value::Bool(a.text(0)?.starts_with(a.text(1)?))),
        _ => return None,
    })
}

/// Operators on texts, arrays and JSON.
fn collection(row: &OperatorRow) -> Option<Scalar> {
    if row.left == oid::JSON || row.left == oid::JSONB {
        return json::operator(row);
    }
    Some(match row.function.as_str() {
        "textcat" => |_, a| Ok(Value::String(format!("{}{}", a.text(0)?, a.text(1)?))),
        "textanycat" | "anytextcat" => |context, a| {
            let mut side = |at: usize| {
                let text = &oid::TEXT.into();
                cast(Cow::Borrowed(a.value(at)), &a.ty(at), text, -1, context)
            };
            let (left, right) = (side(0)?, side(1)?);
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            Ok(Value::String(text(&left) + &text(&right)))
        },
        "array_append" => |_, a| Ok(array::append(a.value(0), a.value(1).clone())),
        "array_prepend" => |_, a| Ok(array::prepend(a.value(0).clone(), a.value(1))),
        "array_cat" => |_, a| Ok(array::concat(a.value(0), a.value(1))),
        "arraycontains" => |context, a| array::contains(context, a.array(0)?, a.array(1)?),
        "arraycontained" => |context, a| array::contains(context, a.array(1)?, a.array(0)?),
        "arrayoverlap" => |context, a| array::overlaps(context, a.array(0)?, a.array(1)?),
        "aclitemeq" => |_, a| Ok(Value::Bool(order(a).is_eq())),
        _ => return None,
    })
}

fn prefix(row: &OperatorRow) -> Option<Scalar> {
    fn negated(a: &Arguments<'_>) -> Result<Value> {
        let ty = a.result.oid();
        binary("-", Number::Int(0), a.number(0)?, ty)
    }
    Some(match row.name.as_str() {
        "-" => |_, a| negated(a),
        "+" => |_, a| Ok(a.value(0).clone()),
        "@" => |_, a| {
            if a.number(0)? < Number::Int(0) { negated(a) } else { Ok(a.value(0).clone()) }
        },
        "~" if is_integer(row.right) => |_, a| Ok(Value::int(!a.int(0)?)),
        "|/" => |_, a| {
            if a.double(0)? < 0.0 {
                return Err(Error::new("2201F", "cannot take square root of a negative number"));
            }
            double(a.double(0)?.sqrt(), oid::FLOAT8)
        },
        "||/" => |_, a| double(a.double(0)?.cbrt(), oid::FLOAT8),
        _ => return None,
    })
}

fn arithmetic(row: &OperatorRow) -> Option<Scalar> {
    fn compute(op: &str, a: &Arguments<'_>) -> Result<Value> {
        binary(op, a.number(0)?, a.number(1)?, a.result.oid())
    }
    let is_number = |ty| is_integer(ty) || matches!(ty, oid::FLOAT4 | oid::FLOAT8 | oid::NUMERIC);
    if !is_number(row.left) || !is_number(row.right) {
        return None;
    }
    Some(match row.name.as_str() {
        "+" => |_, a| compute("+", a),
        "-" => |_, a| compute("-", a),
        "*" => |_, a| compute("*", a),
        "/" => |_, a| compute("/", a),
        "%" => |_, a| compute("%", a),
        "^" => |_, a| super::math::power(a.number(0)?, a.number(1)?, a.result.oid()),
        "&" => |_, a| Ok(Value::int(a.int(0)? & a.int(1)?)),
        "|" => |_, a| Ok(Value::int(a.int(0)? | a.int(1)?)),
        "#" => |_, a| Ok(Value::int(a.int(0)? ^ a.int(1)?)),
        "<<" => |_, a| shift(a, true),
        ">>" => |_, a| shift(a, false),
        _ => return None,
    })
}

/// Shifts the bits of an integer; the distance counts modulo the width of the type, as on PostgreSQL's platforms.
fn shift(a: &Arguments<'_>, is_left: bool) -> Result<Value> {
    let (number, distance) = (a.int(0)?, a.int(1)? as u32);
    Ok(Value::int(match (a.result.oid(), is_left) {
        (oid::INT8, true) => number.wrapping_shl(distance),
        (oid::INT8, false) => number.wrapping_shr(distance),
        // PostgreSQL shifts an int2 as an int4 and cuts the result.
        (oid::INT2, true) => i64::from((number as i32).wrapping_shl(distance) as i16),
        (_, true) => i64::from((number as i32).wrapping_shl(distance)),
        (_, false) => i64::from((number as i32).wrapping_shr(distance)),
    }))
}
