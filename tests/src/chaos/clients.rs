//! What writers, scanners and the operator share: where the routers are, what was written, what was found.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};
use tonic::transport::{Channel, Endpoint};

use super::cluster::RouterAddress;
use super::history::{History, Row, Scan, Verdict};
use super::report::Report;

/// No statement takes longer, whatever is broken; who asked gives up then.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// A client that was refused waits so long.
pub const PAUSE: Duration = Duration::from_millis(200);

/// Why a client got no answer.
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

/// What all share.
pub struct Shared {
    /// The seed.
    pub seed: u64,
    routers: Vec<RouterAddress>,
    history: Mutex<History>,
    report: Mutex<Report>,
    /// By index and epoch, what a scan of the whole index has shown.
    epochs: Mutex<BTreeMap<(String, u64), Vec<Row>>>,
    stopped: AtomicBool,
    /// The leading coordinator is dead and nothing else is broken.
    failover: AtomicBool,
    begun: Instant,
    verbose: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Shared {
    /// Nothing has happened yet.
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

    /// What was written.
    pub fn history(&self) -> MutexGuard<'_, History> {
        lock(&self.history)
    }

    /// Notes something in the report.
    pub fn report<T>(&self, note: impl FnOnce(&mut Report) -> T) -> T {
        note(&mut lock(&self.report))
    }

    /// The report.
    pub fn take_report(&self) -> Report {
        lock(&self.report).clone()
    }

    /// Something that must not be.
    pub fn violation(&self, what: String) {
        self.say(|| format!("VIOLATION: {what}"));
        let at = self.begun.elapsed().as_secs_f64();
        self.report(|report| report.violation(format!("at {at:.1} s: {what}")));
    }

    /// Tells what is done, if that is wanted.
    pub fn say(&self, what: impl FnOnce() -> String) {
        if self.verbose {
            eprintln!("{:8.2} {}", self.begun.elapsed().as_secs_f64(), what());
        }
    }

    /// Clients end.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }

    /// Until [`Self::stop`].
    pub fn goes_on(&self) -> bool {
        !self.stopped.load(Ordering::SeqCst)
    }

    /// The leading coordinator is dead, or no longer.
    pub fn set_failover(&self, failover: bool) {
        self.failover.store(failover, Ordering::SeqCst);
    }

    /// Is the leading coordinator dead, and nothing else broken?
    pub fn is_failover(&self) -> bool {
        self.failover.load(Ordering::SeqCst)
    }

    /// How many routers there are.
    pub fn routers(&self) -> usize {
        self.routers.len()
    }

    /// A SQL session at a router.
    pub async fn sql(&self, router: usize) -> Result<Client, Failed> {
        let address = self.routers[router % self.routers.len()].sql;
        let parameters =
            format!("host={} port={} user=chaos dbname=sextant", address.ip(), address.port());
        let (client, connection) =
            timeout(ANSWER_WITHIN, tokio_postgres::connect(&parameters, NoTls)).await??;
        // It ends with its client, or with the router, which the client sees.
        tokio::spawn(connection);
        Ok(client)
    }

    /// A gRPC connection to a router.
    pub async fn grpc(&self, router: usize) -> Result<Channel, Failed> {
        let address = self.routers[router % self.routers.len()].grpc;
        let endpoint = Endpoint::from_shared(format!("http://{address}"))?;
        Ok(timeout(ANSWER_WITHIN, endpoint.connect()).await??)
    }

    /// Judges a scan and notes what is wrong.
    pub fn judge(&self, scan: &Scan<'_>) -> Verdict {
        let verdict = self.history().judge(scan);
        self.note(&verdict);
        verdict
    }

    /// Notes what is wrong with a scan.
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
        verdict.told.iter().for_each(|told| self.violation(told.clone()));
    }

    /// Compares a scan of a whole index with another one at the same epoch.
    pub fn judge_epoch(&self, index: &str, epoch: u64, rows: &[Row]) {
        let mut epochs = lock(&self.epochs);
        let key = (index.to_owned(), epoch);
        let Some(before) = epochs.get(&key) else {
            // Of each index some of the last epochs are enough: scans that run side by side share them.
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

/// The rows of a SELECT of id, version and keys.
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

/// A row from its cells.
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

/// The clients that run.
#[derive(Default)]
pub struct Tasks(Vec<JoinHandle<()>>);

impl Tasks {
    /// Runs one more; it looks at [`Shared::goes_on`] between statements.
    pub fn run(&mut self, client: impl Future<Output = ()> + Send + 'static) {
        self.0.push(tokio::spawn(client));
    }

    /// Waits until all have ended.
    pub async fn end(self) {
        for task in self.0 {
            task.await.expect("a client never panics");
        }
    }
}
