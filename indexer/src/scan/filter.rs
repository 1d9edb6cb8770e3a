//! The filter of a scan, compiled once into conditions that test the encoded bytes of an entry.
//! An entry consists of *parts*, one for each column.
//!
//! A comparison of a column with a constant (`=`, `<>`, `<`, `<=`, `>`, `>=`, `BETWEEN`, `IN`),
//! `IS [NOT] NULL`, `IS [NOT] MISSING` and a boolean column are decided by the bytes of the
//! column's part. `AND`, `OR` and `NOT` combine them. All use the three truth values of
//! [`proto::expr::eval`]: a comparison with another type, NULL or MISSING is unknown. Any other
//! condition is evaluated as an expression, at its position in the filter. A filter without any
//! condition over bytes is evaluated as one expression.
//!
//! A part begins where the previous part ends. The offsets of an entry's parts are found from
//! left to right as far as a condition needs, once for each entry.

use std::sync::Arc;

use proto::expr::cost::{CostMeter, TooCostly};
use proto::expr::eval::{EvalError, Evaluation};
use proto::expr::{CompareOp, Expr};
use proto::model::index::IndexSpec;
use proto::rpc::scan::ShardScan;
use proto::value::key::{EncodedConstant, part_as_bool, part_type_rank, skip_part};

use super::scope::EntryScope;

/// The cost of a condition in addition to the bytes that it reads. It equals the cost of an
/// operator of an expression.
const CONDITION_COST: u64 = 16;

/// The filter of a scan in progress.
pub(super) struct Filter {
    scan: Arc<ShardScan>,
    /// The compiled filter; `None` if the scan has no filter, or if the filter is evaluated as
    /// one expression.
    condition: Option<Arc<Condition>>,
    beginnings: PartOffsets,
}

/// A condition over the entries of an index.
#[derive(Debug)]
enum Condition {
    /// A condition with the same result for all entries; `None` is unknown.
    Constant(Option<bool>),
    /// A test of the encoded part of one column.
    Of(Column, Test),
    Not(Box<Condition>),
    And(Vec<Condition>),
    Or(Vec<Condition>),
    /// An expression that cannot be decided by bytes and must be evaluated.
    Evaluated(Expr),
}

/// The position of a column in an entry.
#[derive(Clone, Copy, Debug)]
struct Column {
    /// The position of the column's part, among the key parts or among the included values.
    part: usize,
    is_included: bool,
    descending: bool,
}

/// A test of the encoded part of one column.
#[derive(Debug)]
enum Test {
    Compare(CompareOp, EncodedConstant),
    /// True if the part equals one of these constants, which are sorted by value.
    In(Vec<EncodedConstant>),
    IsNull,
    IsMissing,
    IsTrue,
}

impl Filter {
    /// Compiles the filter of a scan.
    pub fn new(scan: &Arc<ShardScan>, spec: &IndexSpec) -> Self {
        let condition = scan.filter.as_ref().and_then(|filter| compile(filter, spec));
        Self {
            scan: Arc::clone(scan),
            condition: condition.map(Arc::new),
            beginnings: PartOffsets::default(),
        }
    }

    /// Returns a copy of the filter for another scanner, which has its own offsets of parts.
    pub fn copy_for_scanner(&self) -> Self {
        Self {
            scan: Arc::clone(&self.scan),
            condition: self.condition.clone(),
            beginnings: PartOffsets::default(),
        }
    }

    /// Returns true if an entry passes the filter. Adds the cost of the test to `cost`.
    pub fn passes(&mut self, entry: &EntryScope<'_>, cost: &CostMeter) -> Result<bool, EvalError> {
        let truth = match (&self.condition, &self.scan.filter) {
            (Some(condition), _) => {
                self.beginnings.reset();
                condition.truth(entry, &mut self.beginnings, cost)?
            }
            (None, Some(filter)) => Evaluation::of_query(entry, cost).truth(filter)?,
            (None, None) => Some(true),
        };
        Ok(truth == Some(true))
    }
}

