//! Threads of low priority for the work of large requests (bulk work).
//!
//! A large COPY has work for more threads than a machine has processors. A small write at the
//! same time needs several threads one after another, and would wait for a processor at each of
//! them. So bulk work has few threads. The system runs them when no other thread needs the
//! processor, with a small guaranteed share. Without other work they run at full speed.
//!
//! There are two kinds of bulk work:
//!
//! - *Queued* work creates further work: checks of documents, reads of an index build. It has one
//!   thread per processor; the rest waits in a queue.
//! - Work *at once* is the further work, in streams and stores. It begins immediately, on
//!   additional threads of low priority, because queued work waits for its results.
//!
//! A thread cannot raise its priority again without privileges, so these threads are not tokio's.
//! For each of them a blocking thread of tokio waits, so that the end of a runtime waits for bulk
//! work like for other blocking work.
//!
//! Queued work may wait for a lock, but never for other queued work, which may be later in the
//! queue.
#![allow(clippy::disallowed_methods, reason = "this is the seam that the lint points to")]

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;

use crate::lock::lock;

/// The `nice` value of the threads. The weight of such a thread is about a thirtieth of a usual
/// one, and a COPY has some ten of them. So they advance even if other threads use all
/// processors, and soon release the locks that the others wait for.
const NICE: i32 = 15;
/// The time after which a thread without work ends. The end of a runtime may have to wait for it.
const IDLE: Duration = Duration::from_millis(20);

type Job = Box<dyn FnOnce() + Send>;

thread_local! {
    /// True on a thread of low priority.
    static IS_LOW: Cell<bool> = const { Cell::new(false) };
}

/// Runs blocking work on one of tokio's threads. A new thread inherits the priority of its
/// creator. A thread of low priority therefore does not create tokio's threads itself, but lets a
/// task create them, because they later run other work too.
pub(super) fn spawn_blocking(runtime: &Handle, work: Job) {
    if !IS_LOW.get() {
        runtime.spawn_blocking(work);
        return;
    }
    let inner = runtime.clone();
    drop(runtime.spawn(async move { drop(inner.spawn_blocking(work)) }));
}

/// A pool of threads of low priority. Threads are created when there is work, and end without it.
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
    /// Creates a pool with at most as many threads as there are processors.
    pub fn for_queued() -> Self {
        Self::with_threads_max(std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// Creates a pool without a limit of threads; its callers bound the amount of work.
    pub fn for_immediate_work() -> Self {
        Self::with_threads_max(usize::MAX)
    }

    fn with_threads_max(threads_max: usize) -> Self {
        Self { state: Mutex::default(), added: Condvar::new(), threads_max }
    }

    /// Adds work to the queue of the pool, and creates a thread if none is idle and the limit
    /// allows it. The work runs in the runtime of the caller.
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
        let place = ThreadPermit { threads: Arc::clone(self), is_given_back: false };
        spawn_blocking(&runtime, Box::new(move || place.run_thread()));
    }
}

/// A permit for one thread of the pool.
struct ThreadPermit {
    threads: Arc<BulkThreads>,
    is_given_back: bool,
}

impl ThreadPermit {
    /// Creates a thread of low priority that runs jobs, and waits for its end.
    fn run_thread(mut self) {
        let place = &mut self;
        let ended = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("bulk work".to_owned());
            let begun = thread.spawn_scoped(scope, || {
                lower_priority();
                place.run_jobs();
            });
            begun.map(drop)
        });
        if let Err(error) = ended {
            tracing::warn!(%error, "no thread for bulk work");
            self.run_jobs();
        }
    }

    /// Runs jobs until there has been none for [`IDLE`].
    fn run_jobs(&mut self) {
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

impl Drop for ThreadPermit {
    /// Returns the permit. If no other thread is left, the waiting jobs are dropped: a runtime
    /// that ends may drop a permit before its thread has begun, and nothing would run the jobs.
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
