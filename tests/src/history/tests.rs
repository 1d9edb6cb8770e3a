use std::collections::BTreeMap;

use super::mutations::{ALL, Spoiled};
use super::*;

/// Returns a transaction in a range of time from a text: `r1:1,2` reads key 1 with the values 1 and
/// 2, `w1:1,2,3` writes it, and `b2` rolls back to before the operation with the index 2.
fn transaction((begun, ended): (u64, u64), text: &str, outcome: Outcome) -> Transaction {
    let operation = |word: &str| {
        let (kind, rest) = word.split_at(1);
        if kind == "b" {
            return Operation::Back(rest.parse().expect("an index"));
        }
        let (key, list) = rest.split_once(':').expect("a key and a list");
        let key = key.parse().expect("a key");
        let values = list.split(',').filter(|value| !value.is_empty());
        let list = values.map(|value| value.parse().expect("a value")).collect();
        match kind {
            "r" => Operation::Read { key, list },
            _ => Operation::Write { key, list },
        }
    };
    let operations = text.split_whitespace().map(operation).collect();
    Transaction { begun, ended, present: Present::OfAll, operations, outcome }
}

/// Returns committed transactions that are all concurrent.
fn at_once(texts: &[&str]) -> Vec<Transaction> {
    texts.iter().map(|text| transaction((0, 100), text, Outcome::Committed)).collect()
}

