//! Making JSON of values, and changing it.

use proto::value::Value;

use crate::data::{FunctionRow, data};
use crate::error::{Error, Result};
use crate::functions::context::{Arguments, Context};
use crate::functions::signature::Scalar;
use crate::types::json::{Kind, Part, normalized, parse, sorted_fields, write_string};
use crate::types::oid;
use crate::types::text::print;
use crate::types::{Field, Type};

/// Writes a value as JSON, by its type. Line feeds separate the fields of rows and the rows of
/// arrays if they are wanted.
pub(in crate::functions) fn write_value(
    context: &mut Context<'_>,
    value: &Value,
    ty: &Type,
    with_lines: bool,
    out: &mut String,
) -> Result<()> {
    let base = data().base(ty.oid());
    match value {
        Value::Null | Value::Missing => out.push_str("null"),
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Array(fields) if base == oid::RECORD => {
            write_row(context, fields, ty, with_lines, out)?;
        }
        Value::Array(items) if !matches!(base, oid::INT2VECTOR | oid::OIDVECTOR) => {
            let element = Type::Plain(data().element(base).unwrap_or(oid::TEXT));
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push_str(if with_lines { ",\n " } else { "," });
                }
                let is_inner = matches!(item, Value::Array(_)) && !element.is(oid::RECORD);
                write_value(context, item, if is_inner { ty } else { &element }, false, out)?;
            }
            out.push(']');
        }
        // Vectors are arrays in JSON, too.
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(Value::to_json).collect();
            out.push_str(&format!("[{}]", items.join(",")));
        }
        Value::String(text) if matches!(base, oid::JSON | oid::JSONB) => out.push_str(text),
        Value::Number(_)
            if matches!(
                base,
                oid::INT2 | oid::INT4 | oid::INT8 | oid::FLOAT4 | oid::FLOAT8 | oid::NUMERIC
            ) =>
        {
            let text = print(value, ty, &context.names())?;
            // Infinity is no number of JSON.
            if text.ends_with('y') { write_string(&text, out) } else { out.push_str(&text) }
        }
        // OIDs and others are strings, as their category is none of numbers.
        value => write_string(&print(value, ty, &context.names())?, out),
    }
    Ok(())
}

/// Writes a row as an object.
fn write_row(
    context: &mut Context<'_>,
    fields: &[Value],
    ty: &Type,
    with_lines: bool,
    out: &mut String,
) -> Result<()> {
    let names: &[Field] = match ty {
        Type::Row(names) => names,
        Type::Plain(_) => &[],
    };
    out.push('{');
    for (n, field) in fields.iter().enumerate() {
        if n > 0 {
            out.push_str(if with_lines { ",\n " } else { "," });
        }
        let name = names.get(n).map_or(format!("f{}", n + 1), |field| field.name.clone());
        let ty = names.get(n).map_or(Type::Plain(oid::TEXT), |field| field.ty.clone());
        write_string(&name, out);
        out.push(':');
        write_value(context, field, &ty, false, out)?;
    }
    out.push('}');
    Ok(())
}

/// Returns a value as `json`, or as `jsonb`.
pub(in crate::functions) fn to_json(
    context: &mut Context<'_>,
    value: &Value,
    ty: &Type,
    is_binary: bool,
) -> Result<Value> {
    let mut out = String::new();
    write_value(context, value, ty, false, &mut out)?;
    if is_binary { normalized(&out).map(Value::String) } else { Ok(Value::String(out)) }
}

