//! The state of a statement while it runs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use proto::value::Value;

use super::env::Env;
use super::join_order::FromPlan;
use crate::error::{Error, Result};
use crate::functions::Context;
use crate::plan::Query;
use crate::relations::Rows;
use crate::types::order::row_bytes;

/// The deepest nesting of expressions and queries, and the most items of one FROM. The longest
/// recorded statement needs 40; each level takes a few kilobytes of the thread's stack.
const DEPTH_MAX: usize = 200;

/// Runs a query in the surroundings of a row; no more rows than a number, if one is given.
pub(super) type RunQuery<'p> =
    fn(&mut Run<'p>, &'p Query, Option<&Env<'_>>, Option<usize>) -> Result<Vec<Box<[Value]>>>;

/// Rows that were made by a subquery, a function or a common table expression, with the indexes
/// that conditions needed.
pub(super) struct Derived {
    pub rows: Rows,
    indexes: RefCell<BTreeMap<Vec<usize>, Rc<RowIndex>>>,
}

/// The positions of rows by the values of some columns; rows with a NULL among them are left out.
pub(super) type RowIndex = BTreeMap<Vec<Value>, Vec<u32>>;

impl Derived {
    /// Creates derived rows.
    pub fn new(rows: Vec<Box<[Value]>>) -> Self {
        Self { rows: Arc::new(rows), indexes: RefCell::default() }
    }

    /// Returns the index over some columns, which is built at its first use.
    pub fn index(&self, columns: &[usize], run: &mut Run<'_>) -> Result<Rc<RowIndex>> {
        if let Some(index) = self.indexes.borrow().get(columns) {
            return Ok(index.clone());
        }
        let mut index = RowIndex::new();
        for (at, row) in self.rows.iter().enumerate() {
            let value = |column: &usize| row.get(*column).cloned().unwrap_or(Value::Null);
            let key: Vec<Value> = columns.iter().map(value).collect();
            run.context.limits.step(1)?;
            if !key.iter().any(Value::is_absent) {
                let bytes = row_bytes(&key);
                run.context.limits.store(bytes)?;
                run.kept_bytes += bytes;
                index.entry(key).or_default().push(at as u32);
            }
        }
        let index = Rc::new(index);
        self.indexes.borrow_mut().insert(columns.to_vec(), index.clone());
        Ok(index)
    }
}

/// The rows of a common table expression, and their version: a recursive expression has other
/// rows in each round, and one in a correlated subquery at each run.
#[derive(Clone)]
pub(super) struct CteRows {
    pub version: u64,
    pub derived: Rc<Derived>,
}

/// The rows of an uncorrelated subquery, with the versions of the expressions that it read.
pub(super) struct Kept {
    pub versions: Vec<(usize, u64)>,
    pub derived: Rc<Derived>,
}

/// The state of a statement while it runs. `'p` is the life of the plan.
pub(super) struct Run<'p> {
    pub context: Context<'p>,
    pub parameters: &'p [Value],
    pub query: RunQuery<'p>,
    pub ctes: Vec<Option<CteRows>>,
    /// The order of the joins of each SELECT that has run, by the address of its plan.
    pub plans: BTreeMap<usize, Rc<FromPlan<'p>>>,
    /// The rows of uncorrelated subqueries that have run, by the address of the query.
    pub kept: BTreeMap<usize, Kept>,
    /// The common table expressions that a query uses, by the address of the query.
    pub used_ctes: BTreeMap<usize, Rc<Vec<usize>>>,
    /// The bytes of rows that stay until the statement ends.
    pub kept_bytes: usize,
    version: u64,
    depth: usize,
}

impl<'p> Run<'p> {
    /// Creates the state of a statement with a number of common table expressions.
    pub fn new(
        context: Context<'p>,
        parameters: &'p [Value],
        query: RunQuery<'p>,
        ctes: usize,
    ) -> Self {
        Self {
            context,
            parameters,
            query,
            ctes: vec![None; ctes],
            plans: BTreeMap::new(),
            kept: BTreeMap::new(),
            used_ctes: BTreeMap::new(),
            kept_bytes: 0,
            version: 0,
            depth: 0,
        }
    }

    /// Enters a level of nesting. An error beyond the limit (54001). A level is left only without
    /// an error: an error ends the statement.
    pub fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth <= DEPTH_MAX {
            return Ok(());
        }
        let what =
            format!("a statement of the catalogue is nested at most {DEPTH_MAX} levels deep");
        Err(Error::new("54001", what).with_hint("use fewer joins, or a flatter expression"))
    }

    /// Leaves a level of nesting.
    pub fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Sets the rows of a common table expression, in a new version.
    pub fn set_cte(&mut self, number: usize, rows: Vec<Box<[Value]>>) -> Result<()> {
        self.version += 1;
        let cte = CteRows { version: self.version, derived: Rc::new(Derived::new(rows)) };
        let slot = self.ctes.get_mut(number);
        *slot.ok_or_else(|| Error::internal("the plan has too few expressions of WITH"))? =
            Some(cte);
        Ok(())
    }

    /// Returns the rows of a common table expression.
    pub fn cte(&self, number: usize) -> Result<&CteRows> {
        let cte = self.ctes.get(number).and_then(Option::as_ref);
        cte.ok_or_else(|| Error::internal(format!("WITH expression {number} has not run")))
    }

    /// Runs a part whose rows do not live long: what it stores is not counted after it, but for the
    /// rows that are kept.
    pub fn briefly<T>(&mut self, part: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let (stored, kept) = (self.context.limits.stored_bytes(), self.kept_bytes);
        let result = part(self)?;
        let more = self.context.limits.stored_bytes().saturating_sub(stored);
        let kept = self.kept_bytes.saturating_sub(kept);
        self.context.limits.release(more.saturating_sub(kept));
        Ok(result)
    }

    /// Counts a stored row.
    pub fn store(&mut self, row: &[Value]) -> Result<()> {
        self.context.limits.step(1)?;
        self.context.limits.store(row_bytes(row))
    }
}
