//! The audit: files that record changes of definitions, users, the placement of data and the nodes,
//! with their authors, and refusals.
//!
//! A change has two lines with the same number: the first before the change is sent to the
//! coordinators, the second with the outcome before the client gets its answer. Both are durable.
//! So the audit lacks no change that was made, and a change without a second line was in progress
//! when the process ended. If the file cannot be written, or its disk hangs, changes are refused,
//! and everything else continues.
//!
//! A statement that was refused before it was sent and a failed log-in have one line each, in a
//! separate file, so that a user without privileges cannot displace changes from the other file.
//! The statement does not wait for this line. At most ten such lines are written per second, then a
//! line with the number of omitted lines.
//!
//! A coordinator writes a third kind of line for each change of the nodes and of the places of
//! data, caused by a statement or by the cluster itself (`facts`, `follow`). If such a line cannot
//! be written, no statement is refused.
//!
//! The lines are JSON (`line`), in files of a directory (`file`). No line has a literal of a
//! definition, a password or a token.

mod event;
mod facts;
mod facts_file;
mod file;
mod follow;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod line;
mod open_audit;
#[cfg(test)]
mod tests;
mod writer;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::client::Retry;
use proto::env::{Env, Task};
use proto::lock::lock;
use proto::model::ids::NodeId;
use proto::{Error, ErrorCode, Result};
use tokio::time::timeout;

pub use self::event::{Door, EventKind};
use self::facts_file::FactsFile;
use self::file::AuditFile;
pub use self::follow::FindCoordinator;
use self::follow::Follower;
use self::line::{Line, Outcome, Requester};
use self::open_audit::{AuditFiles, WAITING_MAX};
use self::writer::{Kind, Writer};
use crate::principal::Principal;

/// The default of `audit_mb`: the size limit of all files together, in MiB.
pub const AUDIT_MB: u64 = 64;

/// The first and the longest pause between attempts to open an audit for which no caller waits.
const OPEN_PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));

/// The time limit for writing a line for which a statement waits.
const WITHIN: Duration = Duration::from_secs(10);

/// The SQLSTATEs of failed statements whose change may have been made nevertheless: no answer,
/// interruption, unknown outcome.
const OPEN: [&str; 3] = ["57P03", "57014", "08007"];

/// The audit of a process, or none; cheap to clone.
#[derive(Clone)]
pub struct Audit(Option<Arc<AuditFiles>>);

impl Audit {
    /// Returns an audit that writes nothing.
    pub fn off() -> Self {
        Self(None)
    }

    /// Opens the audit of a node in a directory that only this process uses. All files together
    /// have at most `bytes_max`.
    pub async fn open(env: &Env, dir: &Path, bytes_max: u64, node: NodeId) -> Result<Self> {
        // Refusals have a quarter.
        let changes = AuditFile::new(env, dir, "audit", bytes_max / 4 * 3);
        let refusals = AuditFile::new(env, dir, "refused", bytes_max / 4);
        let files = [changes, refusals];
        let opened = files.clone();
        env.blocking(move || opened.iter().try_for_each(AuditFile::prepare)).await?;
        let facts = FactsFile::new(env, dir);
        let (requests, waiting) = async_channel::bounded(WAITING_MAX);
        let writer = Writer::new(env, files, node, waiting).run();
        let writer = env.spawn_service("audit", writer);
        let audit = AuditFiles { env: env.clone(), node, facts, requests, _writer: writer };
        audit.note(EventKind::Process, Outcome::Began, Requester::default());
        Ok(Self(Some(Arc::new(audit))))
    }

    /// Starts a task that writes each change of the nodes and of the places of data in a
    /// coordinator's catalog, until the task is dropped. `None` without an audit.
    pub fn follow(&self, coordinator: FindCoordinator) -> Option<Task> {
        let audit = Arc::clone(self.0.as_ref()?);
        let env = audit.env.clone();
        let begin = move || {
            let (audit, coordinator) = (Arc::clone(&audit), Arc::clone(&coordinator));
            async { Follower::new(audit, coordinator).await.run().await }
        };
        Some(env.spawn_restarted("placement audit", begin))
    }

    /// Starts a task that follows the catalog and writes to a separate audit, for a process
    /// without statements. A directory that cannot be used is logged and retried.
    pub fn follow_in(
        (dir, bytes_max): (PathBuf, u64),
        node: NodeId,
        coordinator: FindCoordinator,
        env: &Env,
    ) -> Task {
        let its_env = env.clone();
        let begin = move || {
            let (env, dir, coordinator) = (its_env.clone(), dir.clone(), Arc::clone(&coordinator));
            async move {
                let audit = Self::open_late(&env, (&dir, bytes_max), node).await;
                let Self(Some(audit)) = audit else { return };
                Follower::new(audit, coordinator).await.run().await;
            }
        };
        env.spawn_restarted("placement audit", begin)
    }

    async fn open_late(env: &Env, (dir, bytes_max): (&Path, u64), node: NodeId) -> Self {
        let mut retry = Retry::doubling(OPEN_PAUSES.0, OPEN_PAUSES.1);
        loop {
            match Self::open(env, dir, bytes_max, node).await {
                Ok(audit) => return audit,
                Err(error) if retry.is_first_failure() => {
                    tracing::warn!(%error, "the audit cannot be opened; trying again");
                }
                Err(_) => {}
            }
            retry.pause().await;
        }
    }

