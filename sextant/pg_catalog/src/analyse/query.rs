//! Queries: WITH, set operations, VALUES, ORDER BY and LIMIT.

use sqlparser::ast::{self, LimitClause, OrderByKind, OrderBySort, SetExpr, SetQuantifier, Value};

use super::Analyser;
use super::coerce::{Context, coerce, common_type};
use super::idents::{folded, place};
use super::scope::{CteScope, Level};
use crate::error::{Error, Result};
use crate::plan::{
    Body, Cte, CteBody, Expr, OutputColumn, Query, SetOperation, SetOperator, SortKey,
};
use crate::types::Type;
use crate::types::oid;

impl Analyser<'_> {
    /// Analyses a query. Its SELECTs are the next level.
    pub(super) fn query(&mut self, query: &ast::Query) -> Result<Query> {
        refuse_clauses(query)?;
        let known = self.ctes.len();
        let mut ctes = Vec::new();
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            let recursive = query.with.as_ref().is_some_and(|with| with.recursive);
            ctes.push(self.cte(cte, recursive)?);
        }
        let mut plan = self.body(&query.body, query.order_by.as_ref())?;
        (plan.limit, plan.offset) = self.limits(query)?;
        let scopes = self.ctes.split_off(known);
        ctes.retain(|cte| scopes.iter().any(|scope| scope.number == cte.number && scope.is_used));
        ctes.append(&mut plan.ctes);
        plan.ctes = ctes;
        Ok(plan)
    }

    /// Analyses rows with the order that follows them.
    fn body(&mut self, body: &SetExpr, order: Option<&ast::OrderBy>) -> Result<Query> {
        match body {
            SetExpr::Select(select) => self.select(select, order),
            SetExpr::Query(inner) if order.is_none() => self.query(inner),
            SetExpr::Query(inner) => self.select_around(inner, order),
            SetExpr::Values(values) => {
                let plan = self.values(values)?;
                sorted(plan, order)
            }
            SetExpr::SetOperation { left, op, set_quantifier, right } => {
                let plan = self.set_operation(left, *op, *set_quantifier, right)?;
                sorted(plan, order)
            }
            other => Err(Error::unsupported(format!("{other} is not supported here"))),
        }
    }

    fn set_operation(
        &mut self,
        left: &SetExpr,
        op: ast::SetOperator,
        quantifier: SetQuantifier,
        right: &SetExpr,
    ) -> Result<Query> {
        let (operator, name) = match op {
            ast::SetOperator::Union => (SetOperator::Union, "UNION"),
            ast::SetOperator::Intersect => (SetOperator::Intersect, "INTERSECT"),
            ast::SetOperator::Except => (SetOperator::Except, "EXCEPT"),
            ast::SetOperator::Minus => {
                return Err(Error::new("42601", "syntax error at or near \"MINUS\""));
            }
        };
        let mut left = self.body(left, None)?;
        let mut right = self.body(right, None)?;
        if left.columns.len() != right.columns.len() {
            return Err(Error::new(
                "42601",
                format!("each {name} query must have the same number of columns"),
            ));
        }
        let pairs = left.columns.iter().zip(&right.columns);
        let types =
            pairs.map(|(l, r)| common_type([&l.ty, &r.ty], name)).collect::<Result<Vec<_>>>()?;
        self.convert_columns(&mut left, &types)?;
        self.convert_columns(&mut right, &types)?;
        let columns = left.columns.iter().zip(types).map(|(column, ty)| OutputColumn {
            name: column.name.clone(),
            ty,
            modifier: -1,
        });
        let columns = columns.collect();
        let all = quantifier == SetQuantifier::All;
        Ok(plain(
            Body::SetOperation(Box::new(SetOperation { operator, all, left, right })),
            columns,
        ))
    }

    fn values(&mut self, values: &ast::Values) -> Result<Query> {
        self.levels.push(Level::default());
        let rows =
            values.rows.iter().map(|row| row.content.iter().map(|expr| self.expr(expr)).collect());
        let rows = rows.collect::<Result<Vec<Vec<Expr>>>>();
        self.levels.pop();
        let rows = rows?;
        let width = rows.first().map_or(0, Vec::len);
        if rows.iter().any(|row| row.len() != width) {
            return Err(Error::new("42601", "VALUES lists must all be the same length"));
        }
        let ty = |at: usize| common_type(rows.iter().map(|row: &Vec<Expr>| &row[at].ty), "VALUES");
        let types = (0..width).map(ty).collect::<Result<Vec<_>>>()?;
        let column = |(at, ty): (usize, &Type)| OutputColumn {
            name: format!("column{}", at + 1),
            ty: ty.clone(),
            modifier: -1,
        };
        let columns = types.iter().enumerate().map(column).collect();
        let mut plan = plain(Body::Values(rows), columns);
        self.convert_columns(&mut plan, &types)?;
        Ok(plan)
    }

    /// Converts the columns of a query to types where PostgreSQL converts without a cast.
    pub(super) fn convert_columns(&mut self, query: &mut Query, types: &[Type]) -> Result<()> {
        self.convert_in(query, types, Context::Implicit)
    }

    /// Converts the columns of a query to types as written casts do.
    pub(super) fn convert_columns_explicitly(
        &mut self,
        query: &mut Query,
        types: &[Type],
    ) -> Result<()> {
        self.convert_in(query, types, Context::Explicit)
    }

    fn convert_in(&mut self, query: &mut Query, types: &[Type], context: Context) -> Result<()> {
        match &mut query.body {
            Body::Select(select) => self.convert_row(&mut select.items, types, context)?,
            Body::Values(rows) => {
                for row in rows {
                    self.convert_row(row, types, context)?;
                }
            }
            Body::SetOperation(operation) => {
                self.convert_in(&mut operation.left, types, context)?;
                self.convert_in(&mut operation.right, types, context)?;
            }
        }
        for (column, ty) in query.columns.iter_mut().zip(types) {
            if column.ty != *ty {
                column.modifier = -1;
            }
            column.ty = ty.clone();
        }
        Ok(())
    }

    fn convert_row(&mut self, row: &mut [Expr], types: &[Type], context: Context) -> Result<()> {
        for (expr, ty) in row.iter_mut().zip(types) {
            let own =
                std::mem::replace(expr, Expr::constant(proto::value::Value::Null, oid::UNKNOWN));
            *expr = coerce(own, ty, -1, context, &mut self.parameters)?;
        }
        Ok(())
    }

    /// Gives columns of unknown type the type `text`.
    pub(super) fn fix_unknown(&mut self, query: &mut Query) -> Result<()> {
        let known = |column: &OutputColumn| match column.ty.oid() {
            oid::UNKNOWN => Type::Plain(oid::TEXT),
            _ => column.ty.clone(),
        };
        let types: Vec<Type> = query.columns.iter().map(known).collect();
        match query.columns.iter().any(|column| column.ty.is(oid::UNKNOWN)) {
            true => self.convert_columns(query, &types),
            false => Ok(()),
        }
    }

    fn limits(&mut self, query: &ast::Query) -> Result<(Option<Expr>, Option<Expr>)> {
        let (limit, offset) = match &query.limit_clause {
            None => (None, None),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
                (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
            }
            Some(other) => return Err(Error::unsupported(format!("{other} is not supported"))),
        };
        let fetch = query.fetch.as_ref();
        if fetch.is_some_and(|fetch| fetch.with_ties || fetch.percent) {
            return Err(Error::unsupported("FETCH … WITH TIES and PERCENT are not supported"));
        }
        let one = ast::Expr::value(Value::Number("1".to_owned(), false));
        let limit = limit.or_else(|| fetch.map(|fetch| fetch.quantity.as_ref().unwrap_or(&one)));
        self.levels.push(Level::default());
        let mut number = |expr: Option<&ast::Expr>| match expr {
            None => Ok(None),
            Some(expr) => {
                let expr = self.expr(expr)?;
                self.implicit(expr, &Type::Plain(oid::INT8)).map(Some)
            }
        };
        let limits = number(limit).and_then(|limit| Ok((limit, number(offset)?)));
        self.levels.pop();
        limits
    }

    /// Analyses one expression of WITH, and makes its name known to those that follow.
    fn cte(&mut self, cte: &ast::Cte, recursive: bool) -> Result<Cte> {
        let name = folded(&cte.alias.name);
        let number = self.cte_count;
        self.cte_count += 1;
        if recursive
            && let SetExpr::SetOperation {
                left,
                op: ast::SetOperator::Union,
                set_quantifier,
                right,
            } = &*cte.query.body
            && mentions(right, &name)
        {
            return self.recursive_cte(cte, number, left, *set_quantifier, right);
        }
        let mut query = self.query(&cte.query)?;
        self.fix_unknown(&mut query)?;
        let columns = renamed(&query.columns, &cte.alias)?;
        self.ctes.push(CteScope { name, number, columns, is_used: false });
        Ok(Cte { number, body: CteBody::Query(Box::new(query)) })
    }

    fn recursive_cte(
        &mut self,
        cte: &ast::Cte,
        number: usize,
        left: &SetExpr,
        quantifier: SetQuantifier,
        right: &SetExpr,
    ) -> Result<Cte> {
        if cte.query.order_by.is_some() || cte.query.limit_clause.is_some() {
            return Err(Error::unsupported(
                "ORDER BY and LIMIT in a recursive query are not implemented",
            ));
        }
        let mut first = self.body(left, None)?;
        self.fix_unknown(&mut first)?;
        let columns = renamed(&first.columns, &cte.alias)?;
        let types: Vec<Type> = columns.iter().map(|column| column.ty.clone()).collect();
        self.ctes.push(CteScope { name: folded(&cte.alias.name), number, columns, is_used: false });
        let mut next = self.body(right, None)?;
        if next.columns.len() != types.len() {
            return Err(Error::new(
                "42601",
                "each UNION query must have the same number of columns",
            ));
        }
        self.convert_columns(&mut next, &types)?;
        let all = quantifier == SetQuantifier::All;
        Ok(Cte {
            number,
            body: CteBody::Recursive { first: Box::new(first), next: Box::new(next), all },
        })
    }
}

