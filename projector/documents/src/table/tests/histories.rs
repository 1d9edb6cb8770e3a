//! Tests that each read equals that of a naive model, whatever the history. Proptest looks for short histories;
//! a fixed number of long ones is drawn from seeds.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::history::History;
use super::steps::{Fate, Kind, Step, Told};

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        5 => Just(Kind::Flush),
        1 => Just(Kind::Merge),
        1 => Just(Kind::FullMerge),
        3 => any::<u64>().prop_map(Kind::Neighbours),
    ]
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        12 => Just(Fate::Installed),
        1 => Just(Fate::Dropped),
        1 => Just(Fate::FailedAndWritten),
        1 => Just(Fate::Failed),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => vec((0..24u32, option::weighted(0.8, 0..60u16)), 1..8).prop_map(Step::Write),
        4 => vec((0..4u16, 0..12u64), 1..4).prop_map(Step::Rewind),
        1 => (0..4u16, vec(0..24u32, 0..12)).prop_map(|(v, ids)| Step::Replace(v, ids)),
        3 => (0..4u16, 0..8u64).prop_map(|(v, by)| Step::Raise(v, by)),
        8 => (kind(), 0..6usize, fate()).prop_map(|(kind, n, fate)| Step::Change(kind, n, fate)),
        3 => (option::of(any::<u64>()), option::of(0..24u32)).prop_map(|(c, a)| Step::Walk(c, a)),
        6 => (0..4usize, 1..400usize).prop_map(|(walk, bytes)| Step::Read(walk, bytes)),
        6 => any::<u64>().prop_map(Step::Check),
        1 => Just(Step::Reopen),
        1 => (0..60u64).prop_map(Step::Crash),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn short_histories_read_like_the_model(steps in vec(step(), 1..80), seed in any::<u64>()) {
        History::new(seed).run(&steps);
    }
}

/// Returns a step that is drawn from random numbers.
fn drawn(random: &mut fastrand::Rng) -> Step {
    let documents = |random: &mut fastrand::Rng| {
        let count = random.usize(1..40);
        let one = |_| (random.u32(0..24), (random.u8(0..5) > 0).then(|| random.u16(0..200)));
        (0..count).map(one).collect()
    };
    match random.u8(0..100) {
        0..35 => Step::Write(documents(random)),
        35..42 => Step::Rewind((0..random.u16(1..4)).map(|v| (v, random.u64(0..30))).collect()),
        42..43 => Step::Replace(random.u16(0..4), (0..12).map(|_| random.u32(0..24)).collect()),
        43..48 => Step::Raise(random.u16(0..4), random.u64(0..20)),
        48..62 => {
            let kind = match random.u8(0..10) {
                0..6 => Kind::Flush,
                6 => Kind::Merge,
                7..9 => Kind::Neighbours(random.u64(..)),
                _ => Kind::FullMerge,
            };
            let fate = match random.u8(0..24) {
                0 => Fate::Dropped,
                1 => Fate::Failed,
                2 => Fate::FailedAndWritten,
                _ => Fate::Installed,
            };
            Step::Change(kind, random.usize(0..6), fate)
        }
        62..70 => {
            let cut = random.bool().then(|| random.u64(..));
            Step::Walk(cut, random.bool().then(|| random.u32(0..24)))
        }
        70..84 => Step::Read(random.usize(0..8), random.usize(1..3000)),
        84..97 => Step::Check(random.u64(..)),
        97..98 => Step::Reopen,
        98..99 => Step::Crash(random.u64(0..200)),
        _ => Step::Crash(0),
    }
}

fn long_history(seed: u64) -> Told {
    let mut random = fastrand::Rng::with_seed(seed);
    let steps: Vec<Step> = (0..1200).map(|_| drawn(&mut random)).collect();
    let mut history = History::new(seed);
    history.run(&steps);
    history.told
}

#[test]
fn long_histories_read_like_the_model() {
    for seed in 0..12 {
        let told = long_history(seed);
        // A history in which little happens proves little.
        assert!(told.flushes > 30 && told.merges > 3, "{told:?}");
        assert!(told.dead > 60 && told.crashes > 3, "{told:?}");
        assert!(told.rows_walked > 200 && told.cuts > 1500, "{told:?}");
    }
}