/// Compiles an expression; `None` if no condition in it can be decided by bytes.
fn compile(expr: &Expr, spec: &IndexSpec) -> Option<Condition> {
    match expr {
        Expr::Literal(value) => Some(Condition::Constant(value.as_bool())),
        Expr::Not(inner) => compile(inner, spec).map(Condition::not),
        Expr::And(list) => compile_all(list, spec).map(Condition::And),
        Expr::Or(list) => compile_all(list, spec).map(Condition::Or),
        Expr::Compare(op, left, right) => compile_comparison(*op, left, right, spec)
            .or_else(|| compile_comparison(op.mirrored(), right, left, spec)),
        Expr::Between { expr, low, high, negated } => {
            Some(compile_between(expr, low, high, spec)?.negated_if(*negated))
        }
        Expr::In { expr, list, negated } => {
            Some(compile_in_list(expr, list, spec)?.negated_if(*negated))
        }
        Expr::IsNull { expr, negated } => {
            Some(Condition::Of(Column::of_expr(expr, spec)?, Test::IsNull).negated_if(*negated))
        }
        Expr::IsMissing { expr, negated } => {
            Some(Condition::Of(Column::of_expr(expr, spec)?, Test::IsMissing).negated_if(*negated))
        }
        Expr::Column(_) => Some(Condition::Of(Column::of_expr(expr, spec)?, Test::IsTrue)),
        _ => None,
    }
}

/// Compiles a list of expressions; `None` if no condition in them can be decided by bytes.
fn compile_all(list: &[Expr], spec: &IndexSpec) -> Option<Vec<Condition>> {
    let compiled: Vec<_> = list.iter().map(|expr| compile(expr, spec)).collect();
    if !list.is_empty() && compiled.iter().all(Option::is_none) {
        return None;
    }
    let in_place = |(condition, expr): (Option<Condition>, &Expr)| {
        condition.unwrap_or_else(|| Condition::Evaluated(expr.clone()))
    };
    Some(compiled.into_iter().zip(list).map(in_place).collect())
}

/// Compiles the comparison of a column with a constant; `None` for other operands.
fn compile_comparison(
    op: CompareOp,
    column: &Expr,
    constant: &Expr,
    spec: &IndexSpec,
) -> Option<Condition> {
    let (column, Expr::Literal(value)) = (Column::of_expr(column, spec)?, constant) else {
        return None;
    };
    let constant = EncodedConstant::new(value, column.descending);
    Some(Condition::Of(column, Test::Compare(op, constant)))
}

/// Compiles a test for a range between two constants; `None` for other operands.
fn compile_between(column: &Expr, low: &Expr, high: &Expr, spec: &IndexSpec) -> Option<Condition> {
    let above = compile_comparison(CompareOp::GreaterEq, column, low, spec)?;
    Some(Condition::And(vec![above, compile_comparison(CompareOp::LessEq, column, high, spec)?]))
}

/// Compiles a test for membership in a list of constants; `None` for other operands.
fn compile_in_list(column: &Expr, list: &[Expr], spec: &IndexSpec) -> Option<Condition> {
    let column = Column::of_expr(column, spec)?;
    let mut values = Vec::with_capacity(list.len());
    for item in list {
        let Expr::Literal(value) = item else { return None };
        values.push(value);
    }
    // Mostly sorted by the planner, which this sort notices.
    values.sort_by(|a, b| proto::value::compare(a, b));
    let encode = |value| EncodedConstant::new(value, column.descending);
    Some(Condition::Of(column, Test::In(values.into_iter().map(encode).collect())))
}

impl Column {
    /// Returns the column that an expression refers to; `None` for other expressions.
    fn of_expr(expr: &Expr, spec: &IndexSpec) -> Option<Self> {
        let Expr::Column(n) = expr else { return None };
        let (n, keys) = (usize::from(*n), spec.keys.len());
        match spec.keys.get(n) {
            Some(part) => Some(Self { part: n, is_included: false, descending: part.descending }),
            None if n - keys < spec.include.len() => {
                Some(Self { part: n - keys, is_included: true, descending: false })
            }
            None => None,
        }
    }
}

impl Condition {
    fn not(self) -> Self {
        Self::Not(Box::new(self))
    }

    fn negated_if(self, negated: bool) -> Self {
        if negated { self.not() } else { self }
    }

    fn truth(
        &self,
        entry: &EntryScope<'_>,
        beginnings: &mut PartOffsets,
        cost: &CostMeter,
    ) -> Result<Option<bool>, EvalError> {
        match self {
            Self::Constant(truth) => Ok(*truth),
            Self::Of(column, test) => {
                cost.add(CONDITION_COST)?;
                let part = beginnings.part(*column, entry, cost)?;
                Ok(test.truth(part, column.descending, cost)?)
            }
            Self::Not(inner) => Ok(inner.truth(entry, beginnings, cost)?.map(|truth| !truth)),
            Self::And(list) => decide(list, false, entry, beginnings, cost),
            Self::Or(list) => decide(list, true, entry, beginnings, cost),
            Self::Evaluated(expr) => Evaluation::of_query(entry, cost).truth(expr),
        }
    }
}

