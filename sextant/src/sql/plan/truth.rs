//! Conditions are boolean: what has another type is an error (42804), and an untyped literal is read as a boolean.
//!
//! A path has the type of each document's value, so nothing is known of it here: there only `true` holds.

use proto::expr::{ColumnType, Expr, Function};
use proto::value::Value;
use proto::{Error, ErrorCode, Result};

use super::coerce::read;
use super::columns::Columns;
use super::types::document_type;
use crate::sql::walk::children_mut;

/// What is known of the columns of an expression.
pub(crate) trait Operands {
    fn type_of(&self, expr: &Expr) -> ColumnType;
    /// True if a column may have booleans.
    fn may_be_boolean(&self, column: u16) -> bool;
}

/// An expression over documents has no columns.
pub(crate) struct OfDocument;

impl Operands for OfDocument {
    fn type_of(&self, expr: &Expr) -> ColumnType {
        document_type(expr)
    }

    fn may_be_boolean(&self, _column: u16) -> bool {
        true
    }
}

impl Operands for Columns<'_> {
    fn type_of(&self, expr: &Expr) -> ColumnType {
        Columns::type_of(*self, expr)
    }

    fn may_be_boolean(&self, column: u16) -> bool {
        Columns::may_be_boolean(*self, column)
    }
}

/// Checks the arguments of all AND, OR and NOT in an expression.
pub(crate) fn check_arguments(expr: &mut Expr, operands: &impl Operands) -> Result<()> {
    let (arguments, of) = match expr {
        Expr::And(list) => (&mut list[..], "AND"),
        Expr::Or(list) => (&mut list[..], "OR"),
        Expr::Not(inner) => (std::slice::from_mut(&mut **inner), "NOT"),
        _ => (&mut [][..], ""),
    };
    arguments.iter_mut().try_for_each(|argument| check_argument(argument, of, operands))?;
    children_mut(expr).into_iter().try_for_each(|child| check_arguments(child, operands))
}

/// Checks the condition of a clause, with all that is in it.
pub(crate) fn check_condition(
    expr: &mut Expr,
    clause: &str,
    operands: &impl Operands,
) -> Result<()> {
    check_argument(expr, clause, operands)?;
    check_arguments(expr, operands)
}

fn check_argument(expr: &mut Expr, of: &str, operands: &impl Operands) -> Result<()> {
    match expr {
        Expr::Call(Function::Coalesce, list) => {
            list.iter_mut().try_for_each(|one| check_argument(one, of, operands))
        }
        Expr::Literal(Value::String(text)) => {
            *expr = Expr::Literal(read(text, ColumnType::Bool)?);
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

fn not_boolean(of: &str, other: ColumnType) -> Error {
    let message = format!("argument of {of} must be type boolean, not type {}", other.name());
    Error::new(ErrorCode::WrongType, message)
        .with_hint("compare it with a value, or cast it to bool")
}
