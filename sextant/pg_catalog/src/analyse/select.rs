//! One SELECT.

use sqlparser::ast::{self, GroupByExpr, SelectItem, SelectItemQualifiedWildcardKind};

use super::Analyser;
use super::column_names::column_name;
use super::from::NewItem;
use super::grouping::{Mark, Stages};
use super::idents::{folded, object_parts};
use super::query::{direction, order_items, plain, position};
use super::scope::{Clause, Level, Named};
use crate::error::{Error, Result};
use crate::plan::{Body, Distinct, Expr, OutputColumn, Query, Select, SortKey, Source, SourceKind};
use crate::types::Type;

/// The maximum number of columns of a result; PostgreSQL's limit.
const COLUMNS_MAX: usize = 1664;

/// The select list of a SELECT while it is analysed.
struct Items {
    exprs: Vec<Expr>,
    columns: Vec<OutputColumn>,
    order: Vec<SortKey>,
}

impl Analyser<'_> {
    /// Analyses a SELECT with the order that follows it.
    pub(super) fn select(
        &mut self,
        select: &ast::Select,
        order: Option<&ast::OrderBy>,
    ) -> Result<Query> {
        refuse_clauses(select)?;
        self.levels.push(Level { named_windows: select.named_window.clone(), ..Level::default() });
        let depth = self.levels.len();
        let result = self.select_in_level(select, order);
        self.levels.truncate(depth - 1);
        result
    }

    /// Analyses an order around a query in parentheses, which may have an order of its own.
    pub(super) fn select_around(
        &mut self,
        query: &ast::Query,
        order: Option<&ast::OrderBy>,
    ) -> Result<Query> {
        self.levels.push(Level::default());
        let depth = self.levels.len();
        let result = self.around_in_level(query, order);
        self.levels.truncate(depth - 1);
        result
    }

    fn around_in_level(
        &mut self,
        query: &ast::Query,
        order: Option<&ast::OrderBy>,
    ) -> Result<Query> {
        let (inner, is_correlated) = self.inner_query(query)?;
        let columns = inner.columns.clone();
        let source = self.add_item(NewItem {
            name: String::new(),
            schema: None,
            columns: columns.clone(),
            key: None,
            oid: None,
        })?;
        let kind = SourceKind::Subquery { query: Box::new(inner), is_correlated };
        let level = self.level();
        level.clause = Clause::Items;
        let exprs = level.visible.iter().map(|named| named.expr.clone()).collect();
        let width = level.width;
        let mut items = Items { exprs, columns, order: Vec::new() };
        for item in order_items(order)? {
            self.sort_key(item, &mut items)?;
        }
        let Items { mut exprs, columns, order } = items;
        Stages::new(self.level(), None).finish(&mut exprs, None)?;
        let select = Select {
            from: Some(Source { kind, ..source }),
            width,
            filter: None,
            grouping: None,
            windows: Vec::new(),
            set_returning: Vec::new(),
            items: exprs,
            distinct: Distinct::No,
        };
        let mut query = plain(Body::Select(Box::new(select)), columns);
        query.order = order;
        Ok(query)
    }

    fn select_in_level(
        &mut self,
        select: &ast::Select,
        order: Option<&ast::OrderBy>,
    ) -> Result<Query> {
        let from = self.from(&select.from)?;
        let filter =
            select.selection.as_ref().map(|filter| self.truth(filter, "WHERE")).transpose()?;
        self.level().clause = Clause::Items;
        let mut items = self.items(&select.projection)?;
        self.level().clause = Clause::Plain;
        let mut keys = self.group_keys(&select.group_by, &items)?;
        let mut from = from;
        if keys.iter().any(|key| Mark::SetReturning.is_in(key)) {
            from = self.move_sets_into_from(from, &mut keys, &mut items.exprs);
        }
        self.level().clause = Clause::Having;
        let having =
            select.having.as_ref().map(|having| self.truth(having, "HAVING")).transpose()?;
        self.level().clause = Clause::Items;
        let distinct = self.distinct(select.distinct.as_ref(), &mut items)?;
        for item in order_items(order)? {
            self.sort_key(item, &mut items)?;
        }
        if distinct == Distinct::Rows && items.exprs.len() > items.columns.len() {
            let what = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
            return Err(Error::new("42P10", what));
        }
        check_distinct_on(&distinct, &items.order)?;
        let Items { mut exprs, columns, order } = items;
        let level = self.level();
        let is_grouped = !keys.is_empty() || !level.aggregates.is_empty() || having.is_some();
        let grouping = Stages::new(level, is_grouped.then_some(keys)).finish(&mut exprs, having)?;
        let level = self.level();
        let select = Select {
            from,
            width: level.width,
            filter,
            grouping,
            windows: std::mem::take(&mut level.windows),
            set_returning: std::mem::take(&mut level.set_returning),
            items: exprs,
            distinct,
        };
        let mut query = plain(Body::Select(Box::new(select)), columns);
        query.order = order;
        Ok(query)
    }

    fn items(&mut self, projection: &[SelectItem]) -> Result<Items> {
        let mut named = Vec::new();
        for item in projection {
            match item {
                SelectItem::UnnamedExpr(expr) => named.push(self.item_of(expr, column_name(expr))?),
                SelectItem::ExprWithAlias { expr, alias } => {
                    named.push(self.item_of(expr, folded(alias))?)
                }
                SelectItem::Wildcard(_) => {
                    if self.level().items.is_empty() {
                        return Err(Error::new(
                            "42601",
                            "SELECT * with no tables specified is not valid",
                        ));
                    }
                    named.extend(self.level().visible.iter().cloned());
                }
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    _,
                ) => {
                    named.extend(self.all_columns(name)?);
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(expr), _) => {
                    named.extend(self.all_fields(expr)?);
                }
                other => return Err(Error::new("42601", format!("syntax error at {other}"))),
            }
        }
        if named.len() > COLUMNS_MAX {
            return Err(Error::new(
                "54011",
                format!("target lists can have at most {COLUMNS_MAX} entries"),
            ));
        }
        let column = |named: &Named| OutputColumn {
            name: named.name.clone(),
            ty: named.expr.ty.clone(),
            modifier: named.modifier,
        };
        let columns = named.iter().map(column).collect();
        Ok(Items {
            exprs: named.into_iter().map(|named| named.expr).collect(),
            columns,
            order: Vec::new(),
        })
    }

    fn item_of(&mut self, expr: &ast::Expr, name: String) -> Result<Named> {
        let expr = self.expr(expr)?;
        let modifier = match &expr.kind {
            crate::plan::ExprKind::Cast { modifier, .. } => *modifier,
            _ => self.column_modifier(&expr),
        };
        Ok(Named { name, expr, modifier })
    }

    /// Returns the modifier of an expression that is a column.
    fn column_modifier(&mut self, expr: &Expr) -> i32 {
        let columns = self.level().items.iter().flat_map(|item| &item.columns);
        columns.into_iter().find(|named| named.expr == *expr).map_or(-1, |named| named.modifier)
    }

    /// Returns the columns of `t.*`.
    fn all_columns(&mut self, name: &ast::ObjectName) -> Result<Vec<Named>> {
        let parts = object_parts(name)?;
        let (schema, table) = match parts.as_slice() {
            [table] => (None, table),
            [schema, table] | [_, schema, table] => (Some(schema), table),
            _ => {
                return Err(Error::new("42601", "improper qualified name (too many dotted names)"));
            }
        };
        let (at, item) = self.item(schema, table)?;
        let columns = self.levels[at].items[item].columns.clone();
        let outwards = |named: Named| Named { expr: self.outwards(named.expr, at), ..named };
        Ok(columns.into_iter().map(outwards).collect())
    }

    /// Returns the fields of `(row).*`.
    fn all_fields(&mut self, expr: &ast::Expr) -> Result<Vec<Named>> {
        let row = self.expr(expr)?;
        let Type::Row(fields) = row.ty.clone() else {
            return Err(Error::new("42809", "type of (…).* is not composite"));
        };
        let field = |field: &crate::types::Field| {
            let expr = super::expr::field_of(row.clone(), &field.name)?;
            Ok(Named { name: field.name.clone(), expr, modifier: -1 })
        };
        fields.iter().map(field).collect()
    }

    /// Analyses GROUP BY: positions, columns of FROM, names of the select list, or expressions.
    fn group_keys(&mut self, group_by: &GroupByExpr, items: &Items) -> Result<Vec<Expr>> {
        let list = match group_by {
            GroupByExpr::Expressions(list, modifiers) if modifiers.is_empty() => list,
            _ => return Err(Error::unsupported(format!("{group_by} is not supported"))),
        };
        let mut keys = Vec::new();
        for expr in list {
            let key = match (position(expr, items.columns.len())?, expr) {
                (Some(at), _) => items.exprs[at].clone(),
                (None, ast::Expr::GroupingSets(_) | ast::Expr::Cube(_) | ast::Expr::Rollup(_)) => {
                    return Err(Error::unsupported(
                        "GROUPING SETS, CUBE and ROLLUP are not supported",
                    ));
                }
                (None, ast::Expr::Tuple(parts)) if parts.is_empty() => continue,
                (None, ast::Expr::Identifier(ident)) => match self.column(ident) {
                    Ok(column) => column,
                    Err(error) => {
                        let name = folded(ident);
                        let at = items.columns.iter().position(|column| column.name == name);
                        items.exprs[at.ok_or(error)?].clone()
                    }
                },
                (None, expr) => self.expr(expr)?,
            };
            if Mark::Aggregate.is_in(&key) {
                return Err(Error::new("42803", "aggregate functions are not allowed in GROUP BY"));
            }
            let key = self.known(key)?;
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    fn distinct(
        &mut self,
        distinct: Option<&ast::Distinct>,
        items: &mut Items,
    ) -> Result<Distinct> {
        match distinct {
            None | Some(ast::Distinct::All) => Ok(Distinct::No),
            Some(ast::Distinct::Distinct) => Ok(Distinct::Rows),
            Some(ast::Distinct::On(list)) => {
                let list = list.iter().map(|expr| self.sort_item(expr, items));
                Ok(Distinct::On(list.collect::<Result<_>>()?))
            }
        }
    }

    fn sort_key(&mut self, item: &ast::OrderByExpr, items: &mut Items) -> Result<()> {
        let (descending, nulls_first) = direction(item)?;
        let item = self.sort_item(&item.expr, items)?;
        items.order.push(SortKey { item, descending, nulls_first });
        Ok(())
    }

    /// Returns the item that an expression of ORDER BY names; a new hidden one if no item is equal to it.
    fn sort_item(&mut self, expr: &ast::Expr, items: &mut Items) -> Result<usize> {
        if let Some(at) = position(expr, items.columns.len())? {
            return Ok(at);
        }
        if let ast::Expr::Identifier(ident) = expr {
            let name = folded(ident);
            let mut named = (0..items.columns.len()).filter(|at| items.columns[*at].name == name);
            if let Some(first) = named.next() {
                if named.any(|other| items.exprs[other] != items.exprs[first]) {
                    return Err(Error::new("42702", format!("ORDER BY \"{name}\" is ambiguous")));
                }
                return Ok(first);
            }
        }
        let expr = self.expr(expr)?;
        let expr = self.known(expr)?;
        if let Some(at) = items.exprs.iter().position(|item| *item == expr) {
            return Ok(at);
        }
        items.exprs.push(expr);
        Ok(items.exprs.len() - 1)
    }
}

/// Checks that the first keys of the order are those of DISTINCT ON.
fn check_distinct_on(distinct: &Distinct, order: &[SortKey]) -> Result<()> {
    let Distinct::On(on) = distinct else { return Ok(()) };
    let first = order.iter().take(on.len());
    match first.into_iter().all(|key| on.contains(&key.item)) {
        true => Ok(()),
        false => Err(Error::new(
            "42P10",
            "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
        )),
    }
}

fn refuse_clauses(select: &ast::Select) -> Result<()> {
    let refused = match () {
        () if select.into.is_some() => "SELECT INTO is not supported",
        () if select.qualify.is_some() || select.top.is_some() || select.prewhere.is_some() => {
            "this clause is not PostgreSQL's"
        }
        () if !select.lateral_views.is_empty() || !select.cluster_by.is_empty() => {
            "this clause is not PostgreSQL's"
        }
        () => return Ok(()),
    };
    Err(Error::unsupported(refused))
}
