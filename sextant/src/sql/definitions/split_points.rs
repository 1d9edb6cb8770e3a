//! The split points of an index that is partitioned by ranges. They are given in the statement,
//! or derived from a sample of the documents.

use proto::expr::cost::CostMeter;
use proto::expr::eval::{DocumentScope, Evaluation};
use proto::expr::{CompareOp, Expr};
use proto::model::index::{RangePartition, SLICES_DEFAULT};
use proto::value::Value;
use proto::value::key::encode_part;
use proto::{Error, ErrorCode, Result};

use super::definition_text;
use crate::access::Access;
use crate::sql::ast::{CreateIndex, Partition};
use crate::sql::plan::{UnresolvedExpr, coerce};
use crate::sql::remarks::Remarks;

/// Returns the range partition of an expression with these split points.
pub(super) fn range_partition(expr: &Expr, points: &[Expr]) -> Result<RangePartition> {
    if points.is_empty() {
        return Err(Error::internal("the split points were not taken"));
    }
    let mut bounds: Vec<Vec<u8>> = Vec::with_capacity(points.len());
    for point in points {
        let bound = encoded(&value_of(&typed(expr, point)?)?);
        if bounds.last().is_some_and(|last| *last >= bound) {
            let what = format!("split point {point} is not greater than the one before it");
            return Err(Error::new(ErrorCode::InvalidParameter, what)
                .with_hint("split points ascend; all numbers come before all texts"));
        }
        bounds.push(bound);
    }
    Ok(RangePartition { expr: expr.clone(), bounds })
}

/// Returns a split point as a literal of the expression's type. For a numeric expression, a text
/// is converted to a number, as in a comparison.
fn typed(expr: &Expr, point: &Expr) -> Result<Expr> {
    let (left, right) = (Box::new(expr.clone()), Box::new(point.clone()));
    let mut comparison = Expr::Compare(CompareOp::Less, left, right);
    coerce(&mut comparison, &UnresolvedExpr)?;
    match comparison {
        Expr::Compare(_, _, point) => Ok(*point),
        other => Ok(other),
    }
}

/// Returns the encoded form of a value, by whose order ranges are split.
fn encoded(value: &Value) -> Vec<u8> {
    let mut code = Vec::new();
    encode_part(value, false, &mut code);
    code
}

/// Returns the value of a split point, which must be a literal.
fn value_of(point: &Expr) -> Result<Value> {
    let nothing = Value::Missing;
    let scope = DocumentScope { id: "", doc: &nothing };
    let cost = CostMeter::for_evaluation();
    let value = Evaluation::of_query(&scope, &cost).eval(point).map_err(Error::from)?.into_owned();
    if is_scalar(&value) {
        return Ok(value);
    }
    let what = format!("split point {point} is no number, text, true or false");
    Err(Error::new(ErrorCode::InvalidParameter, what))
}

fn is_scalar(value: &Value) -> bool {
    matches!(value, Value::Bool(_) | Value::Number(_) | Value::String(_))
}

/// If a declaration by ranges has no split points, derives them from a sample of the bucket's
/// documents and adds them to the text of the declaration.
pub async fn derive_split_points(
    access: &Access,
    create: &mut CreateIndex,
    remarks: &Remarks,
) -> Result<()> {
    let Some(Partition::Range { expr, points }) = &mut create.partition else { return Ok(()) };
    if !points.is_empty() {
        return Ok(());
    }
    let wanted = create.slices.unwrap_or(SLICES_DEFAULT);
    if wanted < 2 {
        let what = format!("slices = {wanted}, but PARTITION BY RANGE makes at least two slices");
        return Err(Error::new(ErrorCode::InvalidParameter, what)
            .with_hint("omit PARTITION BY for an index of one slice, or ask for more slices"));
    }
    let bucket = access.bucket(&create.bucket).await?;
    let documents = access.sample(&bucket).await?;
    let found = quantiles(values(expr, &documents), usize::from(wanted));
    if found.is_empty() {
        let what = format!(
            "bucket \"{}\" has no documents with different values of {expr} from which the split points could be taken",
            create.bucket
        );
        return Err(Error::new(ErrorCode::WrongState, what)
            .with_hint("give them: PARTITION BY RANGE (…) SPLIT AT (…)"));
    }
    let ranges = found.len() + 1;
    if create.slices.is_some_and(|slices| usize::from(slices) != ranges) {
        let message =
            format!("the documents have few values of {expr}: the index has {ranges} slices");
        remarks.send(message, None);
    }
    *points = found.into_iter().map(Expr::Literal).collect();
    create.slices = None;
    create.sql = definition_text::create_index(create);
    Ok(())
}

