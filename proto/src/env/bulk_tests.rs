//! Tests of threads for bulk work, and of other work at the same time.
#![allow(clippy::disallowed_methods, reason = "real threads are what is tested")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;

use super::sim::world;
use super::{Bulk, Env};

#[cfg(target_os = "linux")]
fn nice() -> i32 {
    rustix::process::getpriority_process(None).expect("a thread has a priority")
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn bulk_work_gives_way_to_other_work() {
    let env = Env::real();
    let usual = env.blocking(nice).await;
    assert!(env.bulk(Bulk::Queued, nice).await > usual);
    assert!(env.bulk(Bulk::AtOnce, nice).await > usual);
    assert_eq!(env.blocking(nice).await, usual, "other threads stay as they are");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_bulk_work_begins_has_the_usual_priority() {
    let env = Env::real();
    let usual = env.blocking(nice).await;
    let (sender, told) = std::sync::mpsc::channel();
    let inner = env.clone();
    env.bulk(Bulk::Queued, move || {
        // More than there are idle threads, so that others begin.
        for _ in 0..32 {
            let sender = sender.clone();
            inner.spawn_blocking("work", super::TaskPolicy::Request, move || {
                std::thread::sleep(Duration::from_millis(20));
                let _gone = sender.send(nice());
            });
        }
    })
    .await;
    let all: Vec<i32> = env.blocking(move || told.iter().collect()).await;
    assert_eq!(all, [usual; 32]);
}

#[tokio::test]
async fn bulk_work_has_one_thread_for_each_processor() {
    let (env, running, most) = (Env::real(), Arc::default(), Arc::default());
    let job = || {
        let (running, most): (Arc<AtomicUsize>, Arc<AtomicUsize>) =
            (Arc::clone(&running), Arc::clone(&most));
        env.bulk(Bulk::Queued, move || {
            let now = running.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(5));
            running.fetch_sub(1, Ordering::SeqCst);
        })
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    join_all((0..4 * processors).map(|_| job())).await;
    assert_eq!(most.load(Ordering::SeqCst), processors);
    // The threads have ended by then, and others begin.
    tokio::time::sleep(Duration::from_millis(100)).await;
    join_all((0..4 * processors).map(|_| job())).await;
    assert_eq!(most.load(Ordering::SeqCst), processors);
}

#[tokio::test]
async fn what_begins_at_once_does_not_stand_behind_queued_work() {
    let (env, ended) = (Env::real(), Arc::new(AtomicUsize::new(0)));
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    for _ in 0..2 * processors {
        let ended = Arc::clone(&ended);
        env.spawn_bulk(("work", Bulk::Queued), super::TaskPolicy::Request, move || {
            std::thread::sleep(Duration::from_millis(300));
            ended.fetch_add(1, Ordering::SeqCst);
        });
    }
    let all = (0..2 * processors).map(|_| env.bulk(Bulk::AtOnce, || ()));
    join_all(all).await;
    assert_eq!(ended.load(Ordering::SeqCst), 0);
}

#[test]
fn the_end_of_a_runtime_waits_for_bulk_work() {
    let ended = Arc::new(AtomicUsize::new(0));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let (begun, ended) = (Arc::new(tokio::sync::Notify::new()), Arc::clone(&ended));
        let has_begun = Arc::clone(&begun);
        let work = move || {
            begun.notify_one();
            std::thread::sleep(Duration::from_millis(100));
            ended.store(1, Ordering::SeqCst);
        };
        Env::real().spawn_bulk(("work", Bulk::Queued), super::TaskPolicy::Request, work);
        has_begun.notified().await;
    });
    drop(runtime);
    assert_eq!(ended.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn work_beside_other_work_runs_on_another_thread() {
    let caller = std::thread::current().id();
    let id = || std::thread::current().id();
    let (aside, own) = Env::real().run_both(id, id);
    assert!(own == caller && aside != caller);
    let (aside, own) = world(1).0.run_both(id, id);
    assert!(own == caller && aside == caller, "the simulation has one thread");
}

#[tokio::test]
async fn a_panic_of_one_piece_of_work_waits_for_the_other() {
    let ended = AtomicUsize::new(0);
    let aside = || {
        std::thread::sleep(Duration::from_millis(20));
        ended.store(1, Ordering::SeqCst);
    };
    let both = || Env::real().run_both(aside, || panic!("as told"));
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(both));
    assert!(caught.is_err());
    assert_eq!(ended.load(Ordering::SeqCst), 1);
}

#[test]
fn a_runtime_that_ends_early_leaves_no_work_behind() {
    let (env, kept) = (Env::real(), Arc::new(()));
    for _ in 0..20 {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            for _ in 0..8 {
                let kept = Arc::clone(&kept);
                env.spawn_bulk(("work", Bulk::Queued), super::TaskPolicy::Request, move || {
                    drop(kept)
                });
            }
        });
        runtime.shutdown_background();
    }
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while Arc::strong_count(&kept) > 1 {
        assert!(std::time::Instant::now() < deadline, "all was run or dropped");
        std::thread::sleep(Duration::from_millis(5));
    }
}
