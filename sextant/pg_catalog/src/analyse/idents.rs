//! Identifiers of a statement.

use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};

use crate::error::{Error, Result};

/// The maximum length of an identifier in bytes; PostgreSQL cuts longer ones.
const NAME_BYTES_MAX: usize = 63;

/// Returns an identifier as PostgreSQL stores it: in lower case unless it is quoted, and cut to 63 bytes.
pub(super) fn folded(ident: &Ident) -> String {
    let mut name = match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    };
    if name.len() > NAME_BYTES_MAX {
        let end = (0..=NAME_BYTES_MAX).rev().find(|at| name.is_char_boundary(*at));
        name.truncate(end.unwrap_or(0));
    }
    name
}

/// Returns the parts of a name.
pub(super) fn object_parts(name: &ObjectName) -> Result<Vec<Ident>> {
    let part = |part: &ObjectNamePart| match part {
        ObjectNamePart::Identifier(ident) => Ok(ident.clone()),
        ObjectNamePart::Function(_) => {
            Err(Error::new("42601", format!("syntax error in name {name}")))
        }
    };
    name.0.iter().map(part).collect()
}

/// Returns the schema, if it was written, and the last part of a name. A first part that names the database is dropped.
pub(super) fn qualified(name: &ObjectName, database: &str) -> Result<(Option<String>, Ident)> {
    let parts = object_parts(name)?;
    match parts.as_slice() {
        [last] => Ok((None, last.clone())),
        [schema, last] => Ok((Some(folded(schema)), last.clone())),
        [first, schema, last] if folded(first) == database => {
            Ok((Some(folded(schema)), last.clone()))
        }
        [_, _, _] => Err(Error::unsupported(format!(
            "cross-database references are not implemented: {name}"
        ))),
        _ => Err(Error::new(
            "42601",
            format!("improper qualified name (too many dotted names): {name}"),
        )),
    }
}

/// Adds the place of an identifier to an error.
pub(super) fn place(error: Error, ident: &Ident) -> Error {
    error.at(ident.span.start.line, ident.span.start.column)
}
