//! The interruption of a running statement: by a cancel request on another connection, by its
//! time-out, or by the stop of the process.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use proto::env::Random;
use proto::lock::lock;
use proto::{Error, ErrorCode};
use tokio::sync::watch;
use tokio::time::Instant;

use super::message::error::{WireError, WireResult};
use crate::flow::StopWatch;

/// The open sessions by process number, for cancel requests. A cancel request must also contain
/// the secret of the session.
#[derive(Clone, Default)]
pub(super) struct Sessions(Arc<Mutex<SessionTable>>);

#[derive(Default)]
struct SessionTable {
    last: i32,
    sessions: BTreeMap<i32, (i32, watch::Sender<u64>)>,
}

/// The entry of a session in the table of open sessions. It is removed when this value is
/// dropped.
pub(super) struct Registration {
    sessions: Sessions,
    pub(super) process: i32,
    pub(super) secret: i32,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, SessionTable> {
        lock(&self.0)
    }

    /// Adds a session to the table. Returns its entry, and the receiver of its interruptions.
    pub(super) fn register(
        &self,
        random: &dyn Random,
        stop: StopWatch,
    ) -> (Registration, Interrupt) {
        let secret = random.next_u64() as i32;
        let (sender, cancelled) = watch::channel(0);
        let mut table = self.lock();
        table.last = table.last.wrapping_add(1).max(1);
        while table.sessions.contains_key(&table.last) {
            table.last = table.last.wrapping_add(1).max(1);
        }
        let process = table.last;
        table.sessions.insert(process, (secret, sender));
        drop(table);
        let registration = Registration { sessions: self.clone(), process, secret };
        (registration, Interrupt { cancelled, stop, deadline: None })
    }

    /// Cancels the running statement of a session. Returns false if the secret is wrong; the
    /// client does not learn this.
    pub(super) fn cancel(&self, process: i32, secret: i32) -> bool {
        match self.lock().sessions.get(&process) {
            Some((known, sender)) if *known == secret => {
                sender.send_modify(|count| *count += 1);
                true
            }
            _ => false,
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.sessions.lock().sessions.remove(&self.process);
    }
}

/// The receiver of a session's interruptions. It can stop the futures of a statement.
pub(super) struct Interrupt {
    cancelled: watch::Receiver<u64>,
    pub(super) stop: StopWatch,
    deadline: Option<Instant>,
}

impl Interrupt {
    /// Begins a statement with a time limit. Cancel requests that arrived before have no effect
    /// on the statement.
    pub(super) fn begin_statement(&mut self, timeout: Option<Duration>) {
        self.cancelled.mark_unchanged();
        self.deadline = timeout.map(|timeout| Instant::now() + timeout);
    }

    /// Runs a future of the statement. Returns an error if the statement is interrupted before
    /// the future ends.
    pub(super) async fn guard<T>(&mut self, work: impl Future<Output = T>) -> WireResult<T> {
        let timed_out = async {
            match self.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            // The sender lives in the registration, which outlives the session.
            Ok(()) = self.cancelled.changed() => Err(interrupted("cancel request by the user")),
            () = self.stop.cut() => Err(WireError::stopped()),
            () = timed_out => Err(interrupted("statement_timeout has passed")),
            done = work => Ok(done),
        }
    }
}

/// The time limit of the wait for the outcome of an interrupted statement that changes data. It
/// is a little longer than the wait of a write in the projector, than an election, and than the
/// retries of a COMMIT.
const OUTCOME_WAIT: Duration = Duration::from_secs(18);

/// Waits for the outcome of an interrupted statement that changes data, since the change may be
/// queued or committed already. Returns the outcome. After [`OUTCOME_WAIT`], returns an error
/// that says that the outcome is unknown. Does not wait if the session ends.
pub(super) async fn await_outcome<T>(
    interrupted: WireError,
    run: impl Future<Output = T>,
) -> WireResult<T> {
    let wait = if interrupted.is_fatal() { Duration::ZERO } else { OUTCOME_WAIT };
    tokio::time::timeout(wait, run).await.map_err(|_| {
        interrupted
            .with_message_end("; it may have been carried out, or may be later")
            .with_hint("look at the data or at SHOW before you run the statement again")
    })
}

/// Returns the error of an interrupted statement.
fn interrupted(why: &str) -> WireError {
    Error::new(ErrorCode::Cancelled, format!("the statement was cancelled: {why}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_cancel_request_needs_the_secret_and_interrupts_only_a_running_statement() {
        let sessions = Sessions::default();
        let env = proto::env::Env::real();
        let (registration, mut interrupt) =
            sessions.register(&*env.random, crate::flow::Stop::default().watch());
        let (process, secret) = (registration.process, registration.secret);
        assert!(sessions.cancel(process, secret));
        interrupt.begin_statement(None);
        assert!(interrupt.guard(async {}).await.is_ok(), "the request came before the statement");
        assert!(!sessions.cancel(process, secret.wrapping_add(1)));
        assert!(!sessions.cancel(process.wrapping_add(1), secret));
        assert!(interrupt.guard(async {}).await.is_ok(), "a wrong secret cancels nothing");
        assert!(sessions.cancel(process, secret));
        assert!(interrupt.guard(std::future::pending::<()>()).await.is_err());
        interrupt.begin_statement(Some(Duration::from_millis(1)));
        assert!(interrupt.guard(std::future::pending::<()>()).await.is_err(), "time-out");
    }
}
