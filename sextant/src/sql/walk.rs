//! Functions that visit or replace the subexpressions of an expression.

use proto::expr::{CompareOp, Expr};
use proto::value::path::Step;

/// Returns the direct subexpressions of an expression.
pub(crate) fn children_mut(expr: &mut Expr) -> Vec<&mut Expr> {
    match expr {
        Expr::Literal(_)
        | Expr::Path(_)
        | Expr::DocumentId
        | Expr::Column(_)
        | Expr::Parameter(_) => Vec::new(),
        Expr::Not(e) | Expr::Negate(e) | Expr::Cast(e, _) | Expr::Unnest(e) => vec![e],
        Expr::IsNull { expr, .. } | Expr::IsMissing { expr, .. } => vec![expr],
        Expr::Arithmetic(_, l, r) | Expr::Compare(_, l, r) => vec![l, r],
        Expr::And(list) | Expr::Or(list) | Expr::Call(_, list) => list.iter_mut().collect(),
        Expr::In { expr, list, .. } => {
            std::iter::once(&mut **expr).chain(list.items_mut()).collect()
        }
        Expr::Between { expr, low, high, .. } => vec![expr, low, high],
        Expr::Like { expr, pattern, .. } => vec![expr, pattern],
    }
}

/// Changes an expression and its subexpressions, from the outside in. If `change` returns true
/// for an expression, its subexpressions are not visited.
pub(crate) fn rewrite<E>(
    expr: &mut Expr,
    change: &mut impl FnMut(&mut Expr) -> Result<bool, E>,
) -> Result<(), E> {
    if change(expr)? {
        return Ok(());
    }
    children_mut(expr).into_iter().try_for_each(|child| rewrite(child, change))
}

/// Returns true for the path `id` and for `META().id`.
pub(crate) fn is_id_path(expr: &Expr) -> bool {
    match expr {
        Expr::DocumentId => true,
        Expr::Path(steps) => matches!(&steps[..], [Step::Field(name)] if name == "id"),
        _ => false,
    }
}

/// Returns the ids in a condition `id = 'k'` or `id IN ('k', …)`; `None` for any other condition.
pub(crate) fn ids_of(filter: Expr) -> Option<Vec<Expr>> {
    match filter {
        Expr::Compare(CompareOp::Eq, left, right) => {
            match (is_id_path(&left), is_id_path(&right)) {
                (true, false) => Some(vec![*right]),
                (false, true) => Some(vec![*left]),
                _ => None,
            }
        }
        Expr::In { expr, list, negated: false } if is_id_path(&expr) => Some(list.into_items()),
        _ => None,
    }
}
