//! Reading JSON: fields, elements, paths, keys.

use std::cmp::Ordering;

use proto::value::{Number, Value};

use crate::data::{FunctionRow, OperatorRow};
use crate::error::{Error, Result};
use crate::functions::arithmetic::int4;
use crate::functions::context::{Arguments, Context};
use crate::functions::signature::{Scalar, SetOf};
use crate::types::json::{Kind, Part, normalized, parse, sorted_fields};
use crate::types::oid;

fn piece(text: &str, part: Option<&Part>) -> Value {
    part.map_or(Value::Null, |part| Value::from(part.of(text)))
}

fn plain(text: &str, part: Option<&Part>) -> Value {
    part.and_then(|part| part.text(text)).map_or(Value::Null, Value::String)
}

/// Returns the part that the second argument names: a field, or an element by its number.
fn step(a: &Arguments<'_>) -> Result<(Part, Option<Vec<String>>)> {
    let part = parse(a.text(0)?)?;
    let steps = match a.value(1) {
        Value::Number(_) => match part.element(a.int(1)?) {
            Some(_) => Some(vec![a.int(1)?.to_string()]),
            None => None,
        },
        _ => match part.field(a.text(1)?) {
            Some(_) => Some(vec![a.text(1)?.to_owned()]),
            None => None,
        },
    };
    Ok((part, steps))
}

/// Returns the steps of a path; `None` if one is NULL.
fn path(values: &[Value]) -> Option<Vec<String>> {
    values.iter().map(|value| value.as_str().map(str::to_owned)).collect()
}

/// The steps of `#>` and `json_extract_path`.
fn path_of(a: &Arguments<'_>) -> Result<(Part, Option<Vec<String>>)> {
    let steps = match a.value(1) {
        Value::Array(items) => path(items),
        _ => path(&a.rest(1).into_iter().map(|(value, _)| value).collect::<Vec<_>>()),
    };
    Ok((parse(a.text(0)?)?, steps))
}

fn find_part<'p>(part: &'p Part, steps: &Option<Vec<String>>) -> Option<&'p Part> {
    let steps: Vec<&str> = steps.as_ref()?.iter().map(String::as_str).collect();
    part.path(&steps)
}

/// Returns the implementation of an operator whose left side is JSON.
pub(in crate::functions) fn operator(row: &OperatorRow) -> Option<Scalar> {
    Some(match row.name.as_str() {
        "->" => |_, a| {
            let (part, steps) = step(a)?;
            Ok(piece(a.text(0)?, find_part(&part, &steps)))
        },
        "->>" => |_, a| {
            let (part, steps) = step(a)?;
            Ok(plain(a.text(0)?, find_part(&part, &steps)))
        },
        "#>" => |_, a| {
            let (part, steps) = path_of(a)?;
            Ok(piece(a.text(0)?, find_part(&part, &steps)))
        },
        "#>>" => |_, a| {
            let (part, steps) = path_of(a)?;
            Ok(plain(a.text(0)?, find_part(&part, &steps)))
        },
        "?" => |_, a| Ok(Value::Bool(has_key(&parse(a.text(0)?)?, a.text(1)?))),
        "?|" => |_, a| {
            let part = parse(a.text(0)?)?;
            let mut keys = a.array(1)?.iter().filter_map(Value::as_str);
            Ok(Value::Bool(keys.any(|key| has_key(&part, key))))
        },
        "?&" => |_, a| {
            let part = parse(a.text(0)?)?;
            let mut keys = a.array(1)?.iter().filter_map(Value::as_str);
            Ok(Value::Bool(keys.all(|key| has_key(&part, key))))
        },
        "@>" => |_, a| contains(a.text(0)?, a.text(1)?),
        "<@" => |_, a| contains(a.text(1)?, a.text(0)?),
        "||" => |_, a| concat(a.text(0)?, a.text(1)?),
        "-" => delete,
        _ => return None,
    })
}

fn has_key(part: &Part, key: &str) -> bool {
    match &part.kind {
        Kind::Object(_) => part.field(key).is_some(),
        Kind::Array(items) => items.iter().any(|item| item.kind == Kind::String(key.to_owned())),
        Kind::String(string) => string == key,
        _ => false,
    }
}

fn contains(whole: &str, part: &str) -> Result<Value> {
    let (left, right) = (parse(whole)?, parse(part)?);
    // An array contains a scalar that is one of its elements, but only at the top.
    let is_element = match (&left.kind, &right.kind) {
        (Kind::Array(items), kind) if !matches!(kind, Kind::Array(_) | Kind::Object(_)) => {
            items.iter().any(|item| equals((whole, item), (part, &right)))
        }
        _ => false,
    };
    Ok(Value::Bool(is_element || contains_part((whole, &left), (part, &right))))
}

