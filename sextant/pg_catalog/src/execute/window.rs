//! Window functions over the default frame.

use proto::value::{Number, Value};

use super::env::{Env, Layout, Piece};
use super::eval::{eval, row_of};
use super::group::{State, add, state};
use super::operators::missing;
use super::run::Run;
use super::sort::{Direction, compare_keys};
use crate::error::{Error, Result};
use crate::functions::{Implementation, Ranking, function};
use crate::plan::{Aggregate, Call, Expr, Window, WindowFunction};
use crate::types::order::compare_all;

/// A row of a window: its keys, and its position among the rows.
struct Placed {
    partition: Vec<Value>,
    order: Vec<Value>,
    row: usize,
}

/// The rows of a SELECT, and the surroundings of their expressions.
#[derive(Clone, Copy)]
struct RowsOf<'r> {
    rows: &'r [Vec<Piece>],
    layout: &'r Layout,
    outer: Option<&'r Env<'r>>,
}

impl<'r> RowsOf<'r> {
    fn env(&self, at: usize) -> Env<'r> {
        Env::new(&self.rows[at], self.layout, self.outer)
    }
}

/// Returns the values of a window function, one row of one value for each row.
pub(super) fn add_window<'p>(
    run: &mut Run<'p>,
    window: &'p Window,
    rows: &[Vec<Piece>],
    layout: &Layout,
    outer: Option<&Env<'_>>,
) -> Result<Vec<Box<[Value]>>> {
    let all = RowsOf { rows, layout, outer };
    let directions = Direction::of(&window.order);
    let mut placed = Vec::with_capacity(rows.len());
    for row in 0..rows.len() {
        let env = all.env(row);
        let partition = row_of(run, &window.partition, &env)?;
        let mut order = Vec::with_capacity(window.order.len());
        for (expr, ..) in &window.order {
            order.push(eval(run, expr, &env)?.into_owned());
        }
        run.store(&partition)?;
        run.store(&order)?;
        placed.push(Placed { partition, order, row });
    }
    let count = placed.len() as u64;
    run.context.limits.step(count * u64::from(count.max(2).ilog2()))?;
    placed.sort_by(|a, b| {
        let partition = compare_all(&a.partition, &b.partition);
        partition.then_with(|| compare_keys(&a.order, &b.order, &directions))
    });
    let mut values: Vec<Box<[Value]>> = vec![Box::default(); rows.len()];
    for partition in placed.chunk_by(|a, b| a.partition == b.partition) {
        let peers = peer_groups(partition);
        let found = match &window.function {
            WindowFunction::Aggregate(aggregate) => {
                running(run, aggregate, partition, &peers, all)?
            }
            WindowFunction::Window(index, arguments) => {
                ranked(run, *index, arguments, partition, &peers, all)?
            }
        };
        for (place, value) in partition.iter().zip(found) {
            values[place.row] = Box::new([value]);
        }
    }
    Ok(values)
}

/// Returns the ends of the groups of rows that are equal in the order.
fn peer_groups(partition: &[Placed]) -> Vec<usize> {
    let mut end = 0;
    let groups = partition.chunk_by(|a, b| a.order == b.order);
    groups
        .map(|group| {
            end += group.len();
            end
        })
        .collect()
}

/// Returns an aggregate over the rows up to the last peer of each row.
fn running<'p>(
    run: &mut Run<'p>,
    aggregate: &'p Aggregate,
    partition: &[Placed],
    peers: &[usize],
    all: RowsOf<'_>,
) -> Result<Vec<Value>> {
    let mut state = state(aggregate)?;
    let (mut values, mut from) = (Vec::with_capacity(partition.len()), 0);
    for end in peers {
        for place in &partition[from..*end] {
            run.context.limits.step(1)?;
            add(run, aggregate, &mut state, &all.env(place.row))?;
        }
        let State::Fold(fold) = &state else {
            return Err(Error::unsupported(
                "DISTINCT and ORDER BY within an aggregate over a window",
            ));
        };
        let value = fold.value(&mut run.context)?;
        values.extend(std::iter::repeat_n(value, end - from));
        from = *end;
    }
    Ok(values)
}

