//! FROM: relations, subqueries, functions, and joins of them.

use proto::value::Value;
use sqlparser::ast::{self, FunctionArg, JoinConstraint, JoinOperator, TableAlias, TableFactor};

use super::Analyser;
use super::coerce::common_type;
use super::functions::ResolvedCall;
use super::grouping::Mark;
use super::idents::{folded, place, qualified};
use super::query::{plain, renamed};
use super::scope::{Clause, Item, Named};
use crate::data::data;
use crate::error::{Error, Result};
use crate::plan::{
    Body, Call, Distinct, Expr, ExprKind, FromFunction, Join, JoinKind, OutputColumn, Query,
    Select, Source, SourceKind,
};
use crate::types::oid::{self, Oid};
use crate::types::{Field, Type};
use crate::views;

/// A new item of FROM.
pub(super) struct NewItem {
    pub(super) name: String,
    pub(super) schema: Option<String>,
    pub(super) columns: Vec<OutputColumn>,
    /// The number of the column that is the primary key.
    pub(super) key: Option<usize>,
    /// The OID of a relation.
    pub(super) oid: Option<Oid>,
}

impl Analyser<'_> {
    /// Analyses FROM; `None` without.
    pub(super) fn from(&mut self, from: &[ast::TableWithJoins]) -> Result<Option<Source>> {
        let mut all: Option<Source> = None;
        for table in from {
            let next = self.joined(table)?;
            all = Some(match all {
                None => next,
                Some(left) => join(JoinKind::Inner, left, next, None),
            });
        }
        Ok(all)
    }

    fn joined(&mut self, table: &ast::TableWithJoins) -> Result<Source> {
        let start = self.level().visible.len();
        let mut left = self.factor(&table.relation)?;
        for next in &table.joins {
            let middle = self.level().visible.len();
            let right = self.factor(&next.relation)?;
            left = self.join(left, right, &next.join_operator, (start, middle))?;
        }
        Ok(left)
    }

    /// Analyses the condition of a join. The columns that are visible from `start` on are those of the left
    /// side, and from `middle` on those of the right side.
    fn join(
        &mut self,
        left: Source,
        right: Source,
        operator: &JoinOperator,
        (start, middle): (usize, usize),
    ) -> Result<Source> {
        use JoinOperator as J;
        let (kind, constraint) = match operator {
            J::Join(constraint) | J::Inner(constraint) | J::CrossJoin(constraint) => {
                (JoinKind::Inner, constraint)
            }
            J::Left(constraint) | J::LeftOuter(constraint) => (JoinKind::Left, constraint),
            J::Right(constraint) | J::RightOuter(constraint) => (JoinKind::Right, constraint),
            J::FullOuter(constraint) => (JoinKind::Full, constraint),
            _ => return Err(Error::unsupported("this kind of join is not PostgreSQL's")),
        };
        let on = match constraint {
            JoinConstraint::None => None,
            JoinConstraint::On(on) => {
                // The condition sees the two sides only.
                let earlier: Vec<Named> = self.level().visible.drain(..start).collect();
                let on = self.truth(on, "JOIN/ON");
                self.level().visible.splice(0..0, earlier);
                Some(on?)
            }
            JoinConstraint::Using(columns) => {
                let names =
                    columns.iter().map(|name| qualified(name, "").map(|(_, ident)| folded(&ident)));
                self.using(kind, &names.collect::<Result<Vec<_>>>()?, start, middle)?
            }
            JoinConstraint::Natural => {
                let visible = &self.level().visible;
                let in_right =
                    |name: &String| visible[middle..].iter().any(|named| named.name == *name);
                let names = visible[start..middle].iter().map(|named| named.name.clone());
                let names: Vec<String> = names.filter(in_right).collect();
                self.using(kind, &names, start, middle)?
            }
        };
        Ok(join(kind, left, right, on))
    }

    /// Makes the condition of USING, and one visible column of each pair.
    fn using(
        &mut self,
        kind: JoinKind,
        names: &[String],
        start: usize,
        middle: usize,
    ) -> Result<Option<Expr>> {
        let right: Vec<Named> = self.level().visible.drain(middle..).collect();
        let left: Vec<Named> = self.level().visible.drain(start..).collect();
        let (mut merged, mut terms) = (Vec::new(), Vec::new());
        for name in names {
            let (l, r) = (only(&left, name, "left")?, only(&right, name, "right")?);
            terms.push(self.operator("=", l.expr.clone(), r.expr.clone())?);
            let ty = common_type([&l.expr.ty, &r.expr.ty], "JOIN/USING")?;
            let (l_expr, r_expr) =
                (self.implicit(l.expr.clone(), &ty)?, self.implicit(r.expr.clone(), &ty)?);
            let expr = match kind {
                JoinKind::Inner | JoinKind::Left => l_expr,
                JoinKind::Right => r_expr,
                JoinKind::Full => Expr::new(ExprKind::Coalesce(vec![l_expr, r_expr]), ty),
            };
            merged.push(Named { name: name.clone(), expr, modifier: l.modifier });
        }
        let others = left.into_iter().chain(right).filter(|named| !names.contains(&named.name));
        self.level().visible.extend(merged.into_iter().chain(others));
        Ok((!terms.is_empty()).then(|| Expr::new(ExprKind::And(terms), oid::BOOL)))
    }

    fn factor(&mut self, factor: &TableFactor) -> Result<Source> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                with_ordinality: false,
                sample: None,
                ..
            } => self.relation(name, alias.as_ref()),
            TableFactor::Table { name, alias, args: Some(args), with_ordinality, .. } => {
                self.function_source(name, &args.args, *with_ordinality, alias.as_ref())
            }
            TableFactor::Function { name, args, with_ordinality, alias, .. } => {
                self.function_source(name, args, *with_ordinality, alias.as_ref())
            }
            TableFactor::UNNEST {
                alias, array_exprs, with_offset: false, with_ordinality, ..
            } => {
                let mut functions = Vec::new();
                for array in array_exprs {
                    let array = self.expr(array)?;
                    functions.push(self.resolved_function(None, "unnest", vec![array])?);
                }
                self.functions(functions, *with_ordinality, alias.as_ref())
            }
            TableFactor::Derived { lateral, subquery, alias, .. } => {
                self.derived(*lateral, subquery, alias.as_ref())
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                self.nested(table_with_joins, alias.as_ref())
            }
            other => Err(Error::unsupported(format!("{other} in FROM is not supported"))),
        }
    }

    fn derived(
        &mut self,
        lateral: bool,
        query: &ast::Query,
        alias: Option<&TableAlias>,
    ) -> Result<Source> {
        self.level().is_hidden = !lateral;
        let inner = self.inner_query(query);
        self.level().is_hidden = false;
        let (mut query, is_correlated) = inner?;
        self.fix_unknown(&mut query)?;
        let columns = query.columns.clone();
        let kind = SourceKind::Subquery { query: Box::new(query), is_correlated };
        self.aliased(
            NewItem { name: String::new(), schema: None, columns, key: None, oid: None },
            alias,
            kind,
        )
    }

    fn nested(
        &mut self,
        table: &ast::TableWithJoins,
        alias: Option<&TableAlias>,
    ) -> Result<Source> {
        let (start, first) = (self.level().visible.len(), self.level().items.len());
        let source = self.joined(table)?;
        let Some(alias) = alias else { return Ok(source) };
        // The alias hides the names inside.
        let level = self.level();
        level.items.truncate(first);
        let mut columns: Vec<Named> = level.visible.drain(start..).collect();
        for (column, named) in columns.iter_mut().zip(&alias.columns) {
            column.name = folded(&named.name);
        }
        level.visible.extend(columns.iter().cloned());
        level.items.push(Item {
            schema: None,
            name: folded(&alias.name),
            columns,
            key: None,
            oid: None,
        });
        Ok(source)
    }

    fn relation(&mut self, name: &ast::ObjectName, alias: Option<&TableAlias>) -> Result<Source> {
        let (schema, ident) = qualified(name, self.names.database)?;
        let table = folded(&ident);
        if schema.is_none()
            && let Some(cte) = self.ctes.iter_mut().rev().find(|cte| cte.name == table)
        {
            cte.is_used = true;
            let (kind, columns) = (SourceKind::Cte(cte.number), cte.columns.clone());
            return self.aliased(
                NewItem { name: table, schema: None, columns, key: None, oid: None },
                alias,
                kind,
            );
        }
        let path = || self.names.search_path.iter().map(String::as_str);
        let found = match &schema {
            Some(schema) => data().relation(schema, &table),
            None => std::iter::once("pg_catalog")
                .chain(path())
                .find_map(|schema| data().relation(schema, &table)),
        };
        let Some(relation) = found else {
            let is_own = match &schema {
                Some(schema) => (self.names.is_relation)(schema, &table),
                None => path().any(|schema| (self.names.is_relation)(schema, &table)),
            };
            return Err(place(no_relation(schema.as_deref(), &table, is_own), &ident));
        };
        let columns: Vec<OutputColumn> = relation.columns.iter().map(output_column).collect();
        let kind = match views::query(&relation.schema, &relation.name) {
            Some(text) => {
                let query = Box::new(self.view(text, &columns)?);
                SourceKind::Subquery { query, is_correlated: false }
            }
            None => SourceKind::Relation(relation.index),
        };
        let key = relation
            .columns
            .iter()
            .position(|column| column.name == "oid")
            .filter(|_| relation.kind == 'r');
        let item = NewItem {
            name: table,
            schema: Some(relation.schema.clone()),
            columns,
            key,
            oid: Some(relation.oid),
        };
        self.aliased(item, alias, kind)
    }

    /// Analyses the query of a view, whose columns have other positions, and may lack some.
    fn view(&mut self, text: &str, columns: &[OutputColumn]) -> Result<Query> {
        // Nothing around the view is visible in it.
        let levels = std::mem::take(&mut self.levels);
        let ctes = std::mem::take(&mut self.ctes);
        let search_path = std::mem::take(&mut self.names.search_path);
        let query = super::parse(text).and_then(|query| self.query(&query));
        (self.levels, self.ctes, self.names.search_path) = (levels, ctes, search_path);
        let mut query = query?;
        let column = |name: &String| columns.iter().find(|column| column.name == *name);
        let types = query
            .columns
            .iter()
            .map(|own| column(&own.name).map_or(own.ty.clone(), |column| column.ty.clone()));
        let types: Vec<Type> = types.collect();
        self.convert_columns_explicitly(&mut query, &types)?;
        let item = |column: &OutputColumn| {
            let at = query.columns.iter().position(|own| own.name == column.name);
            let kind =
                at.map_or(ExprKind::Constant(Value::Null), |at| ExprKind::Column { level: 0, at });
            Expr::new(kind, column.ty.clone())
        };
        let items = columns.iter().map(item).collect();
        let width = query.columns.len();
        let kind = SourceKind::Subquery { query: Box::new(query), is_correlated: false };
        let select = Select {
            from: Some(Source { kind, first: 0, width }),
            width,
            filter: None,
            grouping: None,
            windows: Vec::new(),
            set_returning: Vec::new(),
            items,
            distinct: Distinct::No,
        };
        Ok(plain(Body::Select(Box::new(select)), columns.to_vec()))
    }

    fn function_source(
        &mut self,
        name: &ast::ObjectName,
        arguments: &[FunctionArg],
        ordinality: bool,
        alias: Option<&TableAlias>,
    ) -> Result<Source> {
        let (schema, ident) = qualified(name, self.names.database)?;
        let mut list = Vec::new();
        for argument in arguments {
            let star = || Error::new("42809", "a function in FROM takes no *");
            list.push(self.argument(argument)?.ok_or_else(star)?);
        }
        let name = folded(&ident);
        if name == "unnest" && list.len() > 1 {
            let each = list
                .into_iter()
                .map(|array| self.resolved_function(schema.as_deref(), &name, vec![array]));
            let each = each.collect::<Result<_>>()?;
            return self.functions(each, ordinality, alias);
        }
        let function = self.resolved_function(schema.as_deref(), &name, list);
        let function = function.map_err(|error| place(error, &ident))?;
        self.functions(vec![function], ordinality, alias)
    }

    /// Moves the set-returning functions of the select list into FROM, since a key of GROUP BY is one: rows are
    /// repeated before they are grouped. The marks become columns of FROM's row.
    pub(super) fn move_sets_into_from(
        &mut self,
        from: Option<Source>,
        keys: &mut [Expr],
        items: &mut [Expr],
    ) -> Option<Source> {
        let level = self.level();
        let sets = std::mem::take(&mut level.set_returning);
        let first = level.width;
        let mut functions = Vec::new();
        for set in sets {
            // One value of each set, which may be a row, is one column.
            let field = Field { name: String::new(), ty: set.ty.clone() };
            let ty =
                if matches!(set.ty, Type::Row(_)) { Type::Row([field].into()) } else { set.ty };
            functions.push(FromFunction { call: set.call, arguments: set.arguments, ty, width: 1 });
        }
        let width = functions.len();
        level.width += width;
        for expr in keys.iter_mut().chain(items) {
            Mark::SetReturning.replace(expr, |at| first + at);
        }
        let source = Source { kind: SourceKind::Functions(functions, false), first, width };
        Some(match from {
            None => source,
            Some(left) => join(JoinKind::Inner, left, source, None),
        })
    }

    fn resolved_function(
        &mut self,
        schema: Option<&str>,
        name: &str,
        list: Vec<Expr>,
    ) -> Result<ResolvedCall> {
        let resolved = self.resolve(schema, name, list).map_err(|(_, error)| error)?;
        self.is_volatile |= resolved.function.volatility == 'v';
        match resolved.function.kind {
            'f' => Ok(resolved),
            _ => Err(Error::new("42803", "aggregate and window functions are not allowed in FROM")),
        }
    }

    fn functions(
        &mut self,
        list: Vec<ResolvedCall>,
        ordinality: bool,
        alias: Option<&TableAlias>,
    ) -> Result<Source> {
        let is_only = list.len() == 1;
        let (mut functions, mut columns) = (Vec::new(), Vec::new());
        let name = list.first().map(|call| call.function.name.clone()).unwrap_or_default();
        for ResolvedCall { function, arguments, result } in list {
            let before = columns.len();
            match &result {
                Type::Row(fields) => columns.extend(fields.iter().map(field_column)),
                ty => {
                    let named = match (function.out.as_slice(), alias) {
                        ([(out, _)], _) => out.clone(),
                        (_, Some(alias)) if is_only => folded(&alias.name),
                        _ => function.name.clone(),
                    };
                    columns.push(OutputColumn { name: named, ty: ty.clone(), modifier: -1 });
                }
            }
            let call = Call::Function { index: function.index, is_array: false };
            functions.push(FromFunction {
                call,
                arguments,
                ty: result,
                width: columns.len() - before,
            });
        }
        if ordinality {
            columns.push(OutputColumn {
                name: "ordinality".to_owned(),
                ty: Type::Plain(oid::INT8),
                modifier: -1,
            });
        }
        let kind = SourceKind::Functions(functions, ordinality);
        self.aliased(NewItem { name, schema: None, columns, key: None, oid: None }, alias, kind)
    }

    /// Adds an item with its alias.
    fn aliased(
        &mut self,
        mut item: NewItem,
        alias: Option<&TableAlias>,
        kind: SourceKind,
    ) -> Result<Source> {
        if let Some(alias) = alias {
            item.columns = renamed(&item.columns, alias)?;
            item.name = folded(&alias.name);
            item.schema = None;
        }
        let source = self.add_item(item)?;
        Ok(Source { kind, ..source })
    }

    /// Adds an item to the present SELECT. The source's kind is set by the caller.
    pub(super) fn add_item(&mut self, item: NewItem) -> Result<Source> {
        let NewItem { name, schema, columns, key, oid } = item;
        let level = self.level();
        level.clause = Clause::Plain;
        let is_taken =
            |other: &Item| other.name == name && other.schema == schema && !name.is_empty();
        if level.items.iter().any(is_taken) {
            return Err(Error::new(
                "42712",
                format!("table name \"{name}\" specified more than once"),
            ));
        }
        let (first, width) = (level.width, columns.len());
        let named = |(at, column): (usize, OutputColumn)| Named {
            name: column.name,
            expr: Expr::new(ExprKind::Column { level: 0, at: first + at }, column.ty),
            modifier: column.modifier,
        };
        let columns: Vec<Named> = columns.into_iter().enumerate().map(named).collect();
        level.width += width;
        level.visible.extend(columns.iter().cloned());
        level.items.push(Item { schema, name, columns, key: key.map(|key| first + key), oid });
        Ok(Source { kind: SourceKind::Relation(0), first, width })
    }
}

