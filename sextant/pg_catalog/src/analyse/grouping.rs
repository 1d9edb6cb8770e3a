//! Aggregates, windows and set-returning functions of one SELECT: the expressions of its later
//! stages are changed from FROM's row to the row of their stage.
//!
//! While a SELECT is analysed, the columns that its aggregates will have are not known yet. Until
//! its end such a column is a [`Mark`]: a position that no row has.

use super::scope::Level;
use crate::error::{Error, Result};
use crate::plan::{Expr, ExprKind, Grouping, Next};
use crate::types::Type;

/// The kinds of marked positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// An aggregate, by its number.
    Aggregate,
    /// A window function.
    Window,
    /// A set-returning function of the select list.
    SetReturning,
}

/// Positions from here on are marks. A row has far fewer columns.
const MARKS: usize = 1 << 32;

impl Mark {
    /// Returns the column that stands for number `at` of its kind.
    pub(super) fn expr(self, at: usize, ty: Type) -> Expr {
        Expr::new(ExprKind::Column { level: 0, at: MARKS * (1 + self as usize) + at }, ty)
    }

    fn of(at: usize) -> Option<(Self, usize)> {
        let mark = match at / MARKS {
            1 => Self::Aggregate,
            2 => Self::Window,
            3 => Self::SetReturning,
            _ => return None,
        };
        Some((mark, at % MARKS))
    }
}

impl Mark {
    /// Returns true if an expression has a mark of this kind, of its own SELECT.
    pub(super) fn is_in(self, expr: &Expr) -> bool {
        let mut found = false;
        expr.clone().walk(0, &mut |expr, depth| {
            if let ExprKind::Column { level, at } = expr.kind {
                found |= level == depth && Self::of(at).is_some_and(|(mark, _)| mark == self);
            }
            Next::Inside
        });
        found
    }

    /// Replaces the marks of this kind by columns, whose positions `column` gives.
    pub(super) fn replace(self, expr: &mut Expr, column: impl Fn(usize) -> usize) {
        expr.walk(0, &mut |expr, depth| {
            if let ExprKind::Column { level, at } = &mut expr.kind
                && *level == depth
                && let Some((mark, number)) = Self::of(*at)
                && mark == self
            {
                *at = column(number);
            }
            Next::Inside
        });
    }
}

/// The end of a SELECT's analysis.
pub(super) struct Stages<'l> {
    level: &'l mut Level,
    /// The keys of GROUP BY; `None` if nothing is grouped.
    keys: Option<Vec<Expr>>,
}

impl<'l> Stages<'l> {
    pub(super) fn new(level: &'l mut Level, keys: Option<Vec<Expr>>) -> Self {
        Self { level, keys }
    }

    /// Changes all expressions of the later stages, and returns the grouping.
    pub(super) fn finish(
        mut self,
        items: &mut [Expr],
        mut having: Option<Expr>,
    ) -> Result<Option<Grouping>> {
        let mut windows = std::mem::take(&mut self.level.windows);
        let mut sets = std::mem::take(&mut self.level.set_returning);
        let (window_count, aggregate_count) = (windows.len(), self.level.aggregates.len());
        // The first pass finds columns that depend on a key, which become keys: the positions of all aggregates
        // are known only after it.
        for pass in [Pass::Collect, Pass::Replace] {
            let mut error = None;
            let mut visit = |expr: &mut Expr, depth: usize| {
                let next = self.visit(expr, depth, pass, aggregate_count, window_count);
                next.unwrap_or_else(|failed| {
                    error.get_or_insert(failed);
                    Next::Skip
                })
            };
            items.iter_mut().chain(&mut having).for_each(|expr| expr.walk(0, &mut visit));
            windows.iter_mut().for_each(|window| window.walk(0, &mut visit));
            sets.iter_mut()
                .flat_map(|set| &mut set.arguments)
                .for_each(|expr| expr.walk(0, &mut visit));
            if let Some(error) = error {
                return Err(error);
            }
        }
        self.level.windows = windows;
        self.level.set_returning = sets;
        let aggregates = std::mem::take(&mut self.level.aggregates);
        Ok(self.keys.map(|keys| Grouping { keys, aggregates, having }))
    }

    fn visit(
        &mut self,
        expr: &mut Expr,
        depth: usize,
        pass: Pass,
        aggregates: usize,
        windows: usize,
    ) -> Result<Next> {
        if let Some(keys) = &self.keys
            && depth == 0
            && let Some(at) = keys.iter().position(|key| key == expr)
        {
            if pass == Pass::Replace {
                expr.kind = ExprKind::Column { level: 0, at };
            }
            return Ok(Next::Skip);
        }
        let ExprKind::Column { level, at } = expr.kind else { return Ok(Next::Inside) };
        if level != depth {
            return Ok(Next::Inside);
        }
        let keys = self.keys.as_ref().map(Vec::len);
        let row = keys.map_or(self.level.width, |keys| keys + aggregates);
        let new = match (Mark::of(at), keys) {
            (Some((Mark::Aggregate, n)), keys) => keys.unwrap_or(0) + n,
            (Some((Mark::Window, n)), _) => row + n,
            (Some((Mark::SetReturning, n)), _) => row + windows + n,
            (None, None) => at,
            (None, Some(_)) => self.key(at, &expr.ty)?,
        };
        if pass == Pass::Replace {
            expr.kind = ExprKind::Column { level, at: new };
        }
        Ok(Next::Skip)
    }

    /// Returns the key that is a column of FROM's row. A column of a relation whose primary key is a key becomes one.
    fn key(&mut self, at: usize, ty: &Type) -> Result<usize> {
        let column = |at| ExprKind::Column { level: 0, at };
        let keys = self.keys.get_or_insert_default();
        if let Some(key) = keys.iter().position(|key| key.kind == column(at)) {
            return Ok(key);
        }
        let has = |item: &super::scope::Item| {
            item.columns.iter().any(|named| named.expr.kind == column(at))
        };
        let item = self.level.items.iter().find(|item| has(item));
        let is_key = |primary: usize| keys.iter().any(|key| key.kind == column(primary));
        if item.and_then(|item| item.key).is_some_and(is_key) {
            keys.push(Expr::new(column(at), ty.clone()));
            return Ok(keys.len() - 1);
        }
        let name = item.and_then(|item| {
            let named = item.columns.iter().find(|named| named.expr.kind == column(at))?;
            Some(format!("{}.{}", item.name, named.name))
        });
        let name = name.unwrap_or_else(|| "?column?".to_owned());
        let what = format!(
            "column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"
        );
        Err(Error::new("42803", what))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Collect,
    Replace,
}
