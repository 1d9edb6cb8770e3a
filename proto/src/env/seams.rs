//! [`Env`]: all seams together.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use super::clock::{Clock, Random};
use super::files::FileSystem;
use super::real;
use super::spawning::{Spawner, Task};

/// All seams together.
#[derive(Clone)]
pub struct Env {
    /// Wall-clock time.
    pub clock: Arc<dyn Clock>,
    /// Random numbers.
    pub random: Arc<dyn Random>,
    /// Files.
    pub fs: Arc<dyn FileSystem>,
    /// Tasks.
    pub spawner: Arc<dyn Spawner>,
}

impl Env {
    /// The environment of a real process.
    pub fn real() -> Self {
        Self {
            clock: Arc::new(real::SystemClock),
            random: Arc::new(real::SystemRandom::default()),
            fs: Arc::new(real::RealFs),
            spawner: Arc::new(real::TokioSpawner),
        }
    }

    /// Runs a future in the background until it ends or the [`Task`] is dropped.
    pub fn spawn(
        &self,
        name: &'static str,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Task {
        self.spawner.spawn(name, Box::pin(future))
    }

    /// Runs blocking work off the async threads and waits for its result.
    ///
    /// # Panics
    /// If the work panics, which is a bug in the work.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let (done, result) = tokio::sync::oneshot::channel();
        self.spawner.spawn_blocking(Box::new(move || {
            let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
        }));
        match result.await {
            Ok(Ok(value)) => value,
            Ok(Err(panic)) => resume_unwind(panic),
            // The process is ending and the work will never run; its caller ends with the process.
            Err(_) => std::future::pending().await,
        }
    }
}
