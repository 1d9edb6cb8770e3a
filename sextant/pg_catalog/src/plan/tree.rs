//! The tree of a plan: typed expressions, and queries. Each contains the other.

use proto::value::Value;

use crate::types::Type;

/// An expression with its type.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The node.
    pub kind: ExprKind,
    /// The type of its value.
    pub ty: Type,
}

/// The nodes of expressions. Comparisons and other operators are calls of operators.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A value of the expression's type, which the statement contains.
    Constant(Value),
    /// The parameter with this number, from 0.
    Parameter(usize),
    /// A column of a row.
    Column {
        /// The number of SELECTs outwards: 0 is the SELECT of the expression.
        level: usize,
        /// The position in that SELECT's row.
        at: usize,
    },
    /// A function or an operator.
    Call(Call, Vec<Expr>),
    /// A conversion to the type of this expression; `length` is the modifier of `varchar(n)` and
    /// `bpchar(n)`, and of `numeric(p, s)` as PostgreSQL packs it.
    Cast {
        /// The converted expression.
        expr: Box<Expr>,
        /// The modifier; -1 without.
        modifier: i32,
    },
    /// `a AND b AND …`.
    And(Vec<Expr>),
    /// `a OR b OR …`.
    Or(Vec<Expr>),
    /// `NOT e`.
    Not(Box<Expr>),
    /// `e IS [NOT] NULL`. Of a row: all fields are NULL, or with NOT: no field is.
    IsNull {
        /// The operand.
        expr: Box<Expr>,
        /// `IS NOT NULL`.
        negated: bool,
    },
    /// `e IS [NOT] TRUE`, `FALSE` or `UNKNOWN`.
    IsTruth {
        /// The operand.
        expr: Box<Expr>,
        /// The truth that is tested.
        truth: Truth,
        /// `IS NOT …`.
        negated: bool,
    },
    /// `l IS [NOT] DISTINCT FROM r`. Both have comparable types.
    IsDistinct {
        /// The left operand.
        left: Box<Expr>,
        /// The right operand.
        right: Box<Expr>,
        /// `IS NOT DISTINCT FROM`.
        negated: bool,
    },
    /// `CASE WHEN c THEN v … ELSE e END`; a CASE with an operand compares it in each condition.
    Case {
        /// Conditions and values.
        branches: Vec<(Expr, Expr)>,
        /// `ELSE`; NULL without.
        otherwise: Option<Box<Expr>>,
    },
    /// `COALESCE(…)`.
    Coalesce(Vec<Expr>),
    /// `GREATEST(…)`, or `LEAST(…)` if `least`; NULLs are ignored.
    Extreme {
        /// The arguments, of one type.
        arguments: Vec<Expr>,
        /// `LEAST`.
        least: bool,
    },
    /// `ARRAY[…]`; the elements are arrays themselves if the array has several dimensions.
    Array(Vec<Expr>),
    /// `ROW(…)`, `(a, b)`, or the whole row of an item of FROM.
    Row(Vec<Expr>),
    /// `(r).f`, by the field's position.
    Field(Box<Expr>, usize),
    /// `a[i]`, `a[i][j]`.
    Element(Box<Expr>, Vec<Expr>),
    /// `a[l:u]` of one dimension.
    Slice(Box<Expr>, Option<Box<Expr>>, Option<Box<Expr>>),
    /// `l op ANY (array)`, or ALL.
    AnyOf {
        /// The left operand.
        left: Box<Expr>,
        /// The operator.
        comparison: Comparison,
        /// The array, whose elements are the right operands.
        array: Box<Expr>,
        /// `ALL`.
        all: bool,
    },
    /// A query inside an expression.
    Subquery(Box<Subquery>),
}

/// The function or operator of a call: the number of a row of [`crate::data::Data`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// A function, by its index in `functions`.
    Function {
        /// The position in the rows of `functions`.
        index: usize,
        /// True if the last argument is an array that was written with VARIADIC. Otherwise all
        /// arguments are given one by one.
        is_array: bool,
    },
    /// An operator, by its index in `operators`.
    Operator(usize),
}

/// An operator with a boolean result that compares two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The index in `operators`.
    pub operator: usize,
}

/// A truth value of three-valued logic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// `IS TRUE`.
    True,
    /// `IS FALSE`.
    False,
    /// `IS UNKNOWN`.
    Unknown,
}

/// A subquery in an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Subquery {
    /// The plan, one level deeper.
    pub query: Query,
    /// How its rows become a value.
    pub kind: SubqueryKind,
    /// True if it uses a column of a SELECT around it; otherwise it runs once in a statement.
    pub is_correlated: bool,
}

/// How the rows of a subquery become a value.
#[derive(Clone, Debug, PartialEq)]
pub enum SubqueryKind {
    /// The column of its only row; NULL without rows, an error (21000) with more.
    Scalar,
    /// `EXISTS`.
    Exists,
    /// `ARRAY(SELECT …)`.
    Array,
    /// `left op ANY (SELECT …)`, IN among it, or ALL. A row on the left has an operator for each field.
    AnyOf {
        /// The left operands, one for each column.
        left: Vec<Expr>,
        /// The operators, one for each column.
        comparisons: Vec<Comparison>,
        /// `ALL`; otherwise ANY.
        all: bool,
    },
}

impl Expr {
    /// Creates an expression.
    pub fn new(kind: ExprKind, ty: impl Into<Type>) -> Self {
        Self { kind, ty: ty.into() }
    }

    /// Creates a constant.
    pub fn constant(value: Value, ty: impl Into<Type>) -> Self {
        Self::new(ExprKind::Constant(value), ty)
    }
}

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
