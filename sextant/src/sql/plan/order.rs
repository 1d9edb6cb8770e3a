//! ORDER BY and DISTINCT: an index gives its own order, forwards or backwards, and nothing else.

use proto::Result;
use proto::expr::Expr;
use proto::model::index::IndexSpec;

use crate::sql::error::unsupported;

/// One resolved item of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Order {
    pub(crate) expr: Expr,
    pub(crate) descending: bool,
    pub(crate) nulls_first: Option<bool>,
}

/// Is the order the index's own (`Some(false)`) or its reverse (`Some(true)`)? `None` if any will do.
/// Key parts with one value only (`fixed`) may be left out and may stand anywhere.
pub(crate) fn direction(spec: &IndexSpec, order: &[Order], fixed: &[bool]) -> Result<Option<bool>> {
    let is_fixed = |n: usize| fixed.get(n).copied().unwrap_or(false);
    let mut reverse = None;
    let mut next = 0;
    for item in order {
        if item.nulls_first.is_some_and(|first| first == item.descending) {
            return Err(unsupported(
                "MISSING and NULL come first in ascending order, last in descending order",
                "leave NULLS FIRST and NULLS LAST out",
            ));
        }
        let descending = match &item.expr {
            Expr::Column(n) if is_fixed(usize::from(*n)) => continue,
            // Ordered by it already: a second time changes nothing.
            Expr::Column(n) if usize::from(*n) < next => continue,
            Expr::Literal(_) => continue,
            Expr::Column(n) => {
                while next < usize::from(*n) && is_fixed(next) {
                    next += 1;
                }
                if next != usize::from(*n) || next >= spec.keys.len() {
                    return Err(not_the_order(spec));
                }
                spec.keys[next].descending
            }
            Expr::DocumentId => {
                while next < spec.keys.len() && is_fixed(next) {
                    next += 1;
                }
                if next != spec.keys.len() {
                    return Err(not_the_order(spec));
                }
                false
            }
            _ => return Err(not_the_order(spec)),
        };
        next += 1;
        let backwards = descending != item.descending;
        if *reverse.get_or_insert(backwards) != backwards {
            return Err(not_the_order(spec));
        }
        if matches!(item.expr, Expr::DocumentId) {
            break;
        }
    }
    // Only fixed columns: any order is their order, but the rows shall come as from an ordered scan.
    Ok(reverse.or((!order.is_empty()).then_some(false)))
}

fn not_the_order(spec: &IndexSpec) -> proto::Error {
    let list = |reverse: bool| {
        let mut parts: Vec<String> = spec
            .keys
            .iter()
            .map(|part| format!("{}{}", part.name, desc(part.descending != reverse)))
            .collect();
        parts.push(format!("id{}", desc(reverse)));
        parts.join(", ")
    };
    unsupported(
        format!("index {} does not give rows in this order", spec.name),
        format!(
            "it gives ORDER BY {}, or ORDER BY {}, or the beginning of either",
            list(false),
            list(true)
        ),
    )
}

fn desc(descending: bool) -> &'static str {
    if descending { " DESC" } else { "" }
}

/// How many leading key parts make a row of SELECT DISTINCT; `None` where every row is distinct
/// anyway, because the columns tell every entry from the others.
pub(crate) fn distinct_parts(
    spec: &IndexSpec,
    columns: &[&Expr],
    fixed: &[bool],
) -> Result<Option<u16>> {
    let has = |n: usize| columns.iter().any(|expr| **expr == Expr::Column(n as u16));
    let is_fixed = |n: usize| fixed.get(n).copied().unwrap_or(false);
    let has_id = columns.iter().any(|expr| matches!(expr, Expr::DocumentId));
    if has_id && spec.array_part().is_none_or(|part| has(part) || is_fixed(part)) {
        return Ok(None);
    }
    let leading = (0..spec.keys.len()).take_while(|n| has(*n) || is_fixed(*n)).count();
    let parts = (0..leading).rev().find(|n| has(*n)).map_or(0, |last| last + 1);
    let covered = columns.iter().all(|expr| match expr {
        Expr::Column(n) => usize::from(*n) < parts,
        Expr::Literal(_) => true,
        _ => false,
    });
    if covered && parts > 0 {
        return Ok(Some(parts as u16));
    }
    let names: Vec<&str> = spec.keys.iter().map(|part| part.name.as_str()).collect();
    Err(unsupported(
        format!("DISTINCT over these columns is not in the order of index {}", spec.name),
        format!("DISTINCT works over the leading key columns: {}", names.join(", ")),
    ))
}
