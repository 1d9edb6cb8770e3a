//! Determines the set of values of a key part for which a condition is true.
//!
//! A comparison is true only for values of one type. Therefore `a > 5` is the interval from just
//! after 5 to the end of the numbers.

use proto::expr::{CompareOp, Expr};
use proto::value::Value;

use super::value_set::{Part, Set, intersect, union};

/// Returns the set of a key part's values for which a condition is true. Returns `None` if the
/// condition does not depend on this part alone.
pub(super) fn matching_values(part: Part, condition: &Expr) -> Option<Set> {
    match condition {
        Expr::Compare(op, left, right) => match (&**left, &**right) {
            (left, Expr::Literal(value)) if part.is(left) => compare(part, *op, value),
            (Expr::Literal(value), right) if part.is(right) => compare(part, op.mirrored(), value),
            _ => None,
        },
        Expr::Between { expr, low, high, negated: false } if part.is(expr) => {
            let (Expr::Literal(low), Expr::Literal(high)) = (&**low, &**high) else { return None };
            let from = compare(part, CompareOp::GreaterEq, low)?;
            Some(intersect(&from, &compare(part, CompareOp::LessEq, high)?))
        }
        Expr::In { expr, list, negated: false } if part.is(expr) => {
            let mut all = Vec::with_capacity(list.len());
            for item in list.iter() {
                let Expr::Literal(value) = item else { return None };
                all.extend(compare(part, CompareOp::Eq, value)?);
            }
            Some(union(all))
        }
        Expr::Like { expr, pattern, negated: false } if part.is(expr) => match &**pattern {
            Expr::Literal(Value::String(pattern)) => like(part, pattern),
            _ => None,
        },
        Expr::IsNull { expr, negated: false } if part.is(expr) => Some(part.absent()),
        Expr::IsNull { expr, negated: true } if part.is(expr) => Some(part.present()),
        Expr::IsMissing { expr, negated: false } if part.is(expr) => {
            Some(part.point(&Value::Missing))
        }
        Expr::IsMissing { expr, negated: true } if part.is(expr) => Some(part.not_missing()),
        Expr::Or(terms) => {
            let mut all = Vec::new();
            for term in terms {
                all.extend(matching_values(part, term)?);
            }
            Some(union(all))
        }
        // Outside of an OR the terms were separate conjuncts.
        Expr::And(terms) => {
            let mut sets = terms.iter().map(|term| matching_values(part, term));
            let first = sets.next()??;
            sets.try_fold(first, |known, set| Some(intersect(&known, &set?)))
        }
        // A constant condition: `FALSE` makes the set of the first part empty.
        Expr::Literal(Value::Bool(false) | Value::Null) => Some(Vec::new()),
        _ => None,
    }
}

/// Returns the set of values for which a comparison with `value` is true.
fn compare(part: Part, op: CompareOp, value: &Value) -> Option<Set> {
    if op == CompareOp::NotEq {
        return None;
    }
    let Some(mut all) = part.same_type(value) else { return Some(Vec::new()) };
    match op {
        CompareOp::Eq => return Some(part.point(value)),
        CompareOp::Less => all.high = part.before(value),
        CompareOp::LessEq => all.high = part.after(value),
        CompareOp::Greater => all.low = part.after(value),
        _ => all.low = part.before(value),
    }
    Some(union(vec![all]))
}

/// Returns the set of values that a LIKE pattern matches: one string if the pattern has no
/// wildcard, or the strings with a prefix if the only wildcard is `%` at its end; otherwise
/// `None`.
fn like(part: Part, pattern: &str) -> Option<Set> {
    let mut prefix = String::new();
    let mut chars = pattern.chars();
    while let Some(ch) = chars.next() {
        match ch {
            '%' if chars.as_str().is_empty() => return Some(part.beginning_with(&prefix)),
            '%' | '_' => return None,
            '\\' => prefix.push(chars.next()?),
            _ => prefix.push(ch),
        }
    }
    Some(part.point(&Value::String(prefix)))
}
