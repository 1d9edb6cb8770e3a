//! Failures of tasks, and their consequences for the process.

use std::fmt;
use std::time::Duration;

use super::panics::Panic;

/// The consequence of a task's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskPolicy {
    /// The failure is logged. The task works for one request, whose caller sees its channel close and retries, or does
    /// work that a later task repeats.
    Request,
    /// The task begins again after the pause. It has no state that a panic could leave half changed.
    Restart(Duration),
    /// The process ends with one line, because the service cannot work without the task, or its state may be half
    /// changed. A supervisor starts the process again, which recovers as after a crash.
    EndProcess,
}

/// Why a task has failed.
#[derive(Debug)]
pub enum TaskFailureCause {
    /// A panic.
    Panicked(Panic),
    /// The end of a loop that should never end, and the reason that it gave.
    Ended(String),
}

/// The failure of a task.
#[derive(Debug)]
pub struct TaskFailure {
    /// The task's name.
    pub task: &'static str,
    /// The cause of the failure.
    pub cause: TaskFailureCause,
    /// The consequence.
    pub policy: TaskPolicy,
}

impl TaskFailure {
    /// Passes the failure on as a panic of the present task.
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
