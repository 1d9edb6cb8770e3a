//! The entries of the indexes in memory, which are computed for each scan.

use proto::Result;
use proto::expr::Expr;
use proto::expr::aggregate::PartialAggregate;
use proto::expr::cost::CostMeter;
use proto::expr::eval::{DocumentScope, Evaluation, Scope};
use proto::model::index::IndexSpec;
use proto::rpc::rows::{RowBlock, RowBlockBuilder};
use proto::rpc::scan::{Output, ScanRequest};
use proto::value::Value;
use proto::value::key::{encode_entry, encode_part};
use proto::value::path::Step;
use router::ScanBatch;

use super::state::Documents;

/// An index entry with its decoded values.
pub(super) struct Entry {
    bytes: Vec<u8>,
    include: Vec<u8>,
    id: String,
    columns: Vec<Value>,
}

/// Returns true if a predicate is true for a document or an entry.
fn holds(predicate: &Expr, scope: &dyn Scope) -> bool {
    Evaluation::of_definition(scope, &CostMeter::for_evaluation()).truth(predicate)
        == Ok(Some(true))
}

/// Returns the value of an expression for a document or an entry.
fn eval(expr: &Expr, scope: &dyn Scope) -> Value {
    let cost = CostMeter::for_evaluation();
    let value = Evaluation::of_definition(scope, &cost).eval(expr);
    value.map_or(Value::Null, |value| value.into_owned())
}

impl Scope for Entry {
    fn path<'a>(&'a self, _: &[Step]) -> std::borrow::Cow<'a, Value> {
        std::borrow::Cow::Owned(Value::Missing)
    }

    fn document_id(&self) -> &str {
        &self.id
    }

    fn column(&self, n: u16) -> std::borrow::Cow<'_, Value> {
        std::borrow::Cow::Borrowed(&self.columns[usize::from(n)])
    }
}

/// Returns the entries of an index over documents, in order.
pub(super) fn entries(spec: &IndexSpec, documents: &Documents) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (id, json) in documents {
        let doc = Value::parse_json(json).unwrap();
        let scope = DocumentScope { id, doc: &doc };
        let value = |expr: &Expr| eval(expr, &scope);
        let keys: Vec<Value> = spec.keys.iter().map(|part| value(&part.expr)).collect();
        let holds = spec.predicate.as_ref().is_none_or(|p| holds(p, &scope));
        if !holds || keys.first() == Some(&Value::Missing) {
            continue;
        }
        let mut bytes = Vec::new();
        if encode_entry(&keys, &spec.descending(), id, &mut bytes).is_err() {
            continue;
        }
        let mut include = Vec::new();
        let mut columns = keys;
        for column in &spec.include {
            let value = value(&column.expr);
            encode_part(&value, false, &mut include);
            columns.push(value);
        }
        entries.push(Entry { bytes, include, id: id.clone(), columns });
    }
    entries.sort_by(|a, b| a.bytes.cmp(&b.bytes));
    entries
}

/// Returns the batches of rows that a scan of these entries returns.
pub(super) fn scan_batches(
    request: &ScanRequest,
    mut entries: Vec<Entry>,
) -> Result<Vec<ScanBatch>> {
    entries.retain(|entry| {
        request.ranges.iter().any(|range| range.contains(&entry.bytes))
            && request.filter.as_ref().is_none_or(|filter| holds(filter, entry))
    });
    if request.reverse {
        entries.reverse();
    }
    if let Output::Aggregates(calls) = &request.output {
        let fold = |call: &proto::rpc::scan::AggregateCall| {
            let mut partial = PartialAggregate::new(call.function);
            for entry in &entries {
                match &call.argument {
                    Some(argument) => partial.add(&eval(argument, entry)),
                    None => partial.add_rows(1),
                }
            }
            partial
        };
        return Ok(vec![ScanBatch::Aggregates(calls.iter().map(fold).collect())]);
    }
    if let Some(parts) = request.distinct_parts {
        entries.dedup_by(|a, b| a.columns[..usize::from(parts)] == b.columns[..usize::from(parts)]);
    }
    let limit = request.limit.map_or(usize::MAX, |limit| limit as usize);
    let rows: Vec<Entry> = entries.into_iter().skip(request.offset as usize).take(limit).collect();
    let block = |rows: &[Entry]| -> RowBlock {
        let mut block = RowBlockBuilder::default();
        rows.iter().for_each(|row| block.push(&row.bytes, &row.include));
        block.finish()
    };
    Ok(rows.chunks(3).map(|rows| ScanBatch::Rows(block(rows))).collect())
}
