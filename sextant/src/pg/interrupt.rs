//! What ends a running statement from outside: a cancel request on another connection, or its
//! time-out.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use proto::env::Random;
use proto::{Error, ErrorCode};
use tokio::sync::watch;
use tokio::time::Instant;

use super::error::{WireError, WireResult};

/// The sessions that can be cancelled, by process number; a request must know the secret too.
#[derive(Clone, Default)]
pub(super) struct Sessions(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    last: i32,
    sessions: BTreeMap<i32, (i32, watch::Sender<u64>)>,
}

/// A session's entry, removed when dropped.
pub(super) struct Registration {
    sessions: Sessions,
    pub(super) process: i32,
    pub(super) secret: i32,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Enters a session.
    pub(super) fn register(&self, random: &dyn Random) -> (Registration, Interrupt) {
        let secret = random.next_u64() as i32;
        let (sender, cancelled) = watch::channel(0);
        let mut inner = self.lock();
        inner.last = inner.last.wrapping_add(1).max(1);
        while inner.sessions.contains_key(&inner.last) {
            inner.last = inner.last.wrapping_add(1).max(1);
        }
        let process = inner.last;
        inner.sessions.insert(process, (secret, sender));
        drop(inner);
        let registration = Registration { sessions: self.clone(), process, secret };
        (registration, Interrupt { cancelled, deadline: None })
    }

    /// Cancels what a session runs now, if the secret is right; nobody is told whether it was.
    pub(super) fn cancel(&self, process: i32, secret: i32) {
        if let Some((known, sender)) = self.lock().sessions.get(&process)
            && *known == secret
        {
            sender.send_modify(|count| *count += 1);
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.sessions.lock().sessions.remove(&self.process);
    }
}

/// Ends what runs inside it.
pub(super) struct Interrupt {
    cancelled: watch::Receiver<u64>,
    deadline: Option<Instant>,
}

impl Interrupt {
    /// A statement begins: cancel requests from before do not concern it.
    pub(super) fn arm(&mut self, timeout: Option<Duration>) {
        self.cancelled.mark_unchanged();
        self.deadline = timeout.map(|timeout| Instant::now() + timeout);
    }

    /// Runs a part of the statement; an error when the statement is interrupted first.
    pub(super) async fn guard<T>(&mut self, work: impl Future<Output = T>) -> WireResult<T> {
        let timed_out = async {
            match self.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            // The sender lives as long as the registration, and so longer than the session.
            Ok(()) = self.cancelled.changed() => Err(interrupted("the user asked to cancel")),
            () = timed_out => Err(interrupted("statement_timeout has passed")),
            done = work => Ok(done),
        }
    }
}

fn interrupted(why: &str) -> WireError {
    Error::new(ErrorCode::Cancelled, format!("the statement was cancelled: {why}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_cancel_needs_the_secret_and_meets_only_what_runs() {
        let sessions = Sessions::default();
        let env = proto::env::Env::real();
        let (registration, mut interrupt) = sessions.register(&*env.random);
        let (process, secret) = (registration.process, registration.secret);
        sessions.cancel(process, secret);
        interrupt.arm(None);
        assert!(interrupt.guard(async {}).await.is_ok(), "the request came before the statement");
        sessions.cancel(process, secret.wrapping_add(1));
        assert!(interrupt.guard(async {}).await.is_ok(), "a wrong secret cancels nothing");
        sessions.cancel(process, secret);
        assert!(interrupt.guard(std::future::pending::<()>()).await.is_err());
        interrupt.arm(Some(Duration::from_millis(1)));
        assert!(interrupt.guard(std::future::pending::<()>()).await.is_err(), "time-out");
    }
}