/// Joins two sources, whose columns follow each other.
fn join(kind: JoinKind, left: Source, right: Source, on: Option<Expr>) -> Source {
    let (first, width) = (left.first, left.width + right.width);
    Source { kind: SourceKind::Join(Box::new(Join { kind, left, right, on })), first, width }
}

/// Returns the only column with a name on one side of a join.
fn only<'n>(columns: &'n [Named], name: &str, side: &str) -> Result<&'n Named> {
    let mut named = columns.iter().filter(|named| named.name == name);
    match (named.next(), named.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => {
            let what = format!(
                "column \"{name}\" specified in USING clause does not exist in {side} table"
            );
            Err(Error::new("42703", what))
        }
        _ => {
            let what =
                format!("common column name \"{name}\" appears more than once in {side} table");
            Err(Error::new("42702", what))
        }
    }
}

fn field_column(field: &Field) -> OutputColumn {
    OutputColumn { name: field.name.clone(), ty: field.ty.clone(), modifier: -1 }
}

/// Returns a column of a relation; a domain counts as its base type, as on the wire.
fn output_column(column: &crate::data::Column) -> OutputColumn {
    let base = data().base(column.ty);
    let modifier = match data().type_row(column.ty) {
        Some(row) if row.base != 0 => row.base_modifier,
        _ => column.modifier,
    };
    OutputColumn { name: column.name.clone(), ty: Type::Plain(base), modifier }
}

fn no_relation(schema: Option<&str>, table: &str, is_own: bool) -> Error {
    if is_own {
        let what = format!(
            "documents of \"{table}\" cannot be read in a statement with joins or about the catalogue"
        );
        return Error::unsupported(what)
            .with_hint("read one bucket or index in a statement; postgres_fdw joins several");
    }
    let name = schema.map_or(table.to_owned(), |schema| format!("{schema}.{table}"));
    Error::new("42P01", format!("relation \"{name}\" does not exist"))
}
