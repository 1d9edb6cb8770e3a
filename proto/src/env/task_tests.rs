//! Tests of the consequences of a panic or an end of a task.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, timeout};

use super::sim::{real_env_with_sim_fs, world};
use super::{Env, Panic, Task, TaskPolicy};

async fn next(failures: &mut UnboundedReceiver<String>) -> String {
    let next = timeout(Duration::from_secs(20), failures.recv()).await;
    next.expect("the process would end").expect("the environment is there")
}

#[tokio::test]
async fn a_service_that_panics_ends_the_process() {
    let (env, _, mut failures) = real_env_with_sim_fs(1);
    let _loop = env.spawn_service("a loop", async {
        tokio::task::yield_now().await;
        if true {
            panic!("no {}", "more");
        }
        pending::<Infallible>().await
    });
    assert_eq!(next(&mut failures).await, "task \"a loop\" panicked: no more");
}

#[tokio::test]
async fn a_panic_of_blocking_work_is_one_of_the_task_that_waits_for_it() {
    let (env, _, mut failures) = real_env_with_sim_fs(1);
    let own = env.clone();
    let _loop = env.spawn_service("a loop", async move {
        own.blocking(|| panic!("in the work")).await;
        pending::<Infallible>().await
    });
    assert_eq!(next(&mut failures).await, "task \"a loop\" panicked: in the work");
    env.spawn_blocking("work", TaskPolicy::EndProcess, || panic!("beside"));
    assert_eq!(next(&mut failures).await, "task \"work\" panicked: beside");
}

#[tokio::test]
async fn a_panic_of_work_at_once_means_what_its_policy_says() {
    let (env, _, mut failures) = real_env_with_sim_fs(1);
    assert_eq!(env.inline("short", TaskPolicy::EndProcess, || 7), Some(7));
    let none = env.inline("short", TaskPolicy::EndProcess, || -> u8 { panic!("half done") });
    assert_eq!(none, None);
    assert_eq!(next(&mut failures).await, "task \"short\" panicked: half done");
}

#[tokio::test]
async fn a_service_that_ends_ends_the_process() {
    let (env, _, mut failures) = real_env_with_sim_fs(1);
    let _loop = env.spawn_service("a loop", async { "its queue was closed" });
    assert_eq!(next(&mut failures).await, "task \"a loop\" ended: its queue was closed");
}

#[tokio::test]
async fn a_service_that_is_dropped_does_not_end_the_process() {
    let (env, _, mut failures) = real_env_with_sim_fs(1);
    drop(env.spawn_service("a loop", pending::<Infallible>()));
    let _other = env.spawn_service("another", async { "in its place" });
    assert_eq!(next(&mut failures).await, "task \"another\" ended: in its place");
}

#[tokio::test]
async fn a_panic_of_a_request_concerns_its_caller_only() {
    let (env, _, mut failures) = real_env_with_sim_fs(1);
    let (answer, answered) = tokio::sync::oneshot::channel::<()>();
    let request = async move {
        let _answer = answer;
        panic!("in a request");
    };
    env.spawn_request("a request", request).detach();
    assert!(answered.await.is_err(), "the caller sees that no answer comes");
    env.spawn_blocking("work", TaskPolicy::Request, || panic!("in work of a request"));
    let _other = env.spawn_service("a loop", async { "later" });
    assert_eq!(next(&mut failures).await, "task \"a loop\" ended: later");
}

#[tokio::test(start_paused = true)]
async fn a_restarted_task_begins_anew_with_growing_pauses() {
    let (env, ..) = real_env_with_sim_fs(1);
    let times = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&times);
    let _task = env.spawn_restarted("a loop", move || {
        count.fetch_add(1, Ordering::Relaxed);
        async {
            if true {
                panic!("once more");
            }
            pending::<Infallible>().await
        }
    });
    let begun = Instant::now();
    for (at_ms, at_least, at_most) in
        [(50, 1, 1), (150, 2, 2), (350, 3, 3), (750, 4, 4), (60_000, 11, 13)]
    {
        tokio::time::sleep_until(begun + Duration::from_millis(at_ms)).await;
        let times = times.load(Ordering::Relaxed);
        assert!((at_least..=at_most).contains(&times), "{times} times after {at_ms} ms");
    }
}

#[tokio::test]
async fn a_restarted_task_that_ends_is_done() {
    let (env, ..) = real_env_with_sim_fs(1);
    let (begun, mut times) = unbounded_channel();
    let _task = env.spawn_restarted("a task", move || {
        let begun = begun.clone();
        async move { begun.send(()).expect("the test listens") }
    });
    assert_eq!(times.recv().await, Some(()));
    assert_eq!(times.recv().await, None, "it does not begin again");
}

/// Starts a task in the simulation's environment; returns true if the runtime ends with a panic.
#[cfg(tokio_unstable)]
fn is_violated_by(start: impl FnOnce(&Env) -> Task) -> bool {
    use tokio::runtime::{Builder, UnhandledPanic};

    let mut builder = Builder::new_current_thread();
    builder.enable_all().unhandled_panic(UnhandledPanic::ShutdownRuntime);
    let runtime = builder.build().expect("a runtime");
    let run = async {
        start(&world(1).0).detach();
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    Panic::catch(|| runtime.block_on(run)).is_err()
}

#[cfg(tokio_unstable)]
#[test]
fn each_failure_is_a_violation_in_the_simulation() {
    let told = || async {
        if true {
            panic!("as told");
        }
    };
    assert!(is_violated_by(|env| env.spawn_request("a request", told())));
    assert!(is_violated_by(|env| env.spawn_restarted("a loop", told)));
    assert!(is_violated_by(|env| env.spawn_service("a loop", async { "as told" })));
    assert!(!is_violated_by(|env| env.spawn_request("a request", async {})));
}
