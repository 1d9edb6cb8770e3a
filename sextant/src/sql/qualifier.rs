//! Qualified columns: `t.c` and `"public"."t"."c"` for the column `c` of `FROM t`, or of `FROM i AS
//! t`.
//!
//! A path into a document has the same form (`address.city`). The first step is a qualifier if it
//! equals the alias of the relation, or the relation's name if there is no alias. The other steps
//! are then a column. Otherwise all steps are a path. If both meanings refer to existing but
//! different columns, the name is ambiguous (42702). A bucket has only the columns `id` and `doc`
//! and no paths, so any other qualifier is an error (42P01).

use proto::Result;
use proto::expr::Expr;
use proto::value::path::Step;

use super::ast::{Select, SelectExpr, SelectItem};
use super::error::no_relation;
use super::walk::children_mut;

/// The name that qualifies the columns of a statement: the alias or the name of its relation.
#[derive(Clone, Copy)]
pub(crate) struct Qualifier<'a>(&'a str);

impl<'a> Qualifier<'a> {
    pub(crate) fn new(name: &'a str) -> Self {
        Self(name)
    }

    /// Returns the qualifier of a SELECT's columns.
    pub(crate) fn of(select: &'a Select) -> Option<Self> {
        select.alias.as_deref().or(select.from.as_deref()).map(Self)
    }

    /// Returns the steps after the qualifier, if a path begins with the qualifier; otherwise
    /// `None`.
    fn column(self, steps: &[Step]) -> Option<&[Step]> {
        let is = |step: &Step, name: &str| matches!(step, Step::Field(field) if field.eq_ignore_ascii_case(name));
        match steps {
            [schema, name, rest @ ..]
                if is(schema, "public") && is(name, self.0) && !rest.is_empty() =>
            {
                Some(rest)
            }
            [name, rest @ ..] if is(name, self.0) && !rest.is_empty() => Some(rest),
            _ => None,
        }
    }

    /// Removes the qualifier from all columns of an expression.
    fn strip(self, expr: &mut Expr) {
        if let Expr::Path(steps) = expr
            && let Some(column) = self.column(steps)
        {
            *steps = column.to_vec();
        }
        children_mut(expr).into_iter().for_each(|child| self.strip(child));
    }

    /// Removes the qualifier from the columns of a bucket. Returns an error for any other
    /// qualifier.
    pub(crate) fn strip_from_bucket(self, expr: &mut Expr) -> Result<()> {
        self.strip(expr);
        let mut unknown = None;
        expr.any(&mut |expr| {
            if let Expr::Path(steps) = expr
                && let [Step::Field(name), Step::Field(column)] = &steps[..]
                && (column == "id" || column == "doc")
                && name != "doc"
            {
                unknown = Some(no_relation(name));
            }
            unknown.is_some()
        });
        unknown.map_or(Ok(()), Err)
    }

    /// Returns an expression without the qualifiers in it; `None` if it contains none.
    pub(crate) fn without_qualifier(self, expr: &Expr) -> Option<Expr> {
        let is_qualified =
            |expr: &Expr| matches!(expr, Expr::Path(steps) if self.column(steps).is_some());
        expr.any(&mut |expr| is_qualified(expr)).then(|| {
            let mut unqualified = expr.clone();
            self.strip(&mut unqualified);
            unqualified
        })
    }

    /// Returns a SELECT from a bucket, without the qualifiers in it.
    pub(crate) fn stripped_from_bucket(self, select: &Select) -> Result<Select> {
        let mut select = select.clone();
        expressions(&mut select).into_iter().try_for_each(|expr| self.strip_from_bucket(expr))?;
        Ok(select)
    }
}

/// Returns all expressions of a SELECT that may contain columns.
fn expressions(select: &mut Select) -> Vec<&mut Expr> {
    let items = select.items.iter_mut().flat_map(|item| match item {
        SelectItem::Star => Vec::new(),
        SelectItem::Expr { expr, .. } => match expr {
            SelectExpr::Scalar(expr) => vec![expr],
            SelectExpr::Aggregate { argument, .. } => argument.iter_mut().collect(),
            SelectExpr::Session(_, arguments) => arguments.iter_mut().collect(),
        },
    });
    let order = select.order_by.iter_mut().map(|item| &mut item.expr);
    items.chain(&mut select.filter).chain(order).collect()
}
