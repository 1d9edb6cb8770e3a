//! The texts of `reg…` types: names of objects.

use proto::value::Value;

use super::number::parse_integer;
use crate::data::data;
use crate::error::{Error, Result};
use crate::relations::ObjectKind;
use crate::types::ident::{parse_name, split_name};
use crate::types::name::type_of_name;
use crate::types::names::Names;
use crate::types::oid::{self, Oid};

/// Returns the kind of the objects that a `reg…` type names.
pub(super) fn kind(ty: Oid) -> Option<ObjectKind> {
    Some(match ty {
        oid::REGCLASS => ObjectKind::Relation,
        oid::REGTYPE => ObjectKind::Type,
        oid::REGPROC | oid::REGPROCEDURE => ObjectKind::Function,
        oid::REGOPER | oid::REGOPERATOR => ObjectKind::Operator,
        oid::REGROLE => ObjectKind::Role,
        oid::REGNAMESPACE => ObjectKind::Schema,
        oid::REGCOLLATION => ObjectKind::Collation,
        _ => return None,
    })
}

/// Returns the text of an object of a `reg…` type; `None` for a type that has no names here.
pub(super) fn print_object(ty: Oid, object: Oid, names: &Names<'_>) -> Option<String> {
    let is_text_search = matches!(ty, oid::REGCONFIG | oid::REGDICTIONARY);
    if is_text_search && object != 0 {
        let name = names.text_search_name(ty, object);
        return Some(name.unwrap_or_else(|| object.to_string()));
    }
    let kind = kind(ty)?;
    if object == 0 {
        return Some(
            if ty == oid::REGOPER || ty == oid::REGOPERATOR { "0" } else { "-" }.to_owned(),
        );
    }
    let name = match ty {
        oid::REGTYPE => names.type_name(object, None),
        oid::REGPROCEDURE => names.name(kind, object).map(|name| {
            let arguments = names.argument_types(object).unwrap_or_default();
            format!("{name}({})", types(&arguments, names))
        }),
        oid::REGOPERATOR => names.name(kind, object).map(|name| {
            let side = |ty: Oid| match ty {
                0 => "NONE".to_owned(),
                ty => names.type_name(ty, None).unwrap_or_default(),
            };
            let [left, right] = names.operand_types(object).unwrap_or_default();
            format!("{name}({},{})", side(left), side(right))
        }),
        _ => names.name(kind, object),
    };
    Some(name.unwrap_or_else(|| object.to_string()))
}

fn types(types: &[Oid], names: &Names<'_>) -> String {
    let types = types.iter().map(|ty| names.type_name(*ty, None).unwrap_or_default());
    types.collect::<Vec<_>>().join(",")
}

/// Parses the name or the number of an object of a `reg…` type. An error if there is no such object.
pub(super) fn parse_object(text: &str, ty: Oid, names: &Names<'_>) -> Result<Value> {
    let trimmed = text.trim();
    if trimmed == "-" {
        return Ok(Value::int(0));
    }
    if !trimmed.is_empty() && trimmed.chars().all(|c| c.is_ascii_digit()) {
        return parse_integer(trimmed, oid::OID);
    }
    match find_object(text, ty, names)? {
        Some(object) => Ok(Value::int(object.into())),
        None => Err(missing(text, ty)),
    }
}

fn missing(text: &str, ty: Oid) -> Error {
    let name = split_name(text).map_or(text.trim().to_owned(), |parts| parts.join("."));
    let (sqlstate, what) = match ty {
        oid::REGCLASS => ("42P01", "relation"),
        oid::REGTYPE => ("42704", "type"),
        oid::REGPROC | oid::REGPROCEDURE => ("42883", "function"),
        oid::REGOPER | oid::REGOPERATOR => ("42883", "operator"),
        oid::REGROLE => ("42704", "role"),
        oid::REGNAMESPACE => ("3F000", "schema"),
        oid::REGCOLLATION => ("42704", "collation"),
        _ => ("42704", "object"),
    };
    match ty {
        oid::REGOPER | oid::REGOPERATOR => {
            Error::new(sqlstate, format!("operator does not exist: {text}"))
        }
        _ => Error::new(sqlstate, format!("{what} \"{name}\" does not exist")),
    }
}

