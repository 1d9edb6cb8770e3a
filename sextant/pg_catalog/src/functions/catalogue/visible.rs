//! Whether objects are visible without their schema, and the objects that texts name.

use proto::value::Value;

use super::table::row_of;
use crate::data::FunctionRow;
use crate::error::Result;
use crate::functions::context::{Arguments, Context};
use crate::functions::signature::Scalar;
use crate::relations::ObjectKind;
use crate::types::oid::{self, Oid};
use crate::types::text::find_object;

fn truth(truth: Option<bool>) -> Value {
    truth.map_or(Value::Null, Value::Bool)
}

fn is_visible(context: &mut Context<'_>, a: &Arguments<'_>, kind: ObjectKind) -> Result<Value> {
    Ok(truth(context.names().is_visible(kind, a.object(0)?)))
}

/// Returns whether the schema of a row of a table is on the search path.
fn is_in_path(
    context: &mut Context<'_>,
    a: &Arguments<'_>,
    (table, schema): (&str, &str),
) -> Result<Value> {
    let Some(row) = row_of(context, table, a.object(0)?)? else { return Ok(Value::Null) };
    let name = context.relations.object_name(ObjectKind::Schema, row.oid(schema)?);
    let path = context.names().path();
    Ok(Value::Bool(name.is_some_and(|(_, name)| path.contains(&name.as_str()))))
}

/// Returns the object that a text names; NULL if there is none.
fn named(context: &mut Context<'_>, a: &Arguments<'_>, ty: Oid) -> Result<Value> {
    let text = a.text(0)?;
    let is_number = !text.trim().is_empty() && text.trim().chars().all(|c| c.is_ascii_digit());
    if is_number {
        return Ok(text.trim().parse::<Oid>().map_or(Value::Null, |oid| Value::int(oid.into())));
    }
    let found = match find_object(text, ty, &context.names()) {
        Ok(found) => found,
        // An ambiguous name, and arguments that are no types, name no object.
        Err(error) if matches!(error.sqlstate, "42725" | "42704") => None,
        Err(error) => return Err(error),
    };
    Ok(found.map_or(Value::Null, |oid| Value::int(oid.into())))
}

/// Returns the implementation of a function.
pub(super) fn find(row: &FunctionRow) -> Option<Scalar> {
    Some(match row.name.as_str() {
        "pg_table_is_visible" => |context, a| is_visible(context, a, ObjectKind::Relation),
        "pg_type_is_visible" => |context, a| is_visible(context, a, ObjectKind::Type),
        "pg_function_is_visible" => |context, a| is_visible(context, a, ObjectKind::Function),
        "pg_operator_is_visible" => |context, a| is_visible(context, a, ObjectKind::Operator),
        "pg_collation_is_visible" => {
            |context, a| is_in_path(context, a, ("pg_collation", "collnamespace"))
        }
        "pg_conversion_is_visible" => {
            |context, a| is_in_path(context, a, ("pg_conversion", "connamespace"))
        }
        "pg_opclass_is_visible" => {
            |context, a| is_in_path(context, a, ("pg_opclass", "opcnamespace"))
        }
        "pg_opfamily_is_visible" => {
            |context, a| is_in_path(context, a, ("pg_opfamily", "opfnamespace"))
        }
        "pg_statistics_obj_is_visible" => {
            |context, a| is_in_path(context, a, ("pg_statistic_ext", "stxnamespace"))
        }
        "pg_ts_config_is_visible" => {
            |context, a| is_in_path(context, a, ("pg_ts_config", "cfgnamespace"))
        }
        "pg_ts_dict_is_visible" => {
            |context, a| is_in_path(context, a, ("pg_ts_dict", "dictnamespace"))
        }
        "pg_ts_parser_is_visible" => {
            |context, a| is_in_path(context, a, ("pg_ts_parser", "prsnamespace"))
        }
        "pg_ts_template_is_visible" => {
            |context, a| is_in_path(context, a, ("pg_ts_template", "tmplnamespace"))
        }
        "to_regclass" => |context, a| named(context, a, oid::REGCLASS),
        "to_regtype" => |context, a| named(context, a, oid::REGTYPE),
        "to_regproc" => |context, a| named(context, a, oid::REGPROC),
        "to_regprocedure" => |context, a| named(context, a, oid::REGPROCEDURE),
        "to_regoper" => |context, a| named(context, a, oid::REGOPER),
        "to_regoperator" => |context, a| named(context, a, oid::REGOPERATOR),
        "to_regrole" => |context, a| named(context, a, oid::REGROLE),
        "to_regnamespace" => |context, a| named(context, a, oid::REGNAMESPACE),
        "to_regcollation" => |context, a| named(context, a, oid::REGCOLLATION),
        _ => return None,
    })
}
