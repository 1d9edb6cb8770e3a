//! Queries: SELECT, VALUES, set operations, and what FROM names.

use super::expr::{Call, Expr};
use crate::types::Type;

/// A query with its common table expressions, its order and its limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The common table expressions of WITH, in their order; only those that are used.
    pub ctes: Vec<Cte>,
    /// The rows.
    pub body: Body,
    /// The columns of the result. The rows of a SELECT may have hidden ones after them.
    pub columns: Vec<OutputColumn>,
    /// `ORDER BY`.
    pub order: Vec<SortKey>,
    /// `LIMIT`, an int8 that uses no column of this query.
    pub limit: Option<Expr>,
    /// `OFFSET`, likewise.
    pub offset: Option<Expr>,
}

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputColumn {
    /// The alias, or the name that PostgreSQL gives an expression.
    pub name: String,
    /// The type.
    pub ty: Type,
    /// The modifier, such as that of `varchar(3)`; -1 without.
    pub modifier: i32,
}

/// The rows of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// `SELECT`.
    Select(Box<Select>),
    /// `VALUES`: rows of expressions, which are at the level of a SELECT whose row is empty.
    Values(Vec<Vec<Expr>>),
    /// `UNION`, `INTERSECT` or `EXCEPT`. The columns of both sides have the result's types.
    SetOperation(Box<SetOperation>),
}

/// Two queries, joined by an operator of sets.
#[derive(Clone, Debug, PartialEq)]
pub struct SetOperation {
    /// UNION, INTERSECT or EXCEPT.
    pub operator: SetOperator,
    /// `ALL`: equal rows count as often as they occur.
    pub all: bool,
    /// The left side.
    pub left: Query,
    /// The right side.
    pub right: Query,
}

/// The operators of sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SetOperator {
    Union,
    Intersect,
    Except,
}

/// One key of an order.
#[derive(Clone, Debug, PartialEq)]
pub struct SortKey {
    /// The position of the item, from 0; a hidden item may be one.
    pub item: usize,
    /// `DESC`.
    pub descending: bool,
    /// `NULLS FIRST`; the default is that of PostgreSQL: last, first with DESC.
    pub nulls_first: bool,
}

/// A SELECT. The head of the module describes its stages.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// `FROM`; without it there is one row without columns.
    pub from: Option<Source>,
    /// The number of columns of FROM's row.
    pub width: usize,
    /// `WHERE`.
    pub filter: Option<Expr>,
    /// `GROUP BY`, or aggregates without it.
    pub grouping: Option<Grouping>,
    /// Window functions, whose values are added to the row.
    pub windows: Vec<Window>,
    /// Set-returning functions of the select list, whose values are added to the row. All run in
    /// step; one that ends earlier gives NULL.
    pub set_returning: Vec<SetReturning>,
    /// The select list, and hidden items.
    pub items: Vec<Expr>,
    /// `DISTINCT`.
    pub distinct: Distinct,
}

/// DISTINCT of a select list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distinct {
    /// All rows.
    No,
    /// Different rows only.
    Rows,
    /// `DISTINCT ON`: the first row, in the order, of those that agree in these items.
    On(Vec<usize>),
}

/// An item of FROM, or a join of items.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// The relation, subquery, functions or join.
    pub kind: SourceKind,
    /// The position of its first column in the SELECT's row.
    pub first: usize,
    /// The number of its columns.
    pub width: usize,
}

/// The kinds of sources.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceKind {
    /// A relation, by its index in the data. All of its columns are in the row.
    Relation(usize),
    /// A common table expression, by its number in the statement.
    Cte(usize),
    /// A subquery or VALUES. If it is lateral, it uses columns of earlier items (as level 1).
    Subquery {
        /// The query, one level deeper.
        query: Box<Query>,
        /// True if it uses columns of this or an outer SELECT.
        is_correlated: bool,
    },
    /// Functions in FROM: `f(…)`, `unnest(a, b)`, with or without WITH ORDINALITY.
    Functions(Vec<FromFunction>, Ordinality),
    /// Two sources with a condition.
    Join(Box<Join>),
}

