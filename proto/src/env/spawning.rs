//! Tasks and blocking work.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use super::failure::TaskFailure;

/// A future that owns all that it needs.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + 'static>>;

/// When the work of a large request begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bulk {
    /// The work begins when few others run. It never waits for other queued work.
    Queued,
    /// At once: others wait for it in the end.
    AtOnce,
}

/// Runs tasks. The services call it through [`Env`](super::Env), which adds what a panic of each task means.
pub trait Spawner: Send + Sync + 'static {
    /// Runs a future in the background until it ends or the [`Task`] is dropped.
    fn spawn(&self, name: &'static str, future: BoxFuture<()>) -> Task;
    /// Runs blocking work on a thread for it; in the simulation at once, in the caller's thread.
    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>);
    /// Runs the work of a large request on a thread of low priority.
    fn spawn_bulk(&self, _kind: Bulk, work: Box<dyn FnOnce() + Send>) {
        self.spawn_blocking(work);
    }
    /// Lends the caller's thread for work that blocks it for a moment; `None` if the work needs a thread for it, as always in the
    /// simulation.
    fn lend_thread(&self) -> Option<LentThread> {
        None
    }
    /// Runs two pieces of blocking work in parallel, the second one on the caller's thread; in the simulation first the second one, then
    /// the other.
    fn beside(&self, aside: &mut (dyn FnMut() + Send), own: &mut dyn FnMut()) {
        own();
        aside();
    }
    /// Pauses blocking work for a while; in the simulation, which runs it inline, this does nothing.
    fn pause(&self, _time: Duration) {}
    /// Applies the policy of a failed task; called in the task. In the simulation every failure is a panic of
    /// the runtime, and so a violation.
    fn failed(&self, failure: TaskFailure) {
        failure.raise()
    }
}

/// A thread that serves tasks and is lent for blocking work; dropping this gives it back.
#[must_use = "dropping it gives the thread back"]
pub struct LentThread {
    _give_back: Task,
}

impl LentThread {
    /// A thread that `give_back` gives back.
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
    /// A task that is cancelled by `abort`.
    pub fn new(abort: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self { abort: Some(Box::new(abort)) }
    }

    /// Lets the task run to its end.
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
