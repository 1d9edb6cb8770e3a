//! Failures of tasks, and their consequences for the process.

use std::fmt;
use std::time::Duration;

use super::panics::Panic;

/// The consequences of a task's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskPolicy {
    /// The failure is logged. The task works for one request, whose caller detects the closed
    /// channel and retries, or its work is repeated by a later task.
    Request,
    /// The task is started again after the pause. Its state cannot be left half changed by a panic.
    Restart(Duration),
    /// The process ends with one line in the log, because the service cannot work without the task,
    /// or its state may be half changed. A supervisor starts the process again, which recovers as
    /// after a crash.
    EndProcess,
}

/// The reasons why a task has failed.
#[derive(Debug)]
pub enum TaskFailureCause {
    /// The task has panicked.
    Panicked(Panic),
    /// A loop that should never end has ended; contains the reason that it returned.
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
    /// Raises the failure as a panic of the present task.
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
