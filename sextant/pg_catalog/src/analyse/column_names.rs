//! The names of result columns without an alias, by PostgreSQL's rules: a column's name, a
//! function's name, the type of a cast of a constant, or `?column?`.

use sqlparser::ast::{AccessExpr, Expr, Function, Query, SelectItem, SetExpr, TrimWhereField};

use super::idents::{folded, object_parts};
use super::type_names::resolve_type;
use crate::data::data;

/// The name of a column that has none.
const NO_NAME: &str = "?column?";

/// Returns the name of an item of a select list.
pub(super) fn column_name(expr: &Expr) -> String {
    name_of(expr).map_or_else(|| NO_NAME.to_owned(), |(name, _)| name)
}

/// Returns the name that an expression gives, and true if it is better than the name of a cast around it.
fn name_of(expr: &Expr) -> Option<(String, bool)> {
    let good = |name: &str| Some((name.to_owned(), true));
    match expr {
        Expr::Identifier(ident) => good(&folded(ident)),
        Expr::CompoundIdentifier(parts) => good(&folded(parts.last()?)),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let field = access_chain.iter().rev().find_map(|access| match access {
                AccessExpr::Dot(field) => name_of(field),
                AccessExpr::Subscript(_) => None,
            });
            field.or_else(|| name_of(root))
        }
        Expr::Function(function) => good(&function_name(function)?),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => name_of(inner),
        Expr::Cast { expr, data_type, .. } => match name_of(expr) {
            Some((name, true)) => good(&name),
            _ => type_name(data_type),
        },
        Expr::TypedString(typed) => type_name(&typed.data_type),
        Expr::Interval(_) => Some(("interval".to_owned(), false)),
        Expr::Case { else_result, .. } => {
            let otherwise =
                else_result.as_ref().and_then(|expr| name_of(expr)).filter(|(_, good)| *good);
            otherwise.or_else(|| Some(("case".to_owned(), false)))
        }
        Expr::Exists { .. } => good("exists"),
        Expr::Array(_) => good("array"),
        Expr::Tuple(_) => good("row"),
        Expr::Subquery(query) => subquery_name(query),
        Expr::Extract { .. } => good("extract"),
        Expr::Position { .. } => good("position"),
        Expr::Substring { .. } => good("substring"),
        Expr::Overlay { .. } => good("overlay"),
        Expr::Ceil { .. } => good("ceil"),
        Expr::Floor { .. } => good("floor"),
        Expr::AtTimeZone { .. } => good("timezone"),
        Expr::Trim { trim_where, .. } => good(match trim_where {
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
            _ => "btrim",
        }),
        _ => None,
    }
}

/// Returns the name of a function's column. `ARRAY(SELECT …)` is parsed as a function too.
fn function_name(function: &Function) -> Option<String> {
    object_parts(&function.name).ok()?.last().map(folded)
}

fn type_name(written: &sqlparser::ast::DataType) -> Option<(String, bool)> {
    let (ty, _) = resolve_type(written).ok()?;
    let row = data().type_row(ty.oid())?;
    // The name is that of the element, since brackets are no part of it.
    let row = data().type_row(row.element).filter(|_| row.name.starts_with('_')).unwrap_or(row);
    Some((row.name.clone(), false))
}

/// Returns the name of a subquery's first column.
fn subquery_name(query: &Query) -> Option<(String, bool)> {
    let mut body = &*query.body;
    loop {
        body = match body {
            SetExpr::Query(query) => &query.body,
            SetExpr::SetOperation { left, .. } => left,
            SetExpr::Select(select) => {
                return match select.projection.first()? {
                    SelectItem::UnnamedExpr(expr) => name_of(expr),
                    SelectItem::ExprWithAlias { alias, .. } => Some((folded(alias), true)),
                    _ => None,
                };
            }
            SetExpr::Values(_) => return Some(("column1".to_owned(), true)),
            _ => return None,
        }
    }
}