fn kinds(history: &[Transaction]) -> Vec<Kind> {
    let mut kinds: Vec<_> = check(history).into_iter().map(|anomaly| anomaly.kind).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

#[test]
fn a_clean_history_has_no_anomaly() {
    let history = vec![
        transaction((0, 1), "r1: w1:1 r1:1 w1:1,2", Outcome::Committed),
        transaction((2, 5), "r1:1,2 w1:1,2,3 r1:1,2,3 b1 r1:1,2 w1:1,2,4", Outcome::Committed),
        transaction((2, 5), "r1:1,2 r2: w2:9", Outcome::Aborted),
        transaction((3, 9), "r1:1,2 r2: w2:5", Outcome::Unknown),
        transaction((6, 7), "r2:5 r1:1,2,4", Outcome::Committed),
        transaction((6, 7), "r2:5 w2:5,6", Outcome::Unknown),
    ];
    assert_eq!(check(&history), []);
}

#[test]
fn write_skew_is_allowed() {
    let history = at_once(&["r1: r2: w1:1", "r1: r2: w2:2", "r1:1 r2:2"]);
    assert_eq!(check(&history), []);
}

#[test]
fn each_anomaly_is_found_in_a_history_that_shows_it() {
    let cases: [(Kind, &[&str]); 15] = [
        (Kind::G0, &["w1:1 w2:3,1", "w1:1,2 w2:3", "r1:1,2 r2:3,1"]),
        (Kind::G1b, &["w1:1 w1:1,2", "r1:1"]),
        (Kind::G1a, &["r1: w1:1 b1 r1:", "r1:1"]),
        (Kind::G1c, &["r2:2 w1:1", "r1:1 w2:2"]),
        // The first transaction sees the write of the second one in key 2 and lacks it in key 1.
        (Kind::GSingle, &["r1: r2:2", "r1: w1:1 r2: w2:2", "r1:1"]),
        // The cycle includes a third transaction.
        (Kind::GSingle, &["r1: r3:3", "r1: w1:1", "r1:1 r3: w3:3"]),
        (Kind::LostUpdate, &["r1: w1:1", "r1: w1:2"]),
        (Kind::LostUpdate, &["r1: w1:1", "r1: w1:1,2"]),
        (Kind::Internal, &["r1: w1:1 r1:"]),
        (Kind::G1a, &["r1: w1:1 b1 r1:1"]),
        (Kind::Internal, &["r1: w1:1", "r1: w1:1,2"]),
        (Kind::NonRepeatable, &["r1: r1:1", "w1:1"]),
        (Kind::Incompatible, &["w1:1", "w1:1,2", "w1:1,2,3", "r1:1,3"]),
        (Kind::Garbage, &["r1:7"]),
        (Kind::Garbage, &["w1:1", "r1:1,1"]),
    ];
    for (kind, texts) in cases {
        let found = kinds(&at_once(texts));
        assert!(found.contains(&kind), "{kind:?} in {texts:?}: {found:?}");
    }
}

#[test]
fn the_kinds_are_told_from_each_other() {
    assert_eq!(kinds(&at_once(&["w1:1 w2:3,1", "w1:1,2 w2:3"])), [Kind::G0]);
    assert_eq!(kinds(&at_once(&["r2:2 w1:1", "r1:1 w2:2"])), [Kind::G1c]);
    assert_eq!(kinds(&at_once(&["r1: r2:2", "r1: w1:1 r2: w2:2", "r1:1"])), [Kind::GSingle]);
    assert_eq!(kinds(&at_once(&["w1:1 w1:1,2", "r1:1", "r1:1,2"])), [Kind::G1b, Kind::GSingle]);
    assert_eq!(kinds(&at_once(&["r1: w1:1 r1:"])), [Kind::Internal]);
}

#[test]
fn time_and_outcomes_count() {
    let write = |outcome| transaction((0, 3), "r1: w1:1", outcome);
    let read = |begun, text| transaction((begun, 9), text, Outcome::Committed);
    assert_eq!(kinds(&[write(Outcome::Committed), read(4, "r1:")]), [Kind::Stale]);
    assert_eq!(kinds(&[write(Outcome::Committed), read(2, "r1:")]), []);
    assert_eq!(kinds(&[write(Outcome::Unknown), read(4, "r1:")]), []);
    assert_eq!(kinds(&[write(Outcome::Unknown), read(4, "r1:1"), read(4, "r1:")]), []);
    assert_eq!(kinds(&[write(Outcome::Aborted), read(4, "r1:1")]), [Kind::G1a]);
    let of = |present| Transaction { present, ..read(4, "r1:") };
    assert_eq!(kinds(&[write(Outcome::Committed), of(Present::OfNone)]), []);
    let of_bucket = |bucket| of(Present::OfBucket { bucket, buckets: 2 });
    assert_eq!(kinds(&[write(Outcome::Committed), of_bucket(0)]), []);
    assert_eq!(kinds(&[write(Outcome::Committed), of_bucket(1)]), [Kind::Stale]);
    // The reads of a transaction count, even if it was rolled back.
    let mut skewed = at_once(&["r1: r2:2", "r1: w1:1 r2: w2:2", "r1:1"]);
    skewed[0].outcome = Outcome::Aborted;
    assert_eq!(kinds(&skewed), [Kind::GSingle]);
    // The transaction was committed, since its value was read.
    let mut lost = at_once(&["r1: w1:1", "r1: w1:2", "r1:1"]);
    lost[0].outcome = Outcome::Unknown;
    assert!(kinds(&lost).contains(&Kind::LostUpdate));
    lost.pop();
    assert_eq!(kinds(&lost), []);
}

#[test]
fn histories_of_a_store_with_snapshot_isolation_are_clean() {
    let (mut commits, mut aborts) = (0, 0);
    for seed in 0..300 {
        let history = model_store::history(seed, 60);
        assert_eq!(check(&history), [], "seed {seed}");
        let count = |outcome| history.iter().filter(|one| one.outcome == outcome).count();
        commits += count(Outcome::Committed);
        aborts += count(Outcome::Aborted);
    }
    assert!(commits > 4_000 && aborts > 2_000, "{commits} commits, {aborts} aborts");
}

#[test]
fn each_mutation_of_a_clean_history_is_found() {
    let mut found: BTreeMap<usize, u32> = BTreeMap::new();
    for seed in 0..200 {
        for (number, (kind, mutation)) in ALL.iter().enumerate() {
            let mut spoiled = Spoiled::new(model_store::history(seed, 40), seed);
            if mutation(&mut spoiled) {
                *found.entry(number).or_default() += 1;
                let kinds = kinds(&spoiled.history);
                let case = format!("mutation {number} of seed {seed}");
                assert!(kinds.contains(kind), "{case}: {kind:?} is not among {kinds:?}");
            }
        }
    }
    for (number, (kind, _)) in ALL.iter().enumerate() {
        let count = found.get(&number).copied().unwrap_or_default();
        assert!(count >= 20, "mutation {number}, {kind:?}: {count} histories");
    }
}
