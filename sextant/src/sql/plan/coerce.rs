//! Determines the types of operands. An untyped literal gets the type of the other operand, and
//! an operator gets the meaning that it has in PostgreSQL for these types.
//!
//! A string in quotes is a literal of unknown type. If the other operand of a comparison, `IN`,
//! `BETWEEN` or arithmetic has a type other than text (`population::int8 > '1000'`), the string
//! is converted to a value of that type. If that is impossible, the statement fails (22P02). The
//! arguments of `coalesce` get one type too. A column without a cast can have values of different
//! types, so a string that is compared with it is not converted.
//!
//! Ids are strings. A number that is compared with the id is compared as text, because `INSERT`
//! stores the id as the text of the number.
//!
//! Values have no static types, so this module also chooses the operations that depend on types:
//! `/` of two integers is a division of integers, and the cast of a double to an integer rounds
//! half to even. This step precedes the computation of constants, after which their types are no
//! longer known.

use proto::Result;
use proto::expr::{ArithmeticOp, ColumnType, Expr, Function, literal_number};
use proto::value::{Value, text};

use super::truth::check_arguments;
use super::types::{OperandRule, Operands, literal_of};
use crate::sql::walk::children_mut;

/// Converts the constants of an expression to the types of the other operands, and chooses the
/// operations of its operators. Returns an error if a literal has no value of the required type,
/// or if an argument of AND, OR or NOT is not a condition.
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
            rule.type_from_others(typed.map(|peer| operands.type_of(peer)))
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
    choose_operation(expr, operands);
    check_arguments(expr, operands)
}

/// Replaces a literal number by its text as it is written, for an id, which is a text.
pub(crate) fn number_as_text(expr: &mut Expr) {
    let spelled = match &*expr {
        Expr::Literal(value @ Value::Number(_)) => text(value).map(|text| text.into_owned()),
        _ => literal_number(expr).map(str::to_owned),
    };
    if let Some(text) = spelled {
        *expr = Expr::Literal(Value::String(text));
    }
}

/// Chooses the operation of an operator according to the types of its operands.
fn choose_operation(expr: &mut Expr, operands: &impl Operands) {
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