/// Returns the values of a window function for the rows of a partition.
fn ranked<'p>(
    run: &mut Run<'p>,
    index: usize,
    arguments: &'p [Expr],
    partition: &[Placed],
    peers: &[usize],
    all: RowsOf<'_>,
) -> Result<Vec<Value>> {
    let Some(Implementation::Window(ranking)) = function(index) else {
        return Err(missing(Call::Function { index, is_array: false }));
    };
    let mut values = Vec::with_capacity(partition.len());
    let count = partition.len();
    let (mut group, mut first_peer) = (0, 0);
    for (n, place) in partition.iter().enumerate() {
        run.context.limits.step(1)?;
        if n >= peers[group] {
            (first_peer, group) = (peers[group], group + 1);
        }
        let end = peers[group];
        let ratio = |part: usize, whole: usize| {
            if whole == 0 { Value::int(0) } else { Value::float(part as f64 / whole as f64) }
        };
        let env = all.env(place.row);
        values.push(match ranking {
            Ranking::RowNumber => Value::int(n as i64 + 1),
            Ranking::Rank => Value::int(first_peer as i64 + 1),
            Ranking::DenseRank => Value::int(group as i64 + 1),
            Ranking::PercentRank => ratio(first_peer, count - 1),
            Ranking::CumeDist => ratio(end, count),
            Ranking::Ntile => ntile(n, count, int(run, arguments.first(), &env)?)?,
            Ranking::Lag => shifted(run, arguments, partition, (n, -1), all)?,
            Ranking::Lead => shifted(run, arguments, partition, (n, 1), all)?,
            Ranking::FirstValue => nth(run, arguments, partition, 0, end, all)?,
            Ranking::LastValue => nth(run, arguments, partition, end - 1, end, all)?,
            Ranking::NthValue => match int(run, arguments.get(1), &env)? {
                Some(at) if at < 1 => {
                    return Err(Error::new(
                        "22016",
                        "argument of nth_value must be greater than zero",
                    ));
                }
                Some(at) => nth(run, arguments, partition, at as usize - 1, end, all)?,
                None => Value::Null,
            },
        });
    }
    Ok(values)
}

/// Evaluates the first argument for a row at a distance, before (-1) or after (1) this one; the third argument
/// outside the partition.
fn shifted<'p>(
    run: &mut Run<'p>,
    arguments: &'p [Expr],
    partition: &[Placed],
    (at, sign): (usize, i64),
    all: RowsOf<'_>,
) -> Result<Value> {
    let env = all.env(partition[at].row);
    let distance = match arguments.get(1) {
        Some(expr) => int(run, Some(expr), &env)?,
        None => Some(1),
    };
    let Some(distance) = distance else { return Ok(Value::Null) };
    let target = distance.checked_mul(sign).and_then(|distance| distance.checked_add(at as i64));
    let target = target.and_then(|target| partition.get(usize::try_from(target).ok()?));
    match (target, arguments) {
        (Some(target), [expr, ..]) => Ok(eval(run, expr, &all.env(target.row))?.into_owned()),
        (None, [_, _, default]) => Ok(eval(run, default, &env)?.into_owned()),
        _ => Ok(Value::Null),
    }
}

fn int<'p>(run: &mut Run<'p>, expr: Option<&'p Expr>, env: &Env<'_>) -> Result<Option<i64>> {
    let Some(expr) = expr else { return Ok(None) };
    Ok(eval(run, expr, env)?.as_number().and_then(Number::as_i64))
}

/// Evaluates the first argument for a row of the frame; NULL after its end.
fn nth<'p>(
    run: &mut Run<'p>,
    arguments: &'p [Expr],
    partition: &[Placed],
    at: usize,
    end: usize,
    all: RowsOf<'_>,
) -> Result<Value> {
    match (arguments.first(), partition[..end].get(at)) {
        (Some(expr), Some(place)) => Ok(eval(run, expr, &all.env(place.row))?.into_owned()),
        _ => Ok(Value::Null),
    }
}

/// Returns the bucket of a row: the first buckets have one row more if the count does not divide.
fn ntile(row: usize, count: usize, buckets: Option<i64>) -> Result<Value> {
    let Some(buckets) = buckets else { return Ok(Value::Null) };
    let buckets = usize::try_from(buckets).ok().filter(|buckets| *buckets > 0);
    let Some(buckets) = buckets else {
        return Err(Error::new("22014", "argument of ntile must be greater than zero"));
    };
    let (size, larger) = (count / buckets, count % buckets);
    let bucket = if row < larger * (size + 1) {
        row / (size + 1)
    } else {
        larger + (row - larger * (size + 1)) / size.max(1)
    };
    Ok(Value::int(bucket as i64 + 1))
}
