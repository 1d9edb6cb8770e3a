//! Evaluation of expressions: SQL's three-valued logic over JSON values.
//!
//! - **Unknown is NULL.** A comparison, `IN`, `BETWEEN` or `LIKE` between values of different
//!   types, or with NULL or MISSING, is unknown. `AND`, `OR` and `NOT` treat unknown operands as in
//!   SQL, and an operand that is not a boolean as unknown. A predicate is satisfied only if it is
//!   true.
//! - **Casts, functions and arithmetic of MISSING give MISSING**, so that a document without the
//!   field is left out of an index on `lower(field)`, as it is left out of an index on `field`. Any
//!   other operand of a wrong type gives NULL.
//! - **An expression without a value** (a failed cast, a division by zero, an overflow) is NULL in
//!   an index definition, since an index accepts every document, and an error in a query. An
//!   [`Evaluation`] is of one of these kinds.
//!
//! Each evaluation counts its cost and ends at a limit (`cost`).
//!
//! Evaluation recurses as deep as the expression; the parsers bound that (500 operators), and the
//! work of each operator is kept out of the recursing function so that its frames stay small.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::arithmetic::{absolute, arithmetic, negated, rounded_to_even};
use super::cast::cast;
use super::cost::{CostMeter, NODE_COST, TooCostly, comparison_cost};
use super::like;
use crate::Error;
use crate::expr::ast::{ArithmeticOp, ColumnType, CompareOp, Expr, Function, InList};
use crate::value::Step;
use crate::value::{MISSING, NULL, Value, compare};

/// The document or index entry for which an expression is evaluated.
pub trait Scope {
    /// Returns the value at the end of a path into the document; MISSING if there is none.
    fn path<'a>(&'a self, steps: &[Step]) -> Cow<'a, Value>;
    /// Returns the id of the document, without type or quotes.
    fn document_id(&self) -> &str;
    /// Returns the column with number `n` of the entry: the key parts first, then the included
    /// expressions. Returns MISSING if there is no such column.
    fn column(&self, n: u16) -> Cow<'_, Value>;
    /// Returns the cost of reading the column with this number, or the document's id, if it must
    /// be decoded.
    fn column_cost(&self, _: u16) -> u64 {
        1
    }
}

/// A document as the scope of an evaluation; it has no columns.
#[derive(Clone, Copy)]
pub struct DocumentScope<'d> {
    /// The document's id.
    pub id: &'d str,
    /// The document.
    pub doc: &'d Value,
}

impl Scope for DocumentScope<'_> {
    fn path<'a>(&'a self, steps: &[Step]) -> Cow<'a, Value> {
        Cow::Borrowed(self.doc.path(steps))
    }

    fn document_id(&self) -> &str {
        self.id
    }

    fn column(&self, _: u16) -> Cow<'_, Value> {
        Cow::Borrowed(&MISSING)
    }
}

/// The reasons why an evaluation has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// The evaluation exceeds its cost limit.
    TooCostly(TooCostly),
    /// A value in a query cannot be computed, such as a division by zero. Does not occur for
    /// index definitions, in which such a value is NULL.
    Failed(Box<Error>),
}

impl From<TooCostly> for EvalError {
    fn from(costly: TooCostly) -> Self {
        Self::TooCostly(costly)
    }
}

impl From<EvalError> for Error {
    fn from(error: EvalError) -> Self {
        match error {
            EvalError::TooCostly(costly) => costly.into(),
            EvalError::Failed(error) => *error,
        }
    }
}

type EvalResult<T> = Result<T, EvalError>;

/// The evaluation of expressions for one document or index entry.
#[derive(Clone, Copy)]
pub struct Evaluation<'a> {
    scope: &'a dyn Scope,
    cost: &'a CostMeter,
    is_strict: bool,
}

impl<'a> Evaluation<'a> {
    /// Creates an evaluation for an index definition: a value that cannot be computed is NULL.
    pub fn of_definition(scope: &'a dyn Scope, cost: &'a CostMeter) -> Self {
        Self { scope, cost, is_strict: false }
    }

    /// Creates an evaluation for a query: a value that cannot be computed is an error.
    pub fn of_query(scope: &'a dyn Scope, cost: &'a CostMeter) -> Self {
        Self { scope, cost, is_strict: true }
    }

