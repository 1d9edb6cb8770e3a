//! Determines the columns and expressions that a scan uses, and validates them.

use proto::expr::Expr;
use proto::model::index::IndexSpec;
use proto::rpc::scan::{Output, ShardScan};
use proto::{Error, ErrorCode, Result};

/// Returns true if a scan reads included values of the index, not only its `key_parts` key parts.
pub(super) fn needs_include(scan: &ShardScan, key_parts: usize) -> bool {
    matches!(scan.output, Output::Rows { include: true })
        || highest_column(scan).is_some_and(|column| usize::from(column) >= key_parts)
}

/// Returns the highest column number that the expressions of a scan use.
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

/// Returns true if the evaluation of one entry may cost more than the length of its values: a
/// pattern may read a text many times.
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

/// Checks that a scan fits the definition of the index. Called before any row is read.
pub fn check_scan(scan: &ShardScan, spec: &IndexSpec) -> Result<()> {
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
