//! The slice store against a model: random histories, each replayed from its seed by
//! `SEED=n cargo test -p tests --test slice_store`.

use tests::slice_store::crash::run;
use tests::slice_store::driver::Plan;

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn random_histories_show_what_the_model_shows() {
    let (from, count) = match number("SEED") {
        Some(seed) => (seed, 1),
        None => (0, number("HISTORIES").unwrap_or(2000)),
    };
    for seed in from..from + count {
        if let Err(what) = run(&Plan::of(seed)) {
            panic!("SEED={seed}: {what}");
        }
    }
}
