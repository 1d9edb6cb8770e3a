//! The audit: files that record changes of definitions, users, the placement of data and the nodes, with their authors, and refusals.
//!
//! A change has two lines with one number: one before it is sent to the coordinators, and one with its outcome before the client has its
//! answer. Both are durable. So no change is made that the audit lacks, and a change whose outcome is missing was in progress when the
//! process ended. If the file cannot be written, or its disk hangs, changes are refused, and everything else continues.
//!
//! A statement that was refused before it was sent, and a failed log-in, has one line, which no caller waits for, in a separate file, so
//! that a user without privileges cannot push changes out of the other file. There are at most ten of these lines in a second, and then a
//! line with the number of those left out.
//!
//! A coordinator writes a third kind: which nodes there are and where data is, whenever that changes, whether a statement or the cluster
//! itself has changed it (`facts`, `follow`). These lines refuse no statement.
//!
//! The lines are JSON (`line`), in files of a directory (`file`). No line has a literal of a definition, a password or a token.

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

/// The default of `audit_mb`: all files together, in MiB.
pub const AUDIT_MB: u64 = 64;

/// The first and the longest pause after a failure to open an audit that no caller waits for.
const OPEN_PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));

/// Time limit for a line that is waited for.
const WITHIN: Duration = Duration::from_secs(10);

/// The SQLSTATEs of a failed statement whose change may have been made: no answer, an interruption, a doubt.
const OPEN: [&str; 3] = ["57P03", "57014", "08007"];

/// The audit of a process; cheap to clone.
#[derive(Clone)]
pub struct Audit(Option<Arc<AuditFiles>>);

impl Audit {
    /// An audit that is not kept.
    pub fn off() -> Self {
        Self(None)
    }

    /// The audit of a node in a directory that only this process uses. All files have this size together.
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

    /// Writes each change of the nodes and of the places of data, as a coordinator's catalog has them, until the task is dropped.
    pub fn follow(&self, coordinator: FindCoordinator) -> Option<Task> {
        let audit = Arc::clone(self.0.as_ref()?);
        let env = audit.env.clone();
        let begin = move || {
            let (audit, coordinator) = (Arc::clone(&audit), Arc::clone(&coordinator));
            async { Follower::new(audit, coordinator).await.run().await }
        };
        Some(env.spawn_restarted("placement audit", begin))
    }

    /// Follows the catalog and writes to a separate audit, for a process without statements. No caller waits for it: a directory that
    /// cannot be used is logged and retried.
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

    /// A statement of a principal that may become a change. Nothing is written yet.
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

    /// Notes that a log-in has failed. It does not wait for the disk.
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

/// A statement that may become a change; cheap to clone. One that has begun and is dropped before its end has the outcome `left`.
#[derive(Clone, Default)]
pub struct Attempt(Option<Arc<AuditedAttempt>>);

struct AuditedAttempt {
    audit: Arc<AuditFiles>,
    /// The first line of the change.
    line: Line,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No command was sent.
    Idle,
    /// The first line is written, or under way.
    Begun,
    /// The coordinators have made the change.
    Made,
    /// The second line was written; no more lines follow.
    Ended,
}

impl Attempt {
    /// Writes durably that the change begins, unless it has begun. An error if that cannot be written: then nothing may be sent.
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

    /// Records that the coordinators have made the change, whatever the outcome of the statement.
    pub fn made(&self) {
        if let Some(attempted) = &self.0 {
            attempted.enter(State::Made);
        }
    }

    /// Writes the outcome of the statement durably.
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
    /// Advances to a later state; returns the previous state.
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

    /// The second line, with an outcome. Only the first line has the statement.
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
