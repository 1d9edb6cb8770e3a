//! Subqueries in expressions.

use sqlparser::ast;

use super::Analyser;
use super::expr::negate;
use super::operators::comparison_operator;
use super::polymorphic::array_type;
use crate::error::{Error, Result};
use crate::plan::{Expr, ExprKind, Query, Subquery, SubqueryKind};
use crate::types::Type;
use crate::types::oid;

impl Analyser<'_> {
    /// Analyses a query one level deeper. Returns it, and true if it uses columns of a SELECT around it.
    pub(super) fn inner_query(&mut self, query: &ast::Query) -> Result<(Query, bool)> {
        let lowest = std::mem::replace(&mut self.lowest, usize::MAX);
        // An expression without a SELECT (LIMIT, VALUES) has an empty row.
        self.level();
        let outside = self.levels.len();
        let inner = self.query(query);
        let is_correlated = self.lowest < outside;
        self.lowest = lowest.min(self.lowest);
        Ok((inner?, is_correlated))
    }

    /// Analyses a subquery whose kind needs nothing on its left.
    pub(super) fn subquery(&mut self, query: &ast::Query, kind: SubqueryKind) -> Result<Expr> {
        let (mut query, is_correlated) = self.inner_query(query)?;
        self.fix_unknown(&mut query)?;
        let ty = match kind {
            SubqueryKind::Exists => Type::Plain(oid::BOOL),
            SubqueryKind::Scalar => only_column(&query)?,
            _ => array_type(&only_column(&query)?)?,
        };
        Ok(Expr::new(ExprKind::Subquery(Box::new(Subquery { query, kind, is_correlated })), ty))
    }

    pub(super) fn in_subquery(
        &mut self,
        left: &ast::Expr,
        query: &ast::Query,
        negated: bool,
    ) -> Result<Expr> {
        let found = self.any_of_subquery(left, "=", query, false)?;
        Ok(negate(found, negated))
    }

    /// Analyses `left op ANY (query)` and ALL.
    pub(super) fn any_of_subquery(
        &mut self,
        left: &ast::Expr,
        name: &str,
        query: &ast::Query,
        all: bool,
    ) -> Result<Expr> {
        let left = self.expr(left)?;
        let (mut query, is_correlated) = self.inner_query(query)?;
        self.fix_unknown(&mut query)?;
        let left = match left.kind {
            ExprKind::Row(fields) if query.columns.len() != 1 => fields,
            kind => vec![Expr { kind, ty: left.ty }],
        };
        if left.len() != query.columns.len() {
            let what = if left.len() > query.columns.len() { "few" } else { "many" };
            return Err(Error::new("42601", format!("subquery has too {what} columns")));
        }
        let (mut operands, mut comparisons, mut types) = (Vec::new(), Vec::new(), Vec::new());
        for (operand, column) in left.into_iter().zip(&query.columns) {
            let (comparison, parameters) =
                comparison_operator(name, operand.ty.oid(), column.ty.oid())?;
            let is_plain = |ty: u32| !super::coerce::is_polymorphic(ty);
            let of = |ty: u32, own: &Type| if is_plain(ty) { Type::Plain(ty) } else { own.clone() };
            let to = of(parameters[0], &operand.ty);
            types.push(of(parameters[1], &column.ty));
            operands.push(self.implicit(operand, &to)?);
            comparisons.push(comparison);
        }
        self.convert_columns(&mut query, &types)?;
        let kind = SubqueryKind::AnyOf { left: operands, comparisons, all };
        Ok(Expr::new(
            ExprKind::Subquery(Box::new(Subquery { query, kind, is_correlated })),
            oid::BOOL,
        ))
    }
}

fn only_column(query: &Query) -> Result<Type> {
    match query.columns.as_slice() {
        [only] => Ok(only.ty.clone()),
        _ => Err(Error::new("42601", "subquery must return only one column")),
    }
}
