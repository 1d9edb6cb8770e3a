//! Name resolution: finds the columns of an index to which an expression refers, and the type of
//! the expression.
//!
//! A single word is the column with that name; `id` is always the document's id. Any other
//! expression must be structurally equal to an indexed or included expression. Therefore
//! `address.city` and `lower(name)` find their columns, even inside other expressions. A
//! qualified name is searched with and without its qualifier, because the qualifier may be the
//! first field of a path.

use proto::expr::{ColumnType, Expr, Function};
use proto::model::index::{IndexInfo, IndexSpec};
use proto::value::path::Step;
use proto::{Error, ErrorCode, Result};

use super::coerce::coerce;
use super::types::{Operands, UnresolvedExpr, type_of};
use crate::sql::places::NO_COLUMN;
use crate::sql::qualifier::Qualifier;
use crate::sql::walk::{children_mut, rewrite};

/// The columns of an index, as a SELECT can name them.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    spec: &'a IndexSpec,
    /// The name that may precede a column's name, with a dot.
    qualifier: Option<Qualifier<'a>>,
}

impl<'a> Columns<'a> {
    /// Returns the columns of an index.
    pub(crate) fn from_index(index: &'a IndexInfo) -> Self {
        Self::of_spec(&index.spec)
    }

    /// Returns the columns of an index with this definition.
    pub(super) fn of_spec(spec: &'a IndexSpec) -> Self {
        Self { spec, qualifier: None }
    }

    /// Returns the same columns with a qualifier that may precede their names.
    pub(super) fn qualified_by(self, qualifier: Option<Qualifier<'a>>) -> Self {
        Self { qualifier, ..self }
    }

    /// Returns the name, the expression and the type of each column.
    fn iter(self) -> impl Iterator<Item = (&'a str, &'a Expr, ColumnType)> {
        let keys = self.spec.keys.iter().map(|k| (k.name.as_str(), &k.expr, k.column_type));
        let include = self.spec.include.iter().map(|c| (c.name.as_str(), &c.expr, c.column_type));
        keys.chain(include)
    }

    /// Returns the expressions that `*` stands for: the id, the key parts, the included
    /// expressions.
    pub(crate) fn star(self) -> impl Iterator<Item = Expr> {
        let columns = self.iter().count() as u16;
        [Expr::DocumentId].into_iter().chain((0..columns).map(Expr::Column))
    }

    /// Returns the names of the columns in order.
    pub(crate) fn names(self) -> Vec<String> {
        self.iter().map(|(name, ..)| name.to_owned()).collect()
    }

    /// Returns the type of a column.
    fn column_type(self, n: u16) -> ColumnType {
        self.iter().nth(usize::from(n)).map_or(ColumnType::Text, |(.., column_type)| column_type)
    }

    /// Returns true if the values of a column have different types in different documents.
    pub(super) fn is_untyped(self, n: u16) -> bool {
        let column = self.iter().nth(usize::from(n));
        column.is_some_and(|(_, expr, _)| matches!(expr, Expr::Path(_) | Expr::Unnest(_)))
    }

    /// Replaces paths and indexed expressions in an expression by their columns.
    pub(crate) fn resolve(self, expr: &mut Expr) -> Result<()> {
        let mut unqualified =
            self.qualifier.and_then(|qualifier| qualifier.without_qualifier(expr));
        // The definition of the index was converted in the same way, and the expression is
        // compared with it.
        coerce(expr, &UnresolvedExpr)?;
        if let Some(unqualified) = &mut unqualified {
            coerce(unqualified, &UnresolvedExpr)?;
            return self.resolve_either(expr, unqualified);
        }
        rewrite(expr, &mut |expr| match self.find(expr) {
            Some(column) => {
                *expr = column;
                Ok(true)
            }
            None => match expr {
                Expr::Path(_) | Expr::Unnest(_) => Err(self.unknown_column_error(expr)),
                _ => Ok(false),
            },
        })
    }

    /// Resolves an expression in which the qualifiers may also be the first fields of paths.
    /// `unqualified` is the same expression without the qualifiers.
    fn resolve_either(self, written: &mut Expr, unqualified: &mut Expr) -> Result<()> {
        match (self.find(unqualified), self.find(written)) {
            (Some(column), Some(path)) if column != path => {
                Err(self.ambiguous(written, &column, &path))
            }
            (Some(column), _) | (None, Some(column)) => {
                *written = column;
                Ok(())
            }
            (None, None) => match written {
                Expr::Path(_) | Expr::Unnest(_) => Err(self.unknown_column_error(unqualified)),
                _ => {
                    let mut both = children_mut(written).into_iter().zip(children_mut(unqualified));
                    both.try_for_each(|(one, other)| self.resolve_either(one, other))
                }
            },
        }
    }

    /// Returns the error for a name that can mean a column or a path.
    fn ambiguous(self, written: &Expr, column: &Expr, path: &Expr) -> Error {
        let names = self.names();
        let [column, path] = [column, path].map(|column| column.display(&names).to_string());
        let what = format!(
            "{written} is ambiguous: index {} has the column {column}, which it qualifies, and the column {path} of that path",
            self.spec.name
        );
        let hint = format!(
            "write {column} for the first; give the index another alias (FROM {} AS other) for the second",
            self.spec.name
        );
        Error::new(ErrorCode::AmbiguousColumn, what).with_hint(hint)
    }

    /// Returns the column that an expression means; `None` if there is none.
    fn find(self, expr: &Expr) -> Option<Expr> {
        if let Expr::Literal(_) | Expr::Parameter(_) | Expr::DocumentId = expr {
            return None;
        }
        let word = match expr {
            Expr::Path(steps) => match &steps[..] {
                [Step::Field(name)] => Some(name.as_str()),
                _ => None,
            },
            _ => None,
        };
        if word == Some("id") {
            return Some(Expr::DocumentId);
        }
        let by_name = self.iter().position(|(name, ..)| word == Some(name));
        let column = by_name.or_else(|| self.iter().position(|(_, indexed, _)| indexed == expr))?;
        Some(Expr::Column(column as u16))
    }

    /// Returns the error for an expression that is no column of the index.
    fn unknown_column_error(self, expr: &Expr) -> Error {
        let has: Vec<_> = ["id".to_owned()].into_iter().chain(self.names()).collect();
        let hint =
            format!("its columns are {}; INCLUDE (…) adds columns to an index", has.join(", "));
        let of = format!("in index {}", self.spec.name);
        no_column_error(expr, &of).with_hint(hint)
    }

    /// Returns the type of a resolved expression.
    pub(crate) fn type_of(self, expr: &Expr) -> ColumnType {
        type_of(expr, &|n| self.column_type(n))
    }
}

impl Operands for Columns<'_> {
    fn type_of(&self, expr: &Expr) -> ColumnType {
        Columns::type_of(*self, expr)
    }

    fn may_be_boolean(&self, column: u16) -> bool {
        let column = self.iter().nth(usize::from(column));
        column.is_none_or(|(_, expr, column_type)| match expr {
            Expr::Path(_) | Expr::Unnest(_) => true,
            Expr::Call(Function::Coalesce, _) if column_type == ColumnType::Text => true,
            _ => column_type == ColumnType::Bool,
        })
    }

    fn are_resolved(&self) -> bool {
        true
    }
}

/// Returns the error for a column that does not exist. [`crate::sql::places`] reads the column's
/// name from its message.
pub(super) fn no_column_error(expr: &Expr, of: &str) -> Error {
    Error::new(ErrorCode::UnknownColumn, format!("{NO_COLUMN}{expr} {of}"))
}
