//! The cost of an evaluation, counted while it runs.
//!
//! The work of an evaluation depends on the statement: `LIKE` over a long text, `IN` with many
//! values, a cast of a large array. An evaluation therefore counts its work in a [`CostMeter`]
//! and ends at the meter's limit. The count depends on the expression and its values alone, never
//! on a clock, so that all copies of a slice make equal decisions. Callers add up the cost of
//! their evaluations, and yield to other tasks accordingly.
//!
//! The unit of cost is the work of reading one byte of text, about a nanosecond of a release
//! build. Error messages call the unit a *step*.

use std::cell::Cell;

use crate::value::Value;
use crate::{Error, ErrorCode};

/// The limit of the cost of one evaluation, for one document or entry. The limit is some ten
/// milliseconds of work, and enough for several reads of the longest document.
pub const EVALUATION_COST_MAX: u64 = 10_000_000;

/// The basic cost of an operator or operand, to which the size of its values is added.
pub(super) const NODE_COST: u64 = 16;

/// A counter of the cost of evaluations, with a limit.
#[derive(Debug)]
pub struct CostMeter {
    spent: Cell<u64>,
    max: u64,
}

/// The error of an evaluation that would cost more than its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooCostly {
    /// The limit of the cost.
    pub cost_max: u64,
}

impl CostMeter {
    /// Creates a meter with a limit.
    pub fn with_max(max: u64) -> Self {
        Self { spent: Cell::new(0), max }
    }

    /// Creates a meter with the cost limit of one document or entry.
    pub fn for_evaluation() -> Self {
        Self::with_max(EVALUATION_COST_MAX)
    }

    /// Returns the cost so far.
    pub fn spent(&self) -> u64 {
        self.spent.get()
    }

    /// Adds a cost; returns an error if the sum is above the limit.
    pub fn add(&self, cost: u64) -> Result<(), TooCostly> {
        let spent = self.spent.get().saturating_add(cost);
        self.spent.set(spent);
        if spent <= self.max { Ok(()) } else { Err(TooCostly { cost_max: self.max }) }
    }

    /// Adds the cost of reading `bytes` bytes.
    pub fn add_bytes(&self, bytes: usize) -> Result<(), TooCostly> {
        self.add(bytes as u64)
    }

    /// Adds the cost of reading a complete value.
    pub fn add_value(&self, value: &Value) -> Result<(), TooCostly> {
        self.add(reading_cost(value))
    }
}

impl From<TooCostly> for Error {
    fn from(TooCostly { cost_max }: TooCostly) -> Self {
        let message = format!(
            "the evaluation of an expression for one document takes more than {cost_max} steps"
        );
        Error::new(ErrorCode::TooComplex, message).with_hint(
            "shorten the lists and patterns of the expression, or the text that it reads",
        )
    }
}

/// Returns the cost of reading a complete value.
fn reading_cost(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().map(|item| NODE_COST + reading_cost(item)).sum(),
        Value::Object(object) => object
            .iter()
            .map(|(name, value)| NODE_COST + name.len() as u64 + reading_cost(value))
            .sum(),
        _ => 1,
    }
}

/// Returns the cost of comparing two values, which ends at the end of the shorter one.
pub(super) fn comparison_cost(a: &Value, b: &Value) -> u64 {
    match (a, b) {
        (Value::String(a), Value::String(b)) => a.len().min(b.len()) as u64,
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => {
            reading_cost(a).min(reading_cost(b))
        }
        _ => 1,
    }
}
