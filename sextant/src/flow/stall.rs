//! Sockets whose client takes nothing of what is written.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use super::process::Flow;
use super::refusals::Limit;

/// The watch over the writes of a connection.
pub struct Stall {
    most: Duration,
    flow: Arc<Flow>,
    /// The end of the time, while the socket takes nothing.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Stall {
    /// The watch within the limits of a process; `None` if there is no such limit.
    pub fn of(flow: &Arc<Flow>) -> Option<Self> {
        Some(Self { most: flow.limits.write_stall?, flow: Arc::clone(flow), deadline: None })
    }

    /// Passes on the outcome of a write or a flush; an error if the socket has taken nothing for too long.
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

    /// The limits that it belongs to.
    #[cfg(test)]
    pub fn flow(&self) -> &Flow {
        &self.flow
    }
}

impl Flow {
    /// Counts a socket that has taken nothing for too long; returns its error.
    pub fn stalled(&self) -> io::Error {
        self.refusals.count(Limit::WriteStall);
        io::Error::new(io::ErrorKind::TimedOut, "the client takes no bytes (write_stall_s)")
    }
}
