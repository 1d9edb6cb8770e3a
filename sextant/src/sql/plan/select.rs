//! The two steps of planning a SELECT: the resolution of names, and the choice of the plan.

use std::sync::Arc;

use proto::Result;
use proto::expr::ColumnType;
use proto::value::Value;

use super::column_info::ColumnInfo;
use super::constant::{ConstantPlan, ConstantSelect};
use super::documents::{DocumentPlan, DocumentSelect};
use super::index::{IndexPlan, IndexSelect};
use super::parameters::ParameterTypes;
use crate::access::Relation;
use crate::sql::ast::Select;
use crate::sql::limits;
use crate::sql::qualifier::Qualifier;

/// A SELECT with resolved names, possibly with parameters.
#[derive(Debug)]
pub struct ResolvedSelect(ResolvedKind);

/// The kinds of SELECT: from an index, from a bucket, or without FROM.
#[derive(Debug)]
enum ResolvedKind {
    Index(IndexSelect),
    Documents(DocumentSelect),
    Constant(ConstantSelect),
}

/// The plan of a SELECT.
#[derive(Debug)]
pub enum Plan {
    /// A scan of an index.
    Index(Box<IndexPlan>),
    /// A read of documents by id.
    Documents(DocumentPlan),
    /// A row that is computed without reading data.
    Constant(ConstantPlan),
}

/// Resolves the names of a SELECT; `relation` is the index or bucket in FROM.
pub fn resolve(select: &Select, relation: Option<&Relation>) -> Result<ResolvedSelect> {
    let resolved = ResolvedSelect(match relation {
        Some(Relation::Index(index)) => ResolvedKind::Index(IndexSelect::resolve(select, index)?),
        Some(Relation::Bucket(bucket)) => {
            let stripped =
                Qualifier::of(select).map(|qualifier| qualifier.stripped_from_bucket(select));
            let stripped = stripped.transpose()?;
            let select = stripped.as_ref().unwrap_or(select);
            ResolvedKind::Documents(DocumentSelect::resolve(select, bucket)?)
        }
        None => ResolvedKind::Constant(ConstantSelect::resolve(select)?),
    });
    // A star may stand for many columns.
    limits::check_columns(resolved.columns().len())?;
    Ok(resolved)
}

impl ResolvedSelect {
    /// Returns the columns of the result.
    pub fn columns(&self) -> Arc<[ColumnInfo]> {
        match &self.0 {
            ResolvedKind::Index(select) => select.columns(),
            ResolvedKind::Documents(select) => select.columns(),
            ResolvedKind::Constant(select) => select.columns(),
        }
    }

    /// Returns the types of the statement's parameters, whose number is `parameters`.
    pub fn parameter_types(&self, parameters: u16) -> Vec<ColumnType> {
        let mut types = ParameterTypes::new(parameters);
        match &self.0 {
            ResolvedKind::Index(select) => select.infer_types(&mut types),
            ResolvedKind::Documents(select) => select.infer_types(&mut types),
            ResolvedKind::Constant(select) => select.infer_types(&mut types),
        }
        types.finish()
    }

    /// Inserts the values of the parameters and chooses the plan.
    pub fn plan(&self, values: &[Value]) -> Result<Plan> {
        Ok(match &self.0 {
            ResolvedKind::Index(select) => Plan::Index(Box::new(select.plan(values)?)),
            ResolvedKind::Documents(select) => Plan::Documents(select.plan(values)?),
            ResolvedKind::Constant(select) => Plan::Constant(select.plan(values)?),
        })
    }
}
