//! The types of expressions: those of casts, literals and operators. A column has the type of its
//! expression in the index; a path has the type of each document's value, and is treated as text.

use proto::expr::cast::cast;
use proto::expr::{ColumnType, Expr, Function};
use proto::value::{Number, Value};
use proto::{Error, Result};

/// A source of the types of operands.
pub(crate) trait Operands {
    fn type_of(&self, expr: &Expr) -> ColumnType;
    /// True if a column may have booleans.
    fn may_be_boolean(&self, column: u16) -> bool;
    /// True if columns were resolved, so that no subexpression can still become a column.
    fn are_resolved(&self) -> bool;
}

/// The operands of an expression over documents.
pub(crate) struct OfDocument;

/// The operands of an expression whose subexpressions may become columns of an index.
pub(crate) struct UnresolvedExpr;

impl Operands for OfDocument {
    fn type_of(&self, expr: &Expr) -> ColumnType {
        document_type(expr)
    }

    fn may_be_boolean(&self, _column: u16) -> bool {
        true
    }

    fn are_resolved(&self) -> bool {
        true
    }
}

impl Operands for UnresolvedExpr {
    fn type_of(&self, expr: &Expr) -> ColumnType {
        document_type(expr)
    }

    fn may_be_boolean(&self, _column: u16) -> bool {
        true
    }

    fn are_resolved(&self) -> bool {
        false
    }
}

/// Converts a literal of unknown type to a value of a type; an error if it has none.
pub(super) fn literal_of(text: &str, column_type: ColumnType) -> Result<Value> {
    let literal = Value::from(text);
    cast(&literal, column_type).map_err(|unfit| -> Error {
        unfit
            .error(&literal, column_type)
            .with_hint("the expression beside it or its place has this type")
    })
}

/// Returns the type of an expression: the type of a cast, a column or a literal, or the result type
/// of an operator.
pub(crate) fn type_of(expr: &Expr, column: &impl Fn(u16) -> ColumnType) -> ColumnType {
    match expr {
        Expr::Cast(_, to) => *to,
        Expr::Column(n) => column(*n),
        Expr::Literal(value) => literal_type(value),
        Expr::DocumentId | Expr::Path(_) | Expr::Parameter(_) | Expr::Unnest(_) => ColumnType::Text,
        Expr::Negate(inner) => numeric(type_of(inner, column)),
        Expr::Arithmetic(_, l, r) => arithmetic_type(type_of(l, column), type_of(r, column)),
        Expr::Call(Function::Lower | Function::Upper, _) => ColumnType::Text,
        Expr::Call(Function::Length, _) => ColumnType::Int4,
        Expr::Call(Function::RoundToEven, _) => ColumnType::Numeric,
        Expr::Call(Function::Coalesce, list) => common_type(list, column),
        Expr::Call(Function::Abs, list) => {
            list.first().map_or(ColumnType::Numeric, |first| numeric(type_of(first, column)))
        }
        _ => ColumnType::Bool,
    }
}

/// Returns the type of several alternatives: their type if all are equal, a numeric type if all are
/// numbers, otherwise text. NULL fits any type.
fn common_type(alternatives: &[Expr], column: &impl Fn(u16) -> ColumnType) -> ColumnType {
    let typed = alternatives.iter().filter(|expr| !matches!(expr, Expr::Literal(Value::Null)));
    typed.map(|expr| type_of(expr, column)).reduce(merged).unwrap_or(ColumnType::Text)
}

fn merged(a: ColumnType, b: ColumnType) -> ColumnType {
    use ColumnType::{Float8, Int4, Int8, Numeric, Text};
    match (a, b) {
        (a, b) if a == b => a,
        (Int4 | Int8, Int4 | Int8) => Int8,
        (Float8, Int4 | Int8 | Numeric) | (Int4 | Int8 | Numeric, Float8) => Float8,
        (Int4 | Int8 | Numeric, Int4 | Int8 | Numeric) => Numeric,
        _ => Text,
    }
}

/// The rule by which the untyped operands of an operator get a type.
#[derive(Clone, Copy)]
pub(super) enum OperandRule {
    /// The type of the first operand that has a type.
    First,
    /// The type of the first operand that has a type; among several numeric types, the widest.
    OneNumber,
    /// The type that all operands have; unknown if one of them is a path.
    Common,
}

impl OperandRule {
    pub(super) fn of(operator: &Expr) -> Self {
        match operator {
            Expr::Call(..) => Self::Common,
            Expr::In { .. } => Self::OneNumber,
            _ => Self::First,
        }
    }

    /// Returns the type of untyped operands next to operands of these types; `None` if unknown.
    pub(super) fn type_beside(
        self,
        mut types: impl Iterator<Item = ColumnType>,
    ) -> Option<ColumnType> {
        match self {
            Self::First => types.next(),
            Self::OneNumber => types.reduce(|known, other| match merged(known, other) {
                ColumnType::Text => known,
                number => number,
            }),
            Self::Common => types.reduce(merged),
        }
    }
}

/// Returns the type of an expression over documents, in which only casts, literals and operators
/// have a type.
pub(crate) fn document_type(expr: &Expr) -> ColumnType {
    type_of(expr, &|_| ColumnType::Text)
}

fn literal_type(value: &Value) -> ColumnType {
    match value {
        Value::Bool(_) => ColumnType::Bool,
        Value::Number(Number::Int(n)) if i32::try_from(*n).is_ok() => ColumnType::Int4,
        Value::Number(Number::Int(_)) => ColumnType::Int8,
        Value::Number(_) => ColumnType::Numeric,
        _ => ColumnType::Text,
    }
}

fn numeric(column_type: ColumnType) -> ColumnType {
    match column_type {
        ColumnType::Text | ColumnType::Bool => ColumnType::Numeric,
        number => number,
    }
}

/// Returns the result type of an arithmetic operator: double if an operand is a double, integer for
/// integers.
fn arithmetic_type(left: ColumnType, right: ColumnType) -> ColumnType {
    use ColumnType::{Float8, Int4, Int8, Numeric};
    match (left, right) {
        (Float8, _) | (_, Float8) => Float8,
        (Int4 | Int8, Int4 | Int8) => Int8,
        _ => Numeric,
    }
}
