//! Tests of threads that are lent for brief blocking work.
#![allow(clippy::disallowed_methods, reason = "real threads are what is tested")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::Env;
use super::sim::world;

/// True if brief work runs on the thread of its caller.
async fn is_lent(env: &Env, work: impl FnOnce() + Send + 'static) -> bool {
    let caller = std::thread::current().id();
    let ran_on = move || {
        work();
        std::thread::current().id()
    };
    env.blocking_briefly(ran_on).await == caller
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn brief_work_runs_on_its_callers_thread_one_at_a_time() {
    let env = Env::real();
    let (inner, own) = (Arc::new(AtomicU32::new(0)), env.clone());
    let in_a_task = async move {
        let (count, other) = (Arc::clone(&inner), own.clone());
        let runtime = tokio::runtime::Handle::current();
        let is_outer_lent = is_lent(&own, move || {
            let is_inner_lent = || other.spawner.lend_thread().is_some();
            let _entered = runtime.enter();
            count.store(1 + u32::from(is_inner_lent()), Ordering::Relaxed);
        });
        (is_outer_lent.await, inner.load(Ordering::Relaxed))
    };
    assert_eq!(tokio::spawn(in_a_task).await.expect("no panic"), (true, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_thread_is_lent_for_a_while_after_work_that_was_not_brief() {
    let env = Env::real();
    let in_a_task = async move {
        assert!(is_lent(&env, || std::thread::sleep(Duration::from_millis(20))).await);
        assert!(!is_lent(&env, || ()).await, "ten times 20 ms");
        let deadline = Instant::now() + Duration::from_secs(20);
        while !is_lent(&env, || ()).await {
            assert!(Instant::now() < deadline, "a thread is lent again");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::spawn(in_a_task).await.expect("no panic");
}

/// Timers must work while a thread is lent: a timer has woken the lent thread, and the other worker
/// thread sleeps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timers_go_on_while_a_thread_is_lent_for_long() {
    let env = Env::real();
    let begun = Instant::now();
    let lent = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        is_lent(&env, || std::thread::sleep(Duration::from_secs(3))).await
    });
    let timer = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        begun.elapsed()
    });
    let fired = timer.await.expect("no panic");
    assert!(lent.await.expect("no panic"), "the thread was lent");
    assert!(fired < Duration::from_secs(2), "fired after {fired:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_only_thread_is_not_lent() {
    let env = Env::real();
    let in_a_task = async move { is_lent(&env, || ()).await };
    assert!(!tokio::spawn(in_a_task).await.expect("no panic"));
}

#[tokio::test]
async fn the_simulation_lends_no_thread() {
    assert!(world(1).0.spawner.lend_thread().is_none());
}
