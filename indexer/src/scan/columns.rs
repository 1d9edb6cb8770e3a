//! The columns and expressions that a scan uses.

use proto::expr::Expr;
use proto::model::index::IndexSpec;
use proto::rpc::scan::{Output, ShardScan};
use proto::{Error, ErrorCode, Result};

/// Returns true if a scan of an index with `key_parts` key parts reads included values.
pub(super) fn needs_include(scan: &ShardScan, key_parts: usize) -> bool {
    matches!(scan.output, Output::Rows { include: true })
        || highest_column(scan).is_some_and(|column| usize::from(column) >= key_parts)
}

/// The highest column that the expressions of a scan use.
fn highest_column(scan: &ShardScan) -> Option<u16> {
    let mut highest = None;
    for expr in expressions(scan) {
        expr.any(&mut |expr| {
            if let Expr::Column(n) = expr {
                highest = highest.max(Some(*n));
            }
            false
        });
    }
    highest
}

/// Returns true if the cost of one entry may exceed the length of its values: a pattern may read a
/// text many times.
pub(super) fn may_be_costly(scan: &ShardScan) -> bool {
    let costly = |expr: &Expr| matches!(expr, Expr::Like { .. } | Expr::Call(..));
    expressions(scan).any(|expr| expr.any(&mut |part| costly(part)))
}

/// Returns the expressions of a scan: the arguments of its aggregates, and its filter.
fn expressions(scan: &ShardScan) -> impl Iterator<Item = &Expr> {
    let calls = match &scan.output {
        Output::Aggregates(calls) => &calls[..],
        Output::Rows { .. } => &[],
    };
    calls.iter().filter_map(|call| call.argument.as_ref()).chain(scan.filter.as_deref())
}

/// Returns an error if a scan does not fit the index; called before any row is read.
pub fn check(scan: &ShardScan, spec: &IndexSpec) -> Result<()> {
    let refuse = |what: String| Err(Error::new(ErrorCode::InvalidParameter, what));
    let columns = spec.keys.len() + spec.include.len();
    if let Some(column) = highest_column(scan).filter(|n| usize::from(*n) >= columns) {
        return refuse(format!(
            "the scan asks for column {column}, index {} has {columns}",
            spec.name
        ));
    }
    match scan.distinct_parts {
        Some(parts) if usize::from(parts) > spec.keys.len() => refuse(format!(
            "the scan asks for {parts} distinct key parts, index {} has {}",
            spec.name,
            spec.keys.len()
        )),
        _ => Ok(()),
    }
}
