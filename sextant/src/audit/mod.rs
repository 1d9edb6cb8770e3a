//! The audit: files that record changes of definitions, users, the placement of data and the nodes,
//! with their authors, and refusals.
//!
//! A change has two lines with the same event number. The first is written before the change is
//! sent to the coordinators, the second, with the outcome, before the client gets its answer.
//! Both are durable. The audit therefore contains every change that was made, and a change
//! without a second line was in progress when the process ended. If the file cannot be written,
//! or its disk hangs, changes are refused; other statements continue to work.
//!
//! A statement that was refused before it was sent and a failed log-in have one line each, in a
//! separate file, so that a user without privileges cannot displace changes from the other file.
//! The statement does not wait for this line. At most ten such lines are written per second; one
//! more line has the number of omitted ones.
//!
//! A coordinator writes a third kind of line for each change of the nodes and of the places of
//! data, whether a statement or the cluster itself has caused it (`facts`, `follow`). If such a
//! line cannot be written, no statement is refused.
//!
//! The lines are JSON (`line`), in files of a directory (`file`). No line contains a password, a
//! token, or a literal of a definition.

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

pub use self::event::{EventKind, PortProtocol};
use self::facts_file::FactsFile;
use self::file::AuditFile;
pub use self::follow::FindCoordinator;
use self::follow::Follower;
use self::line::{Line, Outcome, Requester};
use self::open_audit::{AuditFiles, WAITING_MAX};
use self::writer::{LineKind, Writer};
use crate::principal::Principal;

/// The default of `audit_mb`: the size limit of all files together, in MiB.
pub const AUDIT_MB: u64 = 64;

/// The first and the longest pause between attempts to open an audit in the background.
const OPEN_PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));

/// The time limit for writing a line for which a statement waits.
const WITHIN: Duration = Duration::from_secs(10);

/// The SQLSTATEs of failed statements whose change may nevertheless have been made: no answer
/// came, the statement was interrupted, or the outcome is unknown.
const OPEN: [&str; 3] = ["57P03", "57014", "08007"];

/// The audit of a process, or no audit (`None`). A clone is cheap.
#[derive(Clone)]
pub struct Audit(Option<Arc<AuditFiles>>);

impl Audit {
    /// Returns an audit that writes nothing.
    pub fn off() -> Self {
        Self(None)
    }

    /// Opens the audit of a node in a directory that only this process uses. `bytes_max` limits
    /// the size of all files together.
    pub async fn open(env: &Env, dir: &Path, bytes_max: u64, node: NodeId) -> Result<Self> {
        // The files of refusals get a quarter of the space.
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

    /// Starts a task that writes a line for each change of the nodes and of the places of data in
    /// a coordinator's catalog. The task runs until it is dropped. Returns `None` if there is no
    /// audit.
    pub fn follow(&self, coordinator: FindCoordinator) -> Option<Task> {
        let audit = Arc::clone(self.0.as_ref()?);
        let env = audit.env.clone();
        let begin = move || {
            let (audit, coordinator) = (Arc::clone(&audit), Arc::clone(&coordinator));
            async { Follower::new(audit, coordinator).await.run().await }
        };
        Some(env.spawn_restarted("placement audit", begin))
    }

    /// Starts a task that writes the changes of a coordinator's catalog to a separate audit, for
    /// a process without statements. If the directory cannot be used, that is logged and retried.
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
                let audit = Self::open_with_retries(&env, (&dir, bytes_max), node).await;
                let Self(Some(audit)) = audit else { return };
                Follower::new(audit, coordinator).await.run().await;
            }
        };
        env.spawn_restarted("placement audit", begin)
    }

    /// Opens an audit, and retries until that succeeds.
    async fn open_with_retries(env: &Env, (dir, bytes_max): (&Path, u64), node: NodeId) -> Self {
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

    /// Returns the audit's record of a statement that may change something. Nothing is written
    /// yet.
    pub fn attempt(
        &self,
        principal: &Principal,
        door: PortProtocol,
        (what, statement): (EventKind, &str),
    ) -> Attempt {
        let Some(audit) = &self.0 else { return Attempt::default() };
        let line = Line {
            event: Some(audit.env.random.next_u64()),
            statement: Some(statement.to_owned()),
            ..audit.line(what, Outcome::Began, Requester::of(principal, door))
        };
        let state = Mutex::new(AttemptState::Idle);
        Attempt(Some(Arc::new(AuditedAttempt { audit: Arc::clone(audit), line, state })))
    }

    /// Writes a line about a failed log-in, without waiting for the disk.
    pub fn login_failed(
        &self,
        from: Option<SocketAddr>,
        door: PortProtocol,
        user: Option<&str>,
        sqlstate: &'static str,
    ) {
        let Some(audit) = &self.0 else { return };
        let who = Requester { user: user.map(ToOwned::to_owned), by: None, from, door: Some(door) };
        audit.note(EventKind::Login, Outcome::Failed(sqlstate), who);
    }
}

