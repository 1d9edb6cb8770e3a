//! Determines the types of expressions. Casts, literals and operators have types. A column has
//! the type of its expression in the index. The values of a path can have different types in
//! different documents; a path is treated as text.

use proto::expr::cast::cast;
use proto::expr::{ColumnType, Expr, Function};
use proto::value::{Number, Value};
use proto::{Error, Result};

/// A source of the types of operands.
pub(crate) trait Operands {
    /// Returns the type of an operand.
    fn type_of(&self, expr: &Expr) -> ColumnType;
    /// Returns true if a column may contain booleans.
    fn may_be_boolean(&self, column: u16) -> bool;
    /// Returns true if columns are already resolved. Then no subexpression can still become a
    /// column.
    fn are_resolved(&self) -> bool;
}

/// The operands of an expression over a document, in which paths have no type.
pub(crate) struct DocumentOperands;

/// The operands of an expression of which subexpressions may become columns of an index later.
pub(crate) struct UnresolvedExpr;

impl Operands for DocumentOperands {
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

/// Converts a literal of unknown type to a value of `column_type`. Returns an error if the
/// literal has no such value.
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

/// Returns the common type of alternatives. It is their type if all are equal, a numeric type if
/// all are numbers, and otherwise text. NULL fits every type.
fn common_type(alternatives: &[Expr], column: &impl Fn(u16) -> ColumnType) -> ColumnType {
    let typed = alternatives.iter().filter(|expr| !matches!(expr, Expr::Literal(Value::Null)));
    typed.map(|expr| type_of(expr, column)).reduce(common_of_two).unwrap_or(ColumnType::Text)
}

/// Returns the type to which values of both types can be converted.
fn common_of_two(a: ColumnType, b: ColumnType) -> ColumnType {
    use ColumnType::{Float8, Int4, Int8, Numeric, Text};
    match (a, b) {
        (a, b) if a == b => a,
        (Int4 | Int8, Int4 | Int8) => Int8,
        (Float8, Int4 | Int8 | Numeric) | (Int4 | Int8 | Numeric, Float8) => Float8,
        (Int4 | Int8 | Numeric, Int4 | Int8 | Numeric) => Numeric,
        _ => Text,
    }
}

/// The rule by which operands without a type get a type from the other operands.
#[derive(Clone, Copy)]
pub(super) enum OperandRule {
    /// The type of the first operand that has one.
    First,
    /// The type of the first operand that has one; if there are several numeric types, the
    /// widest.
    OneNumber,
    /// The common type of all operands; unknown if one of them is a path.
    Common,
}

impl OperandRule {
    /// Returns the rule for an operator.
    pub(super) fn of(operator: &Expr) -> Self {
        match operator {
            Expr::Call(..) => Self::Common,
            Expr::In { .. } => Self::OneNumber,
            _ => Self::First,
        }
    }

    /// Returns the type that untyped operands get if the other operands have the types `types`;
    /// `None` if it is unknown.
    pub(super) fn type_from_others(
        self,
        mut types: impl Iterator<Item = ColumnType>,
    ) -> Option<ColumnType> {
        match self {
            Self::First => types.next(),
            Self::OneNumber => types.reduce(|known, other| match common_of_two(known, other) {
                ColumnType::Text => known,
                number => number,
            }),
            Self::Common => types.reduce(common_of_two),
        }
    }
}

/// Returns the type of an expression over a document. Only casts, literals and operators have a
/// type there.
pub(crate) fn document_type(expr: &Expr) -> ColumnType {
    type_of(expr, &|_| ColumnType::Text)
}

/// Returns the type of a literal.
fn literal_type(value: &Value) -> ColumnType {
    match value {
        Value::Bool(_) => ColumnType::Bool,
        Value::Number(Number::Int(n)) if i32::try_from(*n).is_ok() => ColumnType::Int4,
        Value::Number(Number::Int(_)) => ColumnType::Int8,
        Value::Number(_) => ColumnType::Numeric,
        _ => ColumnType::Text,
    }
}

/// Returns the type of an operand of arithmetic: numeric if it has no numeric type.
fn numeric(column_type: ColumnType) -> ColumnType {
    match column_type {
        ColumnType::Text | ColumnType::Bool => ColumnType::Numeric,
        number => number,
    }
}

/// Returns the result type of an arithmetic operator: double if an operand is a double, integer
/// for two integers, otherwise numeric.
fn arithmetic_type(left: ColumnType, right: ColumnType) -> ColumnType {
    use ColumnType::{Float8, Int4, Int8, Numeric};
    match (left, right) {
        (Float8, _) | (_, Float8) => Float8,
        (Int4 | Int8, Int4 | Int8) => Int8,
        _ => Numeric,
    }
}
