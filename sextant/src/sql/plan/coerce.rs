//! Types of operands: an untyped literal gets the type of the other operand, and an operator gets
//! PostgreSQL's meaning for its types.
//!
//! A string in quotes is a literal of unknown type. Next to an expression with another type than
//! text (`population::int8 > '1000'`, in a comparison, `IN`, `BETWEEN` or arithmetic) it is
//! converted to a value of that type, or is an error (22P02). The arguments of `coalesce` get one
//! type too. A column without a cast has the type of each document's value, so a string next to it
//! is not converted.
//!
//! Ids are strings. A number next to the id is compared by its text, because `INSERT` stores a
//! number as that text.
//!
//! Values have no static types, so the operations that depend on types are chosen here: `/` of two
//! integers is a division of integers, and the cast of a double to an integer rounds half to even.
//! This step precedes the computation of constants, which loses their types.

use proto::Result;
use proto::expr::{ArithmeticOp, ColumnType, Expr, Function, number_of};
use proto::value::{Value, text};

use super::truth::check_arguments;
use super::types::{OperandRule, Operands, literal_of};
use crate::sql::walk::children_mut;

/// Converts the constants of an expression to the types of the other operands, and chooses the
/// operations of its operators. An error if a literal has no value of the required type, or an
/// argument of AND, OR or NOT is not a condition.
pub(crate) fn coerce(expr: &mut Expr, operands: &impl Operands) -> Result<()> {
    children_mut(expr).into_iter().try_for_each(|child| coerce(child, operands))?;
    let rule = OperandRule::of(expr);
    let mut peers: Vec<&mut Expr> = match expr {
        Expr::Compare(_, l, r) | Expr::Arithmetic(_, l, r) => vec![l, r],
        Expr::Between { expr, low, high, .. } => vec![expr, low, high],
        Expr::In { expr, list, .. } => {
            std::iter::once(&mut **expr).chain(list.items_mut()).collect()
        }
        Expr::Call(Function::Coalesce, list) => list.iter_mut().collect(),
        _ => Vec::new(),
    };
    let is_untyped = |expr: &Expr| {
        matches!(expr, Expr::Literal(Value::String(_) | Value::Null) | Expr::Parameter(_))
    };
    let is_id = peers.iter().any(|peer| matches!(peer, Expr::DocumentId));
    let target = match is_id {
        true => Some(ColumnType::Text),
        false => {
            let typed = peers.iter().filter(|peer| !is_untyped(peer));
            rule.type_beside(typed.map(|peer| operands.type_of(peer)))
        }
    };
    for peer in &mut peers {
        if is_id {
            number_as_text(peer);
        }
        let Expr::Literal(value) = &mut **peer else { continue };
        match (target, &*value) {
            (Some(ColumnType::Text) | None, _) => {}
            (Some(target), Value::String(text)) => *value = literal_of(text, target)?,
            _ => {}
        }
    }
    give_meaning(expr, operands);
    check_arguments(expr, operands)
}

/// Replaces a literal number by its text as written, because an id is a text.
pub(crate) fn number_as_text(expr: &mut Expr) {
    let spelled = match &*expr {
        Expr::Literal(value @ Value::Number(_)) => text(value).map(|text| text.into_owned()),
        _ => number_of(expr).map(str::to_owned),
    };
    if let Some(text) = spelled {
        *expr = Expr::Literal(Value::String(text));
    }
}

fn give_meaning(expr: &mut Expr, operands: &impl Operands) {
    let is_integer =
        |expr: &Expr| matches!(operands.type_of(expr), ColumnType::Int4 | ColumnType::Int8);
    match expr {
        Expr::Arithmetic(op @ ArithmeticOp::Divide, l, r) if is_integer(l) && is_integer(r) => {
            *op = ArithmeticOp::DivideIntegers;
        }
        Expr::Cast(inner, ColumnType::Int4 | ColumnType::Int8)
            if operands.type_of(inner) == ColumnType::Float8 =>
        {
            let double = std::mem::replace(&mut **inner, Expr::Literal(Value::Null));
            **inner = Expr::Call(Function::RoundToEven, vec![double]);
        }
        _ => {}
    }
}
