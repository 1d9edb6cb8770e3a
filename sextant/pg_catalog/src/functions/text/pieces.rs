//! Pieces of texts: by position, by a piece to find, by a separator.

use proto::value::Value;

use crate::data::FunctionRow;
use crate::error::{Error, Result};
use crate::functions::arithmetic::int4;
use crate::functions::context::{Arguments, Context};
use crate::functions::signature::Scalar;
use crate::types::oid;

/// Returns the implementation of a function.
pub(super) fn find(row: &FunctionRow) -> Option<Scalar> {
    Some(match row.name.as_str() {
        "left" => |_, a| {
            let count = a.int(1)?;
            let length = a.text(0)?.chars().count() as i64;
            let count = if count < 0 { length + count } else { count }.max(0);
            Ok(Value::String(a.text(0)?.chars().take(count as usize).collect()))
        },
        "right" => |_, a| {
            let count = a.int(1)?;
            let length = a.text(0)?.chars().count() as i64;
            let skipped = if count < 0 { -count } else { length - count }.max(0);
            Ok(Value::String(a.text(0)?.chars().skip(skipped as usize).collect()))
        },
        "substr" => substring,
        "substring" if row.arguments.get(1) == Some(&oid::INT4) => substring,
        "overlay" => overlay,
        "position" | "strpos" => |_, a| {
            let text = a.text(0)?;
            let at = text.find(a.text(1)?);
            int4(at.map_or(0, |at| text[..at].chars().count() + 1))
        },
        "replace" => |context, a| {
            let (text, from, to) = (a.text(0)?, a.text(1)?, a.text(2)?);
            if from.is_empty() {
                return Ok(Value::from(text));
            }
            let count = text.matches(from).count();
            context.check_bytes(text.len().saturating_add(count.saturating_mul(to.len())))?;
            Ok(Value::String(text.replace(from, to)))
        },
        "translate" => |context, a| {
            let (from, to): (Vec<char>, Vec<char>) =
                (a.text(1)?.chars().collect(), a.text(2)?.chars().collect());
            context.limits.step(a.text(0)?.len() as u64 * from.len() as u64 / 64)?;
            let translated = |c: char| match from.iter().position(|other| *other == c) {
                Some(at) => to.get(at).copied(),
                None => Some(c),
            };
            Ok(Value::String(a.text(0)?.chars().filter_map(translated).collect()))
        },
        "split_part" => split_part,
        "string_to_array" => string_to_array,
        "parse_ident" => parse_ident,
        "like_escape" => |_, a| like_escape(a.text(0)?, a.text(1)?),
        _ => return None,
    })
}

/// Returns the characters from a position, counted from 1, up to a length.
fn substring(_: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    let from = a.int(1)?;
    let end = match a.len() > 2 {
        true if a.int(2)? < 0 => {
            return Err(Error::new("22011", "negative substring length not allowed"));
        }
        true => from.saturating_add(a.int(2)?),
        false => i64::MAX,
    };
    let from = from.max(1);
    let count = usize::try_from(end.saturating_sub(from)).unwrap_or(0);
    Ok(Value::String(a.text(0)?.chars().skip(from as usize - 1).take(count).collect()))
}

fn overlay(_: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    let (text, new, from) = (a.text(0)?, a.text(1)?, a.int(2)?);
    let length = if a.len() > 3 { a.int(3)? } else { new.chars().count() as i64 };
    if from <= 0 {
        return Err(Error::new("22011", "negative substring length not allowed"));
    }
    let before = text.chars().take(from as usize - 1);
    let rest = usize::try_from((from - 1).saturating_add(length)).unwrap_or(0);
    Ok(Value::String(before.chain(new.chars()).chain(text.chars().skip(rest)).collect()))
}

fn split_part(_: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    let (text, separator, number) = (a.text(0)?, a.text(1)?, a.int(2)?);
    if number == 0 {
        return Err(Error::new("22023", "field position must not be zero"));
    }
    let parts: Vec<&str> = if separator.is_empty() || text.is_empty() {
        vec![text]
    } else {
        text.split(separator).collect()
    };
    let at = if number < 0 { parts.len() as i64 + number } else { number - 1 };
    let part = usize::try_from(at).ok().and_then(|at| parts.get(at));
    Ok(Value::from(part.copied().unwrap_or_default()))
}

/// Splits a text at a separator: at each character for a NULL one, not at all for an empty one.
fn string_to_array(context: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    if a.is_null(0) {
        return Ok(Value::Null);
    }
    let text = a.text(0)?;
    let item = |part: &str| match a.value(2).as_str() == Some(part) {
        true => Value::Null,
        false => Value::from(part),
    };
    if text.is_empty() {
        return Ok(Value::Array(Vec::new()));
    }
    let count = match a.value(1).as_str() {
        None => text.len(),
        Some("") => 1,
        Some(separator) => text.matches(separator).count() + 1,
    };
    context.check_bytes(text.len() + count * std::mem::size_of::<Value>())?;
    Ok(Value::Array(match a.value(1).as_str() {
        None => text.chars().map(|c| item(c.encode_utf8(&mut [0; 4]))).collect(),
        Some("") => vec![item(text)],
        Some(separator) => text.split(separator).map(item).collect(),
    }))
}

/// The characters within which `parse_ident` searches the end of a name that more text follows: several times the longest
/// qualified name.
const PARSED_NAME_MAX: usize = 1024;

fn parse_ident(_: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    let text = a.text(0)?;
    let is_strict = a.len() < 2 || a.truth(1)?;
    let mut parts = crate::types::ident::parse_name(text);
    if !is_strict {
        // Without strictness, what follows the name is left out.
        let ends = text.char_indices().map(|(at, _)| at).take(PARSED_NAME_MAX);
        let ends = ends.collect::<Vec<_>>().into_iter().rev();
        parts = parts.or_else(|| {
            ends.filter_map(|end| crate::types::ident::parse_name(&text[..end])).next()
        });
    }
    match parts {
        Some(parts) => Ok(Value::Array(parts.into_iter().map(Value::String).collect())),
        None => Err(Error::new("22023", format!("string is not a valid identifier: \"{text}\""))),
    }
}

/// Rewrites a LIKE pattern with another escape character, or with none, for the escape `\`.
fn like_escape(pattern: &str, escape: &str) -> Result<Value> {
    let mut letters = escape.chars();
    let escape = letters.next();
    if letters.next().is_some() {
        return Err(Error::new("22025", "invalid escape string")
            .with_hint("Escape string must be empty or one character."));
    }
    if escape == Some('\\') {
        return Ok(Value::from(pattern));
    }
    let mut out = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            c if Some(c) == escape => {
                out.push('\\');
                out.extend(chars.next());
            }
            '\\' => out.push_str("\\\\"),
            c => out.push(c),
        }
    }
    Ok(Value::String(out))
}