/// Returns the values of an expression in some documents, except values that cannot be split
/// points.
fn values(expr: &Expr, documents: &[bytes::Bytes]) -> Vec<Value> {
    let parsed = documents.iter().filter_map(|document| Value::parse_json(document).ok());
    let value = |doc: Value| {
        let scope = DocumentScope { id: "", doc: &doc };
        let cost = CostMeter::for_evaluation();
        let value = Evaluation::of_definition(&scope, &cost).eval(expr).ok()?.into_owned();
        is_scalar(&value).then_some(value)
    };
    parsed.filter_map(value).collect()
}

/// Returns values that divide `values` into at most `parts` ranges, with about the same number of
/// values in each.
fn quantiles(values: Vec<Value>, parts: usize) -> Vec<Value> {
    let mut sorted: Vec<(Vec<u8>, Value)> =
        values.into_iter().map(|value| (encoded(&value), value)).collect();
    sorted.sort_by(|one, other| one.0.cmp(&other.0));
    let mut points: Vec<(Vec<u8>, Value)> = Vec::new();
    let least = sorted.first().map(|(code, _)| code.clone()).unwrap_or_default();
    for part in 1..parts {
        let Some(point) = sorted.get(part * sorted.len() / parts) else { break };
        let last = points.last().map_or(&least, |(code, _)| code);
        if point.0 > *last {
            points.push(point.clone());
        }
    }
    points.into_iter().map(|(_, value)| value).collect()
}

#[cfg(test)]
mod tests {
    use proto::expr::ColumnType;
    use proto::value::Step;

    use super::*;

    fn numbers(numbers: impl IntoIterator<Item = i64>) -> Vec<Value> {
        numbers.into_iter().map(Value::int).collect()
    }

    #[test]
    fn quantiles_divide_into_parts_of_the_same_size_and_repeat_no_value() {
        assert_eq!(quantiles(numbers(0..100), 4), numbers([25, 50, 75]));
        assert_eq!(quantiles(numbers([1, 1, 1, 1, 2]), 4), numbers([]));
        assert_eq!(quantiles(numbers([1, 1, 2, 2, 3, 3]), 6), numbers([2, 3]));
        assert_eq!(quantiles(numbers([7]), 3), numbers([]));
        assert!(quantiles(Vec::new(), 8).is_empty());
    }

    #[test]
    fn split_points_ascend_and_are_scalars() {
        let literal = |value: Value| Expr::Literal(value);
        let points = |values: &[Value]| values.iter().cloned().map(literal).collect::<Vec<_>>();
        let untyped = Expr::Path(vec![Step::Field("n".into())]);
        let by = |values: &[Value]| range_partition(&untyped, &points(values));
        let text = Value::String("m".into());
        let range = by(&[Value::int(3), Value::int(9), text]).unwrap();
        let slice = |value: Value| range.slice(&encoded(&value)).0;
        assert_eq!([2, 3, 8, 9].map(|n| slice(Value::int(n))), [0, 1, 1, 2]);
        assert_eq!(["a", "m", "z"].map(|s| slice(Value::String(s.into()))), [2, 3, 3]);
        assert_eq!([slice(Value::Missing), slice(Value::Null)], [0, 0]);
        let number = Expr::Cast(Box::new(Expr::DocumentId), ColumnType::Int8);
        let texts = ["3", "20"].map(|text| Value::String(text.into()));
        let range = range_partition(&number, &points(&texts)).unwrap();
        let numbers = range_partition(&number, &points(&[3, 20].map(Value::int))).unwrap();
        assert_eq!(range, numbers, "a text beside a number is a number");
        let none = range_partition(&number, &points(&[Value::String("x".into())])).unwrap_err();
        assert_eq!(none.code, ErrorCode::InvalidText, "{none}");
        let wrong = [
            vec![Value::int(9), Value::int(3)],
            vec![Value::int(3), Value::int(3)],
            vec![Value::Null],
        ];
        for wrong in wrong {
            assert_eq!(by(&wrong).unwrap_err().code, ErrorCode::InvalidParameter, "{wrong:?}");
        }
    }
}
