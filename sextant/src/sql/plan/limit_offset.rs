//! `LIMIT` and `OFFSET`.

use proto::Result;
use proto::expr::cost::CostMeter;
use proto::expr::{ColumnType, Expr};
use proto::value::Value;

use super::parameters::{ParameterTypes, bind, row_count};
use crate::sql::ast::Select;

/// The `LIMIT` and `OFFSET` of a statement.
#[derive(Clone, Debug, Default)]
pub(super) struct LimitOffset {
    limit: Option<Expr>,
    offset: Option<Expr>,
}

impl LimitOffset {
    /// Returns the LIMIT and OFFSET of a SELECT.
    pub(super) fn from_select(select: &Select) -> Self {
        Self { limit: select.limit.clone(), offset: select.offset.clone() }
    }

    /// Infers the types of the parameters.
    pub(super) fn infer_types(&self, types: &mut ParameterTypes) {
        for expr in self.limit.iter().chain(&self.offset) {
            types.expect(expr, ColumnType::Int8);
            types.infer_from(expr, None);
        }
    }

    /// Returns the limit (`None` for no limit) and the offset.
    pub(super) fn rows(&self, values: &[Value], cost: &CostMeter) -> Result<(Option<u64>, u64)> {
        let count = |expr: &Option<Expr>, clause: &str| match expr {
            Some(expr) => {
                let mut expr = expr.clone();
                bind(&mut expr, values, None, cost)?;
                row_count(&expr, clause, cost)
            }
            None => Ok(None),
        };
        let limit = count(&self.limit, "LIMIT")?;
        Ok((limit, count(&self.offset, "OFFSET")?.unwrap_or(0)))
    }
}
