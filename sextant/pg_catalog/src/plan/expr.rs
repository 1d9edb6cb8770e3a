//! Typed expressions.

use proto::value::Value;

use super::query::Query;
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
