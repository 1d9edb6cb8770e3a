//! Generators of random scans that refer to the contents of an index.

use fastrand::Rng;

use super::super::Bucket;
use super::super::expr::{Expr, Predicate, Scope, Type, can_cast};
use super::super::index::{Entry, Index};
use super::super::json::Json;
use super::super::scan::{Items, Order, Scan, summable};
use super::predicates::predicate;
use super::{chance, pick};

/// Returns a random scan of an index. Its predicate compares with values of the index.
pub fn scan(rng: &mut Rng, index: &Index, bucket: &Bucket) -> Scan {
    let entries = index.entries(bucket);
    let mut conjuncts = Vec::new();
    let fixed = fixed_prefix(rng, index, &entries, &mut conjuncts);
    if chance(rng, 55) {
        let depth = rng.u8(..3);
        conjuncts.push(predicate(rng, depth, &mut |rng| column(rng, index, &entries)));
    }
    let keys = index.keys.len();
    let distinct = keys > 0 && chance(rng, 12);
    let aggregates = !distinct && chance(rng, 20);
    let items = match () {
        () if distinct => {
            let joined = distinct_keys_max(index, fixed);
            Items::Exprs((0..rng.usize(1..=joined)).map(Expr::Column).collect())
        }
        () if aggregates => self::aggregates(rng, index, bucket),
        () if chance(rng, 50) => Items::Star,
        () => Items::Exprs((0..rng.usize(1..4)).map(|_| item(rng, index, &entries)).collect()),
    };
    let order = (!aggregates && chance(rng, 60)).then(|| {
        let from = if chance(rng, 50) { 0 } else { fixed };
        let to = rng.usize(from..=keys);
        // DISTINCT rows have no id to order by, so that their order ends with their columns.
        let to = if let (true, Items::Exprs(columns)) = (distinct, &items) {
            to.min(columns.len())
        } else {
            to
        };
        let id = !distinct && (to == from || (to == keys && rng.bool()));
        Order { from, to: if id { keys } else { to }, id, reverse: rng.bool() }
    });
    let order = order.filter(|order| order.id || order.from < order.to);
    let rows = entries.len() as u64;
    Scan {
        items,
        distinct,
        predicate: match conjuncts.len() {
            0 | 1 => conjuncts.pop(),
            _ => Some(Predicate::And(conjuncts)),
        },
        order,
        limit: (!aggregates && chance(rng, 30)).then(|| rng.u64(..rows + 5)),
        offset: (!aggregates && chance(rng, 20)).then(|| rng.u64(..rows / 2 + 3)),
    }
}

/// Returns the maximum number of key parts for which DISTINCT is possible: no part before the last
/// of them can be both NULL and MISSING.
fn distinct_keys_max(index: &Index, fixed: usize) -> usize {
    let is_blurred = |n: usize| {
        let key = &index.keys[n];
        n >= fixed && !key.unnest && (n > 0 || key.include_missing)
    };
    let clear = (0..index.keys.len()).take_while(|n| !is_blurred(*n)).count();
    (clear + 1).min(index.keys.len())
}

/// Returns a cast of a column that is possible for all entries, or the column without a cast.
fn cast_of(column: usize, entries: &[Entry], to: Type) -> Expr {
    let is_possible = entries.iter().all(|entry| can_cast(&entry.columns[column], to));
    match is_possible {
        true => Expr::Cast(Box::new(Expr::Column(column)), to),
        false => Expr::Column(column),
    }
}

/// Sometimes adds equalities on the leading parts; returns their number.
fn fixed_prefix(
    rng: &mut Rng,
    index: &Index,
    entries: &[Entry],
    conjuncts: &mut Vec<Predicate>,
) -> usize {
    if entries.is_empty() || !chance(rng, 45) {
        return 0;
    }
    let entry = pick(rng, entries);
    for n in 0..rng.usize(..=index.keys.len()) {
        let value = match &entry.columns[n] {
            Some(Json::String(text)) if !text.contains('\0') => Json::from(&**text),
            Some(value @ (Json::Bool(_) | Json::Number(_))) => value.clone(),
            _ => return n,
        };
        conjuncts.push(Predicate::Compare("=", Expr::Column(n), Expr::Literal(value)));
    }
    conjuncts.len()
}

/// Returns a column, or an expression over it, and a value that it has.
fn column(rng: &mut Rng, index: &Index, entries: &[Entry]) -> (Expr, Json) {
    let columns = index.columns();
    let expr = match chance(rng, 8) || columns.is_empty() {
        true => Expr::Id,
        false => {
            let n = rng.usize(..columns.len());
            let over = |function| Expr::Call(function, Box::new(Expr::Column(n)));
            match (columns[n].plain, rng.u8(..10)) {
                (true, 0) => over(pick(rng, &["lower", "length", "abs"])),
                (true, 1) => {
                    cast_of(n, entries, pick(rng, &[Type::Int8, Type::Text, Type::Numeric]))
                }
                _ => Expr::Column(n),
            }
        }
    };
    let known = (!entries.is_empty()).then(|| {
        let entry = pick(rng, entries);
        expr.eval(&Scope { id: &entry.id, document: None, columns: &entry.columns })
    });
    (expr, known.flatten().unwrap_or(Json::Null))
}

fn item(rng: &mut Rng, index: &Index, entries: &[Entry]) -> Expr {
    let columns = index.columns();
    if columns.is_empty() || chance(rng, 30) {
        return Expr::Id;
    }
    let n = rng.usize(..columns.len());
    let kinds = [Type::Text, Type::Bool, Type::Int4, Type::Int8, Type::Float8, Type::Numeric];
    match columns[n].plain && chance(rng, 30) {
        true => cast_of(n, entries, pick(rng, &kinds)),
        false => Expr::Column(n),
    }
}

fn aggregates(rng: &mut Rng, index: &Index, bucket: &Bucket) -> Items {
    let columns = index.columns().len();
    let mut list = vec![("count", None)];
    if columns > 0 {
        for _ in 0..rng.usize(..4) {
            let column = rng.usize(..columns);
            let function = pick(rng, &["count", "min", "max", "sum"]);
            if function != "sum" || summable(index, bucket, column) {
                list.push((function, Some(column)));
            }
        }
    }
    Items::Aggregates(list)
}
