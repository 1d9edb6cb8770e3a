//! Checks that an index can provide the order of ORDER BY and the distinct rows of DISTINCT. An
//! index returns rows only in its own order, forwards or backwards.

use proto::Result;
use proto::expr::Expr;
use proto::model::index::IndexSpec;

use crate::sql::error::unsupported;

/// A resolved item of ORDER BY, and its direction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Order {
    pub(crate) expr: Expr,
    pub(crate) descending: bool,
    pub(crate) nulls_first: Option<bool>,
}

/// Returns the direction in which an index must be read for an order. `Some(false)` means
/// forwards, `Some(true)` backwards, and `None` that both directions give the order. Key parts
/// with a single value (`fixed`) may be missing in the order, or be at any place in it. Returns
/// an error if the index cannot provide the order.
pub(crate) fn direction(spec: &IndexSpec, order: &[Order], fixed: &[bool]) -> Result<Option<bool>> {
    let is_fixed = |n: usize| fixed.get(n).copied().unwrap_or(false);
    // The id may be a key part, and comes after all others in any case.
    let id_part = spec.keys.iter().position(|part| part.expr == Expr::DocumentId);
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
            // A repeated column does not change the order.
            Expr::Column(n) if usize::from(*n) < next => continue,
            Expr::Literal(_) => continue,
            Expr::Column(n) => {
                while next < usize::from(*n) && is_fixed(next) {
                    next += 1;
                }
                if next != usize::from(*n) || next >= spec.keys.len() {
                    return Err(wrong_order_error(spec));
                }
                spec.keys[next].descending
            }
            Expr::DocumentId if id_part.is_some_and(|n| is_fixed(n) || n < next) => continue,
            Expr::DocumentId => {
                while next < spec.keys.len() && is_fixed(next) && id_part != Some(next) {
                    next += 1;
                }
                if next != id_part.unwrap_or(spec.keys.len()) {
                    return Err(wrong_order_error(spec));
                }
                id_part.is_some_and(|n| spec.keys[n].descending)
            }
            _ => return Err(wrong_order_error(spec)),
        };
        next += 1;
        let backwards = descending != item.descending;
        if *reverse.get_or_insert(backwards) != backwards {
            return Err(wrong_order_error(spec));
        }
        // A document has one entry, or one for each element of an array.
        if matches!(item.expr, Expr::DocumentId)
            && (id_part.is_none() || spec.array_part().is_none())
        {
            break;
        }
    }
    // All columns are fixed, so any order satisfies ORDER BY; still the scan must be an ordered one.
    Ok(reverse.or((!order.is_empty()).then_some(false)))
}

/// Returns the error for an order that the index cannot provide.
fn wrong_order_error(spec: &IndexSpec) -> proto::Error {
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
        format!("index {} cannot return rows in this order", spec.name),
        format!(
            "use ORDER BY {}, or ORDER BY {}, or the beginning of either",
            list(false),
            list(true)
        ),
    )
}

fn desc(descending: bool) -> &'static str {
    if descending { " DESC" } else { "" }
}

/// Returns the number of leading key parts that form a row of SELECT DISTINCT. Also returns those
/// parts before the last of them that can be both NULL and MISSING (`blurred`), since equal rows
/// are not adjacent there. Returns `None` if the columns identify an entry, so that all rows are
/// distinct.
pub(crate) fn distinct_parts(
    spec: &IndexSpec,
    columns: &[&Expr],
    fixed: &[bool],
    blurred: &[bool],
) -> Result<Option<(u16, Vec<u16>)>> {
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
        let apart = (0..parts - 1).filter(|n| blurred[*n] && !is_fixed(*n)).map(|n| n as u16);
        return Ok(Some((parts as u16, apart.collect())));
    }
    let names: Vec<&str> = spec.keys.iter().map(|part| part.name.as_str()).collect();
    Err(unsupported(
        format!("DISTINCT over these columns is not in the order of index {}", spec.name),
        format!("DISTINCT works over the leading key columns: {}", names.join(", ")),
    ))
}
