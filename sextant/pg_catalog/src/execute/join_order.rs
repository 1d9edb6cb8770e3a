//! The order in which the items of FROM are joined, and the place of each condition.
//!
//! Items of inner joins and the conjuncts of their conditions, WHERE included, form one pool. The
//! items are taken one by one: the item with the fewest rows first, as constants and columns of
//! earlier items select them. A conjunct is checked at the first item after which all of its
//! columns are known. The null-side of an outer join is a list of steps with a pool of its own,
//! its ON; it runs for each row of the other side, and gives one row of NULLs if it gives none.

use super::env::Layout;
use super::references::References;
use crate::data::data;
use crate::plan::{Call, Expr, ExprKind, Join, JoinKind, Select, Source, SourceKind};
use crate::relations::Relations;
use crate::types::oid;

/// The joins of a SELECT.
#[derive(Default)]
pub(super) struct FromPlan<'p> {
    pub layout: Layout,
    /// The number of pieces of the row.
    pub pieces: usize,
    pub steps: Steps<'p>,
}

/// Steps, each of which adds an item to the row.
#[derive(Default)]
pub(super) struct Steps<'p> {
    /// Conditions that use no column of these steps.
    pub first: Vec<&'p Expr>,
    pub steps: Vec<Step<'p>>,
}

/// A step, and the conditions on the row after it.
pub(super) struct Step<'p> {
    pub kind: StepKind<'p>,
    pub conditions: Vec<&'p Expr>,
}

/// The kinds of steps.
pub(super) enum StepKind<'p> {
    Scan(Scan<'p>),
    /// The null-side of an outer join.
    Outer(Steps<'p>),
    /// Both sides of a FULL join, and its condition.
    Full {
        left: Steps<'p>,
        right: Steps<'p>,
        on: Vec<&'p Expr>,
    },
}

/// The rows of an item.
pub(super) struct Scan<'p> {
    pub source: &'p Source,
    /// The piece that the item fills.
    pub piece: usize,
    /// True if the rows depend on columns of earlier items.
    pub is_lateral: bool,
    /// Columns of the item that equal a value which is known before.
    pub lookups: Vec<(usize, &'p Expr)>,
}

/// A conjunct and its columns.
struct Condition<'p> {
    expr: &'p Expr,
    columns: Vec<usize>,
    has_subquery: bool,
}

/// An item that has no step yet.
enum Item<'p> {
    Leaf(&'p Source),
    Outer(&'p Source, Option<&'p Expr>),
    Full(&'p Source, &'p Join),
}

impl<'p> Item<'p> {
    fn source(&self) -> &'p Source {
        match self {
            Self::Leaf(source) | Self::Outer(source, _) | Self::Full(source, _) => source,
        }
    }

    /// Returns true if the item's columns are known as soon as these are.
    fn is_ready(&self, placed: &[bool]) -> bool {
        let own = own_columns(self.source());
        let mut needs = References::of_source(self.source()).columns;
        if let Self::Outer(_, Some(on)) = self {
            needs.extend(References::of_expr(on).columns);
        }
        needs.iter().all(|column| own.contains(column) || is_placed(placed, *column))
    }
}

struct Planner<'r> {
    relations: &'r dyn Relations,
    layout: Layout,
    pieces: usize,
}

/// Orders the joins of a SELECT.
pub(super) fn plan<'p>(select: &'p Select, relations: &dyn Relations) -> FromPlan<'p> {
    let mut planner = Planner { relations, layout: Layout::default(), pieces: 0 };
    let (mut items, mut pool) = (Vec::new(), Vec::new());
    if let Some(source) = &select.from {
        flatten(source, &mut items, &mut pool);
    }
    add_conjuncts(select.filter.as_ref(), &mut pool);
    let steps = planner.arrange(items, pool, &mut vec![false; select.width]);
    FromPlan { layout: planner.layout, pieces: planner.pieces, steps }
}

