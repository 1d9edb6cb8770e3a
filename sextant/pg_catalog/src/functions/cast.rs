//! Conversions between types.

use std::borrow::Cow;

use proto::value::{Number, Value};

use super::arithmetic::{round, to_integer};
use super::context::Arguments;
use super::context::Context;
use super::signature::Scalar;
use crate::data::{FunctionRow, data};
use crate::error::{Error, Result};
use crate::types::json::{self, Kind};
use crate::types::names::numeric_modifier;
use crate::types::oid::{self, Oid};
use crate::types::order::size_bytes;
use crate::types::text::{parse, print, truncate_name};
use crate::types::{Type, text};

/// Converts a value to a type, and then to the length that a modifier gives.
pub(crate) fn cast<'v>(
    value: Cow<'v, Value>,
    from: &Type,
    to: &Type,
    modifier: i32,
    context: &mut Context<'_>,
) -> Result<Cow<'v, Value>> {
    if value.is_absent() {
        return Ok(Cow::Owned(Value::Null));
    }
    let modifier = match data().type_row(to.oid()) {
        Some(row) if modifier < 0 && row.base != 0 => row.base_modifier,
        _ => modifier,
    };
    let target = data().base(to.oid());
    let value = if data().base(from.oid()) == target {
        value
    } else {
        let converted = convert(&value, from, target, context)?;
        context.check_bytes(size_bytes(&converted))?;
        Cow::Owned(converted)
    };
    if modifier < 0 {
        Ok(value)
    } else {
        with_modifier(value.into_owned(), target, modifier).map(Cow::Owned)
    }
}

/// Returns true for a type whose values are any text.
fn is_text(ty: Oid) -> bool {
    matches!(
        ty,
        oid::TEXT
            | oid::VARCHAR
            | oid::BPCHAR
            | oid::NAME
            | oid::CHAR
            | oid::UNKNOWN
            | oid::CSTRING
            | oid::XML
            | oid::PG_NODE_TREE
    )
}

fn convert(value: &Value, from: &Type, to: Oid, context: &mut Context<'_>) -> Result<Value> {
    let source = data().base(from.oid());
    match (value, to) {
        (Value::String(text), oid::INT4) if source == oid::CHAR => {
            Ok(Value::int(text.bytes().next().map_or(0, |byte| i64::from(byte as i8))))
        }
        (Value::Number(number), oid::CHAR) => char_of(*number),
        (_, to) if is_text(to) => to_text(value, from, to, context),
        (Value::String(text), oid::REGCLASS) if source != oid::JSONB => {
            parse(text, to, &context.names())
        }
        (Value::String(text), to) if source == oid::JSONB || source == oid::JSON => {
            from_json(text, to, context)
        }
        (Value::String(text), to) => parse(text, to, &context.names()),
        (Value::Array(items), to) => to_array(items, from, to, context),
        (Value::Bool(truth), oid::INT4) => Ok(Value::int(i64::from(*truth))),
        (Value::Number(number), oid::BOOL) => Ok(Value::Bool(*number != Number::Int(0))),
        (Value::Number(number), to) => to_number(*number, source, to),
        (value, _) => Ok(value.clone()),
    }
}

/// Returns the "char" with a code.
fn char_of(number: Number) -> Result<Value> {
    let code = number.as_i64().and_then(|code| i8::try_from(code).ok());
    let code = code.ok_or_else(|| Error::new("22003", "\"char\" out of range"))?;
    match code as u8 {
        0 => Ok(Value::from("")),
        // Bytes above ASCII are no characters of UTF-8; PostgreSQL writes them as octal numbers.
        byte if byte >= 128 => Ok(Value::String(format!("\\{byte:03o}"))),
        byte => Ok(Value::String(char::from(byte).to_string())),
    }
}

fn to_text(value: &Value, from: &Type, to: Oid, context: &mut Context<'_>) -> Result<Value> {
    let text = match value {
        Value::String(text) if from.is(oid::BPCHAR) && to != oid::BPCHAR => {
            text.trim_end_matches(' ').to_owned()
        }
        // The cast of a boolean writes the word, its output function only the letter.
        Value::Bool(truth) if to != oid::CHAR && to != oid::NAME => truth.to_string(),
        value => print(value, from, &context.names())?,
    };
    match to {
        oid::NAME => Ok(Value::from(truncate_name(&text))),
        oid::CHAR => parse(&text, oid::CHAR, &context.names()),
        _ => Ok(Value::String(text)),
    }
}

fn to_array(items: &[Value], from: &Type, to: Oid, context: &mut Context<'_>) -> Result<Value> {
    let source = data().element(data().base(from.oid()));
    let (Some(source), Some(target)) = (source, data().element(to)) else {
        return Ok(Value::Array(items.to_vec()));
    };
    let is_vector = |ty| matches!(ty, oid::INT2VECTOR | oid::OIDVECTOR);
    let mut converted = Vec::with_capacity(items.len());
    for item in items {
        converted.push(match item {
            Value::Array(inner) if !is_vector(source) && source != oid::RECORD => {
                to_array(inner, from, to, context)?
            }
            item => {
                let value = Cow::Borrowed(item);
                cast(value, &source.into(), &target.into(), -1, context)?.into_owned()
            }
        });
    }
    Ok(Value::Array(converted))
}

