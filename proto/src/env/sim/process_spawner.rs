//! The spawners of simulated processes, which run blocking work in steps.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::runtime::Handle;

use super::interleaving::{Interleaving, SendingProcess, Shared};
use super::world::InlineSpawner;
use crate::env::spawning::{BoxFuture, Spawner, Task};
use crate::turn;

/// A factory of spawners, one for each simulated process.
#[derive(Clone)]
pub struct ProcessSpawners(Arc<Shared>);

/// The spawner of one simulated process, which runs its blocking work in steps.
struct ProcessSpawner {
    shared: Arc<Shared>,
    process: Arc<SendingProcess>,
}

impl Interleaving {
    /// Returns a factory of spawners, one for each simulated process.
    pub fn process_spawners(&self) -> ProcessSpawners {
        ProcessSpawners(Arc::clone(&self.0))
    }
}

impl ProcessSpawners {
    /// Creates the spawner of one process, for its whole lifetime.
    pub fn spawner(&self) -> Arc<dyn Spawner> {
        Arc::new(ProcessSpawner { shared: Arc::clone(&self.0), process: Arc::default() })
    }
}

impl Spawner for ProcessSpawner {
    fn spawn(&self, name: &'static str, future: BoxFuture<()>) -> Task {
        InlineSpawner.spawn(name, future)
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        if self.process.has_ended.load(Ordering::Relaxed) {
            return;
        }
        let pace = self.shared.draw_pace();
        let Some(pace) = pace.filter(|_| Handle::try_current().is_ok()) else { return work() };
        let number = self.shared.add(&self.process, pace, work);
        let driver =
            Driver { shared: Arc::clone(&self.shared), process: Arc::clone(&self.process), number };
        InlineSpawner.spawn("blocking work", Box::pin(driver.drive())).detach();
    }

    fn pause(&self, time: Duration) {
        turn::pause(time);
    }
}

/// A task that runs the steps of a blocking job. Before the end of the work, only the end of the
/// process's runtime drops it.
struct Driver {
    shared: Arc<Shared>,
    process: Arc<SendingProcess>,
    number: u64,
}

impl Driver {
    /// Runs the steps of the work, with their pauses, to its end.
    async fn drive(self) {
        while let Some(wait) = self.shared.time_until_next_step(self.number) {
            match wait.is_zero() {
                true => tokio::task::yield_now().await,
                false => tokio::time::sleep(wait).await,
            }
            self.shared.step(self.number);
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if self.shared.time_until_next_step(self.number).is_some() {
            self.shared.end_process(&self.process);
        }
    }
}