/// Returns the object that a text names; `None` if there is none. An error if the text cannot be a name.
pub(crate) fn find_object(text: &str, ty: Oid, names: &Names<'_>) -> Result<Option<Oid>> {
    let Some(kind) = kind(ty) else {
        return Err(Error::unsupported("objects of this type have no names in the catalogue"));
    };
    match ty {
        oid::REGTYPE => find_type(text, names),
        oid::REGPROCEDURE => find_function(text, names),
        oid::REGOPERATOR => find_operator(text, names),
        oid::REGOPER => {
            let name = text.rsplit_once('.').map_or(text, |(_, name)| name).trim();
            if data().operators_named(name).count() > 1 {
                return Err(Error::new("42725", format!("more than one operator named {name}")));
            }
            names.named(kind, text)
        }
        oid::REGPROC => {
            let named = names.named(kind, text)?;
            let parts = split_name(text).unwrap_or_default();
            let name = parts.last().map_or("", String::as_str);
            if names.functions(name)?.len() > 1 {
                return Err(Error::new(
                    "42725",
                    format!("more than one function named \"{name}\""),
                ));
            }
            Ok(named)
        }
        _ => names.named(kind, text),
    }
}

/// Returns the function that a text such as `lower(text)` names.
fn find_function(text: &str, names: &Names<'_>) -> Result<Option<Oid>> {
    let parts = text.trim().strip_suffix(')').and_then(|text| text.split_once('('));
    let Some((name, arguments)) = parts else {
        return Err(Error::new("22P02", "expected a left parenthesis"));
    };
    let mut types = Vec::new();
    for argument in arguments.split(',').map(str::trim).filter(|argument| !argument.is_empty()) {
        match find_type(argument, names)? {
            Some(ty) => types.push(ty),
            None => return Err(missing(argument, oid::REGTYPE)),
        }
    }
    let Some(parts) = split_name(name) else { return Ok(None) };
    let (schema, name) = match &parts[..] {
        [name] => (None, name),
        [.., schema, name] => (Some(schema.as_str()), name),
        [] => return Ok(None),
    };
    for oid in names.functions(name)? {
        let is_in_schema =
            names.relations.object_name(ObjectKind::Function, oid).is_some_and(|(own, _)| {
                schema.map_or(names.path().contains(&own.as_str()), |schema| schema == own)
            });
        if is_in_schema && names.argument_types(oid).is_some_and(|own| own == types) {
            return Ok(Some(oid));
        }
    }
    Ok(None)
}

/// Returns the operator that a text such as `=(integer,integer)` names.
fn find_operator(text: &str, names: &Names<'_>) -> Result<Option<Oid>> {
    let parts = text.trim().strip_suffix(')').and_then(|text| text.split_once('('));
    let Some((name, sides)) = parts else {
        return Err(Error::new("22P02", "expected a left parenthesis"));
    };
    let name = name.rsplit_once('.').map_or(name, |(_, name)| name).trim();
    let mut types = Vec::new();
    for side in sides.split(',').map(str::trim) {
        types.push(match side.eq_ignore_ascii_case("none") {
            true => 0,
            false => find_type(side, names)?.ok_or_else(|| missing(side, oid::REGTYPE))?,
        });
    }
    let row = data().operators_named(name).find(|row| types == [row.left, row.right]);
    Ok(row.map(|row| row.oid))
}

/// Returns the type that a text such as `character varying(3)` or `int4[]` names.
fn find_type(text: &str, names: &Names<'_>) -> Result<Option<Oid>> {
    let trimmed = text.trim();
    if let Some(element) = trimmed.strip_suffix("[]") {
        return Ok(find_type(element, names)?.and_then(|element| data().array_of(element)));
    }
    let (before, after) = match trimmed.split_once('(') {
        Some((before, rest)) => {
            (before.trim(), rest.split_once(')').map_or("", |(_, after)| after))
        }
        None => (trimmed, ""),
    };
    let words = format!("{before} {after}").to_lowercase();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.contains(' ') {
        return match type_of_name(&words) {
            Some(ty) => Ok(Some(ty)),
            None => Err(Error::new("42601", format!("syntax error in the type name \"{text}\""))),
        };
    }
    let parts = parse_name(before).unwrap_or_default();
    let standard = match &parts[..] {
        [name] if name == "char" && !before.contains('"') => Some(oid::BPCHAR),
        [name] if !before.contains('"') => type_of_name(name),
        [schema, name] if schema == "pg_catalog" => data().type_named(name).map(|row| row.oid),
        [name] => data().type_named(name).map(|row| row.oid),
        _ => None,
    };
    let is_catalog = |ty: &Oid| data().type_row(*ty).is_some_and(|row| row.schema == "pg_catalog");
    match standard.filter(is_catalog) {
        Some(ty) => Ok(Some(ty)),
        None => names.named(ObjectKind::Type, before),
    }
}
