//! The seam for tasks and blocking work: [`Spawner`], and what it returns.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use super::failure::TaskFailure;

/// A boxed future that borrows nothing.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + 'static>>;

/// The kinds of work of a large request, by the time at which they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bulk {
    /// The work waits until few other jobs run. It must not wait for other queued work.
    Queued,
    /// The work begins immediately, because other work waits for its result.
    AtOnce,
}

/// A runner of tasks. The services call it through [`Env`](super::Env), which adds the consequence
/// of a panic.
pub trait Spawner: Send + Sync + 'static {
    /// Runs a future in the background until it ends or the [`Task`] is dropped.
    fn spawn(&self, name: &'static str, future: BoxFuture<()>) -> Task;
    /// Runs blocking work on a thread for such work. In the simulation it runs immediately, on
    /// the caller's thread.
    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>);
    /// Runs the work of a large request on a thread of low priority.
    fn spawn_bulk(&self, _kind: Bulk, work: Box<dyn FnOnce() + Send>) {
        self.spawn_blocking(work);
    }
    /// Lends the caller's thread for work that blocks it for a moment. Returns `None` if the work
    /// must run on another thread, which is always so in the simulation.
    fn lend_thread(&self) -> Option<LentThread> {
        None
    }
    /// Runs two functions that block in parallel, `own` on the caller's thread and `aside` on
    /// another one. In the simulation `own` runs first, then `aside`.
    fn run_in_parallel(&self, aside: &mut (dyn FnMut() + Send), own: &mut dyn FnMut()) {
        own();
        aside();
    }
    /// Pauses blocking work for a while. Does nothing in the simulation, where such work does not
    /// pause.
    fn pause(&self, _time: Duration) {}
    /// Applies the policy of a failed task; called in the task. In the simulation every failure
    /// panics, so that the test fails.
    fn failed(&self, failure: TaskFailure) {
        failure.raise()
    }
}

/// A worker thread that is lent for blocking work; a drop ends the loan.
#[must_use = "dropping it gives the thread back"]
pub struct LentThread {
    _give_back: Task,
}

impl LentThread {
    /// Creates a lent thread; `give_back` runs at the end of the loan.
    pub fn new(give_back: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self { _give_back: Task::new(give_back) }
    }
}

/// A background task; dropping it cancels the task at its next await.
#[must_use = "dropping a task cancels it"]
pub struct Task {
    abort: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl Task {
    /// Creates the handle of a task; `abort` cancels it.
    pub fn new(abort: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self { abort: Some(Box::new(abort)) }
    }

    /// Lets the task run to its end, without its handle.
    pub fn detach(mut self) {
        self.abort = None;
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(abort) = self.abort.take() {
            abort();
        }
    }
}