fn contains_part(left: (&str, &Part), right: (&str, &Part)) -> bool {
    match (&left.1.kind, &right.1.kind) {
        (Kind::Object(_), Kind::Object(fields)) => fields.iter().all(|(name, value)| {
            left.1.field(name).is_some_and(|own| contains_part((left.0, own), (right.0, value)))
        }),
        (Kind::Array(all), Kind::Array(some)) => some
            .iter()
            .all(|item| all.iter().any(|own| contains_part((left.0, own), (right.0, item)))),
        _ => equals(left, right),
    }
}

fn equals(left: (&str, &Part), right: (&str, &Part)) -> bool {
    order(left, right).is_eq()
}

fn number(text: &str) -> Number {
    Number::parse_sql(text).unwrap_or(Number::Int(0))
}

/// The rank of a type in the order of `jsonb`.
fn rank(kind: &Kind) -> u8 {
    match kind {
        Kind::Null => 0,
        Kind::String(_) => 1,
        Kind::Number => 2,
        Kind::Bool(_) => 3,
        Kind::Array(_) => 4,
        Kind::Object(_) => 5,
    }
}

/// Compares two values of `jsonb`: by type, then arrays and objects by their lengths first.
fn order(left: (&str, &Part), right: (&str, &Part)) -> Ordering {
    match (&left.1.kind, &right.1.kind) {
        (Kind::String(a), Kind::String(b)) => a.cmp(b),
        (Kind::Bool(a), Kind::Bool(b)) => a.cmp(b),
        (Kind::Number, Kind::Number) => number(left.1.of(left.0)).cmp(&number(right.1.of(right.0))),
        (Kind::Array(a), Kind::Array(b)) => a.len().cmp(&b.len()).then_with(|| {
            let mut orders = a.iter().zip(b).map(|(a, b)| order((left.0, a), (right.0, b)));
            orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        }),
        (Kind::Object(a), Kind::Object(b)) => {
            let (a, b) = (sorted_fields(a), sorted_fields(b));
            a.len().cmp(&b.len()).then_with(|| {
                let pairs = a.into_iter().zip(b);
                let mut orders = pairs.map(|((name_a, a), (name_b, b))| {
                    (name_a.len(), name_a)
                        .cmp(&(name_b.len(), name_b))
                        .then_with(|| order((left.0, a), (right.0, b)))
                });
                orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
            })
        }
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

/// Returns the implementation of a comparison or a containment of `jsonb`.
pub(in crate::functions) fn comparison(name: &str) -> Option<Scalar> {
    fn compare(a: &Arguments<'_>) -> Result<Ordering> {
        let (left, right) = (a.text(0)?, a.text(1)?);
        Ok(order((left, &parse(left)?), (right, &parse(right)?)))
    }
    Some(match name {
        "=" => |_, a| Ok(Value::Bool(compare(a)?.is_eq())),
        "<>" => |_, a| Ok(Value::Bool(compare(a)?.is_ne())),
        "<" => |_, a| Ok(Value::Bool(compare(a)?.is_lt())),
        "<=" => |_, a| Ok(Value::Bool(compare(a)?.is_le())),
        ">" => |_, a| Ok(Value::Bool(compare(a)?.is_gt())),
        ">=" => |_, a| Ok(Value::Bool(compare(a)?.is_ge())),
        _ => return None,
    })
}

/// Joins two values of `jsonb`: the fields of objects, or the elements of arrays.
fn concat(left: &str, right: &str) -> Result<Value> {
    let (a, b) = (parse(left)?, parse(right)?);
    if let (Kind::Object(_), Kind::Object(_)) = (&a.kind, &b.kind) {
        let inner = |text: &str| text[1..text.len() - 1].to_owned();
        let parts: Vec<String> = [inner(left.trim()), inner(right.trim())]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect();
        return normalized(&format!("{{{}}}", parts.join(","))).map(Value::String);
    }
    let items = |text: &str, part: &Part| match &part.kind {
        Kind::Array(items) => items.iter().map(|item| item.of(text).to_owned()).collect(),
        _ => vec![text.to_owned()],
    };
    let all = [items(left, &a), items(right, &b)].concat();
    Ok(Value::String(format!("[{}]", all.join(", "))))
}

/// Removes a field, several fields, or an element.
fn delete(_: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    let text = a.text(0)?;
    let part = parse(text)?;
    let names: Vec<&str> = match a.value(1) {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let kept: Vec<String> = match &part.kind {
        Kind::Object(_) if a.value(1).as_number().is_some() => {
            return Err(Error::new("22023", "cannot delete from object using integer index"));
        }
        Kind::Object(fields) => {
            let fields = fields.iter().filter(|(name, _)| !names.contains(&name.as_str()));
            let field = |(name, part): &(String, Part)| {
                let mut out = String::new();
                crate::types::json::write_string(name, &mut out);
                format!("{out}: {}", part.of(text))
            };
            return Ok(Value::String(format!(
                "{{{}}}",
                fields.map(field).collect::<Vec<_>>().join(", ")
            )));
        }
        Kind::Array(items) => {
            let number = a.value(1).as_number().and_then(Number::as_i64);
            let at = number.map(|n| if n < 0 { items.len() as i64 + n } else { n });
            let is_kept = |(n, item): &(usize, &Part)| {
                let is_named = matches!(&item.kind, Kind::String(s) if names.contains(&s.as_str()));
                !is_named && at != Some(*n as i64)
            };
            let items = items.iter().enumerate().filter(is_kept);
            items.map(|(_, item)| item.of(text).to_owned()).collect()
        }
        _ => return Err(Error::new("22023", "cannot delete from scalar")),
    };
    Ok(Value::String(format!("[{}]", kept.join(", "))))
}

/// Returns the implementation of a function.
pub(super) fn find(row: &FunctionRow) -> Option<Scalar> {
    Some(match row.name.as_str() {
        "json_typeof" | "jsonb_typeof" => |_, a| Ok(Value::from(parse(a.text(0)?)?.type_name())),
        "json_array_length" | "jsonb_array_length" => |_, a| match parse(a.text(0)?)?.kind {
            Kind::Array(items) => int4(items.len()),
            Kind::Object(_) => Err(Error::new("22023", "cannot get array length of a non-array")),
            _ => Err(Error::new("22023", "cannot get array length of a scalar")),
        },
        "json_extract_path" | "jsonb_extract_path" => |_, a| {
            let (part, steps) = path_of(a)?;
            Ok(piece(a.text(0)?, find_part(&part, &steps)))
        },
        "json_extract_path_text" | "jsonb_extract_path_text" => |_, a| {
            let (part, steps) = path_of(a)?;
            Ok(plain(a.text(0)?, find_part(&part, &steps)))
        },
        _ => return None,
    })
}

/// Returns the implementation of a function that returns a set.
pub(super) fn find_set(row: &FunctionRow) -> Option<SetOf> {
    fn elements(a: &Arguments<'_>, as_text: bool) -> Result<Vec<Value>> {
        let text = a.text(0)?;
        let Kind::Array(items) = parse(text)?.kind else {
            return Err(Error::new("22023", "cannot extract elements from a non-array"));
        };
        let value = |part: &Part| match as_text {
            true => plain(text, Some(part)),
            false => piece(text, Some(part)),
        };
        Ok(items.iter().map(value).collect())
    }
    fn fields(a: &Arguments<'_>) -> Result<Vec<(String, Part)>> {
        match parse(a.text(0)?)?.kind {
            Kind::Object(fields) if a.oid(0) == oid::JSONB => {
                let sorted = sorted_fields(&fields).into_iter();
                Ok(sorted.map(|(name, part)| (name.to_owned(), part.clone())).collect())
            }
            Kind::Object(fields) => Ok(fields),
            _ => Err(Error::new("22023", "cannot deconstruct a value that is no object")),
        }
    }
    fn each(a: &Arguments<'_>, as_text: bool) -> Result<Vec<Value>> {
        let text = a.text(0)?;
        let pair = |(name, part): (String, Part)| {
            let value = match as_text {
                true => plain(text, Some(&part)),
                false => piece(text, Some(&part)),
            };
            Value::Array(vec![Value::String(name), value])
        };
        Ok(fields(a)?.into_iter().map(pair).collect())
    }
    Some(match row.name.as_str() {
        "json_array_elements" | "jsonb_array_elements" => |_, a| elements(a, false),
        "json_array_elements_text" | "jsonb_array_elements_text" => |_, a| elements(a, true),
        "json_each" | "jsonb_each" => |_, a| each(a, false),
        "json_each_text" | "jsonb_each_text" => |_, a| each(a, true),
        "json_object_keys" | "jsonb_object_keys" => {
            |_, a| Ok(fields(a)?.into_iter().map(|(name, _)| Value::String(name)).collect())
        }
        _ => return None,
    })
}
