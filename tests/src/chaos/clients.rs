//! State that the writers, the scanners and the operator share: the routers' addresses, the history of writes, the
//! report.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use proto::lock::lock;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};
use tonic::transport::{Channel, Endpoint};

use super::cluster::RouterAddress;
use super::history::{History, Row, Scan, Verdict};
use super::report::Report;

/// The time limit of a statement during any faults.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// The pause of a client after a refusal.
pub const PAUSE: Duration = Duration::from_millis(200);

/// The reason why a client's request failed.
#[derive(Debug)]
pub struct Failed(pub String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<tokio_postgres::Error> for Failed {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(error) => Self(format!("{} {}", error.code().code(), error.message())),
            None => Self(format!("{error:?}")),
        }
    }
}

impl From<tonic::Status> for Failed {
    fn from(status: tonic::Status) -> Self {
        Self(format!("{:?} {}", status.code(), status.message()))
    }
}

impl From<tonic::transport::Error> for Failed {
    fn from(error: tonic::transport::Error) -> Self {
        Self(format!("{error:?}"))
    }
}

impl From<tokio::time::error::Elapsed> for Failed {
    fn from(_: tokio::time::error::Elapsed) -> Self {
        Self(format!("no answer within {ANSWER_WITHIN:?}"))
    }
}

/// State that all clients share.
pub struct Shared {
    /// The seed of the run.
    pub seed: u64,
    routers: Vec<RouterAddress>,
    history: Mutex<History>,
    report: Mutex<Report>,
    /// The rows of scans of a whole index, by index and epoch.
    epochs: Mutex<BTreeMap<(String, u64), Vec<Row>>>,
    stopped: AtomicBool,
    /// True while the leading coordinator is dead and there is no other fault.
    failover: AtomicBool,
    begun: Instant,
    verbose: bool,
}

impl Shared {
    /// Returns the state at the start: an empty history and an empty report.
    pub fn new(seed: u64, routers: Vec<RouterAddress>, verbose: bool) -> Self {
        Self {
            seed,
            routers,
            history: Mutex::new(History::new(seed)),
            report: Mutex::default(),
            epochs: Mutex::default(),
            stopped: AtomicBool::new(false),
            failover: AtomicBool::new(false),
            begun: Instant::now(),
            verbose,
        }
    }

