//! The choice of an operator or function among those with a name, by the types of the arguments:
//! PostgreSQL's manual, sections "Operators" and "Functions" of the chapter "Type Conversion". The
//! comments number the steps as the manual does.

use super::coerce::{Context, can_coerce, category, is_preferred};
use super::polymorphic::polymorphic;
use crate::data::data;
use crate::types::Type;
use crate::types::oid::{self, Oid};

/// An operator or function that may be meant.
#[derive(Clone, Debug)]
pub(super) struct Candidate<T> {
    /// The types of its parameters, one for each argument.
    pub(super) parameters: Vec<Oid>,
    /// The operator or function.
    pub(super) choice: T,
}

/// Why none was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoChoice {
    /// None takes these arguments.
    None,
    /// Several do, and none fits better than the others.
    Ambiguous,
}

/// Chooses among candidates. `binary` is true for operators with two operands.
pub(super) fn choose<T>(
    candidates: Vec<Candidate<T>>,
    arguments: &[Oid],
    binary: bool,
) -> Result<Candidate<T>, NoChoice> {
    // Step 2 (2.a): an exact match; an unknown operand is taken for the type of the other one.
    let mut exact = arguments.to_vec();
    if let (true, [left, right]) = (binary, &mut exact[..]) {
        match (*left, *right) {
            (oid::UNKNOWN, known) => *left = known,
            (known, oid::UNKNOWN) => *right = known,
            _ => {}
        }
    }
    if let Some(at) = candidates.iter().position(|c| c.parameters == exact) {
        return take(candidates, at);
    }
    // Step 3.a (4.a): all arguments can be converted.
    let types: Vec<Type> = arguments.iter().map(|ty| Type::Plain(*ty)).collect();
    let fits = |c: &Candidate<T>| {
        let mut pairs = arguments.iter().zip(&c.parameters);
        pairs.all(|(from, to)| can_coerce(*from, *to, Context::Implicit))
            && polymorphic(&c.parameters, &types, oid::VOID).is_ok()
    };
    let mut left: Vec<Candidate<T>> = candidates.into_iter().filter(|c| fits(c)).collect();
    // Step 3.b: domains count as their base types.
    let bases: Vec<Oid> = arguments.iter().map(|ty| data().base(*ty)).collect();
    // Steps 3.c and 3.d: the most exact matches, then the most exact matches or preferred types.
    keep_best(&mut left, |c| count(c, &bases, |from, to| from == to));
    keep_best(&mut left, |c| {
        count(c, &bases, |from, to| {
            from == to || (category(from) == category(to) && is_preferred(to))
        })
    });
    // Step 3.e: the category of the unknown arguments.
    for (at, _) in bases.iter().enumerate().filter(|(_, ty)| **ty == oid::UNKNOWN) {
        choose_category(&mut left, at)?;
    }
    // Step 3.f: unknown arguments are of the type that all known ones have.
    if left.len() > 1 {
        let mut known = bases.iter().filter(|ty| **ty != oid::UNKNOWN);
        if let Some(first) = known.next().filter(|first| known.all(|ty| ty == *first)) {
            let takes_all = |c: &Candidate<T>| {
                c.parameters.iter().all(|to| can_coerce(*first, *to, Context::Implicit))
            };
            let mut at = (0..left.len()).filter(|at| takes_all(&left[*at]));
            if let (Some(only), None) = (at.next(), at.next()) {
                return take(left, only);
            }
        }
    }
    match left.len() {
        0 => Err(NoChoice::None),
        1 => take(left, 0),
        _ => Err(NoChoice::Ambiguous),
    }
}

fn take<T>(mut candidates: Vec<Candidate<T>>, at: usize) -> Result<Candidate<T>, NoChoice> {
    Ok(candidates.swap_remove(at))
}

/// Counts the arguments of known type for which `test` is true.
fn count<T>(candidate: &Candidate<T>, arguments: &[Oid], test: impl Fn(Oid, Oid) -> bool) -> usize {
    let pairs = arguments.iter().zip(&candidate.parameters);
    pairs.filter(|(from, to)| **from != oid::UNKNOWN && test(**from, **to)).count()
}

/// Leaves the candidates with the highest score.
fn keep_best<T>(candidates: &mut Vec<Candidate<T>>, score: impl Fn(&Candidate<T>) -> usize) {
    let best = candidates.iter().map(&score).max();
    candidates.retain(|candidate| Some(score(candidate)) == best);
}

/// Leaves the candidates of one category at an unknown argument: strings if a candidate takes them.
fn choose_category<T>(candidates: &mut Vec<Candidate<T>>, at: usize) -> Result<(), NoChoice> {
    if candidates.len() <= 1 {
        return Ok(());
    }
    let of = |c: &Candidate<T>| category(c.parameters[at]);
    let first = of(&candidates[0]);
    let chosen = match candidates.iter().any(|c| of(c) == 'S') {
        true => 'S',
        false if candidates.iter().all(|c| of(c) == first) => first,
        // Step 3.f may still choose by the known arguments.
        false => return Ok(()),
    };
    candidates.retain(|c| category(c.parameters[at]) == chosen);
    if candidates.iter().any(|c| is_preferred(c.parameters[at])) {
        candidates.retain(|c| is_preferred(c.parameters[at]));
    }
    Ok(())
}
