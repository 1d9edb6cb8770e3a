//! The time limit for a socket whose client accepts no bytes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use super::process::Flow;
use super::refusals::Limit;

/// The time limit of a connection's writes.
pub struct Stall {
    most: Duration,
    flow: Arc<Flow>,
    /// The end of the time limit, while the socket accepts no bytes.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Stall {
    /// Returns the time limit of a process's settings; `None` if there is no limit.
    pub fn of(flow: &Arc<Flow>) -> Option<Self> {
        Some(Self { most: flow.limits.write_stall?, flow: Arc::clone(flow), deadline: None })
    }

    /// Returns the outcome of a write or a flush; an error if the socket has accepted no bytes for
    /// too long.
    pub fn watch<T>(
        stall: &mut Option<Self>,
        context: &mut Context<'_>,
        wrote: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let Some(stall) = stall else { return wrote };
        if wrote.is_ready() {
            stall.deadline = None;
            return wrote;
        }
        let most = stall.most;
        let deadline = stall.deadline.get_or_insert_with(|| Box::pin(sleep(most)));
        deadline.as_mut().poll(context).map(|()| Err(stall.flow.stalled()))
    }

    /// Returns the limits of the process.
    #[cfg(test)]
    pub fn flow(&self) -> &Flow {
        &self.flow
    }
}

impl Flow {
    /// Counts a socket that has accepted no bytes for too long, and returns its error.
    pub fn stalled(&self) -> io::Error {
        self.refusals.count(Limit::WriteStall);
        io::Error::new(io::ErrorKind::TimedOut, "the client takes no bytes (write_stall_s)")
    }
}
