//! Privileges of users on objects.

use proto::value::Value;

use super::table::{row_of, rows_with};
use crate::data::FunctionRow;
use crate::error::{Error, Result};
use crate::functions::context::{Arguments, Context};
use crate::functions::signature::Scalar;
use crate::relations::ObjectKind;
use crate::session::Right;
use crate::types::oid::{self, Oid};
use crate::types::text::find_object;

/// A kind of objects: its name in functions, the type that names one, its table, its privileges.
struct Kind {
    name: &'static str,
    names: Option<Oid>,
    table: &'static str,
    privileges: &'static [&'static str],
}

const COLUMN: &[&str] = &["SELECT", "INSERT", "UPDATE", "REFERENCES"];

const KINDS: [Kind; 12] = [
    Kind {
        name: "table",
        names: Some(oid::REGCLASS),
        table: "pg_class",
        privileges: &[
            "SELECT",
            "INSERT",
            "UPDATE",
            "DELETE",
            "TRUNCATE",
            "REFERENCES",
            "TRIGGER",
            "MAINTAIN",
            "RULE",
        ],
    },
    Kind { name: "column", names: Some(oid::REGCLASS), table: "pg_class", privileges: COLUMN },
    Kind { name: "any_column", names: Some(oid::REGCLASS), table: "pg_class", privileges: COLUMN },
    Kind {
        name: "sequence",
        names: Some(oid::REGCLASS),
        table: "pg_class",
        privileges: &["USAGE", "SELECT", "UPDATE"],
    },
    Kind {
        name: "schema",
        names: Some(oid::REGNAMESPACE),
        table: "pg_namespace",
        privileges: &["CREATE", "USAGE"],
    },
    Kind {
        name: "database",
        names: None,
        table: "pg_database",
        privileges: &["CREATE", "TEMPORARY", "TEMP", "CONNECT"],
    },
    Kind {
        name: "function",
        names: Some(oid::REGPROCEDURE),
        table: "pg_proc",
        privileges: &["EXECUTE"],
    },
    Kind { name: "type", names: Some(oid::REGTYPE), table: "pg_type", privileges: &["USAGE"] },
    Kind { name: "language", names: None, table: "pg_language", privileges: &["USAGE"] },
    Kind { name: "server", names: None, table: "pg_foreign_server", privileges: &["USAGE"] },
    Kind {
        name: "foreign_data_wrapper",
        names: None,
        table: "pg_foreign_data_wrapper",
        privileges: &["USAGE"],
    },
    Kind { name: "tablespace", names: None, table: "pg_tablespace", privileges: &["CREATE"] },
];

/// Returns the implementation of a function.
pub(super) fn find(row: &FunctionRow) -> Option<Scalar> {
    macro_rules! by_kind {
        ($($function:literal => $kind:literal,)*) => {
            match row.name.as_str() {
                $($function => Some(|context: &mut Context<'_>, a: &Arguments<'_>| has(context, a, $kind)),)*
                "pg_has_role" => Some(has_role),
                _ => None,
            }
        };
    }
    by_kind! {
        "has_table_privilege" => "table",
        "has_column_privilege" => "column",
        "has_any_column_privilege" => "any_column",
        "has_sequence_privilege" => "sequence",
        "has_schema_privilege" => "schema",
        "has_database_privilege" => "database",
        "has_function_privilege" => "function",
        "has_type_privilege" => "type",
        "has_language_privilege" => "language",
        "has_server_privilege" => "server",
        "has_foreign_data_wrapper_privilege" => "foreign_data_wrapper",
        "has_tablespace_privilege" => "tablespace",
    }
}

/// Returns the name of the user that an argument names; `None` for one that does not exist by OID.
fn user(context: &Context<'_>, value: &Value) -> Result<Option<String>> {
    let missing = |name: &str| Error::new("42704", format!("role \"{name}\" does not exist"));
    match value {
        Value::String(name) if name == "public" => Ok(Some(name.clone())),
        Value::String(name) => match context.relations.object_named(ObjectKind::Role, None, name) {
            Some(_) => Ok(Some(name.clone())),
            None => Err(missing(name)),
        },
        value => {
            let number = value.as_number().and_then(|number| number.as_i64()).unwrap_or(0);
            Ok(context.relations.object_name(ObjectKind::Role, number as Oid).map(|(_, name)| name))
        }
    }
}

