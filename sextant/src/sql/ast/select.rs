//! The syntax tree of queries.

use proto::expr::aggregate::AggregateFunction;
use proto::expr::{ColumnType, Expr};

/// The statement `SELECT`.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// True with `DISTINCT`.
    pub distinct: bool,
    /// The select list.
    pub items: Vec<SelectItem>,
    /// The name of the index or bucket; `None` without FROM.
    pub from: Option<String>,
    /// The alias of the index or bucket.
    pub alias: Option<String>,
    /// The condition of `WHERE`.
    pub filter: Option<Expr>,
    /// `ORDER BY`.
    pub order_by: Vec<OrderItem>,
    /// `LIMIT`: a number or a parameter.
    pub limit: Option<Expr>,
    /// `OFFSET`: a number or a parameter.
    pub offset: Option<Expr>,
}

/// One item of a select list.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectItem {
    /// `*`.
    Star,
    /// An expression.
    Expr {
        /// The computed expression.
        expr: SelectExpr,
        /// `AS alias`, as written.
        alias: Option<String>,
    },
}

/// The expression of an item of a select list.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectExpr {
    /// An expression that is computed for each row.
    Scalar(Expr),
    /// An aggregate over all rows.
    Aggregate {
        /// The aggregate function.
        function: AggregateFunction,
        /// The aggregated expression; `None` for `count(*)`.
        argument: Option<Expr>,
        /// A cast of the result.
        cast: Option<ColumnType>,
    },
    /// A function of the session, such as `version()`, with its arguments.
    Session(String, Vec<Expr>),
}

/// One item of `ORDER BY`.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderItem {
    /// The sort key. An integer is the number of an item in the select list.
    pub expr: Expr,
    /// True with `DESC`.
    pub descending: bool,
    /// `NULLS FIRST` (true) or `NULLS LAST` (false), if given.
    pub nulls_first: Option<bool>,
}

/// A query of PostgreSQL's catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueQuery {
    /// The names of the columns. A `*` has no name.
    pub columns: Vec<String>,
    /// True if the query has a LIMIT clause, like the queries of psql's completion.
    pub limited: bool,
}
