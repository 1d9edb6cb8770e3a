//! Definitions of objects as SQL.

use proto::value::{Number, Value};

use super::table::{TableRow, row_of};
use crate::data::FunctionRow;
use crate::error::Result;
use crate::functions::context::{Arguments, Context};
use crate::functions::signature::Scalar;
use crate::relations::{Definition, ObjectKind};
use crate::types::ident::quote_ident;
use crate::types::oid::{self, Oid};

/// Returns the definition that the relations have for an object.
fn definition(
    context: &mut Context<'_>,
    kind: Definition,
    object: Oid,
    column: i64,
    is_pretty: bool,
) -> Result<Value> {
    let text = context.relations.definition(kind, object, column, is_pretty)?;
    Ok(text.map_or(Value::Null, Value::String))
}

/// Returns whether an argument asks for the readable form.
fn is_pretty(a: &Arguments<'_>, at: usize) -> Result<bool> {
    match a.value(at) {
        Value::Bool(truth) => Ok(*truth),
        // A width of lines implies the readable form.
        Value::Number(_) => Ok(true),
        _ => Ok(false),
    }
}

/// Returns the implementation of a function.
pub(super) fn find(row: &FunctionRow) -> Option<Scalar> {
    fn of(context: &mut Context<'_>, a: &Arguments<'_>, kind: Definition) -> Result<Value> {
        let pretty = is_pretty(a, 1)?;
        definition(context, kind, a.object(0)?, 0, pretty)
    }
    Some(match row.name.as_str() {
        "pg_get_indexdef" => |context, a| {
            let column = if a.len() > 1 { a.int(1)? } else { 0 };
            let pretty = is_pretty(a, 2)?;
            definition(context, Definition::Index, a.object(0)?, column, pretty)
        },
        "pg_get_constraintdef" => |context, a| of(context, a, Definition::Constraint),
        "pg_get_viewdef" if row.arguments[0] == oid::TEXT => |context, a| {
            let named = context.names().named(ObjectKind::Relation, a.text(0)?)?;
            let pretty = is_pretty(a, 1)?;
            match named {
                Some(object) => definition(context, Definition::View, object, 0, pretty),
                None => Ok(Value::Null),
            }
        },
        "pg_get_viewdef" => |context, a| of(context, a, Definition::View),
        "pg_get_triggerdef" => |context, a| of(context, a, Definition::Trigger),
        "pg_get_ruledef" => |context, a| of(context, a, Definition::Rule),
        "pg_get_functiondef" => |context, a| of(context, a, Definition::Function),
        "pg_get_function_sqlbody" => |context, a| of(context, a, Definition::FunctionBody),
        "pg_get_partkeydef" => |context, a| of(context, a, Definition::PartitionKey),
        "pg_get_partition_constraintdef" => {
            |context, a| of(context, a, Definition::PartitionConstraint)
        }
        "pg_get_statisticsobjdef_columns" => |context, a| of(context, a, Definition::Statistics),
        // A tree of PostgreSQL's nodes is the text of the expression here.
        "pg_get_expr" => |_, a| Ok(a.value(0).clone()),
        "pg_get_function_arguments" => |context, a| arguments(context, a.object(0)?, true),
        "pg_get_function_identity_arguments" => {
            |context, a| arguments(context, a.object(0)?, false)
        }
        "pg_get_function_result" => result,
        "pg_get_function_arg_default" => |_, _| Ok(Value::Null),
        "pg_get_userbyid" => |context, a| {
            let object = a.object(0)?;
            let name = context.relations.object_name(ObjectKind::Role, object);
            let name = name.map(|(_, name)| name);
            Ok(Value::String(name.unwrap_or_else(|| format!("unknown (OID={object})"))))
        },
        _ => return None,
    })
}

/// The modes, types and names of a function's arguments.
fn parameters(row: &TableRow) -> Result<Vec<(String, Oid, String)>> {
    let all = row.oids("proallargtypes")?;
    let types = if all.is_empty() { row.oids("proargtypes")? } else { all };
    let (modes, names) = (row.array("proargmodes")?, row.array("proargnames")?);
    let text = |values: &[Value], at: usize| {
        values.get(at).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let parameter = |(at, ty): (usize, &Oid)| (text(modes, at), *ty, text(names, at));
    Ok(types.iter().enumerate().map(parameter).collect())
}

/// Returns the list of a function's arguments; without defaults for its identity.
fn arguments(context: &mut Context<'_>, object: Oid, is_full: bool) -> Result<Value> {
    let Some(row) = row_of(context, "pg_proc", object)? else { return Ok(Value::Null) };
    let names = context.names();
    let defaults = row.value("proargdefaults")?.as_str().unwrap_or_default().to_owned();
    let defaults: Vec<&str> = defaults.split(", ").filter(|text| !text.is_empty()).collect();
    let parameters = parameters(&row)?;
    let is_input = |mode: &str| matches!(mode, "" | "i" | "b" | "v");
    let inputs = parameters.iter().filter(|(mode, ..)| is_input(mode)).count();
    let first_default = inputs.saturating_sub(defaults.len());
    let (mut list, mut input) = (Vec::new(), 0);
    for (mode, ty, name) in &parameters {
        let is_in = is_input(mode);
        if mode == "t" {
            continue;
        }
        let mut text = match mode.as_str() {
            "o" => "OUT ",
            "b" => "INOUT ",
            "v" => "VARIADIC ",
            _ => "",
        }
        .to_owned();
        if !name.is_empty() {
            text += &format!("{} ", quote_ident(name));
        }
        text += &names.type_name(*ty, None).unwrap_or_default();
        if is_in && is_full && input >= first_default {
            text += &format!(" DEFAULT {}", defaults[input - first_default]);
        }
        input += usize::from(is_in);
        list.push(text);
    }
    Ok(Value::String(list.join(", ")))
}

fn result(context: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    let Some(row) = row_of(context, "pg_proc", a.object(0)?)? else { return Ok(Value::Null) };
    if row.text("prokind")? == "p" {
        return Ok(Value::Null);
    }
    let names = context.names();
    let columns: Vec<String> = parameters(&row)?
        .iter()
        .filter(|(mode, ..)| mode == "t")
        .map(|(_, ty, name)| {
            format!("{} {}", quote_ident(name), names.type_name(*ty, None).unwrap_or_default())
        })
        .collect();
    if !columns.is_empty() {
        return Ok(Value::String(format!("TABLE({})", columns.join(", "))));
    }
    let set = if row.value("proretset")?.as_bool() == Some(true) { "SETOF " } else { "" };
    let ty = row.value("prorettype")?.as_number().and_then(Number::as_i64).unwrap_or(0);
    Ok(Value::String(format!("{set}{}", names.type_name(ty as Oid, None).unwrap_or_default())))
}
