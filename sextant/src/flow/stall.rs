//! The time limit for a socket whose client accepts no bytes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use super::process::ClientCapacity;
use super::refusals::Limit;

/// A timer that fails the writes of a connection if its socket accepts no bytes for too long.
pub struct StallTimer {
    most: Duration,
    flow: Arc<ClientCapacity>,
    /// The time at which the time limit ends; present only while the socket accepts no bytes.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl StallTimer {
    /// Returns a timer with the time limit of the process's settings; `None` if there is no
    /// limit.
    pub fn of(flow: &Arc<ClientCapacity>) -> Option<Self> {
        Some(Self { most: flow.limits.write_stall?, flow: Arc::clone(flow), deadline: None })
    }

    /// Returns the outcome of a write or a flush, or an error if the socket has accepted no bytes
    /// for too long.
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
        deadline.as_mut().poll(context).map(|()| Err(stall.flow.stall_error()))
    }

    /// Returns the limits of the process's clients.
    #[cfg(test)]
    pub fn flow(&self) -> &ClientCapacity {
        &self.flow
    }
}

impl ClientCapacity {
    /// Counts a connection whose socket has accepted no bytes for too long, and returns its
    /// error.
    pub fn stall_error(&self) -> io::Error {
        self.refusals.count(Limit::WriteStall);
        io::Error::new(io::ErrorKind::TimedOut, "the client takes no bytes (write_stall_s)")
    }
}
