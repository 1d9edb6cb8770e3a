//! A query as the text of a SELECT, which is planned as in a session, so that names, literals,
//! ranges, orders and limits are tested too. The rows are judged like all others.

use std::fmt::Write;
use std::sync::Arc;

use proto::model::index::IndexInfo;
use proto::rpc::scan::ScanRequest;
use sextant::sql::ast::Statement;
use sextant::sql::parse;
use sextant::sql::plan::{Plan, Relation, resolve};

use super::query::{Condition, Query, number_part};

/// Returns the request that is planned from a query's text; the error describes how it differs from
/// the expected one.
pub fn planned(
    query: &Query,
    info: &Arc<IndexInfo>,
    expected: ScanRequest,
) -> Result<ScanRequest, String> {
    let sql = select(query, info);
    let plan = plan(&sql, info).map_err(|error| format!("{sql}: {error}"))?;
    let outline = |request: &ScanRequest| {
        let ScanRequest { index, reverse, distinct_parts, limit, offset, .. } = *request;
        // One row of aggregates has no order, and neither has a scan of no range.
        let has_order = query.ordered && !query.aggregates && !plan.ranges.is_empty();
        let direction = has_order.then_some((reverse, request.ordered));
        let aggregates = query.aggregates.then(|| request.output.clone());
        (index, direction, distinct_parts, limit, offset, aggregates)
    };
    if outline(&plan) != outline(&expected) {
        return Err(format!("{sql}: planned {plan:?}, expected {expected:?}"));
    }
    let ScanRequest { ranges, partitions, filter, .. } = plan;
    Ok(ScanRequest { ranges, partitions, filter, ..expected })
}

fn plan(sql: &str, info: &Arc<IndexInfo>) -> Result<ScanRequest, String> {
    let parsed = parse(sql).map_err(|error| error.error.to_string())?;
    let [parsed] = &parsed[..] else { return Err("not one statement".into()) };
    let Statement::Select(select) = &parsed.statement else { return Err("no SELECT".into()) };
    let relation = Relation::Index(Arc::clone(info));
    let resolved = resolve(select, Some(&relation)).map_err(|error| error.to_string())?;
    match resolved.plan(&[]).map_err(|error| error.to_string())? {
        Plan::Index(plan) => Ok(plan.request),
        other => Err(format!("not a scan: {other:?}")),
    }
}

/// The text of a query.
fn select(query: &Query, info: &IndexInfo) -> String {
    let spec = &info.spec;
    let name = |part: usize| format!("\"{}\"", spec.keys[part].name);
    let names = |parts: usize| (0..parts).map(name).collect::<Vec<_>>().join(", ");
    let columns = match query.distinct {
        _ if query.aggregates => {
            let (first, number) = (name(0), name(number_part(&spec.name)));
            let all = [
                "count(*)".to_owned(),
                format!("count({first})"),
                format!("min({first})"),
                format!("max({first})"),
                format!("sum({number})"),
            ];
            query.aggregates_asked().iter().map(|n| &*all[*n]).collect::<Vec<_>>().join(", ")
        }
        Some(parts) => format!("DISTINCT {}", names(usize::from(parts))),
        None if query.include => "*".to_owned(),
        None => format!("{}, id", names(spec.keys.len())),
    };
    let mut sql = format!("SELECT {columns} FROM {}", spec.name);
    let conditions: Vec<String> = [ranges(query, &name(0)), condition(query, name)]
        .into_iter()
        .flatten()
        .map(|condition| format!("({condition})"))
        .collect();
    if !conditions.is_empty() {
        let _ = write!(sql, " WHERE {}", conditions.join(" AND "));
    }
    if query.ordered && !query.aggregates {
        let part = |(n, descending): (usize, &bool)| {
            let direction = if *descending != query.reverse { "DESC" } else { "ASC" };
            format!("{} {direction}", name(n))
        };
        let descending: Vec<bool> = spec.keys.iter().map(|part| part.descending).collect();
        let parts = query.distinct.map_or(descending.len(), usize::from);
        let parts: Vec<String> = descending.iter().enumerate().take(parts).map(part).collect();
        let _ = write!(sql, " ORDER BY {}", parts.join(", "));
    }
    if let Some(limit) = query.limit {
        let _ = write!(sql, " LIMIT {limit}");
    }
    if query.offset > 0 {
        let _ = write!(sql, " OFFSET {}", query.offset);
    }
    sql
}

fn ranges(query: &Query, first: &str) -> Option<String> {
    let ranges = query.ranges.as_ref()?.iter().map(|(low, high)| {
        let (low, high) = (literal(low), literal(high));
        format!("{first} >= {low} AND {first} < {high}")
    });
    Some(ranges.collect::<Vec<_>>().join(" OR "))
}

fn condition(query: &Query, name: impl Fn(usize) -> String) -> Option<String> {
    Some(match query.condition.as_ref()? {
        Condition::IdBelow(bound) => format!("id < '{bound}'"),
        Condition::Above(part, bound) => format!("{} > {bound}", name(*part)),
        Condition::FirstIsNotNull => format!("{} IS NOT NULL", name(0)),
    })
}

fn literal(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => format!("'{}'", text.replace('\'', "''")),
        other => other.to_string(),
    }
}