    /// Returns an attempt of a principal to execute a statement that may change something. Nothing
    /// is written yet.
    pub fn attempt(
        &self,
        principal: &Principal,
        door: Door,
        (what, statement): (EventKind, &str),
    ) -> Attempt {
        let Some(audit) = &self.0 else { return Attempt::default() };
        let line = Line {
            event: Some(audit.env.random.next_u64()),
            statement: Some(statement.to_owned()),
            ..audit.line(what, Outcome::Began, Requester::of(principal, door))
        };
        let state = Mutex::new(State::Idle);
        Attempt(Some(Arc::new(AuditedAttempt { audit: Arc::clone(audit), line, state })))
    }

    /// Writes a line about a failed log-in, without waiting for the disk.
    pub fn login_failed(
        &self,
        from: Option<SocketAddr>,
        door: Door,
        user: Option<&str>,
        sqlstate: &'static str,
    ) {
        let Some(audit) = &self.0 else { return };
        let who = Requester { user: user.map(ToOwned::to_owned), by: None, from, door: Some(door) };
        audit.note(EventKind::Login, Outcome::Failed(sqlstate), who);
    }
}

/// A statement that may change something; cheap to clone. An attempt that has begun and is dropped
/// before its end gets the outcome `left`.
#[derive(Clone, Default)]
pub struct Attempt(Option<Arc<AuditedAttempt>>);

struct AuditedAttempt {
    audit: Arc<AuditFiles>,
    /// The first line of the change, if there will be one.
    line: Line,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No command was sent.
    Idle,
    /// The first line is written or being written.
    Begun,
    /// The coordinators have made the change.
    Made,
    /// The second line is written; the attempt writes no more lines.
    Ended,
}

impl Attempt {
    /// Writes the first line durably, unless that was done before. After an error, nothing may be
    /// sent to the coordinators.
    pub async fn begin(&self) -> Result<()> {
        let Some(attempted) = &self.0 else { return Ok(()) };
        match attempted.enter(State::Begun) {
            State::Idle => {}
            State::Begun | State::Made => return Ok(()),
            State::Ended => return Err(unwritten("it has failed before")),
        }
        let (audit, line) = (&attempted.audit, attempted.line.clone());
        match timeout(WITHIN, audit.write(line)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                attempted.enter(State::Ended);
                Err(error)
            }
            Err(_) => {
                // The first line may still be written; this line then follows it.
                attempted.enter(State::Ended);
                let code = ErrorCode::Io;
                audit.send(attempted.later(Outcome::Failed(code.sqlstate()), None), Kind::Change);
                Err(unwritten(&format!("its disk does not answer within {} s", WITHIN.as_secs())))
            }
        }
    }

    /// Records that the coordinators have made the change, even if the statement fails later.
    pub fn made(&self) {
        if let Some(attempted) = &self.0 {
            attempted.enter(State::Made);
        }
    }

    /// Writes the outcome of the statement durably, if the change has begun.
    pub async fn end(&self, failure: Option<ErrorCode>) {
        let Some(attempted) = &self.0 else { return };
        let sqlstate = failure.map(ErrorCode::sqlstate);
        let state = *lock(&attempted.state);
        let (outcome, error) = match (state, sqlstate) {
            (State::Ended, _) => return,
            // There was nothing to do.
            (State::Idle, None) => return,
            (State::Idle, Some(sqlstate)) => {
                let refused = Line {
                    statement: attempted.line.statement.clone(),
                    event: None,
                    ..attempted.later(Outcome::Failed(sqlstate), None)
                };
                attempted.enter(State::Ended);
                return attempted.audit.send(refused, Kind::Refusal);
            }
            (State::Begun | State::Made, None) => (Outcome::Done, None),
            (State::Made, Some(sqlstate)) => (Outcome::Done, Some(sqlstate)),
            (State::Begun, Some(sqlstate)) if OPEN.contains(&sqlstate) => {
                (Outcome::Unknown, Some(sqlstate))
            }
            (State::Begun, Some(sqlstate)) => (Outcome::Failed(sqlstate), None),
        };
        let line = attempted.later(outcome, error);
        // The change may be made: its first line is there, and the client must know of the change.
        match timeout(WITHIN, attempted.audit.write(line)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "the audit lacks the outcome of a change"),
            Err(_) => tracing::error!("the audit lacks the outcome of a change: its disk hangs"),
        }
        attempted.enter(State::Ended);
    }
}

impl AuditedAttempt {
    /// Changes to a later state and returns the previous one.
    fn enter(&self, next: State) -> State {
        let mut state = lock(&self.state);
        let before = *state;
        let is_later = matches!(
            (before, next),
            (State::Idle, State::Begun) | (State::Begun, State::Made) | (_, State::Ended)
        );
        if is_later {
            *state = next;
        }
        before
    }

    /// Returns the second line, with an outcome and without the statement.
    fn later(&self, outcome: Outcome, error: Option<&'static str>) -> Line {
        let at_unix_ms = self.audit.env.clock.unix_ms();
        Line { at_unix_ms, outcome, error, statement: None, ..self.line.clone() }
    }
}

impl Drop for AuditedAttempt {
    fn drop(&mut self) {
        let outcome = match *lock(&self.state) {
            State::Idle | State::Ended => return,
            State::Begun => Outcome::Left,
            State::Made => Outcome::Done,
        };
        self.audit.send(self.later(outcome, None), Kind::Change);
    }
}

fn unwritten(why: &str) -> Error {
    Error::new(ErrorCode::Io, format!("the audit is not written: {why}"))
        .with_hint("statements that have to be in the audit are refused until it can be written")
}