/// Adds the items and the conditions of inner joins.
fn flatten<'p>(source: &'p Source, items: &mut Vec<Item<'p>>, pool: &mut Vec<Condition<'p>>) {
    let SourceKind::Join(join) = &source.kind else { return items.push(Item::Leaf(source)) };
    match join.kind {
        JoinKind::Inner => {
            flatten(&join.left, items, pool);
            flatten(&join.right, items, pool);
            add_conjuncts(join.on.as_ref(), pool);
        }
        JoinKind::Left => {
            flatten(&join.left, items, pool);
            items.push(Item::Outer(&join.right, join.on.as_ref()));
        }
        JoinKind::Right => {
            flatten(&join.right, items, pool);
            items.push(Item::Outer(&join.left, join.on.as_ref()));
        }
        JoinKind::Full => items.push(Item::Full(source, join)),
    }
}

fn add_conjuncts<'p>(condition: Option<&'p Expr>, pool: &mut Vec<Condition<'p>>) {
    let Some(expr) = condition else { return };
    if let ExprKind::And(all) = &expr.kind {
        return all.iter().for_each(|expr| add_conjuncts(Some(expr), pool));
    }
    let found = References::of_expr(expr);
    pool.push(Condition { expr, columns: found.columns, has_subquery: found.has_subquery });
}

fn own_columns(source: &Source) -> std::ops::Range<usize> {
    source.first..source.first + source.width
}

fn is_placed(placed: &[bool], column: usize) -> bool {
    placed.get(column).copied().unwrap_or(false)
}

/// Takes the conditions whose columns are all known; those with subqueries are last.
fn take_ready<'p>(pool: &mut Vec<Condition<'p>>, placed: &[bool]) -> Vec<&'p Expr> {
    let is_ready =
        |condition: &Condition<'_>| condition.columns.iter().all(|at| is_placed(placed, *at));
    let (mut ready, rest): (Vec<_>, Vec<_>) = std::mem::take(pool).into_iter().partition(is_ready);
    *pool = rest;
    ready.sort_by_key(|condition| condition.has_subquery);
    ready.into_iter().map(|condition| condition.expr).collect()
}

impl Planner<'_> {
    fn arrange<'p>(
        &mut self,
        mut items: Vec<Item<'p>>,
        mut pool: Vec<Condition<'p>>,
        placed: &mut [bool],
    ) -> Steps<'p> {
        let first = take_ready(&mut pool, placed);
        let mut steps = Vec::new();
        while !items.is_empty() {
            let ready = (0..items.len()).filter(|at| items[*at].is_ready(placed));
            let cost = |at: &usize| self.cost(&items[*at], &pool, placed, steps.is_empty());
            let next = ready.min_by_key(cost).unwrap_or(0);
            let item = items.remove(next);
            let source = item.source();
            let kind = match item {
                Item::Leaf(source) => StepKind::Scan(self.scan(source, &pool, placed)),
                Item::Outer(source, on) => StepKind::Outer(self.side(source, on, placed)),
                Item::Full(_, join) => {
                    let (left, right) =
                        (self.side(&join.left, None, placed), self.side(&join.right, None, placed));
                    let mut on = Vec::new();
                    add_conjuncts(join.on.as_ref(), &mut on);
                    let on = on.into_iter().map(|condition| condition.expr).collect();
                    StepKind::Full { left, right, on }
                }
            };
            for column in own_columns(source) {
                if let Some(slot) = placed.get_mut(column) {
                    *slot = true;
                }
            }
            steps.push(Step { kind, conditions: take_ready(&mut pool, placed) });
        }
        Steps { first, steps }
    }

    /// Arranges one side of an outer join.
    fn side<'p>(&mut self, source: &'p Source, on: Option<&'p Expr>, placed: &[bool]) -> Steps<'p> {
        let (mut items, mut pool) = (Vec::new(), Vec::new());
        flatten(source, &mut items, &mut pool);
        add_conjuncts(on, &mut pool);
        self.arrange(items, pool, &mut placed.to_vec())
    }

    fn scan<'p>(
        &mut self,
        source: &'p Source,
        pool: &[Condition<'p>],
        placed: &[bool],
    ) -> Scan<'p> {
        let piece = self.pieces;
        self.pieces += 1;
        self.layout.set(piece, source.first, source.width);
        let is_lateral = !References::of_source(source).columns.is_empty();
        Scan { source, piece, is_lateral, lookups: lookups(source, pool, placed) }
    }

    /// Returns the cost of an item as the next one: whether it multiplies the rows without a
    /// condition, and the number of its rows for one row so far.
    fn cost(
        &self,
        item: &Item<'_>,
        pool: &[Condition<'_>],
        placed: &[bool],
        is_first: bool,
    ) -> (bool, usize) {
        let Item::Leaf(source) = item else { return (false, 5) };
        let found = lookups(source, pool, placed);
        let rows = match &source.kind {
            SourceKind::Relation(relation) => self.relation_rows(*relation, &found),
            _ if !References::of_source(source).columns.is_empty() => return (false, 10),
            SourceKind::Functions(..) => 10,
            _ if found.is_empty() => 1000,
            _ => 10,
        };
        (found.is_empty() && rows > 1 && !is_first, rows)
    }

    /// Returns the number of rows of a relation that one row of the others selects, about.
    fn relation_rows(&self, relation: usize, lookups: &[(usize, &Expr)]) -> usize {
        // An error appears again when the rows are read.
        let all = self.relations.rows(relation).map_or(0, |rows| rows.len());
        let selected = lookups.iter().map(|(column, expr)| match &expr.kind {
            ExprKind::Constant(value) => {
                let found = self.relations.rows_with(relation, *column, value);
                found.map_or(0, |found| found.len())
            }
            _ => 3,
        });
        selected.min().map_or(all, |selected| selected.min(all))
    }
}

