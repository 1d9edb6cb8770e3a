//! The task that writes the lines of the audit. It writes all waiting lines together, with one
//! sync of the file.

use std::time::Duration;

use proto::env::Env;
use proto::model::ids::NodeId;
use proto::{Error, Result};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::event::EventKind;
use super::file::AuditFile;
use super::line::{Line, Outcome, Requester};

/// The maximum number of lines about refusals that are written per second.
pub(super) const REFUSALS_PER_S: u32 = 10;

const SECOND: Duration = Duration::from_secs(1);

/// The maximum number of requests in one batch.
const BATCH_MAX: usize = 256;

/// The kinds of lines, which determine the file and the order of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineKind {
    /// A line about a change or about the process itself, in the file of changes.
    Change,
    /// A line about a changed fact, in the file of changes. It is written after all lines of kind
    /// `Change`, so that statements are not refused if only a fact does not fit on the disk.
    Fact,
    /// A line about a refusal or a failed log-in, in the file of refusals.
    Refusal,
}

impl LineKind {
    /// Returns the kind of a line that is written in the background.
    pub(super) fn of(what: EventKind) -> Self {
        if what == EventKind::Login { Self::Refusal } else { Self::Change }
    }
}

/// Lines to write. Either all or none of them are written.
pub(super) struct Request {
    pub(super) lines: Vec<Line>,
    pub(super) kind: LineKind,
    /// Receives the result as soon as the lines are durable or have failed.
    pub(super) done: Option<oneshot::Sender<Result<()>>>,
}

/// The task that writes the lines of the audit.
pub(super) struct Writer {
    env: Env,
    changes: AuditFile,
    refusals: AuditFile,
    node: NodeId,
    waiting: async_channel::Receiver<Request>,
    refused: RefusalCounts,
    /// True after a failure was logged, until a write succeeds.
    is_failing: bool,
}

/// The numbers of written and omitted lines about refusals in the present second.
#[derive(Default)]
struct RefusalCounts {
    since: Option<Instant>,
    count: u32,
    left_out: u64,
}

impl RefusalCounts {
    /// Counts a refusal at a time. Returns true if its line is to be written.
    fn counts_and_allows(&mut self, now: Instant) -> bool {
        if self.since.is_none_or(|since| now - since >= SECOND) {
            (self.since, self.count) = (Some(now), 0);
        }
        self.count += 1;
        let takes = self.count <= REFUSALS_PER_S;
        self.left_out += u64::from(!takes);
        takes
    }

    /// Returns the number of omitted lines of a second, once that second has passed.
    fn take_omitted(&mut self, now: Instant) -> Option<u64> {
        let is_over = self.since.is_none_or(|since| now - since >= SECOND);
        (self.left_out > 0 && is_over).then(|| std::mem::take(&mut self.left_out))
    }
}

impl Writer {
    pub(super) fn new(
        env: &Env,
        [changes, refusals]: [AuditFile; 2],
        node: NodeId,
        waiting: async_channel::Receiver<Request>,
    ) -> Self {
        let (env, refused) = (env.clone(), RefusalCounts::default());
        Self { env, changes, refusals, node, waiting, refused, is_failing: false }
    }

    /// Writes lines until all senders are dropped. Returns the reason of the end.
    pub(super) async fn run(mut self) -> String {
        loop {
            let first = match self.refused.left_out {
                0 => self.waiting.recv().await,
                _ => match tokio::time::timeout(SECOND, self.waiting.recv()).await {
                    Ok(first) => first,
                    Err(_) => {
                        self.write(Vec::new()).await;
                        continue;
                    }
                },
            };
            let Ok(first) = first else { return "nobody writes it any more".to_owned() };
            let mut batch = vec![first];
            while batch.len() < BATCH_MAX
                && let Ok(next) = self.waiting.try_recv()
            {
                batch.push(next);
            }
            self.write(batch).await;
        }
    }

    /// Writes the lines of some requests to their files, and sends each request its result.
    async fn write(&mut self, batch: Vec<Request>) {
        let now = Instant::now();
        let (mut changes, mut waiting) = (String::new(), Vec::new());
        let (mut facts, mut followers) = (String::new(), Vec::new());
        let mut refusals = self.omitted_line(now).map(|line| line.to_json()).unwrap_or_default();
        for Request { lines, kind, done } in batch {
            for line in lines {
                match kind {
                    LineKind::Change => changes += &line.to_json(),
                    LineKind::Fact => facts += &line.to_json(),
                    LineKind::Refusal if self.refused.counts_and_allows(now) => {
                        refusals += &line.to_json()
                    }
                    LineKind::Refusal => {}
                }
            }
            match kind {
                LineKind::Fact => followers.extend(done),
                LineKind::Change | LineKind::Refusal => waiting.extend(done),
            }
        }
        // No caller waits for the line of a refusal. If it does not fit on the disk, lines of
        // changes do not fit either, and their error is reported.
        if let Err(error) = self.append(&self.refusals, refusals).await {
            tracing::debug!(%error, "refusals are missing in the audit");
        }
        let is_written = !changes.is_empty();
        let written = self.append(&self.changes, changes).await;
        if is_written {
            self.log_result(written.as_ref().err());
        }
        for done in waiting {
            let _is_gone = done.send(written.clone());
        }
        let written = self.append(&self.changes, facts).await;
        for done in followers {
            let _is_gone = done.send(written.clone());
        }
    }

    /// Appends lines to a file on a thread that may block.
    async fn append(&self, file: &AuditFile, lines: String) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let file = file.clone();
        self.env.blocking(move || file.append(&lines)).await
    }

    /// Returns a line with the number of omitted refusals, once the second in which they occurred
    /// has passed.
    fn omitted_line(&mut self, now: Instant) -> Option<Line> {
        let count = self.refused.take_omitted(now)?;
        let at_unix_ms = self.env.clock.unix_ms();
        let (what, outcome) = (EventKind::Login, Outcome::LeftOut(count));
        let who = Requester::default();
        let (event, error, statement, fact) = (None, None, None, None);
        Some(Line {
            at_unix_ms,
            node: self.node,
            what,
            outcome,
            error,
            who,
            event,
            statement,
            fact,
        })
    }

    /// Logs the first failure after a success, and the first success after a failure.
    fn log_result(&mut self, error: Option<&Error>) {
        match (error, self.is_failing) {
            (Some(error), false) => {
                tracing::error!(%error, "the audit cannot be written: statements that have to be in it are refused");
            }
            (None, true) => tracing::info!("the audit is written again"),
            _ => {}
        }
        self.is_failing = error.is_some();
    }
}
