//! The audit: a file that tells who has changed definitions, users, the placement of data and the nodes, and who has failed to log in.
//!
//! Each change has two lines with one number: one before it begins, and one with its outcome before the client has its answer. Both are
//! durable. So no change is made that the file lacks, and a change whose outcome is missing was under way when the process ended. If the
//! file cannot be written, changes are refused, and everything else goes on. A failed log-in has one line, which nobody waits for; there
//! are at most ten of them in a second, and then a line with the number of those left out, because a stranger must not be
//! able to fill the disk.
//!
//! The lines are JSON ([`line`]), in two files of a directory ([`file`]). No line has a literal of a statement, a password or a token.

mod event;
mod file;
mod line;
#[cfg(test)]
mod tests;
mod writer;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use proto::env::{Env, Task};
use proto::model::ids::NodeId;
use proto::{Error, ErrorCode, Result};
use tokio::sync::oneshot;

pub use self::event::{Door, What};
use self::file::AuditFile;
use self::line::{Line, Outcome, Who};
use self::writer::{Request, Writer};
use crate::principal::Principal;

/// The default of `audit_mb`: both files together, in MiB.
pub const AUDIT_MB: u64 = 64;

/// Lines that wait for the disk. Changes wait for a place, notes of log-ins do not.
const WAITING_MAX: usize = 1024;

/// The audit of a process; cheap to clone.
#[derive(Clone)]
pub struct Audit(Option<Arc<Opened>>);

struct Opened {
    env: Env,
    node: NodeId,
    requests: async_channel::Sender<Request>,
    _writer: Task,
}

impl Audit {
    /// An audit that is not kept.
    pub fn off() -> Self {
        Self(None)
    }

    /// The audit of a node in a directory that only this process uses. The two files have this size together.
    pub async fn open(env: &Env, dir: &Path, bytes_max: u64, node: NodeId) -> Result<Self> {
        let file = AuditFile::new(env, dir, bytes_max);
        let opened = file.clone();
        env.blocking(move || opened.prepare()).await?;
        let (requests, waiting) = async_channel::bounded(WAITING_MAX);
        let writer = Writer::new(env, file, node, waiting).run();
        let writer = env.spawn_service("audit", writer);
        let audit = Opened { env: env.clone(), node, requests, _writer: writer };
        audit.note(What::Process, Outcome::Began, Who::default());
        Ok(Self(Some(Arc::new(audit))))
    }

    /// Writes durably that a principal begins a change. An error if that cannot be written: then the change must not be made.
    pub async fn begin(
        &self,
        principal: &Principal,
        door: Door,
        (what, statement): (What, &str),
    ) -> Result<Entry> {
        let Some(audit) = &self.0 else { return Ok(Entry(None)) };
        let mut line = audit.line(what, Outcome::Began, Who::of(principal, door));
        line.event = Some(audit.env.random.next_u64());
        line.statement = Some(statement.to_owned());
        audit.write(line.clone()).await?;
        Ok(Entry(Some((Arc::clone(audit), line))))
    }

    /// Notes that a log-in has failed. It waits for nothing.
    pub fn login_failed(
        &self,
        from: Option<SocketAddr>,
        door: Door,
        user: Option<&str>,
        sqlstate: &'static str,
    ) {
        let Some(audit) = &self.0 else { return };
        let who = Who { user: user.map(ToOwned::to_owned), by: None, from, door: Some(door) };
        audit.note(What::Login, Outcome::Failed(sqlstate), who);
    }
}

impl Opened {
    fn line(&self, what: What, outcome: Outcome, who: Who) -> Line {
        let at_unix_ms = self.env.clock.unix_ms();
        Line { at_unix_ms, node: self.node, what, outcome, who, event: None, statement: None }
    }

    async fn write(&self, line: Line) -> Result<()> {
        let (done, written) = oneshot::channel();
        let ended = || Error::unavailable("the audit is not written any more: the process ends");
        self.requests.send(Request { line, done: Some(done) }).await.map_err(|_| ended())?;
        written.await.map_err(|_| ended())?
    }

    fn note(&self, what: What, outcome: Outcome, who: Who) {
        let line = self.line(what, outcome, who);
        // A queue that is full means a disk that hangs.
        if self.requests.try_send(Request { line, done: None }).is_err() {
            tracing::warn!(?what, "a line of the audit was lost: too many wait for the disk");
        }
    }
}

/// A change that has begun. Without [`Entry::end`] it is written that nobody has waited for its outcome.
#[must_use]
pub struct Entry(Option<(Arc<Opened>, Line)>);

impl Entry {
    /// Writes the outcome of the change durably.
    pub async fn end(mut self, failure: Option<ErrorCode>) {
        let Some((audit, mut line)) = self.0.take() else { return };
        line.at_unix_ms = audit.env.clock.unix_ms();
        line.outcome = match failure {
            None => Outcome::Done,
            Some(code) => Outcome::Failed(code.sqlstate()),
        };
        // The change is made: its first line is there, and the client must know of the change.
        if let Err(error) = audit.write(line).await {
            tracing::error!(%error, "the outcome of a change is missing in the audit");
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let Some((audit, mut line)) = self.0.take() else { return };
        line.at_unix_ms = audit.env.clock.unix_ms();
        line.outcome = Outcome::Left;
        let _full_or_ended = audit.requests.try_send(Request { line, done: None });
    }
}