/// Returns the columns of an item that equal a value which is known before it.
fn lookups<'p>(source: &Source, pool: &[Condition<'p>], placed: &[bool]) -> Vec<(usize, &'p Expr)> {
    let own = own_columns(source);
    let of_condition = |condition: &Condition<'p>| {
        let (left, right) = equality(condition.expr)?;
        [(left, right), (right, left)].into_iter().find_map(|(column, value)| {
            let column = plain_column(column).filter(|column| own.contains(column))?;
            let known = References::of_expr(value).columns;
            let is_known = known.iter().all(|at| is_placed(placed, *at));
            is_known.then_some((column - own.start, value))
        })
    };
    pool.iter().filter_map(of_condition).collect()
}

/// Returns the sides of an equality that holds for equal values.
fn equality(expr: &Expr) -> Option<(&Expr, &Expr)> {
    let ExprKind::Call(Call::Operator(operator), sides) = &expr.kind else { return None };
    let row = data().operators.get(*operator).filter(|row| row.name == "=")?;
    let is_plain = |ty| !matches!(ty, oid::BPCHAR | oid::JSONB | oid::ANYARRAY | oid::RECORD);
    match &sides[..] {
        [left, right] if is_plain(row.left) && is_plain(row.right) => Some((left, right)),
        _ => None,
    }
}

/// Returns the column of an expression that has the value of a column, in another type perhaps.
fn plain_column(expr: &Expr) -> Option<usize> {
    match &expr.kind {
        ExprKind::Column { level: 0, at } => Some(*at),
        ExprKind::Cast { expr: inner, modifier: -1 } if keeps_value(inner, expr) => {
            plain_column(inner)
        }
        _ => None,
    }
}

fn keeps_value(from: &Expr, to: &Expr) -> bool {
    let base = |expr: &Expr| data().base(expr.ty.oid());
    let is_text = |ty| matches!(ty, oid::TEXT | oid::VARCHAR);
    let is_number = |ty| {
        matches!(ty, oid::INT2 | oid::INT4 | oid::INT8 | oid::OID)
            || (data().type_row(ty).is_some_and(|row| row.name.starts_with("reg")))
    };
    match (base(from), base(to)) {
        (oid::NAME, to) => is_text(to),
        (from, to) if is_text(from) => is_text(to),
        (from, to) => is_number(from) && is_number(to) && to != oid::INT2,
    }
}
