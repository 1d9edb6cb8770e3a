//! Tests the slice store against a model: random histories, crashes, faults and flipped bits. A
//! failure names the seed; `SEED=n cargo test -p tests --test slice_store` runs it alone.
//!
//! With `SURVEY=1` a test continues after a failure, prints the first line of each, and shows the
//! shortest history. `HISTORIES`, `WORKLOADS` and `PLACES` (of a crash or fault in each workload)
//! raise the counts beyond the minute of a usual run.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tests::slice_store::chain::{self, Effects};
use tests::slice_store::crash::{Fault, drive, run, sweep};
use tests::slice_store::plan::Plan;
use tests::slice_store::transfer::MoveRun;

/// Returns a number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Runs a test for `count` seeds, or for the seed in the environment, on all processors.
fn for_seeds(count: u64, test: impl Fn(u64) -> Result<(), String> + Sync) {
    let (from, end) = match number("SEED") {
        Some(seed) => (seed, seed + 1),
        None => (0, count),
    };
    let (next, failures) = (AtomicU64::new(from), Mutex::new(Vec::new()));
    let survey = number("SURVEY").is_some();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    if let Err(what) = test(seed) {
                        if survey {
                            eprintln!("SEED={seed}: {}", what.lines().next().unwrap_or_default());
                        } else {
                            next.store(end, Ordering::Relaxed);
                        }
                        let failure = format!("SEED={seed}: {what}");
                        failures.lock().expect("no test holds it").push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no test holds it");
    if let Some(shortest) = failures.iter().min_by_key(|what| what.len()) {
        panic!("{} of {} seeds failed; {shortest}", failures.len(), end - from);
    }
}

#[test]
fn random_histories_show_what_the_model_shows() {
    for_seeds(number("HISTORIES").unwrap_or(1000), |seed| run(&Plan::of(seed)).map(drop));
}

#[test]
fn histories_whose_flushes_and_merges_are_interrupted_show_what_the_model_shows() {
    let interrupted = AtomicU64::new(0);
    for_seeds(number("HISTORIES").unwrap_or(200), |seed| {
        let summary = run(&Plan::of(seed).interleaved())?;
        interrupted.fetch_add(summary.interrupted, Ordering::Relaxed);
        Ok(())
    });
    if number("SEED").is_none() {
        let interrupted = interrupted.into_inner();
        assert!(interrupted > 10_000, "blocking work was interrupted {interrupted} times");
    }
}

/// A step had been done in the store and in the model when work beside it failed in a crash, and was settled once more. A compaction
/// that had begun before a rollback raised the floor above the epoch of the rollback, so that nothing could be read until
/// the next one (1795415666). Armed faults struck in four recoveries in a row (1795416312). Epochs that waited for memory began a
/// second flush worker again and again, which found nothing, released the log and began a compaction: without end in
/// 1795577419, and with ever more memory in 1795577422.
#[test]
fn regression_seeds_find_no_violation() {
    let seeds =
        [1_795_395_868, 1_795_395_871, 1_795_415_666, 1_795_416_312, 1_795_577_419, 1_795_577_422];
    for seed in seeds {
        let summary = tests::layers::run(tests::layers::Layer::Store, seed, 0);
        assert!(summary.violations.is_empty(), "seed {seed}: {:?}", summary.violations);
    }
}

#[test]
fn an_interleaved_history_follows_from_its_seed() {
    let plan = Plan::of(5).interleaved();
    let twice = [run(&plan), run(&plan)].map(|ran| ran.expect("no violation"));
    assert_eq!(twice[0].operations, twice[1].operations);
    assert_eq!(twice[0].interrupted, twice[1].interrupted);
}

#[test]
fn a_crash_during_interrupted_work_loses_nothing_that_was_durable() {
    let places = number("PLACES").unwrap_or(15);
    for_seeds(number("WORKLOADS").unwrap_or(24), |seed| {
        sweep(&Plan::workload(seed).interleaved(), Fault::Crash, places).map(drop)
    });
}

#[test]
fn copies_that_move_on_and_on_show_the_documents_between_rollbacks() {
    let effects = Mutex::new(Effects::default());
    for_seeds(number("HISTORIES").unwrap_or(60), |seed| {
        for interleaved in [false, true] {
            *effects.lock().expect("no test holds it") += chain::run(seed, interleaved)?;
        }
        Ok(())
    });
    if number("SEED").is_none() {
        let Effects { moves, moves_on, rollbacks, crashes, compared, refused } =
            effects.into_inner().expect("no test holds it");
        let enough = [
            (moves, 500),
            (moves_on, 100),
            (rollbacks, 200),
            (crashes, 100),
            (compared, 30_000),
            (refused, 5_000),
        ];
        assert!(enough.iter().all(|(count, least)| count >= least), "{enough:?}");
    }
}

#[test]
fn a_crash_at_any_file_operation_loses_nothing_that_was_durable() {
    let places = number("PLACES").unwrap_or(40);
    for_seeds(number("WORKLOADS").unwrap_or(24), |seed| {
        sweep(&Plan::workload(seed), Fault::Crash, places).map(drop)
    });
}

#[test]
fn a_failing_file_operation_is_an_error_and_never_a_wrong_row() {
    let places = number("PLACES").unwrap_or(25);
    for_seeds(number("WORKLOADS").unwrap_or(24), |seed| {
        sweep(&Plan::workload(seed), Fault::Error, places).map(drop)
    });
}

#[test]
fn an_epoch_that_failed_is_whole_after_the_next_try() {
    let (places, tried_again) = (number("PLACES").unwrap_or(60), AtomicU64::new(0));
    for_seeds(number("WORKLOADS").unwrap_or(24), |seed| {
        let swept = sweep(&Plan::workload(seed), Fault::ErrorOfEpoch, places)?;
        tried_again.fetch_add(swept.tried_again, Ordering::Relaxed);
        Ok(())
    });
    if number("SEED").is_none() {
        let tried_again = tried_again.into_inner();
        assert!(tried_again > 10, "{tried_again} epochs were applied by a second try");
    }
}

#[test]
fn a_flipped_bit_is_reported_or_harmless() {
    for_seeds(number("WORKLOADS").unwrap_or(4), |seed| {
        drive(&Plan::workload(seed), async |driver| {
            let flips = driver.flip_bits(6).await?;
            assert!(flips.named > 0, "no flipped bit was found: {flips:?}");
            Ok(())
        })
        .map(drop)
    });
}

#[test]
fn a_moved_slice_matches_the_documents_at_every_epoch() {
    let (faults, compared) = (AtomicU64::new(0), AtomicU64::new(0));
    for_seeds(number("HISTORIES").unwrap_or(60), |seed| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let mut story = MoveRun::new(seed).await;
            story.run().await?;
            faults.fetch_add(story.faults.into(), Ordering::Relaxed);
            compared.fetch_add(story.compared, Ordering::Relaxed);
            Ok(())
        })
    });
    if number("SEED").is_none() {
        assert!(faults.into_inner() > 60, "things go wrong on purpose");
        assert!(compared.into_inner() > 1_000, "the moved slice is compared");
    }
}
