//! Untyped literals take the type of the other side, as in PostgreSQL.
//!
//! A string in quotes is a literal of unknown type. Beside an expression with another type than text (`population::int8 >
//! '1000'`, in a comparison, `IN`, `BETWEEN` or arithmetic) it is read as a value of that type; a text that is none is an
//! error (22P02). A column without a cast has no type but that of each document's value: there a string stays a string.
//!
//! Ids are strings. A number beside the id is compared by its text, because `INSERT` stores a number as that text.

use proto::expr::eval::cast;
use proto::expr::{ColumnType, Expr};
use proto::value::{Value, text};
use proto::{Error, ErrorCode, Result};

use crate::sql::walk::children_mut;

/// Gives the constants of an expression the types of the other operands; `type_of` is the type of an operand.
pub(crate) fn coerce(expr: &mut Expr, type_of: &impl Fn(&Expr) -> ColumnType) -> Result<()> {
    let mut peers: Vec<&mut Expr> = match expr {
        Expr::Compare(_, l, r) | Expr::Arithmetic(_, l, r) => vec![l, r],
        Expr::Between { expr, low, high, .. } => vec![expr, low, high],
        Expr::In { expr, list, .. } => {
            std::iter::once(&mut **expr).chain(list.items_mut()).collect()
        }
        _ => Vec::new(),
    };
    let is_untyped = |expr: &Expr| {
        matches!(expr, Expr::Literal(Value::String(_) | Value::Null) | Expr::Parameter(_))
    };
    let target = match peers.iter().any(|peer| matches!(peer, Expr::DocumentId)) {
        true => Some(ColumnType::Text),
        false => peers.iter().find(|peer| !is_untyped(peer)).map(|peer| type_of(peer)),
    };
    let is_id = peers.iter().any(|peer| matches!(peer, Expr::DocumentId));
    for peer in &mut peers {
        let Expr::Literal(value) = &mut **peer else { continue };
        match (target, &*value) {
            (Some(ColumnType::Text) | None, Value::Number(_)) if is_id => {
                *value = text(value).map_or(Value::Null, |text| Value::String(text.into_owned()));
            }
            (Some(ColumnType::Text) | None, _) => {}
            (Some(target), Value::String(text)) => *value = read(text, target)?,
            _ => {}
        }
    }
    children_mut(expr).into_iter().try_for_each(|child| coerce(child, type_of))
}

/// Reads a literal as a value of a type.
fn read(text: &str, column_type: ColumnType) -> Result<Value> {
    let name = match column_type {
        ColumnType::Text => "text",
        ColumnType::Bool => "boolean",
        ColumnType::Int4 => "integer",
        ColumnType::Int8 => "bigint",
        ColumnType::Float8 => "double precision",
        ColumnType::Numeric => "numeric",
    };
    match cast(&Value::from(text), column_type) {
        Value::Null => {
            let message = format!("{text:?} is not a valid {name}");
            Err(Error::new(ErrorCode::InvalidText, message)
                .with_hint("the other side of the comparison has this type"))
        }
        value => Ok(value),
    }
}
