//! An audit that is open: its lines go to the writer, which puts them into the files.

use proto::env::{Env, Task};
use proto::model::ids::NodeId;
use proto::{Error, Result};
use tokio::sync::oneshot;

use super::event::What;
use super::facts::FactChange;
use super::file::AuditFile;
use super::line::{Fact, Line, Outcome, Told, Who, last_told};
use super::writer::{Kind, Request};

/// Lines that wait for the disk. Changes wait for a place, notes of log-ins do not.
pub(super) const WAITING_MAX: usize = 1024;

/// The files of an audit, and their writer.
pub(super) struct Opened {
    pub(super) env: Env,
    pub(super) node: NodeId,
    pub(super) changes: AuditFile,
    pub(super) requests: async_channel::Sender<Request>,
    pub(super) _writer: Task,
}

impl Opened {
    /// A line of now, of no statement.
    pub(super) fn line(&self, what: What, outcome: Outcome, who: Who) -> Line {
        let at_unix_ms = self.env.clock.unix_ms();
        let (event, error, statement, fact) = (None, None, None, None);
        Line { at_unix_ms, node: self.node, what, outcome, error, who, event, statement, fact }
    }

    /// The last catalog that the files tell of.
    pub(super) async fn told(&self) -> Result<Told> {
        let changes = self.changes.clone();
        let told = self.env.blocking(move || changes.find_last(last_told)).await?;
        Ok(told.unwrap_or_default())
    }

    /// Writes durably which facts a catalog has changed. An error if a line could not be written.
    pub(super) async fn tell(&self, changes: Vec<FactChange>, catalog: Told) -> Result<()> {
        let mut waiting = Vec::with_capacity(changes.len());
        for FactChange { what, of, was, is } in changes {
            let fact = Some(Fact { catalog: catalog.clone(), of, was, is });
            let line = Line { fact, ..self.line(what, Outcome::Done, Who::default()) };
            waiting.push(self.hand_in(line).await?);
        }
        for written in waiting {
            written.await.map_err(|_| ended())??;
        }
        Ok(())
    }

    /// Hands a line to the writer, when there is a place for it; the answer comes when it is durable.
    async fn hand_in(&self, line: Line) -> Result<oneshot::Receiver<Result<()>>> {
        let (done, written) = oneshot::channel();
        let request = Request { line, kind: Kind::Change, done: Some(done) };
        self.requests.send(request).await.map_err(|_| ended())?;
        Ok(written)
    }

    /// Writes a line durably.
    pub(super) async fn write(&self, line: Line) -> Result<()> {
        self.hand_in(line).await?.await.map_err(|_| ended())?
    }

    /// Writes an event that nobody waits for.
    pub(super) fn note(&self, what: What, outcome: Outcome, who: Who) {
        self.send(self.line(what, outcome, who), Kind::of(what));
    }

    /// Writes a line that nobody waits for.
    pub(super) fn send(&self, line: Line, kind: Kind) {
        // A queue that is full means a disk that hangs.
        if self.requests.try_send(Request { line, kind, done: None }).is_err() {
            tracing::warn!("a line of the audit was lost: too many wait for the disk");
        }
    }
}

fn ended() -> Error {
    Error::unavailable("the audit is not written any more: the process ends")
}
