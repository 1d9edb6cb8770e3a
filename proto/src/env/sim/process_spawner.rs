//! The spawners of simulated processes whose blocking work runs in steps.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::runtime::Handle;

use super::interleaving::{Interleaving, Process, Shared};
use super::world::InlineSpawner;
use crate::env::spawning::{BoxFuture, Spawner, Task};
use crate::turn;

/// A factory that creates a task spawner for each simulated process.
#[derive(Clone)]
pub struct Processes(Arc<Shared>);

/// A spawner of one process, which runs its blocking work in steps.
struct ProcessSpawner {
    shared: Arc<Shared>,
    process: Arc<Process>,
}

impl Interleaving {
    /// Returns a factory of the spawners of simulated processes.
    pub fn processes(&self) -> Processes {
        Processes(Arc::clone(&self.0))
    }
}

impl Processes {
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

/// A task that runs the steps of a piece of work. It is dropped before the end of the work only
/// together with the runtime of its process.
struct Driver {
    shared: Arc<Shared>,
    process: Arc<Process>,
    number: u64,
}

impl Driver {
    async fn drive(self) {
        while let Some(wait) = self.shared.wait_of(self.number) {
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
        if self.shared.wait_of(self.number).is_some() {
            self.shared.end_process(&self.process);
        }
    }
}