/// Returns the implementation of a function.
pub(super) fn find(row: &FunctionRow) -> Option<Scalar> {
    Some(match row.name.as_str() {
        "to_json" => |context, a| to_json(context, a.value(0), &a.ty(0), false),
        "to_jsonb" => |context, a| to_json(context, a.value(0), &a.ty(0), true),
        "row_to_json" | "array_to_json" => |context, a| {
            let with_lines = a.len() > 1 && a.truth(1)?;
            let mut out = String::new();
            write_value(context, a.value(0), &a.ty(0), with_lines, &mut out)?;
            Ok(Value::String(out))
        },
        "json_build_array" => |context, a| Ok(Value::String(array(context, a)?)),
        "jsonb_build_array" => |context, a| normalized(&array(context, a)?).map(Value::String),
        "json_build_object" => |context, a| Ok(Value::String(object(context, a)?)),
        "jsonb_build_object" => |context, a| normalized(&object(context, a)?).map(Value::String),
        "json_object" => |_, a| Ok(Value::String(text_object(a, " : ")?)),
        "jsonb_object" => |_, a| normalized(&text_object(a, ": ")?).map(Value::String),
        "jsonb_pretty" => |_, a| {
            let mut out = String::new();
            pretty(a.text(0)?, &parse(a.text(0)?)?, 0, &mut out);
            Ok(Value::String(out))
        },
        "jsonb_strip_nulls" => |_, a| {
            let mut out = String::new();
            strip(a.text(0)?, &parse(a.text(0)?)?, &mut out);
            normalized(&out).map(Value::String)
        },
        "jsonb_set" => set,
        _ => return None,
    })
}

fn array(context: &mut Context<'_>, a: &Arguments<'_>) -> Result<String> {
    let mut items = Vec::new();
    let values = if a.len() > 0 { a.rest(0) } else { Vec::new() };
    for (value, ty) in values {
        let mut out = String::new();
        write_value(context, &value, &ty, false, &mut out)?;
        items.push(out);
    }
    Ok(format!("[{}]", items.join(", ")))
}

fn object(context: &mut Context<'_>, a: &Arguments<'_>) -> Result<String> {
    let values = if a.len() > 0 { a.rest(0) } else { Vec::new() };
    if values.len() % 2 != 0 {
        return Err(Error::new("22023", "argument list must have even number of elements"));
    }
    let mut fields = Vec::new();
    for (n, pair) in values.chunks(2).enumerate() {
        let [(key, key_type), (value, ty)] = pair else { continue };
        if key.is_absent() {
            let what = format!("argument {}: key must not be null", 2 * n + 1);
            return Err(Error::new("22004", what));
        }
        let mut out = String::new();
        write_string(&print(key, key_type, &context.names())?, &mut out);
        out.push_str(" : ");
        write_value(context, value, ty, false, &mut out)?;
        fields.push(out);
    }
    Ok(format!("{{{}}}", fields.join(", ")))
}

/// Makes an object of an array of keys and values, of pairs, or of two arrays.
fn text_object(a: &Arguments<'_>, separator: &str) -> Result<String> {
    let mut pairs: Vec<(Value, Value)> = Vec::new();
    let items = a.array(0)?;
    if a.len() > 1 {
        if items.len() != a.array(1)?.len() {
            return Err(Error::new("2202E", "mismatched array dimensions"));
        }
        pairs.extend(items.iter().cloned().zip(a.array(1)?.iter().cloned()));
    } else {
        let flat: Vec<Value> = items
            .iter()
            .flat_map(|item| match item {
                Value::Array(pair) => pair.clone(),
                item => vec![item.clone()],
            })
            .collect();
        if !flat.len().is_multiple_of(2) {
            return Err(Error::new("2202E", "array must have even number of elements"));
        }
        pairs.extend(flat.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())));
    }
    let mut fields = Vec::new();
    for (key, value) in pairs {
        let key = key.as_str().map(str::to_owned);
        let key =
            key.ok_or_else(|| Error::new("22004", "null value not allowed for object key"))?;
        let mut out = String::new();
        write_string(&key, &mut out);
        out.push_str(separator);
        match value.as_str() {
            Some(text) => write_string(text, &mut out),
            None => out.push_str("null"),
        }
        fields.push(out);
    }
    Ok(format!("{{{}}}", fields.join(", ")))
}

