//! Finds comparisons of an untyped column with a text. Such a comparison is true for no row if
//! all values of the column are numbers.
//!
//! A column without a cast can have values of different types, so `age = '30'` is no error: it
//! selects the documents whose `age` is a text. These comparisons are collected when names are
//! resolved. A sample of the index shows the kinds of the columns' values
//! ([`crate::backend::Samples`]), and the client gets a notice if no value is a text.

use proto::expr::{ColumnType, CompareOp, Expr};
use proto::model::index::IndexSpec;
use proto::value::Value;

use super::coerce::coerce;
use super::columns::Columns;
use super::kinds::{Kind, Kinds};
use super::types::Operands;

/// The maximum number of comparisons of a statement that are checked. In a statement with more
/// comparisons, only the first ones are checked.
const COMPARISONS_MAX: usize = 16;
/// The maximum number of characters of a text that a notice quotes.
const QUOTED_MAX: usize = 40;

/// A comparison of an untyped column with a text, or with a parameter that may be a text.
#[derive(Clone, Debug, PartialEq)]
pub struct TextComparison {
    column: u16,
    operator: Operator,
    /// The text, or the parameter.
    operand: Expr,
}

/// The operator of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Compare(CompareOp),
    Like,
}

/// Returns the comparisons of untyped columns with texts in a condition whose names are resolved.
pub(super) fn text_comparisons(filter: &Expr, columns: Columns<'_>) -> Vec<TextComparison> {
    let mut found = Vec::new();
    filter.any(&mut |expr| {
        let pairs: Vec<(&Expr, Operator, &Expr)> = match expr {
            Expr::Compare(op, l, r) => {
                let (op, mirrored) = (Operator::Compare(*op), Operator::Compare(op.mirrored()));
                vec![(l, op, r), (r, mirrored, l)]
            }
            Expr::Between { expr, low, high, .. } => vec![
                (&**expr, Operator::Compare(CompareOp::GreaterEq), &**low),
                (&**expr, Operator::Compare(CompareOp::LessEq), &**high),
            ],
            Expr::In { expr, list, .. } => {
                let item = list.iter().find(|item| may_be_text(item));
                let equal = Operator::Compare(CompareOp::Eq);
                item.map(|item| (&**expr, equal, item)).into_iter().collect()
            }
            Expr::Like { expr, pattern, .. } => vec![(&**expr, Operator::Like, &**pattern)],
            _ => Vec::new(),
        };
        for (peer, operator, operand) in pairs {
            if let Expr::Column(column) = *peer
                && columns.is_untyped(column)
                && may_be_text(operand)
            {
                found.push(TextComparison { column, operator, operand: operand.clone() });
            }
        }
        found.len() >= COMPARISONS_MAX
    });
    found
}

/// Returns true if an operand is a text or a parameter.
fn may_be_text(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(Value::String(_)) | Expr::Parameter(_))
}

/// Operands that all have the same type, for the conversion of a text to this type.
struct AllOf(ColumnType);

impl Operands for AllOf {
    fn type_of(&self, _expr: &Expr) -> ColumnType {
        self.0
    }

    fn may_be_boolean(&self, _column: u16) -> bool {
        self.0 == ColumnType::Bool
    }

    fn are_resolved(&self) -> bool {
        true
    }
}

impl TextComparison {
    /// Returns the text of the operand; `None` if it is not a text. `values` are the values of
    /// the parameters.
    pub fn text<'v>(&'v self, values: &'v [Value]) -> Option<&'v str> {
        let value = match &self.operand {
            Expr::Literal(value) => value,
            Expr::Parameter(n) => values.get(usize::from(*n))?,
            _ => return None,
        };
        match value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the message and the hint of a notice if all values of the column in the sample are
    /// of another kind than text; otherwise `None`.
    pub fn remark(
        &self,
        spec: &IndexSpec,
        kinds: &Kinds,
        values: &[Value],
    ) -> Option<(String, String)> {
        let text = self.text(values)?;
        let kind = kinds.of(self.column).filter(|kind| *kind != Kind::Text)?;
        let names = Columns::of_spec(spec).names();
        let name = names.get(usize::from(self.column))?;
        let what = match &self.operand {
            Expr::Parameter(_) => self.operand.to_string(),
            _ => quoted(text),
        };
        let message = format!(
            "values of column \"{name}\" of index \"{}\" are {} in a sample, and {what} is a text: the comparison is true for none of them",
            spec.name,
            kind.plural()
        );
        let instead = |written: &Expr| format!("write {}", written.display(&names));
        let hint = match self.with_type_of(kind, text) {
            Some(typed) => instead(&typed),
            None => instead(
                &self
                    .with_column(Expr::Cast(Box::new(Expr::Column(self.column)), ColumnType::Text)),
            ),
        };
        Some((message, hint))
    }

    /// Returns the comparison with a cast to the kind of the column's values, as a suggestion;
    /// `None` if the text cannot be converted to this kind.
    fn with_type_of(&self, kind: Kind, text: &str) -> Option<Expr> {
        let target = match (kind, self.operator) {
            (Kind::Number, Operator::Compare(_)) => ColumnType::Numeric,
            (Kind::Bool, Operator::Compare(_)) => ColumnType::Bool,
            _ => return None,
        };
        let mut typed = Self { operand: Expr::Literal(Value::from(text)), ..self.clone() }
            .with_column(Expr::Column(self.column));
        coerce(&mut typed, &AllOf(target)).ok()?;
        if let Expr::Parameter(_) = self.operand {
            let declared = match target {
                ColumnType::Numeric if text.trim().parse::<i64>().is_ok() => ColumnType::Int8,
                target => target,
            };
            let operand = Expr::Cast(Box::new(self.operand.clone()), declared);
            typed = Self { operand, ..self.clone() }.with_column(Expr::Column(self.column));
        }
        Some(typed)
    }

    /// Returns the comparison as an expression with this column.
    fn with_column(&self, column: Expr) -> Expr {
        let (column, operand) = (Box::new(column), Box::new(self.operand.clone()));
        match self.operator {
            Operator::Compare(op) => Expr::Compare(op, column, operand),
            Operator::Like => Expr::Like { expr: column, pattern: operand, negated: false },
        }
    }
}

/// Returns the beginning of a text in quotes.
fn quoted(text: &str) -> String {
    let mut chars = text.chars();
    let shown: String = chars.by_ref().take(QUOTED_MAX).collect();
    let more = if chars.next().is_some() { "…" } else { "" };
    format!("'{}{more}'", shown.replace('\'', "''"))
}