/// Creates a query without order and limit.
pub(super) fn plain(body: Body, columns: Vec<OutputColumn>) -> Query {
    Query { ctes: Vec::new(), body, columns, order: Vec::new(), limit: None, offset: None }
}

/// Adds an order to rows that have only the columns of their result.
fn sorted(mut plan: Query, order: Option<&ast::OrderBy>) -> Result<Query> {
    for item in order_items(order)? {
        let (descending, nulls_first) = direction(item)?;
        let position = match &item.expr {
            ast::Expr::Identifier(ident) => {
                let name = folded(ident);
                plan.columns.iter().position(|column| column.name == name).ok_or_else(|| {
                    place(Error::new("42703", format!("column \"{name}\" does not exist")), ident)
                })?
            }
            expr => position(expr, plan.columns.len())?.ok_or_else(|| {
                Error::unsupported("invalid UNION/INTERSECT/EXCEPT ORDER BY clause").with_hint(
                    "Only result column names can be used, not expressions or functions.",
                )
            })?,
        };
        plan.order.push(SortKey { item: position, descending, nulls_first });
    }
    Ok(plan)
}

/// Returns the items of ORDER BY.
pub(super) fn order_items(order: Option<&ast::OrderBy>) -> Result<&[ast::OrderByExpr]> {
    match order.map(|order| &order.kind) {
        None => Ok(&[]),
        Some(OrderByKind::Expressions(items)) => Ok(items),
        Some(OrderByKind::All(_)) => Err(Error::new("42601", "syntax error at ORDER BY ALL")),
    }
}

