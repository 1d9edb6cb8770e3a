//! The columns and common table expressions that a part of a plan uses.

use crate::plan::{
    Aggregate, Body, CteBody, Expr, ExprKind, Query, Select, Source, SourceKind, SubqueryKind,
    WindowFunction,
};

/// The columns and expressions of WITH that a part of a plan uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct References {
    /// Columns of the SELECT of the expression.
    pub columns: Vec<usize>,
    /// Common table expressions.
    pub ctes: Vec<usize>,
    /// Common table expressions that are defined inside.
    pub defined: Vec<usize>,
    /// True if it has a subquery.
    pub has_subquery: bool,
}

impl References {
    /// Returns what an expression uses.
    pub fn of_expr(expr: &Expr) -> Self {
        let mut found = Self::default();
        found.expr(expr, 0);
        found
    }

    /// Returns what a source uses: a lateral one has columns of earlier items.
    pub fn of_source(source: &Source) -> Self {
        let mut found = Self::default();
        found.source(source, 0);
        found
    }

    /// Returns what a query uses: columns of the SELECT around it.
    pub fn of_query(query: &Query) -> Self {
        let mut found = Self::default();
        found.query(query, 1);
        found
    }

    fn exprs<'a>(&mut self, exprs: impl IntoIterator<Item = &'a Expr>, depth: usize) {
        exprs.into_iter().for_each(|expr| self.expr(expr, depth));
    }

    /// Visits an expression that is `depth` SELECTs below the one whose columns are searched.
    fn expr(&mut self, expr: &Expr, depth: usize) {
        match &expr.kind {
            ExprKind::Constant(_) | ExprKind::Parameter(_) => {}
            ExprKind::Column { level, at } => {
                if *level == depth {
                    self.columns.push(*at);
                }
            }
            ExprKind::Call(_, all)
            | ExprKind::And(all)
            | ExprKind::Or(all)
            | ExprKind::Coalesce(all)
            | ExprKind::Extreme { arguments: all, .. }
            | ExprKind::Array(all)
            | ExprKind::Row(all) => self.exprs(all, depth),
            ExprKind::Cast { expr, .. }
            | ExprKind::Not(expr)
            | ExprKind::IsNull { expr, .. }
            | ExprKind::IsTruth { expr, .. }
            | ExprKind::Field(expr, _) => self.expr(expr, depth),
            ExprKind::IsDistinct { left, right, .. } => self.exprs([&**left, right], depth),
            ExprKind::AnyOf { left, array, .. } => self.exprs([&**left, array], depth),
            ExprKind::Case { branches, otherwise } => {
                branches.iter().for_each(|(when, then)| self.exprs([when, then], depth));
                self.exprs(otherwise.as_deref(), depth);
            }
            ExprKind::Element(array, subscripts) => {
                self.expr(array, depth);
                self.exprs(subscripts, depth);
            }
            ExprKind::Slice(array, from, to) => {
                self.expr(array, depth);
                self.exprs(from.as_deref(), depth);
                self.exprs(to.as_deref(), depth);
            }
            ExprKind::Subquery(subquery) => {
                self.has_subquery = true;
                if let SubqueryKind::AnyOf { left, .. } = &subquery.kind {
                    self.exprs(left, depth);
                }
                self.query(&subquery.query, depth + 1);
            }
        }
    }

    fn query(&mut self, query: &Query, depth: usize) {
        for cte in &query.ctes {
            self.defined.push(cte.number);
            match &cte.body {
                CteBody::Query(query) => self.query(query, depth),
                CteBody::Recursive { first, next, .. } => {
                    self.query(first, depth);
                    self.query(next, depth);
                }
            }
        }
        match &query.body {
            Body::Select(select) => self.select(select, depth),
            Body::Values(rows) => rows.iter().for_each(|row| self.exprs(row, depth)),
            Body::SetOperation(operation) => {
                self.query(&operation.left, depth);
                self.query(&operation.right, depth);
            }
        }
        self.exprs(&query.limit, depth);
        self.exprs(&query.offset, depth);
    }

    fn select(&mut self, select: &Select, depth: usize) {
        if let Some(source) = &select.from {
            self.source(source, depth);
        }
        self.exprs(&select.filter, depth);
        if let Some(grouping) = &select.grouping {
            self.exprs(&grouping.keys, depth);
            grouping.aggregates.iter().for_each(|aggregate| self.aggregate(aggregate, depth));
            self.exprs(&grouping.having, depth);
        }
        for window in &select.windows {
            match &window.function {
                WindowFunction::Window(_, arguments) => self.exprs(arguments, depth),
                WindowFunction::Aggregate(aggregate) => self.aggregate(aggregate, depth),
            }
            self.exprs(&window.partition, depth);
            self.exprs(window.order.iter().map(|(expr, ..)| expr), depth);
        }
        for set in &select.set_returning {
            self.exprs(&set.arguments, depth);
        }
        self.exprs(&select.items, depth);
    }

    fn aggregate(&mut self, aggregate: &Aggregate, depth: usize) {
        self.exprs(&aggregate.arguments, depth);
        self.exprs(aggregate.order.iter().map(|(expr, ..)| expr), depth);
        self.exprs(&aggregate.filter, depth);
    }

    fn source(&mut self, source: &Source, depth: usize) {
        match &source.kind {
            SourceKind::Relation(_) => {}
            SourceKind::Cte(number) => self.ctes.push(*number),
            SourceKind::Subquery { query, .. } => self.query(query, depth + 1),
            SourceKind::Functions(functions, _) => {
                functions.iter().for_each(|function| self.exprs(&function.arguments, depth));
            }
            SourceKind::Join(join) => {
                self.source(&join.left, depth);
                self.source(&join.right, depth);
                self.exprs(&join.on, depth);
            }
        }
    }
}
