//! Access control lists.

use proto::value::Value;

use crate::data::FunctionRow;
use crate::error::{Error, Result};
use crate::functions::context::Context;
use crate::functions::signature::SetOf;
use crate::relations::ObjectKind;

/// The letters of privileges in an `aclitem`.
const PRIVILEGES: [(char, &str); 16] = [
    ('a', "INSERT"),
    ('r', "SELECT"),
    ('w', "UPDATE"),
    ('d', "DELETE"),
    ('D', "TRUNCATE"),
    ('x', "REFERENCES"),
    ('t', "TRIGGER"),
    ('X', "EXECUTE"),
    ('U', "USAGE"),
    ('C', "CREATE"),
    ('T', "TEMPORARY"),
    ('c', "CONNECT"),
    ('s', "SET"),
    ('A', "ALTER SYSTEM"),
    ('m', "MAINTAIN"),
    ('R', "RULE"),
];

/// Returns the implementation of a function that returns a set.
pub(super) fn find_set(row: &FunctionRow) -> Option<SetOf> {
    Some(match row.name.as_str() {
        "aclexplode" => |context, a| {
            let mut rows = Vec::new();
            for item in a.array(0)? {
                explode(context, item.as_str().unwrap_or_default(), &mut rows)?;
            }
            Ok(rows)
        },
        _ => return None,
    })
}

/// Adds a row for each privilege of an item `grantee=letters/grantor`; `*` after a letter is the
/// right to grant it.
fn explode(context: &mut Context<'_>, item: &str, rows: &mut Vec<Value>) -> Result<()> {
    let malformed = || Error::new("22P02", format!("malformed aclitem: \"{item}\""));
    let (grantee, rest) = item.split_once('=').ok_or_else(malformed)?;
    let (letters, grantor) = rest.split_once('/').ok_or_else(malformed)?;
    let role = |name: &str| {
        let name = name.trim_matches('"').replace("\"\"", "\"");
        let role = context.relations.object_named(ObjectKind::Role, None, &name);
        Value::int(role.unwrap_or(0).into())
    };
    let (grantor, grantee) = (role(grantor), role(grantee));
    let mut letters = letters.chars().peekable();
    while let Some(letter) = letters.next() {
        let privilege = PRIVILEGES.iter().find(|(own, _)| *own == letter);
        let (_, privilege) = privilege.ok_or_else(malformed)?;
        let is_grantable = letters.next_if_eq(&'*').is_some();
        rows.push(Value::Array(vec![
            grantor.clone(),
            grantee.clone(),
            Value::from(*privilege),
            Value::Bool(is_grantable),
        ]));
    }
    Ok(())
}
