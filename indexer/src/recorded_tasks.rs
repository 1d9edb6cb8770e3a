//! An environment for tests that runs real tasks and records those that fail.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::env::real::TokioSpawner;
use proto::env::{BoxFuture, Env, Spawner, Task, TaskFailure, TaskPolicy};
use proto::lock::lock;

/// The recorded failures of tasks: the text and the policy of each.
#[derive(Clone, Default)]
pub struct RecordedFailures(Arc<Mutex<Vec<(String, TaskPolicy)>>>);

struct RecordingSpawner {
    tasks: TokioSpawner,
    recorded: RecordedFailures,
}

/// Returns the environment of a real process, and the record of its tasks' failures.
pub fn env() -> (Env, RecordedFailures) {
    let recorded = RecordedFailures::default();
    let spawner = RecordingSpawner { tasks: TokioSpawner::default(), recorded: recorded.clone() };
    (Env { spawner: Arc::new(spawner), ..Env::real() }, recorded)
}

impl RecordedFailures {
    /// The texts of the recorded failures.
    pub fn lines(&self) -> Vec<String> {
        lock(&self.0).iter().map(|(line, _)| line.clone()).collect()
    }

    /// The policies of the tasks that have failed.
    pub fn policies(&self) -> Vec<TaskPolicy> {
        lock(&self.0).iter().map(|(_, policy)| *policy).collect()
    }
}

impl Spawner for RecordingSpawner {
    fn spawn(&self, name: &'static str, future: BoxFuture<()>) -> Task {
        self.tasks.spawn(name, future)
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        self.tasks.spawn_blocking(work);
    }

    fn pause(&self, time: Duration) {
        self.tasks.pause(time);
    }

    fn failed(&self, failure: TaskFailure) {
        lock(&self.recorded.0).push((failure.to_string(), failure.policy));
        self.tasks.failed(failure);
    }
}
