//! Tests of blocking work in turns.

use super::*;
use crate::env::failure::TaskPolicy;
use crate::env::seams::Env;
use crate::env::sim::world;

/// Returns the steps of three pieces of work and a task, in the order in which they ran, as text.
fn told(seed: u64) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let turns = Turns::new(seed);
        let env = Env { spawner: turns.spawner(), ..world(seed).0 };
        let told = Arc::new(Mutex::new(String::new()));
        let works = "abc".chars().map(|name| {
            let told = Arc::clone(&told);
            env.blocking(move || (0..8).for_each(|_| lock(&told).push(name)))
        });
        let works: Vec<_> = works.collect();
        let task = async {
            for _ in 0..8 {
                lock(&told).push('.');
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(futures::future::join_all(works), task);
        while turns.is_busy() {
            tokio::task::yield_now().await;
        }
        lock(&told).clone()
    })
}

#[test]
fn the_order_follows_from_the_seed() {
    let orders: BTreeSet<String> = (0..20).map(told).collect();
    assert!(orders.len() > 15, "{orders:?}");
    for order in &orders {
        assert_eq!(order.len(), 32, "{order}: each has done its part");
        assert!(!order.contains("aaaaaaaabbbbbbbb"), "{order}: they are interrupted");
    }
    (0..20).for_each(|seed| assert_eq!(told(seed), told(seed)));
}

#[test]
fn a_lock_is_held_across_turns_and_by_one_thread() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let turns = Turns::new(3);
        let env = Env { spawner: turns.spawner(), ..world(3).0 };
        let (sum, other) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(())));
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
        futures::future::join_all((0..4).map(|_| work())).await;
        assert_eq!(*lock(&sum), 200);
        assert!(turns.switches() > 50, "{} switches", turns.switches());
    });
}

#[test]
#[should_panic(expected = "as told")]
fn a_panic_of_work_that_nobody_waits_for_is_not_lost() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let turns = Turns::new(3);
        let env = Env { spawner: turns.spawner(), ..world(3).0 };
        env.spawn_blocking("work", TaskPolicy::EndProcess, || panic!("as told"));
        while turns.is_busy() {
            tokio::task::yield_now().await;
        }
        turns.resume_panic();
    });
}
