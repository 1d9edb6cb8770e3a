//! The task that writes the lines: all that wait at a time, with one sync.

use std::time::Duration;

use proto::env::Env;
use proto::model::ids::NodeId;
use proto::{Error, Result};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::event::What;
use super::file::AuditFile;
use super::line::{Line, Outcome, Who};

/// Failed log-ins that are written in a second.
pub(super) const LOGINS_PER_S: u32 = 10;

const SECOND: Duration = Duration::from_secs(1);

/// Lines of one batch.
const BATCH_MAX: usize = 256;

/// A line that waits.
pub(super) struct Request {
    pub(super) line: Line,
    /// Hears when the line is durable, or that it is not.
    pub(super) done: Option<oneshot::Sender<Result<()>>>,
}

/// The writer.
pub(super) struct Writer {
    env: Env,
    file: AuditFile,
    node: NodeId,
    waiting: async_channel::Receiver<Request>,
    logins: Logins,
    /// True after a failure that was logged.
    is_failing: bool,
}

/// The failed log-ins of the present second.
#[derive(Default)]
struct Logins {
    since: Option<Instant>,
    count: u32,
    left_out: u64,
}

impl Logins {
    /// True if a line is written of a log-in that failed at a time.
    fn takes(&mut self, now: Instant) -> bool {
        if self.since.is_none_or(|since| now - since >= SECOND) {
            (self.since, self.count) = (Some(now), 0);
        }
        self.count += 1;
        let takes = self.count <= LOGINS_PER_S;
        self.left_out += u64::from(!takes);
        takes
    }

    /// The number of those left out, once their second is over.
    fn summed(&mut self, now: Instant) -> Option<u64> {
        let is_over = self.since.is_none_or(|since| now - since >= SECOND);
        (self.left_out > 0 && is_over).then(|| std::mem::take(&mut self.left_out))
    }
}

impl Writer {
    pub(super) fn new(
        env: &Env,
        file: AuditFile,
        node: NodeId,
        waiting: async_channel::Receiver<Request>,
    ) -> Self {
        let (env, logins) = (env.clone(), Logins::default());
        Self { env, file, node, waiting, logins, is_failing: false }
    }

    /// Writes until nobody can ask any more.
    pub(super) async fn run(mut self) -> String {
        loop {
            let first = match self.logins.left_out {
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
        let mut lines = self.summed(now).map(|line| line.to_json()).unwrap_or_default();
        let mut waiting = Vec::new();
        for Request { line, done } in batch {
            if line.what != What::Login || self.logins.takes(now) {
                lines += &line.to_json();
            }
            waiting.extend(done);
        }
        if lines.is_empty() {
            return;
        }
        let file = self.file.clone();
        let written = self.env.blocking(move || file.append(&lines)).await;
        self.tell(written.as_ref().err());
        for done in waiting {
            let _is_gone = done.send(written.clone());
        }
    }

    /// The line about log-ins that have none.
    fn summed(&mut self, now: Instant) -> Option<Line> {
        let count = self.logins.summed(now)?;
        let at_unix_ms = self.env.clock.unix_ms();
        let (what, outcome) = (What::Login, Outcome::LeftOut(count));
        let who = Who::default();
        Some(Line { at_unix_ms, node: self.node, what, outcome, who, event: None, statement: None })
    }

    /// Logs the first failure, and the end of failures.
    fn tell(&mut self, error: Option<&Error>) {
        match (error, self.is_failing) {
            (Some(error), false) => {
                tracing::error!(%error, "the audit cannot be written: changes are refused");
            }
            (None, true) => tracing::info!("the audit is written again"),
            _ => {}
        }
        self.is_failing = error.is_some();
    }
}
