//! [`Env`]: all interfaces of a process to the operating system (its seams) together.

use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::clock::{Clock, Random};
use super::failure::{TaskFailure, TaskFailureCause, TaskPolicy};
use super::files::FileSystem;
use super::panics::Panic;
use super::real;
use super::spawning::{Bulk, Spawner, Task};

/// The pause after the first panic of a task that is restarted.
const RESTART_PAUSE_MIN: Duration = Duration::from_millis(100);
/// The longest pause before a restart, so that a task that panics each time does not fill the
/// log. If a task has run for longer than this time, the pause begins at the minimum again.
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(10);

/// All interfaces of a process to the operating system.
#[derive(Clone)]
pub struct Env {
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// The source of random numbers.
    pub random: Arc<dyn Random>,
    /// The file system.
    pub fs: Arc<dyn FileSystem>,
    /// The runner of tasks and of blocking work.
    pub spawner: Arc<dyn Spawner>,
}

impl Env {
    /// Returns the environment of a real process.
    pub fn real() -> Self {
        Self {
            clock: Arc::new(real::SystemClock),
            random: Arc::new(real::SystemRandom::default()),
            fs: Arc::new(real::RealFs),
            spawner: Arc::new(real::TokioSpawner::default()),
        }
    }

    /// Starts a task for one request, or for work that is repeated anyway. The task runs until it
    /// ends or the [`Task`] is dropped. A panic is logged.
    pub fn spawn_request(
        &self,
        name: &'static str,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Task {
        let spawner = Arc::clone(&self.spawner);
        let task = async move {
            if let Err(panic) = Panic::catch_async(future).await {
                fail(&*spawner, name, TaskFailureCause::Panicked(panic), TaskPolicy::Request);
            }
        };
        self.spawner.spawn(name, Box::pin(task))
    }

