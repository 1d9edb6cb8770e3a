//! `format()`, quoted literals and readable sizes.

use proto::value::{Number, Value};

use crate::data::FunctionRow;
use crate::error::{Error, Result};
use crate::functions::context::{Arguments, Context};
use crate::functions::signature::Scalar;
use crate::types::Type;
use crate::types::ident::quote_ident;
use crate::types::oid;
use crate::types::text::print;

/// Returns the implementation of a function.
pub(super) fn find(row: &FunctionRow) -> Option<Scalar> {
    Some(match row.name.as_str() {
        "format" => format,
        "pg_size_pretty" => |_, a| Ok(Value::String(size_pretty(a.number(0)?))),
        _ => return None,
    })
}

/// Returns a text as a literal of SQL.
pub(super) fn quote_literal(text: &str) -> String {
    let prefix = if text.contains('\\') { "E" } else { "" };
    let quoted = text.replace('\\', "\\\\").replace('\'', "''");
    format!("{prefix}'{quoted}'")
}

/// Returns a number of bytes in the largest unit of which it has ten or more.
fn size_pretty(bytes: Number) -> String {
    let mut number = bytes.as_f64();
    let mut unit = 0;
    const UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];
    // PostgreSQL keeps one bit more while it shifts, and rounds half away from zero at the end.
    if number.abs() < 10_240.0 {
        return format!("{} bytes", number.trunc());
    }
    number = (number / 512.0).trunc();
    unit += 1;
    while number.abs() >= 20_479.0 && unit < UNITS.len() - 1 {
        number = (number / 1024.0).trunc();
        unit += 1;
    }
    let rounded = ((number + if number < 0.0 { -1.0 } else { 1.0 }) / 2.0).trunc();
    format!("{rounded} {}", UNITS[unit])
}

fn too_few() -> Error {
    Error::new("22023", "too few arguments for format()")
}

/// Fills the places `%s`, `%I` and `%L` of a text.
fn format(context: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    if a.is_null(0) {
        return Ok(Value::Null);
    }
    let values = if a.len() > 1 { a.rest(1) } else { Vec::new() };
    let mut out = String::new();
    let mut chars = a.text(0)?.chars().peekable();
    let mut next = 0;
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if chars.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let place = place(&mut chars)?;
        if let Some(position) = place.position {
            next = position.checked_sub(1).ok_or_else(|| {
                Error::new(
                    "22023",
                    "format specifies argument 0, but arguments are numbered from 1",
                )
            })?;
        }
        let (value, ty) = values.get(next).ok_or_else(too_few)?;
        next += 1;
        let text = filled(context, value, ty, place.kind)?;
        context.check_bytes(place.width.saturating_add(out.len()))?;
        let missing = place.width.saturating_sub(text.chars().count());
        let padding = " ".repeat(missing);
        if place.is_left {
            out.push_str(&text);
            out.push_str(&padding);
        } else {
            out.push_str(&padding);
            out.push_str(&text);
        }
    }
    Ok(Value::String(out))
}

/// A place of a format: `%[position$][-][width]type`.
struct Place {
    position: Option<usize>,
    is_left: bool,
    width: usize,
    kind: char,
}

fn place(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Place> {
    let mut place = Place { position: None, is_left: false, width: 0, kind: 's' };
    let number = |chars: &mut std::iter::Peekable<std::str::Chars<'_>>| {
        let mut digits = String::new();
        while let Some(digit) = chars.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        digits.parse::<usize>().ok()
    };
    let mut width = number(chars);
    if width.is_some() && chars.next_if_eq(&'$').is_some() {
        place.position = width.take();
    }
    if chars.next_if_eq(&'-').is_some() {
        place.is_left = true;
    }
    if chars.peek() == Some(&'*') {
        return Err(Error::unsupported("a width in an argument of format()"));
    }
    place.width = width.or_else(|| number(chars)).unwrap_or(0);
    match chars.next() {
        Some(kind @ ('s' | 'I' | 'L')) => {
            place.kind = kind;
            Ok(place)
        }
        Some(c) => {
            let what = format!("unrecognized format() type specifier \"{c}\"");
            Err(Error::new("22023", what).with_hint("For a single \"%\" use \"%%\"."))
        }
        None => Err(Error::new("22023", "unterminated format() type specifier")
            .with_hint("For a single \"%\" use \"%%\".")),
    }
}

fn filled(context: &mut Context<'_>, value: &Value, ty: &Type, kind: char) -> Result<String> {
    if value.is_absent() {
        return match kind {
            's' => Ok(String::new()),
            'L' => Ok("NULL".to_owned()),
            _ => Err(Error::new("22004", "null values cannot be formatted as an SQL identifier")),
        };
    }
    let text = match value {
        Value::String(text) => text.clone(),
        value if ty.is(oid::UNKNOWN) => print(value, &oid::TEXT.into(), &context.names())?,
        value => print(value, ty, &context.names())?,
    };
    Ok(match kind {
        'I' => quote_ident(&text),
        'L' => quote_literal(&text),
        _ => text,
    })
}
