//! Types of values, properties of objects, keywords, options, settings.

use std::borrow::Cow;

use proto::value::Value;

use super::table::{all_rows, row_of, rows_with};
use crate::data::FunctionRow;
use crate::error::{Error, Result};
use crate::functions::context::{Arguments, Context};
use crate::functions::signature::{Scalar, SetOf};
use crate::types::ident::keywords;
use crate::types::oid::{self, Oid};
use crate::types::text::{find_object, parse};

/// The first OID of objects that users create.
const FIRST_USER_OID: Oid = 16384;

/// Returns the implementation of a function.
pub(super) fn find(row: &FunctionRow) -> Option<Scalar> {
    Some(match row.name.as_str() {
        "format_type" => |context, a| {
            if a.is_null(0) {
                return Ok(Value::Null);
            }
            let modifier = if a.is_null(1) { None } else { Some(a.int(1)? as i32) };
            let name = match a.object(0)? {
                0 => Some("-".to_owned()),
                ty => context.names().type_name(ty, modifier),
            };
            Ok(Value::String(name.unwrap_or_else(|| "???".to_owned())))
        },
        "oidvectortypes" => |context, a| {
            let names = context.names();
            let name = |value: &Value| {
                let ty = value.as_number().and_then(|number| number.as_i64()).unwrap_or(0);
                names.type_name(ty as Oid, None).unwrap_or_else(|| "???".to_owned())
            };
            Ok(Value::String(a.array(0)?.iter().map(name).collect::<Vec<_>>().join(", ")))
        },
        "pg_typeof" => |_, a| Ok(Value::int(a.oid(0).into())),
        "pg_input_is_valid" => input_is_valid,
        _ => return find_of_relation(row),
    })
}

/// Properties of relations.
fn find_of_relation(row: &FunctionRow) -> Option<Scalar> {
    Some(match row.name.as_str() {
        "pg_relation_filenode" => |context, a| {
            let row = row_of(context, "pg_class", a.object(0)?)?;
            let node = row.map_or(Ok(0), |row| row.oid("relfilenode"))?;
            Ok(if node == 0 { Value::Null } else { Value::int(node.into()) })
        },
        // No file of its own stores a relation, and no sequence belongs to a column.
        "pg_relation_filepath" | "pg_get_serial_sequence" => |_, _| Ok(Value::Null),
        "pg_relation_is_publishable" => |context, a| {
            let object = a.object(0)?;
            let Some(row) = row_of(context, "pg_class", object)? else { return Ok(Value::Null) };
            let is_table = matches!(row.text("relkind")?, "r" | "p");
            Ok(Value::Bool(
                is_table && object >= FIRST_USER_OID && row.text("relpersistence")? == "p",
            ))
        },
        "pg_relation_is_updatable" => |context, a| {
            let row = row_of(context, "pg_class", a.object(0)?)?;
            let kind =
                row.map_or(Ok(String::new()), |row| row.text("relkind").map(str::to_owned))?;
            // The bits of INSERT, UPDATE and DELETE.
            Ok(Value::int(if matches!(kind.as_str(), "r" | "p") { 28 } else { 0 }))
        },
        "pg_tablespace_location" => |_, _| Ok(Value::from("")),
        "pg_index_column_has_property" => column_property,
        "pg_sequence_parameters" => |context, a| {
            let rows = rows_with(context, "pg_sequence", "seqrelid", a.value(0))?;
            let Some(row) = rows.first() else { return Ok(Value::Null) };
            let columns = [
                "seqrelid",
                "seqstart",
                "seqmin",
                "seqmax",
                "seqincrement",
                "seqcycle",
                "seqcache",
                "seqtypid",
            ];
            let values = columns.iter().map(|column| row.value(column).cloned());
            values.collect::<Result<_>>().map(Value::Array)
        },
        _ => return None,
    })
}

