//! The planner: from a SELECT and the definition of what it reads to a scan.
//!
//! It works in two steps, because a prepared statement is described before its parameters have
//! values. [`resolve`] replaces names by columns and knows the types of columns and parameters;
//! [`Resolved::plan`] puts the values in and decides how to read. Neither does any I/O.

mod columns;
mod constant;
mod documents;
mod explain;
mod index;
mod order;
mod parameters;
mod ranges;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use proto::Result;
use proto::expr::{ColumnType, Expr, Function};
use proto::model::bucket::BucketInfo;
use proto::model::index::IndexInfo;
use proto::value::Value;

pub use constant::{ConstantPlan, ConstantValue};
pub use documents::{DocumentColumn, DocumentPlan};
pub use index::{Cell, IndexPlan};
pub use ranges::RANGES_MAX;

pub(crate) use constant::refuse_names;
pub(crate) use parameters::{ParameterTypes, bind, constant};

use super::ast::Select;
use constant::ConstantSelect;
use documents::DocumentSelect;
use index::IndexSelect;

/// What a name in FROM stands for.
#[derive(Clone, Debug)]
pub enum Relation {
    /// An index: scanned.
    Index(Arc<IndexInfo>),
    /// A bucket: its documents are read by id.
    Bucket(Arc<BucketInfo>),
}

/// Name and type of a column of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnInfo {
    /// Its name.
    pub name: String,
    /// Its type.
    pub column_type: ColumnType,
}

/// A SELECT with its names resolved; it may still have parameters.
#[derive(Debug)]
pub struct Resolved(Kind);

#[derive(Debug)]
enum Kind {
    Index(IndexSelect),
    Documents(DocumentSelect),
    Constant(ConstantSelect),
}

/// How a SELECT is answered.
#[derive(Debug)]
pub enum Plan {
    /// By a scan.
    Index(Box<IndexPlan>),
    /// By reading documents.
    Documents(DocumentPlan),
    /// By computing one row.
    Constant(ConstantPlan),
}

/// Resolves the names of a SELECT; `relation` is what its FROM names.
pub fn resolve(select: &Select, relation: Option<&Relation>) -> Result<Resolved> {
    Ok(Resolved(match relation {
        Some(Relation::Index(index)) => Kind::Index(IndexSelect::resolve(select, index)?),
        Some(Relation::Bucket(bucket)) => Kind::Documents(DocumentSelect::resolve(select, bucket)?),
        None => Kind::Constant(ConstantSelect::resolve(select)?),
    }))
}

impl Resolved {
    /// The columns of the result.
    pub fn columns(&self) -> Vec<ColumnInfo> {
        match &self.0 {
            Kind::Index(select) => select.columns(),
            Kind::Documents(select) => select.columns(),
            Kind::Constant(select) => select.columns(),
        }
    }

    /// The types of its parameters, of which the statement has so many.
    pub fn parameter_types(&self, parameters: u16) -> Vec<ColumnType> {
        let mut types = ParameterTypes::new(parameters);
        match &self.0 {
            Kind::Index(select) => select.learn(&mut types),
            Kind::Documents(select) => select.learn(&mut types),
            Kind::Constant(select) => select.learn(&mut types),
        }
        types.finish()
    }

    /// Puts values in the place of parameters and decides how to read.
    pub fn plan(self, values: &[Value]) -> Result<Plan> {
        Ok(match self.0 {
            Kind::Index(select) => Plan::Index(Box::new(select.plan(values)?)),
            Kind::Documents(select) => Plan::Documents(select.plan(values)?),
            Kind::Constant(select) => Plan::Constant(select.plan(values)?),
        })
    }
}

/// `LIMIT` and `OFFSET`, as written or with their values.
#[derive(Clone, Debug, Default)]
struct Window {
    limit: Option<Expr>,
    offset: Option<Expr>,
}

impl Window {
    fn of(select: &Select) -> Self {
        Self { limit: select.limit.clone(), offset: select.offset.clone() }
    }

    fn learn(&self, types: &mut ParameterTypes) {
        for expr in self.limit.iter().chain(&self.offset) {
            types.expect(expr, ColumnType::Int8);
            types.learn(expr, None);
        }
    }

    /// The limit, if there is one, and the offset.
    fn rows(mut self, values: &[Value]) -> Result<(Option<u64>, u64)> {
        let count = |expr: &mut Option<Expr>, clause: &str| match expr {
            Some(expr) => {
                bind(expr, values)?;
                parameters::row_count(expr, clause)
            }
            None => Ok(None),
        };
        let limit = count(&mut self.limit, "LIMIT")?;
        Ok((limit, count(&mut self.offset, "OFFSET")?.unwrap_or(0)))
    }
}

/// The name of a column of results that has no alias: a function's, a path's last field, or none.
fn default_name(expr: &Expr, column: &impl Fn(u16) -> String) -> String {
    match expr {
        Expr::Column(n) => column(*n),
        Expr::DocumentId => "id".into(),
        Expr::Cast(inner, _) => default_name(inner, column),
        Expr::Call(function, _) => match function {
            Function::Lower => "lower",
            Function::Upper => "upper",
            Function::Length => "length",
            Function::Coalesce => "coalesce",
            Function::Abs => "abs",
        }
        .into(),
        _ => "?column?".into(),
    }
}

/// The name of an aggregate.
fn aggregate_name(function: proto::expr::aggregate::AggregateFunction) -> &'static str {
    use proto::expr::aggregate::AggregateFunction::{Avg, Count, Max, Min, Sum};
    match function {
        Count => "count",
        Min => "min",
        Max => "max",
        Sum => "sum",
        Avg => "avg",
    }
}
