//! The task that writes the lines. It writes all waiting lines together, with one sync.

use std::time::Duration;

use proto::env::Env;
use proto::model::ids::NodeId;
use proto::{Error, Result};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::event::EventKind;
use super::file::AuditFile;
use super::line::{Line, Outcome, Requester};

/// The maximum number of refusals that are written per second.
pub(super) const REFUSALS_PER_S: u32 = 10;

const SECOND: Duration = Duration::from_secs(1);

/// The maximum number of requests in one batch.
const BATCH_MAX: usize = 256;

/// The file to which a line belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The file of changes and of the process itself.
    Change,
    /// The file of changes, after all lines of changes: a fact that does not fit on the disk
    /// refuses no statement.
    Fact,
    /// The file of refusals and failed log-ins.
    Refusal,
}

impl Kind {
    /// Returns the file of a line for which no caller waits.
    pub(super) fn of(what: EventKind) -> Self {
        if what == EventKind::Login { Self::Refusal } else { Self::Change }
    }
}

/// Lines to write; either all or none are written.
pub(super) struct Request {
    pub(super) lines: Vec<Line>,
    pub(super) kind: Kind,
    /// Receives the result when the lines are durable, or an error.
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

/// The numbers of written and omitted refusals of the present second.
#[derive(Default)]
struct RefusalCounts {
    since: Option<Instant>,
    count: u32,
    left_out: u64,
}

impl RefusalCounts {
    /// Counts a refusal at a time; true if its line is written.
    fn takes(&mut self, now: Instant) -> bool {
        if self.since.is_none_or(|since| now - since >= SECOND) {
            (self.since, self.count) = (Some(now), 0);
        }
        self.count += 1;
        let takes = self.count <= REFUSALS_PER_S;
        self.left_out += u64::from(!takes);
        takes
    }

    /// Returns the number of omitted lines when their second has passed.
    fn summed(&mut self, now: Instant) -> Option<u64> {
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

    /// Writes lines until all senders are dropped.
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

    async fn write(&mut self, batch: Vec<Request>) {
        let now = Instant::now();
        let (mut changes, mut waiting) = (String::new(), Vec::new());
        let (mut facts, mut followers) = (String::new(), Vec::new());
        let mut refusals = self.summed(now).map(|line| line.to_json()).unwrap_or_default();
        for Request { lines, kind, done } in batch {
            for line in lines {
                match kind {
                    Kind::Change => changes += &line.to_json(),
                    Kind::Fact => facts += &line.to_json(),
                    Kind::Refusal if self.refused.takes(now) => refusals += &line.to_json(),
                    Kind::Refusal => {}
                }
            }
            match kind {
                Kind::Fact => followers.extend(done),
                Kind::Change | Kind::Refusal => waiting.extend(done),
            }
        }
        // No caller waits for a refusal, and a disk without room for it has none for changes either.
        if let Err(error) = self.append(&self.refusals, refusals).await {
            tracing::debug!(%error, "refusals are missing in the audit");
        }
        let is_written = !changes.is_empty();
        let written = self.append(&self.changes, changes).await;
        if is_written {
            self.tell(written.as_ref().err());
        }
        for done in waiting {
            let _is_gone = done.send(written.clone());
        }
        let written = self.append(&self.changes, facts).await;
        for done in followers {
            let _is_gone = done.send(written.clone());
        }
    }

    async fn append(&self, file: &AuditFile, lines: String) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let file = file.clone();
        self.env.blocking(move || file.append(&lines)).await
    }

    /// Returns the line with the number of omitted refusals, when their second has passed.
    fn summed(&mut self, now: Instant) -> Option<Line> {
        let count = self.refused.summed(now)?;
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

    /// Logs the first failure and the next success.
    fn tell(&mut self, error: Option<&Error>) {
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