/// Returns the result of `AND` (`deciding` is false) or `OR` (`deciding` is true) of a list of
/// conditions; `None` is unknown. One condition with the result `deciding` decides the whole
/// list.
fn decide(
    list: &[Condition],
    deciding: bool,
    entry: &EntryScope<'_>,
    beginnings: &mut PartOffsets,
    cost: &CostMeter,
) -> Result<Option<bool>, EvalError> {
    let mut result = Some(!deciding);
    for condition in list {
        match condition.truth(entry, beginnings, cost)? {
            Some(truth) if truth == deciding => return Ok(Some(deciding)),
            Some(_) => {}
            None => result = None,
        }
    }
    Ok(result)
}

/// The highest type rank of NULL and MISSING. Every comparison with a value up to this rank is
/// unknown.
const NULL_RANK: u8 = 1;

impl Test {
    /// Returns the result of the test for the column whose part is at the beginning of `bytes`;
    /// `None` is unknown.
    fn truth(
        &self,
        bytes: &[u8],
        descending: bool,
        cost: &CostMeter,
    ) -> Result<Option<bool>, TooCostly> {
        let rank = part_type_rank(bytes, descending);
        Ok(match self {
            Self::Compare(_, constant) if rank <= NULL_RANK || rank != constant.type_rank() => None,
            Self::Compare(op, constant) => {
                cost.add_bytes(constant.bytes().min(bytes.len()))?;
                Some(op.holds(constant.order_of(bytes)))
            }
            Self::In(constants) => is_among(constants, bytes, rank, cost)?,
            Self::IsNull => Some(rank <= NULL_RANK),
            Self::IsMissing => Some(rank < NULL_RANK),
            Self::IsTrue => part_as_bool(bytes, descending),
        })
    }
}

/// Returns true if one of the constants equals the part. If none does, returns false, or `None`
/// (unknown) if some constant has another type than the part.
fn is_among(
    constants: &[EncodedConstant],
    bytes: &[u8],
    rank: u8,
    cost: &CostMeter,
) -> Result<Option<bool>, TooCostly> {
    let (Some(first), Some(last)) = (constants.first(), constants.last()) else {
        return Ok(Some(false));
    };
    if rank <= NULL_RANK {
        return Ok(None);
    }
    let (mut low, mut high) = (0, constants.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let constant = &constants[middle];
        cost.add_bytes(1 + constant.bytes().min(bytes.len()))?;
        match constant.order_of(bytes) {
            std::cmp::Ordering::Equal => return Ok(Some(true)),
            std::cmp::Ordering::Greater => low = middle + 1,
            std::cmp::Ordering::Less => high = middle,
        }
    }
    // Constants are ordered by type first, so that all have the type of the first and the last one.
    let is_unknown = first.type_rank() != rank || last.type_rank() != rank;
    Ok((!is_unknown).then_some(false))
}

/// The offsets of an entry's parts, as far as they were found.
#[derive(Default)]
struct PartOffsets {
    keys: Vec<usize>,
    included: Vec<usize>,
}

impl PartOffsets {
    /// Forgets the offsets, for another entry.
    fn reset(&mut self) {
        for known in [&mut self.keys, &mut self.included] {
            known.clear();
            known.push(0);
        }
    }

    /// Returns the bytes of an entry from the beginning of a column's part on. Returns no bytes,
    /// which count as MISSING, if an earlier part is damaged.
    fn part<'e>(
        &mut self,
        column: Column,
        entry: &EntryScope<'e>,
        cost: &CostMeter,
    ) -> Result<&'e [u8], TooCostly> {
        let (known, bytes) = match column.is_included {
            true => (&mut self.included, entry.include),
            false => (&mut self.keys, entry.entry),
        };
        while known.len() <= column.part {
            let n = known.len() - 1;
            let descending = !column.is_included && entry.spec.keys[n].descending;
            let Ok(len) = skip_part(&bytes[known[n]..], descending) else { return Ok(&[]) };
            cost.add_bytes(len)?;
            known.push(known[n] + len);
        }
        Ok(&bytes[known[column.part]..])
    }
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