fn to_number(number: Number, from: Oid, to: Oid) -> Result<Value> {
    match to {
        oid::INT2 | oid::INT4 | oid::INT8 => match (from, number.as_i64()) {
            // An OID as int4 wraps around.
            (from, Some(oid)) if to == oid::INT4 && !is_number(from) => {
                Ok(Value::int(i64::from(oid as u32 as i32)))
            }
            _ => to_integer(number, from, to),
        },
        oid::FLOAT8 => Ok(Number::from_double(number.as_f64()).map_or(Value::Null, Value::Number)),
        oid::FLOAT4 => {
            let single = text::single(number.as_f64());
            single.ok_or_else(|| Error::new("22003", "value out of range: overflow"))
        }
        oid::NUMERIC => Ok(Value::Number(number)),
        // OIDs and the types that name objects.
        _ => match number.as_i64() {
            Some(integer) if from == oid::INT8 => to_integer(Number::Int(integer), from, oid::OID),
            Some(integer) => Ok(Value::int(i64::from(integer as u32))),
            None => Ok(Value::Number(number)),
        },
    }
}

fn is_number(ty: Oid) -> bool {
    matches!(ty, oid::INT2 | oid::INT4 | oid::INT8 | oid::FLOAT4 | oid::FLOAT8 | oid::NUMERIC)
}

/// Converts a value of JSON.
fn from_json(text: &str, to: Oid, context: &mut Context<'_>) -> Result<Value> {
    if to == oid::JSONB {
        return json::normalized(text).map(Value::String);
    }
    if to == oid::JSON {
        return Ok(Value::from(text));
    }
    let part = json::parse(text)?;
    match &part.kind {
        Kind::Null => Ok(Value::Null),
        Kind::Bool(truth) if to == oid::BOOL => Ok(Value::Bool(*truth)),
        Kind::Number if is_number(to) => {
            let number = parse(part.of(text), oid::NUMERIC, &context.names())?;
            let number = number.as_number().unwrap_or(Number::Int(0));
            to_number(number, oid::NUMERIC, to)
        }
        _ => {
            let name = context.names().type_name(to, None).unwrap_or_default();
            Err(Error::new(
                "22023",
                format!("cannot cast jsonb {} to type {name}", part.type_name()),
            ))
        }
    }
}

/// Applies the modifier of `varchar(n)`, `bpchar(n)`, `numeric(p, s)` to a value, or to each
/// element of an array.
fn with_modifier(value: Value, ty: Oid, modifier: i32) -> Result<Value> {
    match (value, ty) {
        (Value::String(text), oid::VARCHAR | oid::BPCHAR) => {
            let length = usize::try_from(modifier - 4).unwrap_or(0);
            let mut text: String = match text.char_indices().nth(length) {
                Some((end, _)) => text[..end].to_owned(),
                None => text,
            };
            if ty == oid::BPCHAR {
                let missing = length.saturating_sub(text.chars().count());
                text.extend(std::iter::repeat_n(' ', missing));
            }
            Ok(Value::String(text))
        }
        (Value::Number(number), oid::NUMERIC) => {
            let (precision, scale) = numeric_modifier(modifier);
            let rounded = round(number, scale.into())?;
            let limit = 10f64.powi(precision - scale);
            if rounded.as_number().is_some_and(|number| number.as_f64().abs() >= limit) {
                return Err(Error::new("22003", "numeric field overflow").with_hint(format!(
                    "a field with precision {precision}, scale {scale} must round to less than 10^{}",
                    precision - scale
                )));
            }
            Ok(rounded)
        }
        (Value::Array(items), ty) => {
            let element = data().element(ty).unwrap_or(ty);
            let items = items.into_iter().map(|item| with_modifier(item, element, modifier));
            items.collect::<Result<_>>().map(Value::Array)
        }
        (value, _) => Ok(value),
    }
}

/// Returns the functions that convert their argument, such as `int4(float8)`.
pub(super) fn find(row: &FunctionRow) -> Option<Scalar> {
    let is_conversion = data().type_named(&row.name).is_some_and(|ty| ty.oid == row.result);
    if !is_conversion {
        return None;
    }
    match row.arguments.len() {
        1 => Some(|context, arguments| {
            let value = Cow::Borrowed(arguments.value(0));
            cast(value, &arguments.ty(0), arguments.result, -1, context).map(Cow::into_owned)
        }),
        _ => Some(|context: &mut Context<'_>, arguments: &Arguments<'_>| {
            let value = Cow::Borrowed(arguments.value(0));
            let modifier = arguments.int(1)? as i32;
            cast(value, &arguments.ty(0), arguments.result, modifier, context).map(Cow::into_owned)
        }),
    }
}
