//! The meaning of names at a place of a statement: the columns of each SELECT around it.

use proto::value::Value;
use sqlparser::ast::{Ident, NamedWindowDefinition};

use super::Analyser;
use super::idents::{folded, place};
use crate::error::{Error, Result};
use crate::plan::{Aggregate, Expr, ExprKind, OutputColumn, SetReturning, Window};
use crate::types::oid::{self, Oid};
use crate::types::{Field, Type};

/// One SELECT.
#[derive(Default)]
pub(super) struct Level {
    /// The items of FROM.
    pub(super) items: Vec<Item>,
    /// The columns that a name without a table may mean, in the order of `*`.
    pub(super) visible: Vec<Named>,
    /// True while a subquery of FROM without LATERAL is analysed.
    pub(super) is_hidden: bool,
    /// The number of columns of FROM's row so far.
    pub(super) width: usize,
    /// The clause that is analysed.
    pub(super) clause: Clause,
    pub(super) aggregates: Vec<Aggregate>,
    pub(super) windows: Vec<Window>,
    pub(super) set_returning: Vec<SetReturning>,
    /// `WINDOW w AS …`.
    pub(super) named_windows: Vec<NamedWindowDefinition>,
}

/// The clauses, by what they may contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Clause {
    /// FROM, ON, WHERE, GROUP BY, VALUES, LIMIT: no aggregates. The text names the clause.
    #[default]
    Plain,
    /// The arguments of an aggregate.
    Aggregate,
    /// The arguments of a window function.
    Window,
    /// HAVING: aggregates.
    Having,
    /// The select list and ORDER BY: everything.
    Items,
}

/// An item of FROM.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// The schema, if the item is a relation without an alias.
    pub(super) schema: Option<String>,
    /// The name by which columns are qualified.
    pub(super) name: String,
    /// The columns, in their order.
    pub(super) columns: Vec<Named>,
    /// The position of its `oid` column, if the item is a relation of the catalogue with that primary key.
    pub(super) key: Option<usize>,
    /// The OID of the relation, which is its system column `tableoid`.
    pub(super) oid: Option<Oid>,
}

/// A named expression: a column.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) expr: Expr,
    pub(super) modifier: i32,
}

/// A common table expression that may be named.
pub(super) struct CteScope {
    pub(super) name: String,
    pub(super) number: usize,
    pub(super) columns: Vec<OutputColumn>,
    pub(super) is_used: bool,
}

impl Item {
    /// Returns a system column; `None` if the item is no table or has none with this name.
    fn system_column(&self, name: &str) -> Option<Expr> {
        let oid = self.oid.filter(|_| name == "tableoid")?;
        Some(Expr::constant(Value::int(oid.into()), oid::OID))
    }

    /// Returns the whole row.
    pub(super) fn row(&self) -> Expr {
        let fields = self
            .columns
            .iter()
            .map(|column| Field { name: column.name.clone(), ty: column.expr.ty.clone() });
        let row = self.columns.iter().map(|column| column.expr.clone()).collect();
        Expr::new(ExprKind::Row(row), Type::Row(fields.collect()))
    }
}

impl Analyser<'_> {
    /// Returns the innermost SELECT.
    pub(super) fn level(&mut self) -> &mut Level {
        if self.levels.is_empty() {
            self.levels.push(Level::default());
        }
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    /// Returns the column that a name means; an error if it means none (42703) or several (42702).
    pub(super) fn column(&mut self, ident: &Ident) -> Result<Expr> {
        let name = folded(ident);
        for at in (0..self.levels.len()).rev().filter(|at| !self.levels[*at].is_hidden) {
            let level = &self.levels[at];
            let mut matching = level.visible.iter().filter(|column| column.name == name);
            if let Some(column) = matching.next() {
                if matching.next().is_some() {
                    return Err(place(ambiguous(&name), ident));
                }
                let expr = column.expr.clone();
                return Ok(self.outwards(expr, at));
            }
            if let Some(column) = level.items.iter().find_map(|item| item.system_column(&name)) {
                return Ok(column);
            }
            if let Some(item) = level.items.iter().find(|item| item.name == name) {
                let row = item.row();
                return Ok(self.outwards(row, at));
            }
        }
        Err(place(Error::new("42703", format!("column \"{name}\" does not exist")), ident))
    }

    /// Returns the column `table.name`.
    pub(super) fn qualified_column(
        &mut self,
        schema: Option<&Ident>,
        table: &Ident,
        ident: &Ident,
    ) -> Result<Expr> {
        let name = folded(ident);
        let (at, item) = self.item(schema, table)?;
        let item = &self.levels[at].items[item];
        let mut matching = item.columns.iter().filter(|column| column.name == name);
        let Some(column) = matching.next() else {
            if let Some(column) = item.system_column(&name) {
                return Ok(column);
            }
            let what = format!("column {}.{name} does not exist", folded(table));
            return Err(place(Error::new("42703", what), table));
        };
        if matching.next().is_some() {
            return Err(place(ambiguous(&name), ident));
        }
        let expr = column.expr.clone();
        Ok(self.outwards(expr, at))
    }

    /// Returns the level and number of an item of FROM.
    pub(super) fn item(&self, schema: Option<&Ident>, table: &Ident) -> Result<(usize, usize)> {
        let (name, schema) = (folded(table), schema.map(folded));
        let mut is_known = false;
        for at in (0..self.levels.len()).rev() {
            let named =
                |item: &Item| item.name == name && (schema.is_none() || item.schema == schema);
            let Some(item) = self.levels[at].items.iter().position(named) else { continue };
            if !self.levels[at].is_hidden {
                return Ok((at, item));
            }
            is_known = true;
        }
        let error = match is_known {
            true => Error::new(
                "42P01",
                format!("invalid reference to FROM-clause entry for table \"{name}\""),
            )
            .with_hint("an item of FROM sees those before it only with LATERAL"),
            false => Error::new("42P01", format!("missing FROM-clause entry for table \"{name}\"")),
        };
        Err(place(error, table))
    }

    /// Returns true if a name is that of an item of FROM.
    pub(super) fn is_item(&self, table: &Ident) -> bool {
        self.item(None, table).is_ok()
    }

    /// Changes an expression over the row of the SELECT with number `at` into one for the innermost SELECT.
    pub(super) fn outwards(&mut self, mut expr: Expr, at: usize) -> Expr {
        self.lowest = self.lowest.min(at);
        let levels = self.levels.len() - 1 - at;
        if levels > 0 {
            expr.walk(0, &mut |expr, depth| {
                if let ExprKind::Column { level, .. } = &mut expr.kind
                    && *level >= depth
                {
                    *level += levels;
                }
                crate::plan::Next::Inside
            });
        }
        expr
    }
}

fn ambiguous(name: &str) -> Error {
    Error::new("42702", format!("column reference \"{name}\" is ambiguous"))
}