fn pretty(text: &str, part: &Part, depth: usize, out: &mut String) {
    let line = |depth: usize, out: &mut String| {
        out.push('\n');
        out.push_str(&"    ".repeat(depth));
    };
    match &part.kind {
        Kind::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                out.push_str(if n > 0 { "," } else { "" });
                line(depth + 1, out);
                pretty(text, item, depth + 1, out);
            }
            line(depth, out);
            out.push(']');
        }
        Kind::Object(fields) => {
            out.push('{');
            for (n, (name, field)) in sorted_fields(fields).into_iter().enumerate() {
                out.push_str(if n > 0 { "," } else { "" });
                line(depth + 1, out);
                write_string(name, out);
                out.push_str(": ");
                pretty(text, field, depth + 1, out);
            }
            line(depth, out);
            out.push('}');
        }
        _ => out.push_str(part.of(text)),
    }
}

fn strip(text: &str, part: &Part, out: &mut String) {
    match &part.kind {
        Kind::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                out.push_str(if n > 0 { "," } else { "" });
                strip(text, item, out);
            }
            out.push(']');
        }
        Kind::Object(fields) => {
            out.push('{');
            let kept = fields.iter().filter(|(_, field)| field.kind != Kind::Null);
            for (n, (name, field)) in kept.enumerate() {
                out.push_str(if n > 0 { "," } else { "" });
                write_string(name, out);
                out.push(':');
                strip(text, field, out);
            }
            out.push('}');
        }
        _ => out.push_str(part.of(text)),
    }
}

/// Replaces the value at a path, or adds a field or an element there.
fn set(_: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    let (text, new) = (a.text(0)?, a.text(2)?);
    let creates = a.len() < 4 || a.truth(3)?;
    let path: Option<Vec<&str>> = a.array(1)?.iter().map(Value::as_str).collect();
    let path = path.ok_or_else(|| Error::new("22004", "path element at position 1 is null"))?;
    let part = parse(text)?;
    if !matches!(part.kind, Kind::Array(_) | Kind::Object(_)) {
        return Err(Error::new("22023", "cannot set path in scalar"));
    }
    let mut out = String::new();
    if path.is_empty() {
        return Ok(Value::from(text));
    }
    replaced((text, new, creates), &part, &path, &mut out);
    normalized(&out).map(Value::String)
}

fn replaced(change: (&str, &str, bool), part: &Part, path: &[&str], out: &mut String) {
    let (text, new, creates) = change;
    let Some((step, rest)) = path.split_first() else { return out.push_str(new) };
    let mut pieces: Vec<String> = Vec::new();
    let inner = |part: &Part| {
        let mut piece = String::new();
        replaced(change, part, rest, &mut piece);
        piece
    };
    let is_last = rest.is_empty();
    match &part.kind {
        Kind::Object(fields) => {
            let named = |name: &str, value: String| {
                let mut piece = String::new();
                write_string(name, &mut piece);
                format!("{piece}:{value}")
            };
            for (name, field) in fields {
                let value = if name == step { inner(field) } else { field.of(text).to_owned() };
                pieces.push(named(name, value));
            }
            if creates && is_last && part.field(step).is_none() {
                pieces.push(named(step, new.to_owned()));
            }
            out.push_str(&format!("{{{}}}", pieces.join(",")));
        }
        Kind::Array(items) => {
            let at = step.parse::<i64>().ok();
            let at = at.map(|at| if at < 0 { at + items.len() as i64 } else { at });
            for (n, item) in items.iter().enumerate() {
                let is_place = at == Some(n as i64);
                pieces.push(if is_place { inner(item) } else { item.of(text).to_owned() });
            }
            match at {
                Some(at) if creates && is_last && at < 0 => pieces.insert(0, new.to_owned()),
                Some(at) if creates && is_last && at >= items.len() as i64 => {
                    pieces.push(new.to_owned());
                }
                _ => {}
            }
            out.push_str(&format!("[{}]", pieces.join(",")));
        }
        _ => out.push_str(part.of(text)),
    }
}
