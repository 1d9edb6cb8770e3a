//! The typed plan of a statement: what the analyser makes and the executor runs.
//!
//! **Rows of one SELECT.** The columns of all items of FROM stand one after the other in one row,
//! the *row* of the SELECT; an item has the columns from `first` on. [`ExprKind::Column`] names a
//! column by its position in this row (`level` 0), or in the row of the SELECT around it (`level`
//! 1), and so on. A subquery, in FROM or in an expression, is always one level deeper. A later
//! item of FROM may use the columns of the earlier ones (LATERAL): they are filled when it runs.
//!
//! **The stages of a SELECT**: FROM, `filter`, `grouping`, `windows`, `set_returning`, `items`,
//! `distinct`. Grouping makes a new row: its keys, then its aggregates; expressions of later
//! stages (and HAVING) name columns of that row. A window function adds a column to the row; a
//! set-returning function of the select list adds one too, and repeats the row.
//!
//! **The order** is over `items`: hidden items at the end serve only the order (and DISTINCT ON),
//! and are cut off before the result.

mod tree;
mod walk;

pub use self::tree::{
    Aggregate, Body, Call, Comparison, Cte, CteBody, Distinct, Expr, ExprKind, FromFunction,
    Grouping, Join, JoinKind, OutputColumn, Query, Select, SetOperation, SetOperator, SetReturning,
    SortKey, Source, SourceKind, Subquery, SubqueryKind, Truth, Window, WindowFunction,
};

pub use self::walk::{Next, Visitor};
use crate::types::oid::Oid;

/// A statement that was analysed.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// The plan of the outermost query.
    pub query: Query,
    /// The types of the parameters: those that the client has declared, or those that the
    /// statement implies.
    pub parameters: Vec<Oid>,
    /// The number of different common table expressions; [`SourceKind::Cte`] names one by its number.
    pub ctes: usize,
    /// True if a function of the statement may change the session or the cluster (`set_config`).
    pub is_volatile: bool,
}

impl Statement {
    /// Returns true if the statement reads no relation: it has no FROM.
    pub fn reads_nothing(&self) -> bool {
        match &self.query.body {
            Body::Select(select) => self.ctes == 0 && select.from.is_none(),
            Body::Values(_) => self.ctes == 0,
            Body::SetOperation(_) => false,
        }
    }
}
