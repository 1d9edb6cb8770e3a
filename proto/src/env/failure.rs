//! Failures of tasks, and what each means for the process.

use std::fmt;
use std::time::Duration;

use super::panics::Panic;

/// The consequence of a task's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskPolicy {
    /// The failure is logged. The task works for one request, whose caller notices the failure
    /// and retries, or a later task repeats its work.
    Request,
    /// The task is started again after this pause. A panic cannot leave its data half changed.
    Restart(Duration),
    /// The process ends, with one line in the log: the service cannot work without the task, or a
    /// panic may have left data half changed. A supervisor starts the process again, which
    /// recovers as after a crash.
    EndProcess,
}

/// The reasons why a task has failed.
#[derive(Debug)]
pub enum TaskFailureCause {
    /// The task has panicked.
    Panicked(Panic),
    /// A loop that should never end has ended, with this reason.
    Ended(String),
}

/// The failure of a task.
#[derive(Debug)]
pub struct TaskFailure {
    /// The task's name.
    pub task: &'static str,
    /// The cause of the failure.
    pub cause: TaskFailureCause,
    /// The consequence of the failure.
    pub policy: TaskPolicy,
}

impl TaskFailure {
    /// Raises the failure as a panic in the calling task.
    pub fn raise(self) -> ! {
        match self.cause {
            TaskFailureCause::Panicked(panic) => panic.resume(),
            TaskFailureCause::Ended(reason) => panic!("task {:?} ended: {reason}", self.task),
        }
    }
}

impl fmt::Display for TaskFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            TaskFailureCause::Panicked(panic) => write!(out, "task {:?} {panic}", self.task),
            TaskFailureCause::Ended(reason) => write!(out, "task {:?} ended: {reason}", self.task),
        }
    }
}