    /// Locks and returns the history of writes.
    pub fn history(&self) -> MutexGuard<'_, History> {
        lock(&self.history)
    }

    /// Changes the report; returns the result of `note`.
    pub fn report<T>(&self, note: impl FnOnce(&mut Report) -> T) -> T {
        note(&mut lock(&self.report))
    }

    /// Returns a copy of the report.
    pub fn take_report(&self) -> Report {
        lock(&self.report).clone()
    }

    /// Reports a violation.
    pub fn violation(&self, what: String) {
        self.say(|| format!("VIOLATION: {what}"));
        let at = self.begun.elapsed().as_secs_f64();
        self.report(|report| report.violation(format!("at {at:.1} s: {what}")));
    }

    /// Prints a line if the run is verbose.
    pub fn say(&self, what: impl FnOnce() -> String) {
        if self.verbose {
            eprintln!("{:8.2} {}", self.begun.elapsed().as_secs_f64(), what());
        }
    }

    /// Tells all clients to end their work.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }

    /// False after [`Self::stop`].
    pub fn is_running(&self) -> bool {
        !self.stopped.load(Ordering::SeqCst)
    }

    /// Sets whether the leading coordinator is dead while there is no other fault.
    pub fn set_failover(&self, failover: bool) {
        self.failover.store(failover, Ordering::SeqCst);
    }

    /// True while the leading coordinator is dead and there is no other fault.
    pub fn is_failover(&self) -> bool {
        self.failover.load(Ordering::SeqCst)
    }

    /// The number of routers.
    pub fn routers(&self) -> usize {
        self.routers.len()
    }

    /// Opens a SQL session at a router.
    pub async fn sql(&self, router: usize) -> Result<Client, Failed> {
        let address = self.routers[router % self.routers.len()].sql;
        let parameters =
            format!("host={} port={} user=chaos dbname=sextant", address.ip(), address.port());
        let (client, connection) =
            timeout(ANSWER_WITHIN, tokio_postgres::connect(&parameters, NoTls)).await??;
        // The connection ends with its client, or with the router, which the client detects.
        tokio::spawn(connection);
        Ok(client)
    }

    /// Opens a gRPC connection to a router.
    pub async fn grpc(&self, router: usize) -> Result<Channel, Failed> {
        let address = self.routers[router % self.routers.len()].grpc;
        let endpoint = Endpoint::from_shared(format!("http://{address}"))?;
        Ok(timeout(ANSWER_WITHIN, endpoint.connect()).await??)
    }

    /// Judges a scan and adds the verdict to the report.
    pub fn judge(&self, scan: &Scan<'_>) -> Verdict {
        let verdict = self.history().judge(scan);
        self.note(&verdict);
        verdict
    }

    /// Adds a verdict to the report.
    pub fn note(&self, verdict: &Verdict) {
        self.report(|report| {
            report.scans_checked += 1;
            report.entries_compared += verdict.entries;
            report.lost += verdict.lost;
            report.doubled += verdict.doubled;
            report.ghost += verdict.ghost;
            report.torn += verdict.torn;
            report.misordered += verdict.misordered;
        });
        verdict.descriptions.iter().for_each(|descriptions| self.violation(descriptions.clone()));
    }

    /// Compares a scan of a whole index with another one at the same epoch.
    pub fn judge_epoch(&self, index: &str, epoch: u64, rows: &[Row]) {
        let mut epochs = lock(&self.epochs);
        let key = (index.to_owned(), epoch);
        let Some(before) = epochs.get(&key) else {
            // A few of the newest epochs of each index are enough, since concurrent scans share them.
            let mine: Vec<_> = epochs.keys().filter(|known| known.0 == index).cloned().collect();
            if mine.len() >= 8 {
                epochs.remove(&mine[0]);
            }
            epochs.insert(key, rows.to_vec());
            return;
        };
        let same = before.len() == rows.len()
            && before
                .iter()
                .zip(rows)
                .all(|(a, b)| (&a.id, a.version, &a.keys) == (&b.id, b.version, &b.keys));
        drop(epochs);
        self.report(|report| report.epochs_compared += 1);
        if !same {
            self.report(|report| report.ghost += 1);
            self.violation(format!("two scans of {index} at epoch {epoch} differ"));
        }
    }
}

/// Returns the rows of a SELECT of id, version and keys.
pub async fn select(client: &Client, statement: &str) -> Result<Vec<Row>, Failed> {
    let messages = timeout(ANSWER_WITHIN, client.simple_query(statement)).await??;
    let mut rows = Vec::new();
    for message in messages {
        if let SimpleQueryMessage::Row(cells) = message {
            rows.push(row((0..cells.len()).map(|n| cells.get(n).map(str::to_owned)).collect())?);
        }
    }
    Ok(rows)
}

/// Parses a row of id, version and keys.
pub fn row(cells: Vec<Option<String>>) -> Result<Row, Failed> {
    let mut cells = cells.into_iter();
    let (id, version) = (cells.next().flatten(), cells.next().flatten());
    let version = version.and_then(|text| text.parse().ok());
    match (id, version) {
        (Some(id), Some(version)) => Ok(Row { id, version, keys: cells.collect() }),
        (id, _) => Err(Failed(format!("a row of {id:?} without a version"))),
    }
}

/// Runs statements.
pub async fn execute(client: &Client, statements: &str) -> Result<(), Failed> {
    Ok(timeout(ANSWER_WITHIN, client.batch_execute(statements)).await??)
}

/// The running client tasks.
#[derive(Default)]
pub struct Tasks(Vec<JoinHandle<()>>);

impl Tasks {
    /// Starts a client task, which must check [`Shared::is_running`] between statements.
    pub fn run(&mut self, client: impl Future<Output = ()> + Send + 'static) {
        self.0.push(tokio::spawn(client));
    }

    /// Waits until all clients have ended.
    pub async fn end(self) {
        for task in self.0 {
            task.await.expect("a client never panics");
        }
    }
}
