//! Generators of random predicates over documents or entries.

use fastrand::Rng;

use super::super::expr::{Expr, Predicate};
use super::super::json::{Json, Num};
use super::documents::{STRINGS, number, string};
use super::{chance, pick};

/// A function that generates an expression, and a value that it may have.
type MakeExpr<'a> = dyn FnMut(&mut Rng) -> (Expr, Json) + 'a;

/// Returns a random predicate over the expressions that `make` generates.
pub(super) fn predicate(rng: &mut Rng, depth: u8, make: &mut MakeExpr<'_>) -> Predicate {
    let terms = |rng: &mut Rng, make: &mut MakeExpr<'_>| {
        (0..rng.usize(2..4)).map(|_| predicate(rng, depth - 1, make)).collect()
    };
    match rng.u8(..if depth == 0 { 6 } else { 10 }) {
        0..6 => condition(rng, make),
        6 | 7 => Predicate::And(terms(rng, make)),
        8 => Predicate::Or(terms(rng, make)),
        _ => Predicate::Not(Box::new(predicate(rng, depth - 1, make))),
    }
}

fn condition(rng: &mut Rng, make: &mut MakeExpr<'_>) -> Predicate {
    let (expr, known) = make(rng);
    let value = |rng: &mut Rng| {
        let value = match rng.u8(..12) {
            0..8 => near(rng, &known),
            8 => {
                let any = string(rng);
                near(rng, &any)
            }
            9 => Json::Null,
            10 => Json::from(rng.bool()),
            _ => number(rng),
        };
        Expr::Literal(value)
    };
    match rng.u8(..20) {
        0..5 => Predicate::Compare("=", expr, value(rng)),
        5..10 => {
            let op = pick(rng, &["<", "<=", ">", ">=", "<>"]);
            let literal = value(rng);
            match chance(rng, 80) {
                true => Predicate::Compare(op, expr, literal),
                false => Predicate::Compare(op, literal, expr),
            }
        }
        10..13 => {
            let list = (0..rng.usize(1..5)).map(|_| value(rng)).collect();
            Predicate::In(expr, list, chance(rng, 15))
        }
        13..16 => {
            let (low, high) = (value(rng), value(rng));
            Predicate::Between(expr, low, high, chance(rng, 15))
        }
        16 | 17 => Predicate::Like(expr, pattern(rng, &known), chance(rng, 15)),
        18 => Predicate::IsNull(expr, chance(rng, 40)),
        _ => Predicate::IsMissing(expr, chance(rng, 40)),
    }
}

/// Returns a value, equal to or near `known`, that SQL can spell. It contains no NUL, at which SQL
/// text would end.
fn near(rng: &mut Rng, known: &Json) -> Json {
    match known {
        Json::Number(number) => match (Num::of(number), rng.u8(..6)) {
            (Num::Int(n), 0) => Num::int(n + 1).json(),
            (Num::Int(n), 1) => Num::int(n - 1).json(),
            (Num::Int(n), 2) => Num::real(n as f64 + 0.5).json(),
            _ => known.clone(),
        },
        Json::String(text) if text.contains('\0') => Json::from(text.replace('\0', "")),
        Json::String(_) | Json::Bool(_) => known.clone(),
        _ => Json::from(pick(rng, STRINGS).replace('\0', "")),
    }
}

fn pattern(rng: &mut Rng, known: &Json) -> String {
    let text = match known {
        Json::String(text) => text.replace('\0', "_"),
        _ => pick(rng, STRINGS).replace('\0', "_"),
    };
    let cut: String = text.chars().take(rng.usize(..4)).collect();
    let escaped = cut.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    match rng.u8(..8) {
        0..4 => format!("{escaped}%"),
        4 => format!("%{escaped}"),
        5 => format!("{escaped}_%"),
        6 => escaped,
        _ => cut,
    }
}
