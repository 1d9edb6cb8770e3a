//! An open audit, whose lines a writer task puts into the files.

use proto::env::{Env, Task};
use proto::model::ids::NodeId;
use proto::{Error, Result};
use tokio::sync::oneshot;

use super::event::EventKind;
use super::facts::{FactChange, Facts};
use super::facts_file::FactsFile;
use super::line::{Fact, Line, Outcome, Requester};
use super::writer::{Kind, Request};

/// The maximum number of lines about facts that are written at once.
const TOLD_MAX: usize = 64;

/// The maximum number of requests that wait for the disk. Beyond it, changes wait for a place, and
/// lines about log-ins are omitted.
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
    /// Returns a line with the present time, without a statement.
    pub(super) fn line(&self, what: EventKind, outcome: Outcome, who: Requester) -> Line {
        let at_unix_ms = self.env.clock.unix_ms();
        let (event, error, statement, fact) = (None, None, None, None);
        Line { at_unix_ms, node: self.node, what, outcome, error, who, event, statement, fact }
    }

    /// Writes the changed facts durably and removes the written ones from `changes`. An error if a
    /// line was not written.
    pub(super) async fn tell(&self, changes: &mut Vec<FactChange>, facts: &Facts) -> Result<()> {
        while !changes.is_empty() {
            let count = changes.len().min(TOLD_MAX);
            let lines = changes[..count].iter().cloned().map(|FactChange { what, of, was, is }| {
                let fact = Some(Fact { cluster: facts.cluster, cas: facts.cas, of, was, is });
                Line { fact, ..self.line(what, Outcome::Done, Requester::default()) }
            });
            self.hand_in(lines.collect(), Kind::Fact).await?;
            changes.drain(..count);
        }
        Ok(())
    }

    /// Writes a line durably.
    pub(super) async fn write(&self, line: Line) -> Result<()> {
        self.hand_in(vec![line], Kind::Change).await
    }

    /// Passes lines to the writer when its queue has space, and waits until they are durable.
    async fn hand_in(&self, lines: Vec<Line>, kind: Kind) -> Result<()> {
        let (done, written) = oneshot::channel();
        let request = Request { lines, kind, done: Some(done) };
        self.requests.send(request).await.map_err(|_| ended())?;
        written.await.map_err(|_| ended())?
    }

    /// Queues a line about an event without waiting for the disk.
    pub(super) fn note(&self, what: EventKind, outcome: Outcome, who: Requester) {
        self.send(self.line(what, outcome, who), Kind::of(what));
    }

    /// Queues a line without waiting for the disk.
    pub(super) fn send(&self, line: Line, kind: Kind) {
        // A queue that is full means a disk that hangs.
        if self.requests.try_send(Request { lines: vec![line], kind, done: None }).is_err() {
            tracing::warn!("a line of the audit was lost: too many wait for the disk");
        }
    }
}

fn ended() -> Error {
    Error::unavailable("the audit is not written any more: the process ends")
}
