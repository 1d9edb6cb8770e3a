//! An open audit, whose lines a writer task puts into the files.

use proto::env::{Env, Task};
use proto::model::ids::NodeId;
use proto::{Error, Result};
use tokio::sync::oneshot;

use super::event::EventKind;
use super::facts::{FactChange, Facts};
use super::facts_file::FactsFile;
use super::line::{Fact, Line, Outcome, Requester};
use super::writer::{LineKind, Request};

/// The maximum number of lines about changed facts that are written at once.
const TOLD_MAX: usize = 64;

/// The maximum number of requests in the queue to the disk. When the queue is full, changes wait,
/// and lines about log-ins are omitted.
pub(super) const WAITING_MAX: usize = 1024;

/// The files of an audit, with their writer task.
pub(super) struct AuditFiles {
    pub(super) env: Env,
    pub(super) node: NodeId,
    /// The file with the facts that were written last.
    pub(super) facts: FactsFile,
    pub(super) requests: async_channel::Sender<Request>,
    pub(super) _writer: Task,
}

impl AuditFiles {
    /// Returns a line about an event at the present time, without a statement.
    pub(super) fn line(&self, what: EventKind, outcome: Outcome, who: Requester) -> Line {
        let at_unix_ms = self.env.clock.unix_ms();
        let (event, error, statement, fact) = (None, None, None, None);
        Line { at_unix_ms, node: self.node, what, outcome, error, who, event, statement, fact }
    }

    /// Writes the changed facts durably and removes those that are written from `changes`.
    /// Returns an error if a line could not be written.
    pub(super) async fn write_facts(
        &self,
        changes: &mut Vec<FactChange>,
        facts: &Facts,
    ) -> Result<()> {
        while !changes.is_empty() {
            let count = changes.len().min(TOLD_MAX);
            let lines = changes[..count].iter().cloned().map(|FactChange { what, of, was, is }| {
                let fact = Some(Fact { cluster: facts.cluster, cas: facts.cas, of, was, is });
                Line { fact, ..self.line(what, Outcome::Done, Requester::default()) }
            });
            self.write_lines(lines.collect(), LineKind::Fact).await?;
            changes.drain(..count);
        }
        Ok(())
    }

    /// Writes a line durably.
    pub(super) async fn write(&self, line: Line) -> Result<()> {
        self.write_lines(vec![line], LineKind::Change).await
    }

    /// Passes lines to the writer as soon as its queue has space, and waits until the lines are
    /// durable.
    async fn write_lines(&self, lines: Vec<Line>, kind: LineKind) -> Result<()> {
        let (done, written) = oneshot::channel();
        let request = Request { lines, kind, done: Some(done) };
        self.requests.send(request).await.map_err(|_| writer_ended_error())?;
        written.await.map_err(|_| writer_ended_error())?
    }

    /// Queues a line about an event without waiting for the disk.
    pub(super) fn note(&self, what: EventKind, outcome: Outcome, who: Requester) {
        self.send(self.line(what, outcome, who), LineKind::of(what));
    }

    /// Queues a line without waiting for the disk.
    pub(super) fn send(&self, line: Line, kind: LineKind) {
        // If the queue is full, the disk hangs.
        if self.requests.try_send(Request { lines: vec![line], kind, done: None }).is_err() {
            tracing::warn!("a line of the audit was lost: too many wait for the disk");
        }
    }
}

/// Returns the error for an audit whose writer has ended.
fn writer_ended_error() -> Error {
    Error::unavailable("the audit is not written any more: the process ends")
}
