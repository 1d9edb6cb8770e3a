//! Tests of blocking work in steps.

use std::path::Path;

use super::*;
use crate::env::failure::TaskPolicy;
use crate::env::files::{FileSystem, OpenMode};
use crate::env::seams::Env;
use crate::env::sim::{SimFs, world};
use crate::lock::lock;

const PACES: PaceOdds = PaceOdds { whole_one_in: 4, slow_one_in: 2, slow_ms_max: 60 };

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().expect("a runtime")
}

fn process(interleaving: &Interleaving, fs: &SimFs) -> Env {
    let spawner = interleaving.process_spawners().spawner();
    Env { spawner, fs: Arc::new(fs.clone()), ..world(1).0 }
}

/// Returns the steps of pieces of work and a task, in the order in which they ran, as text.
fn told(seed: u64) -> String {
    let interleaving = Interleaving::new(seed, PACES);
    let env = process(&interleaving, &SimFs::new(seed));
    let told = Arc::new(Mutex::new(String::new()));
    runtime().block_on(async {
        let works = "abcdefgh".chars().map(|name| {
            let told = Arc::clone(&told);
            env.blocking(move || (0..8).for_each(|_| lock(&told).push(name)))
        });
        let task = async {
            for _ in 0..8 {
                lock(&told).push('.');
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::join!(futures::future::join_all(works), task);
    });
    assert!(interleaving.take_panic().is_none());
    lock(&told).clone()
}

#[test]
fn the_order_follows_from_the_seed() {
    let orders: Vec<String> = (0..20).map(told).collect();
    for (seed, order) in (0..).zip(&orders) {
        assert_eq!(order.len(), 72, "{order}: each has done its part");
        assert_eq!(*order, told(seed));
    }
    let is_interrupted = |order: &&String| !order.contains("aaaaaaaa");
    assert!(orders.iter().filter(is_interrupted).count() > 3, "{orders:?}");
}

#[test]
fn the_simulation_waits_for_a_lock_that_paused_work_has() {
    let mut vain_tries = 0;
    for seed in 0..20 {
        let interleaving = Interleaving::new(seed, PACES);
        let env = process(&interleaving, &SimFs::new(seed));
        let (sum, other) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(())));
        runtime().block_on(async {
            let work = || {
                let (sum, other) = (Arc::clone(&sum), Arc::clone(&other));
                env.blocking(move || {
                    for _ in 0..50 {
                        let mut sum = lock(&sum);
                        let before = *sum;
                        drop(lock(&other));
                        *sum = before + 1;
                    }
                })
            };
            let looks = async {
                for _ in 0..50 {
                    *lock(&sum) += 1;
                    tokio::task::yield_now().await;
                }
            };
            tokio::join!(futures::future::join_all((0..4).map(|_| work())), looks);
        });
        assert_eq!(*lock(&sum), 250);
        vain_tries += interleaving.counts().vain_tries;
    }
    assert!(vain_tries > 20, "{vain_tries} vain tries");
}

/// After the end of a process, none of its threads writes into the files of the next process or
/// holds a lock of it.
#[test]
fn the_work_of_a_process_ends_with_its_runtime() {
    let mut cut_short = 0;
    for seed in 0..40 {
        let (interleaving, fs) = (Interleaving::new(seed, PACES), SimFs::new(seed));
        let shared = Arc::new(Mutex::new(0));
        let one = runtime();
        one.block_on(async {
            let env = process(&interleaving, &fs);
            let (files, counted) = (Arc::clone(&env.fs), Arc::clone(&shared));
            env.spawn_blocking("writes", TaskPolicy::EndProcess, move || {
                let mut count = lock(&counted);
                for n in 0..100_u64 {
                    let path = format!("/{n}");
                    let Ok(file) = files.open(Path::new(&path), OpenMode::Create) else { continue };
                    // The write fails when the machine is down.
                    let _ = file.write_all_at(b"of the first process", 0);
                    *count += 1;
                }
            });
            tokio::time::sleep(Duration::from_millis(1)).await;
        });
        fs.crash();
        drop(one);
        fs.restart();
        let files = fs.list(Path::new("/")).expect("a listing").len();
        let counts = interleaving.counts();
        cut_short += counts.cut_short;
        assert!(files <= 100 && interleaving.take_panic().is_none());
        // The lock is free, and no piece of work continues.
        let counted = *lock(&shared);
        assert!(counts.cut_short == 0 || counted < 100, "seed {seed}: {counted}");
        runtime().block_on(async { tokio::time::sleep(Duration::from_secs(1)).await });
        assert_eq!(*lock(&shared), counted);
        assert_eq!(fs.list(Path::new("/")).expect("a listing").len(), files);
    }
    assert!(cut_short > 5, "{cut_short} pieces of work were cut short");
}

#[test]
fn a_panic_of_work_that_nobody_waits_for_is_not_lost() {
    for seed in 0..10 {
        let interleaving = Interleaving::new(seed, PACES);
        let env = process(&interleaving, &SimFs::new(seed));
        let ran = Panic::catch(|| {
            runtime().block_on(async {
                env.spawn_blocking("work", TaskPolicy::EndProcess, || panic!("as told"));
                tokio::time::sleep(Duration::from_secs(1)).await;
            });
        });
        let panic = interleaving.take_panic().or(ran.err()).expect("a panic");
        assert!(panic.to_string().contains("as told"), "{panic}");
    }
}

/// A lock-order inversion must be detected.
#[test]
fn a_deadlock_is_found() {
    let is_found = |seed: &u64| {
        let interleaving = Interleaving::new(*seed, PACES);
        let env = process(&interleaving, &SimFs::new(*seed));
        let (one, other) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(())));
        let takes = |first: &Arc<Mutex<()>>, then: &Arc<Mutex<()>>| {
            let (first, then) = (Arc::clone(first), Arc::clone(then));
            env.blocking(move || {
                let _first = lock(&first);
                drop(lock(&then));
            })
        };
        runtime().block_on(async {
            let both = futures::future::join(takes(&one, &other), takes(&other, &one));
            let ended = tokio::time::timeout(Duration::from_secs(60), both).await;
            let told = interleaving.take_panic();
            assert_eq!(ended.is_err(), told.is_some(), "seed {seed}: {told:?}");
            told.is_some_and(|told| told.to_string().contains("a deadlock"))
        })
    };
    assert!((0..200).any(|seed| is_found(&seed)));
}
