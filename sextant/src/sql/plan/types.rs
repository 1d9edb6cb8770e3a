//! The types of expressions: those of casts, literals and operators. A column has the type of its expression in the index; a path has none but
//! that of each document's value, and counts as text.

use proto::expr::cast::cast;
use proto::expr::{ColumnType, Expr, Function};
use proto::value::{Number, Value};
use proto::{Error, Result};

/// The types of operands, as far as they are known.
pub(crate) trait Operands {
    fn type_of(&self, expr: &Expr) -> ColumnType;
    /// True if a column may have booleans.
    fn may_be_boolean(&self, column: u16) -> bool;
    /// True if no part of the expression is compared with the expressions of an index any more.
    fn are_resolved(&self) -> bool;
}

/// An expression over documents.
pub(crate) struct OfDocument;

/// An expression whose parts may be columns of an index.
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

/// Reads a literal of unknown type as a value of a type.
pub(super) fn literal_of(text: &str, column_type: ColumnType) -> Result<Value> {
    let literal = Value::from(text);
    cast(&literal, column_type).map_err(|unfit| -> Error {
        unfit
            .error(&literal, column_type)
            .with_hint("the expression beside it or its place has this type")
    })
}

/// The type of an expression: the type of a cast, a column or a literal, or the result type of an operator.
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

/// The type of several alternatives: theirs if it is the same, a number if all are numbers, else text. NULL has any type.
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

/// How the untyped operands of an operator get a type.
#[derive(Clone, Copy)]
pub(super) enum OperandRule {
    /// The type of the first operand that has one.
    First,
    /// The type of the first operand that has one. Numbers of several types have the widest of these.
    OneNumber,
    /// The type that all operands have. With a path, which has none, the type is unknown.
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

    /// The type of untyped operands next to operands of these types.
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

/// The type of an expression over documents, in which only casts, literals and operators have a type.
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

/// The result type of an operator: double if an operand is a double, integer for integers.
fn arithmetic_type(left: ColumnType, right: ColumnType) -> ColumnType {
    use ColumnType::{Float8, Int4, Int8, Numeric};
    match (left, right) {
        (Float8, _) | (_, Float8) => Float8,
        (Int4 | Int8, Int4 | Int8) => Int8,
        _ => Numeric,
    }
}
