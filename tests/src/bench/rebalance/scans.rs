//! Documents, scans and a steady load of updates, all over SQL.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::SinkExt;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::super::Outcome;
use super::super::workload::mix;
use crate::harness::connect;

/// The number of rows that a scan reads.
const ROWS: u64 = 10_000;
/// The number of documents that each updating statement changes; the load is 1,000 updates per
/// second.
const UPDATES: u64 = 20;
const UPDATE_EVERY: Duration = Duration::from_millis(20);
/// The length of the value that an entry includes, in characters.
const VALUE_CHARS: usize = 96;

/// Returns a document as JSON. Its key is its number, so that the last row of a scan is known.
fn document(id: u64, version: u64) -> String {
    let words = (0..VALUE_CHARS as u64 / 16).map(|n| mix(id ^ (version << 40) ^ (n << 56)));
    let value: String = words.map(|word| format!("{word:016x}")).collect();
    format!("{{\"id\":\"d{id}\",\"k\":{id},\"v\":\"{value}\"}}")
}

/// Creates the bucket and the index and loads all documents.
pub async fn load(at: SocketAddr, entries: u64, slices: u16) -> Outcome<()> {
    let client = connect(at).await;
    let create = format!(
        "CREATE BUCKET b; CREATE INDEX by_k ON b (k::int8) INCLUDE (v) WITH (slices = {slices})"
    );
    client.batch_execute(&create).await?;
    let mut sink = Box::pin(client.copy_in("COPY b FROM STDIN (FORMAT jsonl)").await?);
    for first in (0..entries).step_by(1_000) {
        let lines = (first..entries.min(first + 1_000)).map(|id| document(id, 0) + "\n");
        sink.send(Bytes::from(lines.collect::<String>())).await?;
    }
    sink.as_mut().finish().await?;
    client.batch_execute("SET consistency = 'request_plus'").await?;
    let count: i64 = client.query_one("SELECT count(*) FROM by_k", &[]).await?.get(0);
    if count as u64 != entries {
        return Err(format!("{count} entries of {entries}").into());
    }
    Ok(())
}

/// The measurements of scans.
#[derive(Debug, Default)]
pub struct Scanned {
    times: Vec<Duration>,
    elapsed: Duration,
    /// The number of scans that failed or returned wrong rows.
    pub failed: u64,
}

impl Scanned {
    /// Adds the measurements of another period.
    pub fn merge(&mut self, other: Self) {
        self.times.extend(other.times);
        self.elapsed += other.elapsed;
        self.failed += other.failed;
    }

    /// Returns the number of rows per second.
    pub fn rows_per_s(&self) -> f64 {
        self.times.len() as f64 * ROWS as f64 / self.elapsed.as_secs_f64()
    }

    /// Returns a percentile of the scans' durations, in milliseconds.
    pub fn ms(&self, percent: usize) -> f64 {
        let mut times = self.times.clone();
        times.sort();
        let time = times.get(times.len() * percent / 100);
        time.map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    }
}

/// Runs scans with `clients` concurrent clients until the future `beside` ends.
#[allow(clippy::disallowed_methods, reason = "the bench is a client of the product: real tasks")]
pub async fn run<T>(
    at: SocketAddr,
    entries: u64,
    clients: u64,
    beside: impl Future<Output = Outcome<T>>,
) -> Outcome<Scanned> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut scanners: Vec<JoinHandle<Scanned>> = Vec::new();
    for seed in 0..clients {
        let (client, stop) = (connect(at).await, Arc::clone(&stop));
        // Separate tasks, so that the measured work does not delay the scans.
        scanners.push(tokio::spawn(scan_until(stop, client, entries, seed)));
    }
    let outcome = beside.await;
    stop.store(true, Ordering::Relaxed);
    let mut all = Scanned::default();
    for scanner in scanners {
        let Scanned { times, elapsed, failed } = scanner.await?;
        all.times.extend(times);
        // The clients scan at the same time.
        all.elapsed = all.elapsed.max(elapsed);
        all.failed += failed;
    }
    outcome.map(|_| all)
}

/// Runs scans one after another, until `stop` is set.
#[allow(clippy::disallowed_methods, reason = "the bench measures real time")]
async fn scan_until(stop: Arc<AtomicBool>, client: Client, entries: u64, seed: u64) -> Scanned {
    let (mut scanned, begun) = (Scanned::default(), Instant::now());
    for n in 0u64.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let from = mix(n ^ seed << 32) % entries.saturating_sub(ROWS).max(1);
        let begun = Instant::now();
        match scan(&client, from).await {
            Ok(()) => scanned.times.push(begun.elapsed()),
            Err(error) => {
                eprintln!("a scan from {from} on: {error}");
                scanned.failed += 1;
            }
        }
    }
    scanned.elapsed = begun.elapsed();
    scanned
}

/// Runs one scan: the entries from a key on, each once and in order.
async fn scan(client: &Client, from: u64) -> Outcome<()> {
    let select = format!("SELECT k, v FROM by_k WHERE k >= {from} ORDER BY k LIMIT {ROWS}");
    let mut expected = from;
    for message in client.simple_query(&select).await? {
        if let SimpleQueryMessage::Row(row) = message {
            let key: u64 = row.get(0).ok_or("NULL for a key")?.parse()?;
            if key != expected {
                return Err(format!("the key {key}, not {expected}").into());
            }
            expected += 1;
        }
    }
    let rows = expected - from;
    if rows == ROWS { Ok(()) } else { Err(format!("{rows} rows of {ROWS}").into()) }
}

/// A load of updates that runs until it is ended.
pub struct Load {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Outcome<f64>>,
}

#[allow(clippy::disallowed_methods, reason = "the bench measures real time")]
impl Load {
    /// Starts the load.
    pub async fn begin(at: SocketAddr, entries: u64) -> Outcome<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (client, stop_too) = (connect(at).await, Arc::clone(&stop));
        let task = tokio::spawn(async move {
            let (begun, mut updates) = (Instant::now(), 0u64);
            while !stop_too.load(Ordering::Relaxed) {
                let rows = (updates..updates + UPDATES).map(|n| {
                    let id = mix(n) % entries;
                    format!("('d{id}', '{}')", document(id, n + 1))
                });
                let rows: Vec<String> = rows.collect();
                let insert = format!(
                    "INSERT INTO b (id, doc) VALUES {} \
                     ON CONFLICT (id) DO UPDATE SET doc = excluded.doc",
                    rows.join(", ")
                );
                client.batch_execute(&insert).await?;
                updates += UPDATES;
                let due = begun + UPDATE_EVERY * (updates / UPDATES) as u32;
                tokio::time::sleep_until(due.into()).await;
            }
            Ok(updates as f64 / begun.elapsed().as_secs_f64())
        });
        Ok(Self { stop, task })
    }

    /// Ends the load; returns the number of updates per second that it has made.
    pub async fn end(self) -> Outcome<f64> {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await?
    }
}
