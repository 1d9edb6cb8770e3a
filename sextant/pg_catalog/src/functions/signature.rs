//! The kinds of implementations.

use proto::value::Value;

use super::context::{Arguments, Context};
use crate::error::Result;
use crate::types::Type;

/// A function that returns one value.
pub(crate) type Scalar = fn(&mut Context<'_>, &Arguments<'_>) -> Result<Value>;

/// A function that returns a set of values; a row is an array of its fields.
pub(crate) type SetOf = fn(&mut Context<'_>, &Arguments<'_>) -> Result<Vec<Value>>;

/// A window function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum Ranking {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    Lag,
    Lead,
    FirstValue,
    LastValue,
    NthValue,
}

/// The implementation of a row of the data.
#[derive(Clone, Copy)]
pub(crate) enum Implementation {
    Scalar(Scalar),
    Set(SetOf),
    Aggregate(MakeFold),
    OrderedSet(OrderedSet),
    Window(Ranking),
}

/// The state of an aggregate over some rows.
pub(crate) trait Fold {
    /// Adds a row of arguments.
    fn add(&mut self, context: &mut Context<'_>, arguments: Vec<Value>) -> Result<()>;

    /// Returns the value for the rows so far.
    fn value(&self, context: &mut Context<'_>) -> Result<Value>;
}

/// The types of an aggregate: its arguments and its result.
pub(crate) struct FoldCall {
    pub types: Vec<Type>,
    pub result: Type,
}

/// Makes the state of an aggregate without rows.
pub(crate) type MakeFold = fn(FoldCall) -> Box<dyn Fold>;

/// The rows of a group in their order, and where the direct arguments would be among them.
pub(crate) struct OrderedSetCall {
    /// The direct arguments.
    pub direct: Vec<Value>,
    /// The keys of the rows, in their order; without those that have a NULL, if the direct
    /// arguments are no row of keys.
    pub sorted: Vec<Vec<Value>>,
    /// The number of rows before the direct arguments.
    pub before: usize,
    /// The number of different rows before the direct arguments.
    pub distinct_before: usize,
    /// The number of rows that are equal to the direct arguments.
    pub peers: usize,
}

/// An aggregate with WITHIN GROUP.
pub(crate) type OrderedSet = fn(&mut Context<'_>, OrderedSetCall) -> Result<Value>;
