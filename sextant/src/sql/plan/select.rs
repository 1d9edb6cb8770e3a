//! A SELECT in two steps: names first, then the values of its parameters.

use proto::Result;
use proto::expr::ColumnType;
use proto::value::Value;

use super::constant::{ConstantPlan, ConstantSelect};
use super::documents::{DocumentPlan, DocumentSelect};
use super::index::{IndexPlan, IndexSelect};
use super::parameters::ParameterTypes;
use super::relation::{ColumnInfo, Relation};
use crate::sql::ast::Select;

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
