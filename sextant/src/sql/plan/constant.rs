//! A SELECT without FROM. It returns one row of constants and functions of the session.

use std::sync::Arc;

use proto::expr::cost::CostMeter;
use proto::expr::{ColumnType, Expr};
use proto::value::Value;
use proto::{Error, ErrorCode, Result};

use super::column_info::ColumnInfo;
use super::limit_offset::LimitOffset;
use super::names::default_name;
use super::parameters::{ParameterTypes, bind, constant};
use super::truth::check_condition;
use super::types::{DocumentOperands, type_of};
use crate::sql::ast::{Select, SelectExpr, SelectItem};
use crate::sql::error::unsupported;
use crate::sql::places::NO_COLUMN;

/// A checked SELECT without FROM.
#[derive(Debug)]
pub(super) struct ConstantSelect {
    items: Vec<(ColumnInfo, SelectExpr)>,
    filter: Option<Expr>,
    limit_offset: LimitOffset,
}

/// The plan of a SELECT without FROM, which returns at most one row.
#[derive(Debug)]
pub struct ConstantPlan {
    /// The columns of the result.
    pub columns: Arc<[ColumnInfo]>,
    /// The values of the row; `None` if the result has no row.
    pub values: Option<Vec<ConstantValue>>,
}

/// A value of a SELECT without FROM.
#[derive(Debug)]
pub enum ConstantValue {
    /// A constant.
    Known(Value),
    /// A function of the session with its arguments.
    Session(String, Vec<Value>),
}

impl ConstantSelect {
    /// Checks a SELECT without FROM.
    pub(super) fn resolve(select: &Select) -> Result<Self> {
        let mut items = Vec::new();
        for item in &select.items {
            let SelectItem::Expr { expr, alias } = item else {
                return Err(Error::new(ErrorCode::Syntax, "SELECT * needs a FROM clause"));
            };
            items.push((info(expr, alias.clone())?, expr.clone()));
        }
        if let Some(filter) = &select.filter {
            refuse_names(filter)?;
        }
        let mut filter = select.filter.clone();
        if let Some(filter) = &mut filter {
            check_condition(filter, "WHERE", &DocumentOperands)?;
        }
        Ok(Self { items, filter, limit_offset: LimitOffset::from_select(select) })
    }

    /// Returns the columns of the result.
    pub(super) fn columns(&self) -> Arc<[ColumnInfo]> {
        self.items.iter().map(|(info, _)| info.clone()).collect()
    }

    /// Infers the types of the parameters.
    pub(super) fn infer_types(&self, types: &mut ParameterTypes) {
        for (_, item) in &self.items {
            match item {
                SelectExpr::Scalar(expr) => types.infer_from(expr, None),
                SelectExpr::Session(_, arguments) => {
                    arguments.iter().for_each(|expr| types.infer_from(expr, None));
                }
                SelectExpr::Aggregate { .. } => {}
            }
        }
        self.filter.iter().for_each(|filter| types.infer_from_condition(filter, None));
        self.limit_offset.infer_types(types);
    }

    /// Inserts the values of the parameters and returns the plan.
    pub(super) fn plan(&self, values: &[Value]) -> Result<ConstantPlan> {
        let cost = CostMeter::for_evaluation();
        let bound = |expr: &Expr| {
            let mut expr = expr.clone();
            bind(&mut expr, values, None, &cost).map(|()| expr)
        };
        let value = |expr: &Expr| constant(&bound(expr)?, &cost);
        let columns = self.columns();
        let holds = match &self.filter {
            Some(filter) => {
                let mut filter = bound(filter)?;
                check_condition(&mut filter, "WHERE", &DocumentOperands)?;
                constant(&filter, &cost)? == Value::Bool(true)
            }
            None => true,
        };
        let (limit, offset) = self.limit_offset.rows(values, &cost)?;
        if !holds || limit == Some(0) || offset > 0 {
            return Ok(ConstantPlan { columns, values: None });
        }
        let mut row = Vec::with_capacity(self.items.len());
        for (_, item) in &self.items {
            row.push(match item {
                SelectExpr::Scalar(expr) => ConstantValue::Known(value(expr)?),
                SelectExpr::Session(name, arguments) => {
                    let arguments = arguments.iter().map(value).collect::<Result<_>>()?;
                    ConstantValue::Session(name.clone(), arguments)
                }
                SelectExpr::Aggregate { .. } => return Err(no_rows()),
            });
        }
        Ok(ConstantPlan { columns, values: Some(row) })
    }
}

/// Returns the name and the type of a result column.
fn info(expr: &SelectExpr, alias: Option<String>) -> Result<ColumnInfo> {
    let (name, column_type) = match expr {
        SelectExpr::Scalar(expr) => {
            refuse_names(expr)?;
            let column_type = type_of(expr, &|_| ColumnType::Text);
            (default_name(expr, &|_| String::new()), column_type)
        }
        SelectExpr::Session(name, arguments) => {
            arguments.iter().try_for_each(refuse_names)?;
            let column_type = match name.as_str() {
                "pg_backend_pid" => ColumnType::Int4,
                _ => ColumnType::Text,
            };
            (name.clone(), column_type)
        }
        SelectExpr::Aggregate { .. } => return Err(no_rows()),
    };
    Ok(ColumnInfo { name: alias.unwrap_or(name), column_type })
}

/// Returns the error for an aggregate without a FROM clause.
fn no_rows() -> Error {
    unsupported("an aggregate needs a FROM clause", "SELECT count(*) FROM index")
}

/// Returns an error for paths in an expression without a FROM clause.
pub(crate) fn refuse_names(expr: &Expr) -> Result<()> {
    let mut name = None;
    expr.any(&mut |e| {
        let found = matches!(e, Expr::Path(_) | Expr::DocumentId | Expr::Unnest(_));
        if found {
            name = Some(e.to_string());
        }
        found
    });
    match name {
        Some(name) => {
            let message = format!("{NO_COLUMN}{name} without a FROM clause");
            Err(Error::new(ErrorCode::UnknownColumn, message))
        }
        None => Ok(()),
    }
}
