//! Expressions over documents and over index entries: the tree, as it is kept in index definitions
//! and scan requests. `eval` gives it its meaning; the SQL front end parses it, once.
//!
//! `IS NULL` is true for NULL alone and `IS MISSING` for MISSING alone: an index may hold either, and a
//! predicate must be able to tell them apart.

use serde::{Deserialize, Serialize};

use crate::nesting::recursive;
use crate::value::Step;
use crate::value::Value;

/// An expression. Evaluated for a document (index keys, included columns, `WHERE` of an index) or for
/// an index entry (filters of a scan, where [`Expr::Column`] stands for what the index holds).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum Expr {
    /// A constant.
    Literal(Value),
    /// A path into the document: `address.city`, `tags[0]`.
    Path(Vec<Step>),
    /// `META().id`, and the column `id` of an index.
    DocumentId,
    /// Column n of the entry that a scan looks at: the key parts first, then the included expressions.
    Column(u16),
    /// Parameter n of a prepared statement, from 0; resolved before evaluation.
    Parameter(u16),
    /// `NOT e`.
    Not(Box<Expr>),
    /// `-e`.
    Negate(Box<Expr>),
    /// `l + r` and its like.
    Arithmetic(ArithmeticOp, Box<Expr>, Box<Expr>),
    /// `l < r` and its like.
    Compare(CompareOp, Box<Expr>, Box<Expr>),
    /// All of them; true when empty.
    And(Vec<Expr>),
    /// Any of them; false when empty.
    Or(Vec<Expr>),
    /// `e [NOT] IN (…)`.
    In {
        /// What is looked for.
        expr: Box<Expr>,
        /// Where it is looked for.
        list: Vec<Expr>,
        /// `NOT IN`.
        negated: bool,
    },
    /// `e [NOT] BETWEEN low AND high`.
    Between {
        /// What is compared.
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
        /// What is compared.
        expr: Box<Expr>,
        /// The pattern.
        pattern: Box<Expr>,
        /// `NOT LIKE`.
        negated: bool,
    },
    /// `e IS [NOT] NULL`: true for NULL alone, not for MISSING.
    IsNull {
        /// What is tested.
        expr: Box<Expr>,
        /// `IS NOT NULL`.
        negated: bool,
    },
    /// `e IS [NOT] MISSING`.
    IsMissing {
        /// What is tested.
        expr: Box<Expr>,
        /// `IS NOT MISSING`.
        negated: bool,
    },
    /// `e::type`; a cast that fails gives NULL.
    Cast(Box<Expr>, ColumnType),
    /// A function call.
    Call(Function, Vec<Expr>),
    /// `UNNEST(e)`: one key per distinct element; only as a whole key part of an index.
    Unnest(Box<Expr>),
}

recursive!(Expr);

/// Arithmetic operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum ArithmeticOp {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
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

/// The functions that an expression may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Function {
    Lower,
    Upper,
    Length,
    Coalesce,
    Abs,
}

/// The type that a cast gives, and with it the type of a result column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ColumnType {
    /// `text`: strings bare, other values as JSON; what a column has without a cast.
    #[default]
    Text,
    /// `bool`.
    Bool,
    /// `int4`.
    Int4,
    /// `int8`.
    Int8,
    /// `float8`.
    Float8,
    /// `numeric`.
    Numeric,
}

impl Expr {
    /// The expressions directly inside this one.
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
            Self::In { expr, list, .. } => std::iter::once(&**expr).chain(list).collect(),
        }
    }

    /// Does `test` hold for this expression or one inside it?
    pub fn any(&self, test: &mut dyn FnMut(&Expr) -> bool) -> bool {
        test(self) || self.children().into_iter().any(|child| child.any(test))
    }

    /// The number of operators and calls: all nodes that are no leaves.
    pub fn operators(&self) -> usize {
        let mut count = 0;
        self.any(&mut |expr| {
            count += usize::from(!expr.children().is_empty());
            false
        });
        count
    }

    /// The type of a result column that shows this expression: that of its outermost cast, else text.
    pub fn column_type(&self) -> ColumnType {
        match self {
            Self::Cast(_, column_type) => *column_type,
            _ => ColumnType::Text,
        }
    }
}