    /// Returns the value of an expression. Returns an error too if its cost exceeds the limit.
    pub fn eval(self, expr: &'a Expr) -> EvalResult<Cow<'a, Value>> {
        self.cost.add(NODE_COST)?;
        Ok(match expr {
            Expr::Literal(value) => Cow::Borrowed(value),
            Expr::Path(steps) => {
                self.cost.add(NODE_COST * steps.len() as u64)?;
                self.scope.path(steps)
            }
            Expr::Column(n) => {
                self.cost.add(self.scope.column_cost(*n))?;
                self.scope.column(*n)
            }
            Expr::Parameter(_) => Cow::Borrowed(&NULL),
            // The projector makes one key of each element; here the array itself is the value.
            Expr::Unnest(inner) => self.eval(inner)?,
            Expr::Call(Function::Coalesce, arguments) => self.coalesce(arguments)?,
            _ => Cow::Owned(self.compute(expr)?),
        })
    }

    /// Returns whether a predicate is true; `None` if that is unknown. Returns an error too if
    /// its cost exceeds the limit.
    pub fn truth(self, expr: &'a Expr) -> EvalResult<Option<bool>> {
        match expr {
            Expr::And(list) => self.and_or(list, false),
            Expr::Or(list) => self.and_or(list, true),
            Expr::Not(inner) => Ok(self.truth(inner)?.map(|truth| !truth)),
            Expr::Compare(op, l, r) => {
                let (l, r) = (self.eval(l)?, self.eval(r)?);
                self.holds(*op, &l, &r)
            }
            Expr::In { expr, list, negated } => {
                let value = self.eval(expr)?;
                Ok(self.contains(list, &value)?.map(|found| found != *negated))
            }
            Expr::Between { expr, low, high, negated } => {
                let value = self.eval(expr)?;
                let (low, high) = (self.eval(low)?, self.eval(high)?);
                Ok(self.between(&value, &low, &high)?.map(|within| within != *negated))
            }
            Expr::Like { expr, pattern, negated } => {
                let (text, pattern) = (self.eval(expr)?, self.eval(pattern)?);
                Ok(self.like(&text, &pattern)?.map(|found| found != *negated))
            }
            Expr::IsNull { expr, negated } => Ok(Some(self.eval(expr)?.is_absent() != *negated)),
            Expr::IsMissing { expr, negated } => {
                Ok(Some(matches!(*self.eval(expr)?, Value::Missing) != *negated))
            }
            _ => Ok(self.eval(expr)?.as_bool()),
        }
    }

    /// Evaluates an operator or call whose result is a new value, not a part of its operands.
    fn compute(self, expr: &'a Expr) -> EvalResult<Value> {
        match expr {
            Expr::DocumentId => {
                self.cost.add(self.scope.column_cost(u16::MAX))?;
                Ok(Value::from(self.scope.document_id()))
            }
            Expr::Negate(inner) => Ok(negate(&*self.eval(inner)?)),
            Expr::Arithmetic(op, l, r) => self.arithmetic(*op, l, r),
            Expr::Cast(inner, to) => self.cast(inner, *to),
            Expr::Call(function, arguments) => match arguments.as_slice() {
                [argument] => self.call(*function, argument),
                _ => Ok(Value::Null),
            },
            _ => Ok(self.truth(expr)?.map_or(Value::Null, Value::Bool)),
        }
    }

    /// Returns the result of a computation that has no value: `error` in a query, NULL in an
    /// index definition.
    fn value_or_error(self, error: impl FnOnce() -> Error) -> EvalResult<Value> {
        match self.is_strict {
            true => Err(EvalError::Failed(Box::new(error()))),
            false => Ok(Value::Null),
        }
    }

    fn arithmetic(self, op: ArithmeticOp, l: &'a Expr, r: &'a Expr) -> EvalResult<Value> {
        let l = self.eval(l)?;
        let r = self.eval(r)?;
        arithmetic(op, &l, &r).or_else(|reason| self.value_or_error(|| reason.into()))
    }

    fn cast(self, inner: &'a Expr, to: ColumnType) -> EvalResult<Value> {
        let value = self.eval(inner)?;
        self.cost.add_value(&value)?;
        cast(&value, to).or_else(|unfit| self.value_or_error(|| unfit.error(&value, to)))
    }

    fn call(self, function: Function, argument: &'a Expr) -> EvalResult<Value> {
        let value = self.eval(argument)?;
        self.cost.add_value(&value)?;
        Ok(call(function, &value))
    }

    /// Returns the result of a list of terms that are joined by `AND` (`deciding` is false) or by
    /// `OR` (`deciding` is true). One term with the value `deciding` decides the result.
    fn and_or(self, list: &'a [Expr], deciding: bool) -> EvalResult<Option<bool>> {
        let mut result = Some(!deciding);
        for expr in list {
            match self.truth(expr)? {
                Some(truth) if truth == deciding => return Ok(Some(deciding)),
                Some(_) => {}
                None => result = None,
            }
        }
        Ok(result)
    }

    /// Returns the order of two values of one type; `None` if their types differ.
    fn compare_within_type(self, a: &Value, b: &Value) -> EvalResult<Option<Ordering>> {
        if a.is_absent() || a.type_rank() != b.type_rank() {
            return Ok(None);
        }
        self.cost.add(comparison_cost(a, b))?;
        Ok(Some(compare(a, b)))
    }

    fn holds(self, op: CompareOp, a: &Value, b: &Value) -> EvalResult<Option<bool>> {
        Ok(self.compare_within_type(a, b)?.map(|order| op.holds(order)))
    }

    fn contains(self, list: &'a InList, value: &Value) -> EvalResult<Option<bool>> {
        if value.is_absent() {
            return Ok(list.is_empty().then_some(false));
        }
        let mut result = list.has_constant(value, self.cost)?;
        if result == Some(true) {
            return Ok(result);
        }
        for item in list.others() {
            match self.holds(CompareOp::Eq, value, &*self.eval(item)?)? {
                Some(true) => return Ok(Some(true)),
                Some(false) => {}
                None => result = None,
            }
        }
        Ok(result)
    }

    /// Returns `low <= value AND value <= high`, which is false if one bound excludes the value and
    /// the other is unknown.
    fn between(self, value: &Value, low: &Value, high: &Value) -> EvalResult<Option<bool>> {
        let above = self.holds(CompareOp::LessEq, low, value)?;
        Ok(match (above, self.holds(CompareOp::LessEq, value, high)?) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        })
    }

