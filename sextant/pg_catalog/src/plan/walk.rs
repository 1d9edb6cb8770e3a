//! A walk over all expressions of a plan.

use super::tree::{
    Aggregate, Body, CteBody, Expr, ExprKind, Query, Select, Source, SourceKind, Subquery,
    SubqueryKind, Window, WindowFunction,
};

/// The steps of a walk after an expression was visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Visits the expressions inside.
    Inside,
    /// Leaves the expressions inside out.
    Skip,
}

/// The visitor: it gets an expression and the number of SELECTs between it and the start.
pub type Visitor<'v> = dyn FnMut(&mut Expr, usize) -> Next + 'v;

impl Expr {
    /// Visits this expression and those inside, outer ones first.
    pub fn walk(&mut self, depth: usize, visit: &mut Visitor<'_>) {
        if visit(self, depth) == Next::Skip {
            return;
        }
        let mut all = |list: &mut [Expr]| list.iter_mut().for_each(|expr| expr.walk(depth, visit));
        match &mut self.kind {
            ExprKind::Constant(_) | ExprKind::Parameter(_) | ExprKind::Column { .. } => {}
            ExprKind::Call(_, list)
            | ExprKind::And(list)
            | ExprKind::Or(list)
            | ExprKind::Coalesce(list)
            | ExprKind::Extreme { arguments: list, .. }
            | ExprKind::Array(list)
            | ExprKind::Row(list) => all(list),
            ExprKind::Cast { expr, .. }
            | ExprKind::Not(expr)
            | ExprKind::IsNull { expr, .. }
            | ExprKind::IsTruth { expr, .. }
            | ExprKind::Field(expr, _) => expr.walk(depth, visit),
            ExprKind::IsDistinct { left, right, .. }
            | ExprKind::AnyOf { left, array: right, .. } => {
                left.walk(depth, visit);
                right.walk(depth, visit);
            }
            ExprKind::Case { branches, otherwise } => {
                for (condition, value) in branches {
                    condition.walk(depth, visit);
                    value.walk(depth, visit);
                }
                otherwise.iter_mut().for_each(|expr| expr.walk(depth, visit));
            }
            ExprKind::Element(array, list) => {
                array.walk(depth, visit);
                list.iter_mut().for_each(|expr| expr.walk(depth, visit));
            }
            ExprKind::Slice(array, lower, upper) => {
                array.walk(depth, visit);
                lower.iter_mut().chain(upper).for_each(|expr| expr.walk(depth, visit));
            }
            ExprKind::Subquery(subquery) => subquery.walk(depth, visit),
        }
    }
}

impl Subquery {
    fn walk(&mut self, depth: usize, visit: &mut Visitor<'_>) {
        if let SubqueryKind::AnyOf { left, .. } = &mut self.kind {
            left.iter_mut().for_each(|expr| expr.walk(depth, visit));
        }
        self.query.walk(depth + 1, visit);
    }
}

impl Query {
    /// Visits all expressions of a query whose SELECT has this depth.
    pub fn walk(&mut self, depth: usize, visit: &mut Visitor<'_>) {
        for cte in &mut self.ctes {
            match &mut cte.body {
                CteBody::Query(query) => query.walk(depth, visit),
                CteBody::Recursive { first, next, .. } => {
                    first.walk(depth, visit);
                    next.walk(depth, visit);
                }
            }
        }
        match &mut self.body {
            Body::Select(select) => select.walk(depth, visit),
            Body::Values(rows) => {
                rows.iter_mut().flatten().for_each(|expr| expr.walk(depth, visit))
            }
            Body::SetOperation(operation) => {
                operation.left.walk(depth, visit);
                operation.right.walk(depth, visit);
            }
        }
        self.limit.iter_mut().chain(&mut self.offset).for_each(|expr| expr.walk(depth, visit));
    }
}

impl Select {
    fn walk(&mut self, depth: usize, visit: &mut Visitor<'_>) {
        self.from.iter_mut().for_each(|source| source.walk(depth, visit));
        self.filter.iter_mut().for_each(|expr| expr.walk(depth, visit));
        if let Some(grouping) = &mut self.grouping {
            grouping.keys.iter_mut().for_each(|expr| expr.walk(depth, visit));
            grouping.aggregates.iter_mut().for_each(|aggregate| aggregate.walk(depth, visit));
            grouping.having.iter_mut().for_each(|expr| expr.walk(depth, visit));
        }
        self.windows.iter_mut().for_each(|window| window.walk(depth, visit));
        let arguments = self.set_returning.iter_mut().flat_map(|set| &mut set.arguments);
        arguments.chain(&mut self.items).for_each(|expr| expr.walk(depth, visit));
    }
}

impl Source {
    fn walk(&mut self, depth: usize, visit: &mut Visitor<'_>) {
        match &mut self.kind {
            SourceKind::Relation(_) | SourceKind::Cte(_) => {}
            SourceKind::Subquery { query, .. } => query.walk(depth + 1, visit),
            SourceKind::Functions(functions, _) => {
                let arguments = functions.iter_mut().flat_map(|function| &mut function.arguments);
                arguments.for_each(|expr| expr.walk(depth, visit));
            }
            SourceKind::Join(join) => {
                join.left.walk(depth, visit);
                join.right.walk(depth, visit);
                join.on.iter_mut().for_each(|expr| expr.walk(depth, visit));
            }
        }
    }
}

impl Aggregate {
    /// Visits the expressions of an aggregate.
    pub fn walk(&mut self, depth: usize, visit: &mut Visitor<'_>) {
        let order = self.order.iter_mut().map(|(expr, _, _)| expr);
        let all = self.arguments.iter_mut().chain(order).chain(&mut self.filter);
        all.for_each(|expr| expr.walk(depth, visit));
    }
}

impl Window {
    /// Visits the expressions of a window function.
    pub fn walk(&mut self, depth: usize, visit: &mut Visitor<'_>) {
        match &mut self.function {
            WindowFunction::Window(_, arguments) => {
                arguments.iter_mut().for_each(|expr| expr.walk(depth, visit))
            }
            WindowFunction::Aggregate(aggregate) => aggregate.walk(depth, visit),
        }
        let order = self.order.iter_mut().map(|(expr, _, _)| expr);
        self.partition.iter_mut().chain(order).for_each(|expr| expr.walk(depth, visit));
    }
}