/// Returns the object that an argument names; `None` for an OID without an object.
fn object(context: &mut Context<'_>, kind: &Kind, value: &Value) -> Result<Option<Oid>> {
    match value {
        Value::String(name) => {
            let found = match kind.names {
                Some(oid::REGPROCEDURE) if !name.contains('(') => {
                    context.names().named(ObjectKind::Function, name)?
                }
                Some(ty) => find_object(name, ty, &context.names())?,
                None => named(context, kind, name)?,
            };
            let what = if kind.table == "pg_class" { "relation" } else { kind.name };
            let sqlstate = match what {
                "relation" => "42P01",
                "schema" => "3F000",
                "database" => "3D000",
                "function" => "42883",
                _ => "42704",
            };
            let missing = || Error::new(sqlstate, format!("{what} \"{name}\" does not exist"));
            found.map(Some).ok_or_else(missing)
        }
        value => {
            let number = value.as_number().and_then(|number| number.as_i64()).unwrap_or(0) as Oid;
            Ok(row_of(context, kind.table, number)?.map(|_| number))
        }
    }
}

/// Returns the object of a table that is not in a schema.
fn named(context: &mut Context<'_>, kind: &Kind, name: &str) -> Result<Option<Oid>> {
    let column = match kind.table {
        "pg_database" => "datname",
        "pg_language" => "lanname",
        "pg_foreign_server" => "srvname",
        "pg_foreign_data_wrapper" => "fdwname",
        _ => "spcname",
    };
    let rows = rows_with(context, kind.table, column, &Value::from(name))?;
    rows.first().map(|row| row.oid("oid")).transpose()
}

/// Returns true if the table has the column, given by name or number; an error for a name that it
/// does not have.
fn has_column(context: &mut Context<'_>, table: Oid, column: &Value) -> Result<bool> {
    let rows = rows_with(context, "pg_attribute", "attrelid", &Value::int(table.into()))?;
    for row in &rows {
        let own = if column.as_str().is_some() { "attname" } else { "attnum" };
        if row.value(own)? == column {
            return Ok(row.value("attisdropped")?.as_bool() != Some(true));
        }
    }
    match column.as_str() {
        Some(name) => Err(Error::new("42703", format!("column \"{name}\" does not exist"))),
        None => Ok(false),
    }
}

/// Answers `has_…_privilege([user,] object [, column], privileges)`.
fn has(context: &mut Context<'_>, a: &Arguments<'_>, kind: &str) -> Result<Value> {
    let Some(kind) = KINDS.iter().find(|row| row.name == kind) else {
        return Err(Error::internal(format!("there are no privileges on a {kind}")));
    };
    let own = usize::from(kind.name == "column");
    let first = a.len() - 2 - own;
    let user = match first {
        0 => None,
        _ => match user(context, a.value(0))? {
            Some(user) => Some(user),
            None => return Ok(Value::Bool(false)),
        },
    };
    let privileges = privileges(a.text(a.len() - 1)?, kind)?;
    let Some(object) = object(context, kind, a.value(first))? else { return Ok(Value::Null) };
    if own == 1 && !has_column(context, object, a.value(first + 1))? {
        return Ok(Value::Null);
    }
    for privilege in &privileges {
        let kind = if kind.name == "any_column" { "column" } else { kind.name };
        let right = Right { user: user.as_deref(), kind, object, privilege };
        if context.session.has_right(&right)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

/// Returns the privileges of a list such as `SELECT, INSERT WITH GRANT OPTION`, in upper case.
fn privileges(list: &str, kind: &Kind) -> Result<Vec<String>> {
    let mut privileges = Vec::new();
    for privilege in list.split(',') {
        let upper = privilege.split_whitespace().collect::<Vec<_>>().join(" ").to_uppercase();
        let plain = upper.strip_suffix(" WITH GRANT OPTION").unwrap_or(&upper);
        if !kind.privileges.contains(&plain) {
            let what = format!("unrecognized privilege type: \"{}\"", privilege.trim());
            return Err(Error::new("22023", what));
        }
        privileges.push(upper);
    }
    Ok(privileges)
}

/// Answers `pg_has_role([user,] role, privilege)`.
fn has_role(context: &mut Context<'_>, a: &Arguments<'_>) -> Result<Value> {
    let first = a.len() - 2;
    let user = match first {
        0 => None,
        _ => match user(context, a.value(0))? {
            Some(user) => Some(user),
            None => return Ok(Value::Bool(false)),
        },
    };
    let role = match a.value(first) {
        Value::String(name) => {
            let role = context.relations.object_named(ObjectKind::Role, None, name);
            role.ok_or_else(|| Error::new("42704", format!("role \"{name}\" does not exist")))?
        }
        _ => a.object(first)?,
    };
    let kind = Kind {
        name: "role",
        names: None,
        table: "pg_authid",
        privileges: &["USAGE", "MEMBER", "SET"],
    };
    for privilege in privileges(
        &a.text(first + 1)?.to_uppercase().replace(" WITH ADMIN OPTION", " WITH GRANT OPTION"),
        &kind,
    )? {
        let right =
            Right { user: user.as_deref(), kind: "role", object: role, privilege: &privilege };
        if context.session.has_right(&right)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}