    /// Starts a task that can begin anew at any time. After a panic, `begin` starts it again,
    /// after a pause that doubles up to a maximum. A loop that never ends has the output
    /// `Infallible`.
    pub fn spawn_restarted<T: Send, F: Future<Output = T> + Send + 'static>(
        &self,
        name: &'static str,
        mut begin: impl FnMut() -> F + Send + 'static,
    ) -> Task {
        let spawner = Arc::clone(&self.spawner);
        let task = async move {
            let mut pause = RESTART_PAUSE_MIN;
            loop {
                let begun = Instant::now();
                let Err(panic) = Panic::catch_async(async { begin().await }).await else { return };
                if begun.elapsed() > RESTART_PAUSE_MAX {
                    pause = RESTART_PAUSE_MIN;
                }
                let policy = TaskPolicy::Restart(pause);
                fail(&*spawner, name, TaskFailureCause::Panicked(panic), policy);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(RESTART_PAUSE_MAX);
            }
        };
        self.spawner.spawn(name, Box::pin(task))
    }

    /// Starts a loop that the service cannot work without, or whose data a panic may leave half
    /// changed. The process ends if the loop panics or returns. The output of the loop is the
    /// reason why it returned, or `Infallible` if it never does.
    pub fn spawn_service(
        &self,
        name: &'static str,
        future: impl Future<Output = impl Display + Send> + Send + 'static,
    ) -> Task {
        let spawner = Arc::clone(&self.spawner);
        let task = async move {
            let cause = match Panic::catch_async(future).await {
                Ok(reason) => TaskFailureCause::Ended(reason.to_string()),
                Err(panic) => TaskFailureCause::Panicked(panic),
            };
            fail(&*spawner, name, cause, TaskPolicy::EndProcess);
        };
        self.spawner.spawn(name, Box::pin(task))
    }

    /// Starts blocking work off the async threads, and does not wait for it. The policy
    /// determines the effect of a panic.
    pub fn spawn_blocking(
        &self,
        name: &'static str,
        policy: TaskPolicy,
        work: impl FnOnce() + Send + 'static,
    ) {
        self.spawner.spawn_blocking(self.catching_panic(name, policy, work));
    }

    /// Starts bulk work, the work of a large request, on a thread of low priority, and does not
    /// wait for it.
    pub fn spawn_bulk(
        &self,
        (name, kind): (&'static str, Bulk),
        policy: TaskPolicy,
        work: impl FnOnce() + Send + 'static,
    ) {
        self.spawner.spawn_bulk(kind, self.catching_panic(name, policy, work));
    }

    /// Wraps work so that its panic is caught and the policy is applied to it.
    fn catching_panic(
        &self,
        name: &'static str,
        policy: TaskPolicy,
        work: impl FnOnce() + Send + 'static,
    ) -> Box<dyn FnOnce() + Send> {
        let spawner = Arc::clone(&self.spawner);
        Box::new(move || {
            if let Err(panic) = Panic::catch(work) {
                fail(&*spawner, name, TaskFailureCause::Panicked(panic), policy);
            }
        })
    }

    /// Runs work on the caller's thread, if it is too short for a separate thread. The policy
    /// determines the effect of a panic, after which `None` is returned.
    pub fn inline<T>(
        &self,
        name: &'static str,
        policy: TaskPolicy,
        work: impl FnOnce() -> T,
    ) -> Option<T> {
        let failed = |panic| {
            fail(&*self.spawner, name, TaskFailureCause::Panicked(panic), policy);
        };
        Panic::catch(work).map_err(failed).ok()
    }

    /// Runs blocking work off the async threads and waits for its result.
    ///
    /// # Panics
    /// If the work panics, which is a bug in the work.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let (work, result) = sending_result(work);
        self.spawner.spawn_blocking(work);
        wait_for_result(result).await
    }

    /// Runs bulk work, the work of a large request, on a thread of low priority, and waits for
    /// its result.
    ///
    /// # Panics
    /// If the work panics, which is a bug in the work.
    pub async fn bulk<T: Send + 'static>(
        &self,
        kind: Bulk,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let (work, result) = sending_result(work);
        self.spawner.spawn_bulk(kind, work);
        wait_for_result(result).await
    }

    /// Runs two functions that block in parallel, `own` on the caller's thread and `aside` on
    /// another one, and waits for both.
    ///
    /// # Panics
    /// If one of them panics, after both have ended.
    pub fn run_both<A: Send, B>(
        &self,
        aside: impl FnOnce() -> A + Send,
        own: impl FnOnce() -> B,
    ) -> (A, B) {
        let (mut aside, mut own) = (ParallelWork::new(aside), ParallelWork::new(own));
        self.spawner.run_in_parallel(&mut || aside.run(), &mut || own.run());
        (aside.result(), own.result())
    }

    /// Runs work that blocks for a moment, like a sync of a few bytes, and returns its result.
    /// The work runs on the caller's thread if that can be lent, which saves two thread switches;
    /// otherwise as in [`Self::blocking`].
    ///
    /// # Panics
    /// If the work panics, which is a bug in the work.
    pub async fn blocking_briefly<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        match self.spawner.lend_thread() {
            Some(_lent) => work(),
            None => self.blocking(work).await,
        }
    }
}

/// A function that runs once, and then its result.
struct ParallelWork<F, T> {
    work: Option<F>,
    result: Option<std::result::Result<T, Panic>>,
}

impl<F: FnOnce() -> T, T> ParallelWork<F, T> {
    fn new(work: F) -> Self {
        Self { work: Some(work), result: None }
    }

    fn run(&mut self) {
        if let Some(work) = self.work.take() {
            self.result = Some(Panic::catch(work));
        }
    }

    /// Returns the result of the function, which runs now if it has not run.
    fn result(mut self) -> T {
        self.run();
        match self.result {
            Some(Ok(value)) => value,
            Some(Err(panic)) => panic.resume(),
            None => unreachable!("a piece of work that has run has a result"),
        }
    }
}

type ResultReceiver<T> = oneshot::Receiver<std::result::Result<T, Panic>>;

/// Wraps work so that its result, or its panic, is sent to the returned receiver.
fn sending_result<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> (Box<dyn FnOnce() + Send>, ResultReceiver<T>) {
    let (done, result) = oneshot::channel();
    let work = move || {
        let _ = done.send(Panic::catch(work));
    };
    (Box::new(work), result)
}

/// Waits for the result of work, and resumes its panic.
async fn wait_for_result<T>(result: ResultReceiver<T>) -> T {
    match result.await {
        Ok(Ok(value)) => value,
        Ok(Err(panic)) => panic.resume(),
        // The process is ending and the work will never run; its caller ends with the process.
        Err(_) => std::future::pending().await,
    }
}

/// Reports the failure of a task to the spawner, which applies the policy.
fn fail(spawner: &dyn Spawner, task: &'static str, cause: TaskFailureCause, policy: TaskPolicy) {
    spawner.failed(TaskFailure { task, cause, policy });
}
