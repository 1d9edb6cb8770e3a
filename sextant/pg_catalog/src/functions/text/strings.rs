//! Lengths, cases, padding, trimming and joining of texts.

use proto::value::Value;

use crate::data::FunctionRow;
use crate::error::{Error, Result};
use crate::functions::arithmetic::int4;
use crate::functions::context::{Arguments, Context};
use crate::functions::signature::Scalar;
use crate::functions::text::format;
use crate::types::oid;
use crate::types::text::print;

/// Returns the implementation of a function.
pub(super) fn find(row: &FunctionRow) -> Option<Scalar> {
    let is_padded = row.arguments.first() == Some(&oid::BPCHAR);
    Some(match row.name.as_str() {
        "length" | "char_length" | "character_length" if is_padded => {
            |_, a| int4(a.text(0)?.trim_end_matches(' ').chars().count())
        }
        "length" | "char_length" | "character_length" => |_, a| int4(a.text(0)?.chars().count()),
        "octet_length" => |_, a| int4(a.text(0)?.len()),
        "bit_length" => |_, a| int4(a.text(0)?.len() * 8),
        "lower" => |_, a| Ok(Value::String(a.text(0)?.to_lowercase())),
        "upper" => |_, a| Ok(Value::String(a.text(0)?.to_uppercase())),
        "initcap" => |_, a| Ok(Value::String(initcap(a.text(0)?))),
        "btrim" => |_, a| trim(a, true, true),
        "ltrim" => |_, a| trim(a, true, false),
        "rtrim" => |_, a| trim(a, false, true),
        "lpad" => |context, a| pad(context, a, true),
        "rpad" => |context, a| pad(context, a, false),
        "repeat" => |context, a| {
            let count = usize::try_from(a.int(1)?).unwrap_or(0);
            context.check_bytes(a.text(0)?.len().saturating_mul(count))?;
            Ok(Value::String(a.text(0)?.repeat(count)))
        },
        "reverse" => |_, a| Ok(Value::String(a.text(0)?.chars().rev().collect())),
        "ascii" => |_, a| Ok(Value::int(a.text(0)?.chars().next().map_or(0, |c| c as i64))),
        "chr" => |_, a| chr(a.int(0)?),
        "md5" => |_, a| Ok(Value::String(format!("{:x}", md5::compute(a.text(0)?)))),
        _ => return find_more(row),
    })
}

/// Joined and quoted texts, and counts of NULLs.
fn find_more(row: &FunctionRow) -> Option<Scalar> {
    Some(match row.name.as_str() {
        "concat" => |context, a| join(context, a, 0, ""),
        "concat_ws" => |context, a| match a.is_null(0) {
            true => Ok(Value::Null),
            false => join(context, a, 1, a.text(0)?),
        },
        "starts_with" => |_, a| Ok(Value::Bool(a.text(0)?.starts_with(a.text(1)?))),
        "num_nulls" => |_, a| count_nulls(a, true),
        "num_nonnulls" => |_, a| count_nulls(a, false),
        "host" => |_, a| {
            let text = a.text(0)?;
            Ok(Value::from(text.split_once('/').map_or(text, |(host, _)| host)))
        },
        "text" if row.arguments[0] == oid::INET => |_, a| {
            let text = a.text(0)?;
            let bits = if text.contains(':') { 128 } else { 32 };
            Ok(Value::String(if text.contains('/') {
                text.to_owned()
            } else {
                format!("{text}/{bits}")
            }))
        },
        "quote_ident" => |_, a| Ok(Value::String(crate::types::ident::quote_ident(a.text(0)?))),
        "quote_literal" | "quote_nullable" => |context, a| match a.is_null(0) {
            true => Ok(Value::from("NULL")),
            false => {
                let text = print(a.value(0), &a.ty(0), &context.names())?;
                Ok(Value::String(format::quote_literal(&text)))
            }
        },
        _ => return None,
    })
}

fn initcap(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_inside = false;
    for c in text.chars() {
        if is_inside {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
        is_inside = c.is_alphanumeric();
    }
    out
}

/// Removes characters at the ends: spaces, or the characters of the second argument.
fn trim(a: &Arguments<'_>, at_start: bool, at_end: bool) -> Result<Value> {
    let set = if a.len() > 1 { a.text(1)? } else { " " };
    let is_in_set = |c: char| set.contains(c);
    let mut text = a.text(0)?;
    if at_start {
        text = text.trim_start_matches(is_in_set);
    }
    if at_end {
        text = text.trim_end_matches(is_in_set);
    }
    Ok(Value::from(text))
}

fn pad(context: &mut Context<'_>, a: &Arguments<'_>, is_left: bool) -> Result<Value> {
    let text = a.text(0)?;
    let fill: Vec<char> = if a.len() > 2 { a.text(2)?.chars().collect() } else { vec![' '] };
    let width = usize::try_from(a.int(1)?).unwrap_or(0);
    let length = text.chars().count();
    if length >= width || fill.is_empty() {
        return Ok(Value::String(text.chars().take(width).collect()));
    }
    context.check_bytes((width - length).saturating_mul(4))?;
    let padding: String = fill.iter().cycle().take(width - length).collect();
    Ok(Value::String(if is_left { padding + text } else { text.to_owned() + &padding }))
}

fn chr(code: i64) -> Result<Value> {
    let c = u32::try_from(code).ok().and_then(char::from_u32);
    match c {
        Some('\0') => Err(Error::new("54000", "null character not permitted")),
        Some(c) => Ok(Value::String(c.to_string())),
        None => {
            Err(Error::new("54000", format!("requested character not valid for encoding: {code}")))
        }
    }
}

/// Joins the texts of all arguments that are not NULL.
fn join(
    context: &mut Context<'_>,
    a: &Arguments<'_>,
    from: usize,
    separator: &str,
) -> Result<Value> {
    if a.is_array && a.is_null(from) {
        return Ok(Value::Null);
    }
    let mut texts = Vec::new();
    for (value, ty) in a.rest(from) {
        if !value.is_absent() {
            texts.push(print(&value, &ty, &context.names())?);
        }
    }
    context.check_bytes(texts.iter().map(|text| text.len() + separator.len()).sum())?;
    Ok(Value::String(texts.join(separator)))
}

fn count_nulls(a: &Arguments<'_>, nulls: bool) -> Result<Value> {
    if a.is_array && a.is_null(0) {
        return Ok(Value::Null);
    }
    int4(a.rest(0).iter().filter(|(value, _)| value.is_absent() == nulls).count())
}
