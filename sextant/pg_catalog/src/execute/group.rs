//! Groups and aggregates.

use std::collections::BTreeMap;

use proto::value::Value;

use super::env::{Env, Layout, Piece};
use super::eval::{holds, row_of};
use super::operators::missing;
use super::run::Run;
use super::sort::{Direction, compare_keys};
use crate::error::{Error, Result};
use crate::functions::{Fold, FoldCall, Implementation, OrderedSet, OrderedSetCall, function};
use crate::plan::{Aggregate, Call, Grouping};
use crate::types::order::{comparable, compare_all};

/// The state of one aggregate in one group.
pub(super) enum State {
    /// Each row is added at once.
    Fold(Box<dyn Fold>),
    /// The rows are sorted first: keys of the order, and arguments.
    Sorted(Vec<(Vec<Value>, Vec<Value>)>),
}

/// Returns the rows of the groups, in the order of their first rows: keys, then aggregates.
pub(super) fn group<'p>(
    run: &mut Run<'p>,
    grouping: &'p Grouping,
    rows: &[Vec<Piece>],
    layout: &Layout,
    outer: Option<&Env<'_>>,
) -> Result<Vec<Box<[Value]>>> {
    let mut numbers: BTreeMap<Vec<Value>, usize> = BTreeMap::new();
    let mut groups: Vec<(Vec<Value>, Vec<State>)> = Vec::new();
    if grouping.keys.is_empty() {
        numbers.insert(Vec::new(), 0);
        groups.push((Vec::new(), states(grouping)?));
    }
    for row in rows {
        let env = Env::new(row, layout, outer);
        let keys = row_of(run, &grouping.keys, &env)?;
        let types = grouping.keys.iter().map(|key| key.ty.oid());
        let compared: Vec<Value> =
            keys.iter().cloned().zip(types).map(|(key, ty)| comparable(key, ty)).collect();
        run.context.limits.step(1)?;
        let number = match numbers.get(&compared) {
            Some(number) => *number,
            None => {
                run.store(&keys)?;
                numbers.insert(compared, groups.len());
                groups.push((keys, states(grouping)?));
                groups.len() - 1
            }
        };
        for (aggregate, state) in grouping.aggregates.iter().zip(&mut groups[number].1) {
            add(run, aggregate, state, &env)?;
        }
    }
    let mut result = Vec::with_capacity(groups.len());
    for (mut row, states) in groups {
        for (aggregate, state) in grouping.aggregates.iter().zip(states) {
            row.push(finish(run, aggregate, state)?);
        }
        run.store(&row)?;
        result.push(row.into_boxed_slice());
    }
    Ok(result)
}

fn states(grouping: &Grouping) -> Result<Vec<State>> {
    grouping.aggregates.iter().map(state).collect()
}

/// Returns the state of an aggregate without rows.
pub(super) fn state(aggregate: &Aggregate) -> Result<State> {
    match function(aggregate.function) {
        Some(Implementation::Aggregate(_)) if !aggregate.distinct && aggregate.order.is_empty() => {
            Ok(State::Fold(fold(aggregate)?))
        }
        Some(Implementation::Aggregate(_) | Implementation::OrderedSet(_)) => {
            Ok(State::Sorted(Vec::new()))
        }
        _ => Err(missing_aggregate(aggregate)),
    }
}

fn missing_aggregate(aggregate: &Aggregate) -> Error {
    missing(Call::Function { index: aggregate.function, is_array: false })
}

fn fold(aggregate: &Aggregate) -> Result<Box<dyn Fold>> {
    let Some(Implementation::Aggregate(make)) = function(aggregate.function) else {
        return Err(missing_aggregate(aggregate));
    };
    let types = aggregate.arguments.iter().map(|argument| argument.ty.clone()).collect();
    Ok(make(FoldCall { types, result: aggregate.ty.clone() }))
}

/// Adds a row to the state of an aggregate, unless FILTER drops it.
pub(super) fn add<'p>(
    run: &mut Run<'p>,
    aggregate: &'p Aggregate,
    state: &mut State,
    env: &Env<'_>,
) -> Result<()> {
    if let Some(filter) = &aggregate.filter
        && !holds(run, filter, env)?
    {
        return Ok(());
    }
    let arguments = row_of(run, &aggregate.arguments, env)?;
    match state {
        State::Fold(fold) => fold.add(&mut run.context, arguments),
        State::Sorted(rows) => {
            let mut keys = Vec::with_capacity(aggregate.order.len());
            for (expr, ..) in &aggregate.order {
                keys.push(super::eval::eval(run, expr, env)?.into_owned());
            }
            run.store(&keys)?;
            run.store(&arguments)?;
            rows.push((keys, arguments));
            Ok(())
        }
    }
}

/// Returns the value of an aggregate.
fn finish(run: &mut Run<'_>, aggregate: &Aggregate, state: State) -> Result<Value> {
    let mut rows = match state {
        State::Fold(fold) => return fold.value(&mut run.context),
        State::Sorted(rows) => rows,
    };
    let directions = Direction::of(&aggregate.order);
    let count = rows.len() as u64;
    run.context.limits.step(count * u64::from(count.max(2).ilog2()))?;
    if let Some(Implementation::OrderedSet(function)) = function(aggregate.function) {
        rows.sort_by(|a, b| compare_keys(&a.0, &b.0, &directions));
        return ordered_set(run, *function, aggregate, rows, &directions);
    }
    rows.sort_by(|a, b| {
        let order = compare_keys(&a.0, &b.0, &directions);
        if aggregate.distinct { order.then_with(|| compare_all(&a.1, &b.1)) } else { order }
    });
    if aggregate.distinct {
        rows.dedup_by(|a, b| a.1 == b.1);
    }
    let mut fold = fold(aggregate)?;
    for (_, arguments) in rows {
        fold.add(&mut run.context, arguments)?;
    }
    fold.value(&mut run.context)
}

/// Returns the value of an aggregate with WITHIN GROUP: its direct arguments are the same in all
/// rows of a group.
fn ordered_set(
    run: &mut Run<'_>,
    function: OrderedSet,
    aggregate: &Aggregate,
    rows: Vec<(Vec<Value>, Vec<Value>)>,
    directions: &[Direction],
) -> Result<Value> {
    let direct = rows.first().map(|(_, direct)| direct.clone()).unwrap_or_default();
    let is_hypothetical = direct.len() == directions.len()
        && crate::data::data()
            .functions
            .get(aggregate.function)
            .is_some_and(|row| row.variadic != 0);
    let before = |keys: &[Value]| compare_keys(keys, &direct, directions);
    let smaller: Vec<bool> =
        rows.iter().map(|(keys, _)| is_hypothetical && before(keys).is_lt()).collect();
    let peers = rows.iter().filter(|(keys, _)| is_hypothetical && before(keys).is_eq()).count();
    let mut sorted: Vec<Vec<Value>> = rows.into_iter().map(|(keys, _)| keys).collect();
    let before = smaller.iter().filter(|smaller| **smaller).count();
    let mut distinct: Vec<&Vec<Value>> = sorted[..before.min(sorted.len())].iter().collect();
    distinct.dedup();
    let distinct_before = distinct.len();
    if !is_hypothetical {
        sorted.retain(|keys| !keys.iter().any(Value::is_absent));
    }
    let call = OrderedSetCall { direct, sorted, before, distinct_before, peers };
    function(&mut run.context, call)
}
