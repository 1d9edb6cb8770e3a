//! The environment of a simulated process: its clock, its spawner and its files.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::fs::SimFs;
use crate::env::clock::Clock;
use crate::env::failure::TaskFailure;
use crate::env::real::{SeededRandom, TokioSpawner};
use crate::env::seams::Env;
use crate::env::spawning::{BoxFuture, Spawner, Task};

/// A wall clock that shows the time set by the test.
#[derive(Debug, Default)]
pub struct SimClock(AtomicU64);

impl SimClock {
    /// Creates a clock that shows `unix_ms`.
    pub fn new(unix_ms: u64) -> Self {
        Self(AtomicU64::new(unix_ms))
    }

    /// Sets the clock to a later or an earlier time.
    pub fn set(&self, unix_ms: u64) {
        self.0.store(unix_ms, Ordering::SeqCst);
    }

    /// Advances the clock.
    pub fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for SimClock {
    fn unix_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A spawner that runs tasks on the current tokio runtime, and blocking work on the caller's
/// thread.
pub struct InlineSpawner;

impl Spawner for InlineSpawner {
    #[allow(clippy::disallowed_methods, reason = "this is the seam that the lint points to")]
    fn spawn(&self, _name: &'static str, future: BoxFuture<()>) -> Task {
        let handle = tokio::spawn(future);
        Task::new(move || handle.abort())
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        work();
    }
}

/// Returns a simulated environment that depends on one seed, with the clock and the file system
/// that control it.
pub fn world(seed: u64) -> (Env, Arc<SimClock>, SimFs) {
    /// The initial time of the simulated clock: 2024-01-01 UTC.
    const START_UNIX_MS: u64 = 1_704_067_200_000;
    let clock = Arc::new(SimClock::new(START_UNIX_MS));
    let fs = SimFs::new(seed);
    let env = Env {
        clock: clock.clone(),
        random: Arc::new(SeededRandom::new(seed)),
        fs: Arc::new(fs.clone()),
        spawner: Arc::new(InlineSpawner),
    };
    (env, clock, fs)
}

/// Returns the environment of a real process, but with simulated files. The receiver gets the
/// task failures that would have ended the process.
pub fn real_env_with_sim_fs(seed: u64) -> (Env, SimFs, UnboundedReceiver<String>) {
    let (told, failures) = unbounded_channel();
    let end_process = Arc::new(move |failure: &TaskFailure| {
        // The send fails only if the test has dropped the receiver.
        let _ = told.send(failure.to_string());
    });
    let (env, _, fs) = world(seed);
    (Env { spawner: Arc::new(TokioSpawner::with_end_process(end_process)), ..env }, fs, failures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn equal_seeds_give_equal_environments() {
        let (one, clock, _) = world(7);
        let (other, _, _) = world(7);
        assert_eq!(one.random.next_u64(), other.random.next_u64());
        let before = one.clock.unix_ms();
        clock.advance(20);
        assert_eq!(one.clock.unix_ms(), before + 20);
        assert_eq!(one.blocking(|| 3).await, 3);
    }
}
