//! Checks that conditions are boolean. A condition of another type is an error (42804). An
//! untyped literal is converted to a boolean.
//!
//! A path has no static type, so it is not checked. When a path is evaluated, only the value
//! `true` satisfies the condition.

use proto::expr::{ColumnType, Expr, Function};
use proto::value::Value;
use proto::{Error, ErrorCode, Result};

use super::types::{Operands, literal_of};

/// Checks the argument of a clause or an operator, which must be a condition.
pub(crate) fn check_condition(expr: &mut Expr, of: &str, operands: &impl Operands) -> Result<()> {
    match expr {
        // Its literals make it a different expression than a column's.
        Expr::Call(Function::Coalesce, _) if !operands.are_resolved() => Ok(()),
        Expr::Call(Function::Coalesce, list) => {
            list.iter_mut().try_for_each(|one| check_condition(one, of, operands))
        }
        Expr::Literal(Value::String(text)) => {
            *expr = Expr::Literal(literal_of(text, ColumnType::Bool)?);
            Ok(())
        }
        Expr::Literal(Value::Null | Value::Missing)
        | Expr::Parameter(_)
        | Expr::Path(_)
        | Expr::Unnest(_) => Ok(()),
        Expr::Column(n) if operands.may_be_boolean(*n) => Ok(()),
        _ => match operands.type_of(expr) {
            ColumnType::Bool => Ok(()),
            other => Err(not_boolean(of, other)),
        },
    }
}

/// Checks the arguments of AND, OR and NOT.
pub(super) fn check_arguments(expr: &mut Expr, operands: &impl Operands) -> Result<()> {
    let (arguments, of) = match expr {
        Expr::And(list) => (&mut list[..], "AND"),
        Expr::Or(list) => (&mut list[..], "OR"),
        Expr::Not(inner) => (std::slice::from_mut(&mut **inner), "NOT"),
        _ => return Ok(()),
    };
    arguments.iter_mut().try_for_each(|argument| check_condition(argument, of, operands))
}

/// Returns the error for an argument that is not a condition.
fn not_boolean(of: &str, other: ColumnType) -> Error {
    let message = format!("argument of {of} must be type boolean, not type {}", other.name());
    Error::new(ErrorCode::WrongType, message)
        .with_hint("compare it with a value, or cast it to bool")
}