/// Returns the position that a number in ORDER BY, GROUP BY or DISTINCT ON names; `None` for another expression.
pub(super) fn position(expr: &ast::Expr, columns: usize) -> Result<Option<usize>> {
    let ast::Expr::Value(value) = expr else { return Ok(None) };
    let Value::Number(digits, _) = &value.value else { return Ok(None) };
    match digits.parse::<usize>() {
        Ok(number) if (1..=columns).contains(&number) => Ok(Some(number - 1)),
        _ => Err(Error::new("42P10", format!("position {digits} is not in select list"))),
    }
}

/// Returns whether an item of an order is descending, and whether NULLs come first.
pub(super) fn direction(item: &ast::OrderByExpr) -> Result<(bool, bool)> {
    let descending = match &item.options.sort {
        None | Some(OrderBySort::Asc) => false,
        Some(OrderBySort::Desc) => true,
        Some(OrderBySort::Using(operator)) => match operator.to_string().rsplit('.').next() {
            Some("<") => false,
            Some(">") => true,
            _ => {
                return Err(Error::new(
                    "42809",
                    format!("operator {operator} is not a valid ordering operator"),
                ));
            }
        },
    };
    Ok((descending, item.options.nulls_first.unwrap_or(descending)))
}

/// Returns the columns with the names that an alias gives them.
pub(super) fn renamed(
    columns: &[OutputColumn],
    alias: &ast::TableAlias,
) -> Result<Vec<OutputColumn>> {
    if alias.columns.len() > columns.len() {
        let (name, has, given) = (folded(&alias.name), columns.len(), alias.columns.len());
        let what =
            format!("table \"{name}\" has {has} columns available but {given} columns specified");
        return Err(Error::new("42P10", what));
    }
    let mut columns = columns.to_vec();
    for (column, named) in columns.iter_mut().zip(&alias.columns) {
        column.name = folded(&named.name);
    }
    Ok(columns)
}

/// Returns true if FROM of some SELECT in a body names this common table expression. A name that only looks like
/// it makes the expression recursive with rounds that add nothing, which is right too.
fn mentions(body: &SetExpr, name: &str) -> bool {
    body.to_string()
        .to_lowercase()
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|word| word == name)
}

fn refuse_clauses(query: &ast::Query) -> Result<()> {
    let refused = match () {
        () if !query.locks.is_empty() => "FOR UPDATE and FOR SHARE are not supported here",
        () if query.for_clause.is_some()
            || query.settings.is_some()
            || query.format_clause.is_some() =>
        {
            "this clause is not supported"
        }
        () if !query.pipe_operators.is_empty() => "pipe operators are not supported",
        () => return Ok(()),
    };
    Err(Error::unsupported(refused))
}
