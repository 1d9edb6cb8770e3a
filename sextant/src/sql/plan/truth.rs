//! Conditions are boolean: what has another type is an error (42804), and an untyped literal is read as a boolean.
//!
//! A path has the type of each document's value, so nothing is known of it here: there only `true` holds.

use proto::expr::{ColumnType, Expr, Function};
use proto::value::Value;
use proto::{Error, ErrorCode, Result};

use super::coerce::read;

/// Checks the arguments of AND, OR and NOT.
pub(super) fn check_arguments(
    expr: &mut Expr,
    type_of: &impl Fn(&Expr) -> ColumnType,
) -> Result<()> {
    let (arguments, of) = match expr {
        Expr::And(list) => (&mut list[..], "AND"),
        Expr::Or(list) => (&mut list[..], "OR"),
        Expr::Not(inner) => (std::slice::from_mut(&mut **inner), "NOT"),
        _ => return Ok(()),
    };
    arguments.iter_mut().try_for_each(|argument| check_condition(argument, of, type_of))
}

/// Checks the argument of a clause or an operator that takes conditions; `type_of` is the type of an operand.
pub(crate) fn check_condition(
    expr: &mut Expr,
    of: &str,
    type_of: &impl Fn(&Expr) -> ColumnType,
) -> Result<()> {
    match expr {
        Expr::Call(Function::Coalesce, list) => {
            list.iter_mut().try_for_each(|term| check_condition(term, of, type_of))
        }
        Expr::Literal(Value::String(text)) => {
            *expr = Expr::Literal(read(text, ColumnType::Bool)?);
            Ok(())
        }
        Expr::Literal(Value::Null | Value::Missing)
        | Expr::Parameter(_)
        | Expr::Path(_)
        | Expr::Unnest(_) => Ok(()),
        Expr::Column(_) if type_of(expr) == ColumnType::Text => Ok(()),
        _ => match type_of(expr) {
            ColumnType::Bool => Ok(()),
            other => Err(not_boolean(expr, of, other)),
        },
    }
}

fn not_boolean(expr: &Expr, of: &str, other: ColumnType) -> Error {
    let message = format!("argument of {of} must be type boolean, not type {}", other.name());
    let hint = match expr {
        Expr::Cast(..) | Expr::DocumentId => "compare it with a value",
        _ => "compare it with a value, or cast it (… ::bool)",
    };
    Error::new(ErrorCode::WrongType, message).with_hint(hint)
}