/// True if a column with the number of the row, an int8 from 1, is last.
pub type Ordinality = bool;

/// A function in FROM. Several run in step; one that ends earlier gives NULL.
#[derive(Clone, Debug, PartialEq)]
pub struct FromFunction {
    /// An expression whose value makes one row, if the function returns no set.
    pub call: Call,
    /// The arguments, one for each parameter.
    pub arguments: Vec<Expr>,
    /// The result's type: a row has one column for each field.
    pub ty: Type,
    /// The number of its columns.
    pub width: usize,
}

/// A join of two sources.
#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    /// The side whose rows are also returned without a partner.
    pub kind: JoinKind,
    /// The left side.
    pub left: Source,
    /// The right side.
    pub right: Source,
    /// The condition; without one, all pairs.
    pub on: Option<Expr>,
}

/// The kinds of joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
}

/// Groups and aggregates.
#[derive(Clone, Debug, PartialEq)]
pub struct Grouping {
    /// The keys, over FROM's row. Without keys there is one group, also of no rows.
    pub keys: Vec<Expr>,
    /// The aggregates, over FROM's row.
    pub aggregates: Vec<Aggregate>,
    /// `HAVING`, over the new row.
    pub having: Option<Expr>,
}

/// One aggregate.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// The function, by its index in the data.
    pub function: usize,
    /// The arguments; none for `count(*)`.
    pub arguments: Vec<Expr>,
    /// `DISTINCT`.
    pub distinct: bool,
    /// `ORDER BY` within the aggregate, or that of WITHIN GROUP.
    pub order: Vec<(Expr, bool, bool)>,
    /// `FILTER (WHERE …)`.
    pub filter: Option<Expr>,
    /// The type of the result.
    pub ty: Type,
}

/// A window function over a partition: its value is a new column. The frame is the default one:
/// from the partition's first row to the last peer of the current row, or the whole partition
/// without ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// The function that is computed for each row.
    pub function: WindowFunction,
    /// `PARTITION BY`.
    pub partition: Vec<Expr>,
    /// `ORDER BY`: expression, descending, nulls first.
    pub order: Vec<(Expr, bool, bool)>,
    /// The type of the result.
    pub ty: Type,
}

/// The function of a window.
#[derive(Clone, Debug, PartialEq)]
pub enum WindowFunction {
    /// `row_number()`, `lag(…)` and others of kind `w`, by the index in the data.
    Window(usize, Vec<Expr>),
    /// An aggregate function over the frame.
    Aggregate(Aggregate),
}

/// A set-returning function of the select list.
#[derive(Clone, Debug, PartialEq)]
pub struct SetReturning {
    /// The function that returns the set.
    pub call: Call,
    /// The arguments, one for each parameter.
    pub arguments: Vec<Expr>,
    /// The type of one result; a row for a function with several columns.
    pub ty: Type,
}

/// A common table expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Cte {
    /// The number in the statement.
    pub number: usize,
    /// The query of the rows.
    pub body: CteBody,
}

/// The rows of a common table expression.
#[derive(Clone, Debug, PartialEq)]
pub enum CteBody {
    /// A query. It is at the level of the query that has the WITH: no level deeper than that
    /// query's own SELECT, so level 1 in its SELECT is the SELECT around the whole query.
    Query(Box<Query>),
    /// `WITH RECURSIVE`: rows of `first`, then of `next` over the rows that the last round gave,
    /// until a round gives none.
    Recursive {
        /// The part without recursion.
        first: Box<Query>,
        /// The part that names the expression itself, as [`SourceKind::Cte`].
        next: Box<Query>,
        /// `UNION ALL`; otherwise rows that occurred before are dropped.
        all: bool,
    },
}