/// An attempt to execute a statement that may change something. A clone is cheap. If an attempt
/// has begun and is dropped before its end, the audit records the outcome `left`.
#[derive(Clone, Default)]
pub struct Attempt(Option<Arc<AuditedAttempt>>);

/// The audit and the progress of an attempt; present only if the process has an audit.
struct AuditedAttempt {
    audit: Arc<AuditFiles>,
    /// The first line of the change, which is written when the attempt begins.
    line: Line,
    state: Mutex<AttemptState>,
}

/// The progress of an attempt. An attempt only ever enters a later state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AttemptState {
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
    /// Writes the first line durably, unless it was written before. After an error, no change may
    /// be sent to the coordinators.
    pub async fn begin(&self) -> Result<()> {
        let Some(attempted) = &self.0 else { return Ok(()) };
        match attempted.advance_state(AttemptState::Begun) {
            AttemptState::Idle => {}
            AttemptState::Begun | AttemptState::Made => return Ok(()),
            AttemptState::Ended => return Err(audit_error("it has failed before")),
        }
        let (audit, line) = (&attempted.audit, attempted.line.clone());
        match timeout(WITHIN, audit.write(line)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                attempted.advance_state(AttemptState::Ended);
                Err(error)
            }
            Err(_) => {
                // The first line may still be written; this line then follows it.
                attempted.advance_state(AttemptState::Ended);
                let code = ErrorCode::Io;
                audit.send(
                    attempted.second_line(Outcome::Failed(code.sqlstate()), None),
                    LineKind::Change,
                );
                Err(audit_error(&format!("its disk does not answer within {} s", WITHIN.as_secs())))
            }
        }
    }

    /// Records that the coordinators have made the change, even if the statement fails later.
    pub fn note_change_made(&self) {
        if let Some(attempted) = &self.0 {
            attempted.advance_state(AttemptState::Made);
        }
    }

    /// Writes the outcome of the statement durably. A statement that fails before its change has
    /// begun gets a line about the refusal instead.
    pub async fn end(&self, failure: Option<ErrorCode>) {
        let Some(attempted) = &self.0 else { return };
        let sqlstate = failure.map(ErrorCode::sqlstate);
        let state = *lock(&attempted.state);
        let (outcome, error) = match (state, sqlstate) {
            (AttemptState::Ended, _) => return,
            // There was nothing to do.
            (AttemptState::Idle, None) => return,
            (AttemptState::Idle, Some(sqlstate)) => {
                let refused = Line {
                    statement: attempted.line.statement.clone(),
                    event: None,
                    ..attempted.second_line(Outcome::Failed(sqlstate), None)
                };
                attempted.advance_state(AttemptState::Ended);
                return attempted.audit.send(refused, LineKind::Refusal);
            }
            (AttemptState::Begun | AttemptState::Made, None) => (Outcome::Done, None),
            (AttemptState::Made, Some(sqlstate)) => (Outcome::Done, Some(sqlstate)),
            (AttemptState::Begun, Some(sqlstate)) if OPEN.contains(&sqlstate) => {
                (Outcome::Unknown, Some(sqlstate))
            }
            (AttemptState::Begun, Some(sqlstate)) => (Outcome::Failed(sqlstate), None),
        };
        let line = attempted.second_line(outcome, error);
        // The change may have been made, and its first line is written. The client must therefore
        // learn of the change even if the second line cannot be written.
        match timeout(WITHIN, attempted.audit.write(line)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "the audit lacks the outcome of a change"),
            Err(_) => tracing::error!("the audit lacks the outcome of a change: its disk hangs"),
        }
        attempted.advance_state(AttemptState::Ended);
    }
}

impl AuditedAttempt {
    /// Changes the state of the attempt if `next` is later, and returns the previous state.
    fn advance_state(&self, next: AttemptState) -> AttemptState {
        let mut state = lock(&self.state);
        let before = *state;
        let is_later = matches!(
            (before, next),
            (AttemptState::Idle, AttemptState::Begun)
                | (AttemptState::Begun, AttemptState::Made)
                | (_, AttemptState::Ended)
        );
        if is_later {
            *state = next;
        }
        before
    }

    /// Returns the second line of the change, which has the outcome and no statement.
    fn second_line(&self, outcome: Outcome, error: Option<&'static str>) -> Line {
        let at_unix_ms = self.audit.env.clock.unix_ms();
        Line { at_unix_ms, outcome, error, statement: None, ..self.line.clone() }
    }
}

impl Drop for AuditedAttempt {
    fn drop(&mut self) {
        let outcome = match *lock(&self.state) {
            AttemptState::Idle | AttemptState::Ended => return,
            AttemptState::Begun => Outcome::Left,
            AttemptState::Made => Outcome::Done,
        };
        self.audit.send(self.second_line(outcome, None), LineKind::Change);
    }
}

/// Returns the error for a change that is refused because the audit cannot be written.
fn audit_error(why: &str) -> Error {
    Error::new(ErrorCode::Io, format!("the audit is not written: {why}"))
        .with_hint("statements that have to be in the audit are refused until it can be written")
}