fn input_is_valid(context: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    let name = a.text(1)?;
    let Some(ty) = find_object(name, oid::REGTYPE, &context.names())? else {
        return Err(Error::new("42704", format!("type \"{name}\" does not exist")));
    };
    match parse(a.text(0)?, ty, &context.names()) {
        Ok(_) => Ok(Value::Bool(true)),
        Err(error) if error.sqlstate == "0A000" => Err(error),
        Err(_) => Ok(Value::Bool(false)),
    }
}

/// Returns a property of an index's column: its direction, and what a B-tree can do.
fn column_property(context: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    let rows = rows_with(context, "pg_index", "indexrelid", a.value(0))?;
    let Some(row) = rows.first() else { return Ok(Value::Null) };
    let at = a.int(1)?;
    if at < 1 || at > row.int("indnatts")? {
        return Ok(Value::Null);
    }
    let is_key = at <= row.int("indnkeyatts")?;
    let option = row.array("indoption")?.get(at as usize - 1);
    let option = option.and_then(Value::as_number).and_then(|number| number.as_i64()).unwrap_or(0);
    let (descending, nulls_first) = (option & 1 != 0, option & 2 != 0);
    let truth = match a.text(2)?.to_lowercase().as_str() {
        "asc" => !descending,
        "desc" => descending,
        "nulls_first" => nulls_first,
        "nulls_last" => !nulls_first,
        "orderable" | "returnable" | "search_array" | "search_nulls" => true,
        "distance_orderable" => false,
        _ => return Ok(Value::Null),
    };
    let is_of_keys = a.text(2)?.to_lowercase() != "returnable";
    Ok(if is_of_keys && !is_key { Value::Null } else { Value::Bool(truth) })
}

/// Returns the implementation of a function that returns a set.
pub(super) fn find_set(row: &FunctionRow) -> Option<SetOf> {
    Some(match row.name.as_str() {
        "pg_get_keywords" => |_, _| Ok(keyword_rows()),
        "pg_options_to_table" => |_, a| {
            let row = |option: &Value| {
                let text = option.as_str().unwrap_or_default();
                let (name, value) = match text.split_once('=') {
                    Some((name, value)) => (name, Value::from(value)),
                    None => (text, Value::Null),
                };
                Value::Array(vec![Value::from(name), value])
            };
            Ok(a.array(0)?.iter().map(row).collect())
        },
        "pg_show_all_settings" => |context, _| {
            let mut rows = Vec::new();
            for row in all_rows(context, "pg_settings")? {
                let values = crate::data::data().relation("pg_catalog", "pg_settings");
                let columns = values.map_or(&[][..], |relation| &relation.columns);
                let values = columns.iter().map(|column| row.value(&column.name).cloned());
                rows.push(Value::Array(values.collect::<Result<_>>()?));
            }
            Ok(rows)
        },
        "ts_token_type" => |context, a| {
            let row = match a.value(0) {
                Value::String(name) => {
                    rows_with(context, "pg_ts_parser", "prsname", &Value::from(name.as_str()))?
                }
                oid => rows_with(context, "pg_ts_parser", "oid", oid)?,
            };
            // The one parser that PostgreSQL has.
            let is_default = row.first().is_some_and(|row| row.text("prsname") == Ok("default"));
            Ok(if is_default { token_types() } else { Vec::new() })
        },
        // Sextant has no extensions, channels and tablespaces to list.
        "pg_available_extensions" | "pg_listening_channels" | "pg_tablespace_databases" => {
            |_, _| Ok(Vec::new())
        }
        _ => return find_partitions(row),
    })
}

/// Partitions, and the tables that they are of.
fn find_partitions(row: &FunctionRow) -> Option<SetOf> {
    Some(match row.name.as_str() {
        "pg_partition_ancestors" => |context, a| {
            let mut at = a.value(0).clone();
            let mut rows = Vec::new();
            while is_partition(context, &at)? {
                rows.push(at.clone());
                let parents = rows_with(context, "pg_inherits", "inhrelid", &at)?;
                let Some(parent) = parents.first() else { break };
                at = parent.value("inhparent")?.clone();
                context.limits.step(1)?;
            }
            Ok(rows)
        },
        "pg_partition_tree" => |context, a| {
            let mut rows = Vec::new();
            if is_partition(context, a.value(0))? {
                add_partitions(context, a.value(0), Cow::Borrowed(&Value::Null), 0, &mut rows)?;
            }
            Ok(rows)
        },
        _ => return None,
    })
}

