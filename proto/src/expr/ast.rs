//! The tree of an expression over a document or an index entry, as index definitions and scan
//! requests contain it. The SQL front end parses it; `eval` evaluates it.
//!
//! `IS NULL` is true for NULL and for MISSING, since SQL has one kind of absence only; `IS MISSING`
//! is true only for MISSING.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::in_list::{Item, LookUpList};
use crate::nesting::recursive;
use crate::value::Step;
use crate::value::Value;

/// An expression over the fields of a document (index keys, included columns, `WHERE` of an
/// index), or over the columns of an index entry (the filter of a scan).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum Expr {
    /// A constant.
    Literal(Value),
    /// A path into the document: `address.city`, `tags[0]`.
    Path(Vec<Step>),
    /// `META().id`, and the column `id` of an index.
    DocumentId,
    /// The column with this number in an index entry: the key parts first, then the included
    /// expressions.
    Column(u16),
    /// The parameter with this number of a prepared statement, from 0; replaced by its value
    /// before the evaluation.
    Parameter(u16),
    /// The expression `NOT e`.
    Not(Box<Expr>),
    /// The expression `-e`.
    Negate(Box<Expr>),
    /// `l + r` and the other arithmetic operators.
    Arithmetic(ArithmeticOp, Box<Expr>, Box<Expr>),
    /// `l < r` and the other comparisons.
    Compare(CompareOp, Box<Expr>, Box<Expr>),
    /// `a AND b AND …`; true if empty.
    And(Vec<Expr>),
    /// `a OR b OR …`; false if empty.
    Or(Vec<Expr>),
    /// `e [NOT] IN (…)`.
    In {
        /// The operand.
        expr: Box<Expr>,
        /// The list of values.
        list: InList,
        /// `NOT IN`.
        negated: bool,
    },
    /// `e [NOT] BETWEEN low AND high`.
    Between {
        /// The operand.
        expr: Box<Expr>,
        /// Inclusive lower bound.
        low: Box<Expr>,
        /// Inclusive upper bound.
        high: Box<Expr>,
        /// `NOT BETWEEN`.
        negated: bool,
    },
    /// `e [NOT] LIKE pattern`, with `%`, `_` and `\` as the escape.
    Like {
        /// The operand.
        expr: Box<Expr>,
        /// The pattern, an expression with a text.
        pattern: Box<Expr>,
        /// `NOT LIKE`.
        negated: bool,
    },
    /// `e IS [NOT] NULL`: true for NULL and MISSING.
    IsNull {
        /// The operand.
        expr: Box<Expr>,
        /// `IS NOT NULL`.
        negated: bool,
    },
    /// `e IS [NOT] MISSING`.
    IsMissing {
        /// The operand.
        expr: Box<Expr>,
        /// `IS NOT MISSING`.
        negated: bool,
    },
    /// `e::type`.
    Cast(Box<Expr>, ColumnType),
    /// A function call.
    Call(Function, Vec<Expr>),
    /// `UNNEST(e)`: one key per distinct element of an array; must be a complete key part of an
    /// index.
    Unnest(Box<Expr>),
}

recursive!(Expr);

/// The items in the parentheses of an `IN`.
pub type InList = LookUpList<Expr>;

impl Item for Expr {
    fn constant(&self) -> Option<&Value> {
        match self {
            Self::Literal(value) => Some(value),
            _ => None,
        }
    }
}

/// Arithmetic operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum ArithmeticOp {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    /// `/` with an integer result, for two integers: 7 / 2 is 3.
    DivideIntegers,
}

/// Comparison operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum CompareOp {
    Eq,
    NotEq,
    Less,
    LessEq,
    Greater,
    GreaterEq,
}

impl CompareOp {
    /// Returns true if a comparison with this operator is true for operands of this order.
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Eq => order.is_eq(),
            Self::NotEq => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessEq => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterEq => order.is_ge(),
        }
    }

    /// Returns the operator for exchanged operands: `>` for `<`, for example.
    pub fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessEq => Self::GreaterEq,
            Self::Greater => Self::Less,
            Self::GreaterEq => Self::LessEq,
            Self::Eq | Self::NotEq => self,
        }
    }
}

/// The functions that an expression may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Function {
    Lower,
    Upper,
    Length,
    Coalesce,
    Abs,
    /// Rounds a double to the nearest integer, or to the even one if two are equally near: the
    /// first step of a cast of `float8` to an integer. The function has no name in SQL.
    RoundToEven,
}

/// The target type of a cast, which is also the type of a result column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ColumnType {
    /// `text`: strings without quotes, other values as JSON. The type of a column without a cast.
    #[default]
    Text,
    /// The type `bool`.
    Bool,
    /// `int4`.
    Int4,
    /// `int8`.
    Int8,
    /// `float8`.
    Float8,
    /// The type `numeric`.
    Numeric,
}

impl Expr {
    /// Returns the expressions directly inside this one.
    pub fn children(&self) -> Vec<&Expr> {
        match self {
            Self::Literal(_)
            | Self::Path(_)
            | Self::DocumentId
            | Self::Column(_)
            | Self::Parameter(_) => Vec::new(),
            Self::Not(e) | Self::Negate(e) | Self::Cast(e, _) | Self::Unnest(e) => vec![e],
            Self::IsNull { expr, .. } | Self::IsMissing { expr, .. } => vec![expr],
            Self::Arithmetic(_, l, r) | Self::Compare(_, l, r) => vec![l, r],
            Self::Like { expr, pattern, .. } => vec![expr, pattern],
            Self::Between { expr, low, high, .. } => vec![expr, low, high],
            Self::And(list) | Self::Or(list) | Self::Call(_, list) => list.iter().collect(),
            Self::In { expr, list, .. } => std::iter::once(&**expr).chain(&**list).collect(),
        }
    }

    /// Returns true if `test` is true for this expression or for one inside it.
    pub fn any(&self, test: &mut dyn FnMut(&Expr) -> bool) -> bool {
        test(self) || self.children().into_iter().any(|child| child.any(test))
    }

    /// Returns the number of operators and calls: all nodes except leaves.
    pub fn operators(&self) -> usize {
        let mut count = 0;
        self.any(&mut |expr| {
            count += usize::from(!expr.children().is_empty());
            false
        });
        count
    }
}
