//! Comments on objects, and descriptions of them.

use proto::value::Value;

use super::table::{row_of, rows_with, table_oid};
use crate::data::FunctionRow;
use crate::error::Result;
use crate::functions::context::{Arguments, Context};
use crate::functions::signature::Scalar;
use crate::relations::ObjectKind;
use crate::types::ident::quote_ident;
use crate::types::oid::{self, Oid};
use crate::types::text::print;

/// Returns the comment on an object of a catalogue table; of any table if none is given.
fn comment(
    context: &mut Context<'_>,
    object: &Value,
    class: Option<Oid>,
    column: i64,
) -> Result<Value> {
    for row in rows_with(context, "pg_description", "objoid", object)? {
        if class.is_none_or(|class| row.oid("classoid").is_ok_and(|own| own == class))
            && row.int("objsubid")? == column
        {
            return Ok(row.value("description")?.clone());
        }
    }
    Ok(Value::Null)
}

fn shared_comment(context: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    let Some(class) = table_oid(a.text(1)?) else { return Ok(Value::Null) };
    for row in rows_with(context, "pg_shdescription", "objoid", a.value(0))? {
        if row.oid("classoid")? == class {
            return Ok(row.value("description")?.clone());
        }
    }
    Ok(Value::Null)
}

/// Describes an object in words, as error messages do.
fn describe(context: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    let (class, object) = (a.object(0)?, a.object(1)?);
    let table = crate::data::data().relations.iter().find(|row| row.oid == class);
    let names = context.names();
    let name = |kind| names.name(kind, object).unwrap_or_else(|| object.to_string());
    let text = match table.map_or("", |row| row.name.as_str()) {
        "pg_class" => return describe_relation(context, a),
        "pg_type" => format!("type {}", names.type_name(object, None).unwrap_or_default()),
        "pg_namespace" => format!("schema {}", name(ObjectKind::Schema)),
        "pg_authid" => format!("role {}", name(ObjectKind::Role)),
        "pg_proc" => {
            let function = Value::int(object.into());
            format!("function {}", print(&function, &oid::REGPROCEDURE.into(), &names)?)
        }
        "pg_operator" => format!("operator {}", name(ObjectKind::Operator)),
        "pg_collation" => format!("collation {}", name(ObjectKind::Collation)),
        "pg_constraint" => {
            let Some(row) = row_of(context, "pg_constraint", object)? else {
                return Ok(Value::Null);
            };
            let table = names.name(ObjectKind::Relation, row.oid("conrelid")?).unwrap_or_default();
            format!("constraint {} on table {table}", row.text("conname")?)
        }
        other => {
            let kind = other.trim_start_matches("pg_").replace('_', " ");
            if other.is_empty() {
                let what = format!("unsupported object class: {class}");
                return Err(crate::error::Error::new("XX000", what));
            }
            let Some(row) = row_of(context, other, object)? else { return Ok(Value::Null) };
            format!("{kind} {}", quote_ident(row.name()))
        }
    };
    Ok(Value::String(text))
}

/// Describes a relation, or a column of it.
fn describe_relation(context: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    let (object, column) = (a.object(1)?, a.int(2)?);
    let Some(row) = row_of(context, "pg_class", object)? else { return Ok(Value::Null) };
    let kind = match row.text("relkind")? {
        "i" | "I" => "index",
        "S" => "sequence",
        "v" => "view",
        "m" => "materialized view",
        "c" => "composite type",
        "f" => "foreign table",
        "t" => "toast table",
        _ => "table",
    };
    let name = context.names().name(ObjectKind::Relation, object);
    let whole = format!("{kind} {}", name.unwrap_or_else(|| object.to_string()));
    if column == 0 {
        return Ok(Value::String(whole));
    }
    let columns = rows_with(context, "pg_attribute", "attrelid", a.value(1))?;
    let of_number =
        |row: &&super::table::TableRow| row.int("attnum").is_ok_and(|own| own == column);
    let Some(attribute) = columns.iter().find(of_number) else { return Ok(Value::Null) };
    Ok(Value::String(format!("column {} of {whole}", attribute.text("attname")?)))
}

/// Returns the implementation of a function.
pub(super) fn find(row: &FunctionRow) -> Option<Scalar> {
    Some(match row.name.as_str() {
        "obj_description" if row.arguments.len() == 1 => {
            |context, a| comment(context, a.value(0), None, 0)
        }
        "obj_description" => |context, a| match table_oid(a.text(1)?) {
            Some(class) => comment(context, a.value(0), Some(class), 0),
            None => Ok(Value::Null),
        },
        "col_description" => {
            |context, a| comment(context, a.value(0), table_oid("pg_class"), a.int(1)?)
        }
        "shobj_description" => shared_comment,
        "pg_describe_object" => describe,
        _ => return None,
    })
}