/// The kinds of tokens of the default parser of text search: alias and description, by their numbers from 1.
const TOKENS: [(&str, &str); 23] = [
    ("asciiword", "Word, all ASCII"),
    ("word", "Word, all letters"),
    ("numword", "Word, letters and digits"),
    ("email", "Email address"),
    ("url", "URL"),
    ("host", "Host"),
    ("sfloat", "Scientific notation"),
    ("version", "Version number"),
    ("hword_numpart", "Hyphenated word part, letters and digits"),
    ("hword_part", "Hyphenated word part, all letters"),
    ("hword_asciipart", "Hyphenated word part, all ASCII"),
    ("blank", "Space symbols"),
    ("tag", "XML tag"),
    ("protocol", "Protocol head"),
    ("numhword", "Hyphenated word, letters and digits"),
    ("asciihword", "Hyphenated word, all ASCII"),
    ("hword", "Hyphenated word, all letters"),
    ("url_path", "URL path"),
    ("file", "File or path name"),
    ("float", "Decimal notation"),
    ("int", "Signed integer"),
    ("uint", "Unsigned integer"),
    ("entity", "XML entity"),
];

fn token_types() -> Vec<Value> {
    let row = |(at, (alias, description)): (usize, &(&str, &str))| {
        Value::Array(vec![
            Value::int(at as i64 + 1),
            Value::from(*alias),
            Value::from(*description),
        ])
    };
    TOKENS.iter().enumerate().map(row).collect()
}

fn keyword_rows() -> Vec<Value> {
    let row = |keyword: &crate::types::ident::Keyword| {
        let category = match keyword.category {
            'C' => "unreserved (cannot be function or type name)",
            'T' => "reserved (can be function or type name)",
            'R' => "reserved",
            _ => "unreserved",
        };
        let label = if keyword.is_bare_label { "can be bare label" } else { "requires AS" };
        Value::Array(vec![
            Value::from(keyword.word),
            Value::String(keyword.category.to_string()),
            Value::Bool(keyword.is_bare_label),
            Value::from(category),
            Value::from(label),
        ])
    };
    keywords().iter().map(row).collect()
}

/// Returns true for a partitioned relation and for a partition.
fn is_partition(context: &mut Context<'_>, object: &Value) -> Result<bool> {
    let rows = rows_with(context, "pg_class", "oid", object)?;
    let Some(row) = rows.first() else { return Ok(false) };
    let is_partition = row.value("relispartition")?.as_bool() == Some(true);
    Ok(is_partition || matches!(row.text("relkind")?, "p" | "I"))
}

fn add_partitions(
    context: &mut Context<'_>,
    object: &Value,
    parent: Cow<'_, Value>,
    level: i64,
    rows: &mut Vec<Value>,
) -> Result<()> {
    context.limits.step(1)?;
    let kind = rows_with(context, "pg_class", "oid", object)?;
    let kind = kind.first().map_or(Ok(""), |row| row.text("relkind"))?;
    rows.push(Value::Array(vec![
        object.clone(),
        parent.into_owned(),
        Value::Bool(!matches!(kind, "p" | "I")),
        Value::int(level),
    ]));
    // Each level is a partitioned table; more levels than these are no catalogue's.
    if level < 32 {
        for child in rows_with(context, "pg_inherits", "inhparent", object)? {
            let child = child.value("inhrelid")?.clone();
            add_partitions(context, &child, Cow::Borrowed(object), level + 1, rows)?;
        }
    }
    Ok(())
}
