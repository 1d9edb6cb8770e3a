//! Generators of random index definitions.

use fastrand::Rng;

use super::super::expr::{Expr, Step, Type};
use super::super::index::{Index, Key};
use super::super::json::Json;
use super::documents::anything;
use super::predicates::predicate;
use super::{chance, pick};

fn path(rng: &mut Rng) -> Expr {
    let element = |name: &str, n| Expr::Path(vec![Step::Field(name.into()), Step::Element(n)]);
    match rng.u8(..13) {
        0 | 1 => Expr::path(&["name"]),
        2 => Expr::path(&["Name"]),
        3 | 4 => Expr::path(&["n"]),
        5 => Expr::path(&["score"]),
        6 => Expr::path(&["flag"]),
        7 | 8 => Expr::path(&["address", "city"]),
        9 => element("tags", 0),
        10 => element("tags", -1),
        11 => Expr::path(&["odd field"]),
        _ => Expr::path(&[pick(rng, &["misc", "m", "address", "tags", "absent"])]),
    }
}

/// Returns a random expression over a document that can be indexed.
fn expr(rng: &mut Rng) -> Expr {
    let cast = |e: Expr, to| Expr::Cast(Box::new(e), to);
    let over = |function, e: Expr| Expr::Call(function, Box::new(e));
    let small = |rng: &mut Rng| Box::new(Expr::Literal(Json::from(rng.i64(1..8))));
    match rng.u8(..22) {
        0..12 => path(rng),
        12 => cast(Expr::path(&["n"]), Type::Int8),
        13 => cast(Expr::path(&["score"]), pick(rng, &[Type::Float8, Type::Numeric])),
        14 => cast(Expr::path(&["flag"]), Type::Bool),
        15 => cast(path(rng), pick(rng, &[Type::Int8, Type::Int4, Type::Numeric, Type::Text])),
        16 => over("lower", Expr::path(&["name"])),
        17 => over("upper", Expr::path(&["address", "city"])),
        18 => over("length", Expr::path(&["name"])),
        19 => over("abs", Expr::path(&["n"])),
        20 => Expr::Coalesce(vec![Expr::path(&["absent"]), path(rng), path(rng)]),
        _ => Expr::Arithmetic(
            pick(rng, &['+', '-', '*', '/', '%']),
            Box::new(Expr::path(&["n"])),
            small(rng),
        ),
    }
}

/// Returns a random index with distinct columns.
pub fn index(rng: &mut Rng, name: String, bucket: &str) -> Index {
    let mut seen: Vec<Expr> = Vec::new();
    let mut fresh = |rng: &mut Rng, count: usize| {
        let mut exprs = Vec::new();
        while exprs.len() < count {
            let expr = expr(rng);
            if !seen.contains(&expr) {
                seen.push(expr.clone());
                exprs.push(expr);
            }
        }
        exprs
    };
    let primary = chance(rng, 8);
    let key_count = if primary { 0 } else { rng.usize(1..4) };
    let plain_key = |rng: &mut Rng, expr| Key {
        expr,
        unnest: false,
        descending: chance(rng, 35),
        include_missing: false,
    };
    let exprs = fresh(rng, key_count);
    let mut keys: Vec<Key> = exprs.into_iter().map(|expr| plain_key(rng, expr)).collect();
    if let Some(first) = keys.first_mut() {
        first.include_missing = chance(rng, 30);
    }
    if !primary && chance(rng, 25) {
        let at = rng.usize(..keys.len());
        keys[at].expr = Expr::path(&[pick(rng, &["tags", "tags", "nums", "misc"])]);
        keys[at].unnest = true;
    }
    let include_count = pick(rng, &[0, 0, 1, 2]);
    let include = fresh(rng, include_count);
    let partition = match rng.u8(..10) {
        0 | 1 => vec![expr(rng)],
        2 => vec![path(rng), Expr::Id],
        3 => vec![Expr::Id],
        _ => Vec::new(),
    };
    Index {
        name,
        bucket: bucket.to_owned(),
        keys,
        include,
        predicate: chance(rng, 30)
            .then(|| predicate(rng, 2, &mut |rng| (expr(rng), anything(rng, 0)))),
        partition,
        slices: rng.u32(1..9),
        replicas: u32::from(chance(rng, 25)),
    }
}
