//! Tests scans during moves of slices: the published vectors and random cases against the real
//! services in the simulation.
//! `cargo run --release -p tests --bin vscan-cases -- --generate 5000 --quiet` runs more.

use tests::vscan::case::Case;
use tests::vscan::generate::generate;
use tests::vscan::play::play;

/// The number of random cases in a usual run.
const GENERATED: u64 = 24;

fn check(case: &Case, seed: u64) {
    let outcome = play(case, seed);
    if let Some(error) = case.judge(&outcome) {
        panic!("{}: {error}; rows {:?}", case.name, outcome.rows);
    }
}

#[test]
fn the_published_vectors_pass() {
    let cases = Case::read_all(include_str!("../vectors/virtual_scan.json")).expect("the vectors");
    assert_eq!(cases.len(), 10);
    for case in &cases {
        check(case, 1);
        let fired = play(case, 2).events_fired;
        assert_eq!(fired, case.events.len(), "{}: each event has happened", case.name);
    }
}

#[test]
fn each_row_comes_once_while_slices_move() {
    (1..=GENERATED).for_each(|seed| check(&generate(seed), seed));
}

/// Two partitions had come to places that their cases did not know, because an event took place before one that it
/// needed; the leader had removed a surplus copy between a read of the catalog and the move; and it removed a new copy
/// before the case received it in a catalog.
#[test]
fn regression_seeds_pass() {
    let seeds = [1_795_379_002, 1_795_387_361, 1_795_394_946, 1_795_395_221, 1_795_420_055];
    seeds.into_iter().for_each(|seed| check(&generate(seed), seed));
}

#[test]
fn the_judge_finds_lost_doubled_and_misordered_rows() {
    let mut case = generate(1);
    case.order = "sorted".into();
    let mut outcome = tests::vscan::case::Outcome { rows: case.must.clone(), ..Default::default() };
    outcome.rows.sort();
    assert_eq!(case.judge(&outcome), None);
    let wrong = |change: &dyn Fn(&mut Vec<_>)| {
        let mut changed = outcome.clone();
        change(&mut changed.rows);
        case.judge(&changed)
    };
    assert!(
        wrong(&|rows| rows.truncate(rows.len() - 1)).is_some_and(|why| why.contains("missing"))
    );
    assert!(wrong(&|rows| rows.push(rows[0])).is_some_and(|why| why.contains("times")));
    assert!(wrong(&|rows| rows.push((99, 99, 1))).is_some_and(|why| why.contains("none of")));
    assert!(wrong(&|rows| rows.reverse()).is_some_and(|why| why.contains("order")));
}
