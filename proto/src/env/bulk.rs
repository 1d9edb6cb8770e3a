//! Threads of low priority for bulk work: the work of large requests.
//!
//! One COPY has work for more threads than a machine has processors. A concurrent small write,
//! which needs several threads one after another, would wait for a processor at each of them. So
//! bulk work has few threads, and the system schedules them when no others need the processor, with
//! a small guaranteed share. Without other work they run at full speed.
//!
//! There are two kinds. *Queued* work creates further work: checks of documents, reads of an index
//! build. It runs on one thread per processor, and the remaining queued work waits. The further
//! work, in streams and stores, begins *at once*, on additional threads of low priority: queued
//! work waits for its results, so it must not be queued after work that creates more.
//!
//! A thread with a low priority cannot take a normal one again without privileges, so these threads
//! are not tokio's. For each of them a blocking thread of tokio waits, so that the end of a runtime
//! waits for bulk work like for other blocking work.
//!
//! Queued work may wait for locks that others hold, but never for other queued work, which may be
//! later in the queue.
#![allow(clippy::disallowed_methods, reason = "this is the seam that the lint points to")]

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;

use crate::lock::lock;

/// The `nice` value of the threads. Each has about a thirtieth of the weight of a usual thread, and
/// a COPY has some ten of them. So they continue slowly even if others use all processors, and
/// release the locks that others wait for.
const NICE: i32 = 15;
/// The time without work after which a thread ends. The end of a runtime may have to wait for it.
const IDLE: Duration = Duration::from_millis(20);

type Job = Box<dyn FnOnce() + Send>;

thread_local! {
    /// True on a thread of low priority.
    static IS_LOW: Cell<bool> = const { Cell::new(false) };
}

/// Runs blocking work on one of tokio's threads. A new thread inherits the priority of its creator,
/// and tokio's threads later run other work, so a thread of bulk work must let a task create them.
pub(super) fn spawn_blocking(runtime: &Handle, work: Job) {
    if !IS_LOW.get() {
        runtime.spawn_blocking(work);
        return;
    }
    let inner = runtime.clone();
    drop(runtime.spawn(async move { drop(inner.spawn_blocking(work)) }));
}

/// A bounded number of threads of low priority, which are created for work and end without it.
pub(super) struct BulkThreads {
    state: Mutex<State>,
    added: Condvar,
    threads_max: usize,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

impl BulkThreads {
    /// Creates a pool with as many threads as there are processors.
    pub fn for_queued() -> Self {
        Self::up_to(std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// Creates a pool with as many threads as there is work, which its callers bound.
    pub fn at_once() -> Self {
        Self::up_to(usize::MAX)
    }

    fn up_to(threads_max: usize) -> Self {
        Self { state: Mutex::default(), added: Condvar::new(), threads_max }
    }

    /// Runs work on one of the threads, in the runtime of the caller, after the waiting work.
    pub fn run(self: &Arc<Self>, work: Job) {
        let runtime = Handle::current();
        let in_runtime = runtime.clone();
        let job = Box::new(move || {
            let _entered = in_runtime.enter();
            work();
        });
        let mut state = lock(&self.state);
        state.jobs.push_back(job);
        if state.jobs.len() <= state.idle || state.threads >= self.threads_max {
            drop(state);
            self.added.notify_one();
            return;
        }
        state.threads += 1;
        drop(state);
        let place = Place { threads: Arc::clone(self), is_given_back: false };
        spawn_blocking(&runtime, Box::new(move || place.host()));
    }
}

/// A permit for one thread of the pool.
struct Place {
    threads: Arc<BulkThreads>,
    is_given_back: bool,
}

impl Place {
    /// Starts a thread of low priority that runs jobs, and waits for its end.
    fn host(mut self) {
        let place = &mut self;
        let ended = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("bulk work".to_owned());
            let begun = thread.spawn_scoped(scope, || {
                lower_priority();
                place.serve();
            });
            begun.map(drop)
        });
        if let Err(error) = ended {
            tracing::warn!(%error, "no thread for bulk work");
            self.serve();
        }
    }

    /// Runs jobs until there are none for [`IDLE`].
    fn serve(&mut self) {
        let BulkThreads { state, added, .. } = &*self.threads;
        let mut state = lock(state);
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                // A panic was caught in the job.
                job();
                state = lock(&self.threads.state);
                continue;
            }
            state.idle += 1;
            let waited = added.wait_timeout(state, IDLE);
            let (after, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = after;
            state.idle -= 1;
            if timeout.timed_out() && state.jobs.is_empty() {
                state.threads -= 1;
                self.is_given_back = true;
                return;
            }
        }
    }
}

impl Drop for Place {
    /// Runs the waiting jobs: a runtime that ends may drop a permit before its thread has begun,
    /// and no job may be left in the queue.
    fn drop(&mut self) {
        if self.is_given_back {
            return;
        }
        let mut state = lock(&self.threads.state);
        state.threads -= 1;
        let left = match state.threads {
            0 => std::mem::take(&mut state.jobs),
            _ => VecDeque::new(),
        };
        drop(state);
        drop(left);
    }
}

/// Lowers the priority of the calling thread. Only Linux has priorities of single threads.
fn lower_priority() {
    IS_LOW.set(true);
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%error, "bulk work runs at the usual priority");
    }
}