    fn like(self, value: &Value, pattern: &Value) -> EvalResult<Option<bool>> {
        match (value.as_str(), pattern.as_str()) {
            (Some(text), Some(pattern)) => Ok(Some(like::matches(text, pattern, self.cost)?)),
            _ => Ok(None),
        }
    }

    fn coalesce(self, arguments: &'a [Expr]) -> EvalResult<Cow<'a, Value>> {
        for argument in arguments {
            let value = self.eval(argument)?;
            if !value.is_absent() {
                return Ok(value);
            }
        }
        Ok(Cow::Borrowed(&NULL))
    }
}

/// Returns the result of an operator whose operand has a wrong type: MISSING for MISSING,
/// otherwise NULL.
fn wrong_type_result(operand: &Value) -> Value {
    if matches!(operand, Value::Missing) { Value::Missing } else { Value::Null }
}

fn call(function: Function, argument: &Value) -> Value {
    match (function, argument) {
        (Function::Lower, Value::String(text)) => Value::String(text.to_lowercase()),
        (Function::Upper, Value::String(text)) => Value::String(text.to_uppercase()),
        (Function::Length, Value::String(text)) => Value::int(text.chars().count() as i64),
        (Function::Abs, Value::Number(number)) => Value::Number(absolute(*number)),
        (Function::RoundToEven, Value::Number(number)) => Value::Number(rounded_to_even(*number)),
        (Function::RoundToEven, value) => value.clone(),
        (Function::Coalesce, value) if !value.is_absent() => value.clone(),
        (Function::Coalesce, _) => Value::Null,
        _ => wrong_type_result(argument),
    }
}

fn negate(operand: &Value) -> Value {
    match operand {
        Value::Number(number) => Value::Number(negated(*number)),
        other => wrong_type_result(other),
    }
}

#[cfg(test)]
#[path = "eval_tests.rs"]
mod tests;
