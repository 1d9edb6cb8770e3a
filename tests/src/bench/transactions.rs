//! The benchmark of transactions: small ones compared with single statements, large ones until they
//! are visible, and the effect of open ones on other sessions' scans.
//!
//! Each figure is measured in some rounds, and printed with its median, minimum and maximum. Ratios
//! are formed round by round.
#![allow(clippy::disallowed_methods, reason = "a tool that measures real time")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Args;
use futures::SinkExt;
use futures::future::try_join_all;
use tokio_postgres::{Client, Statement};

use super::Outcome;
use super::end_to_end::documents::{Document, Documents};
use super::end_to_end::load::{Load, Request, run};
use super::end_to_end::peers::sextant::Sextant;
use super::end_to_end::peers::{EIGHT_SLICES, Peer};
use super::end_to_end::settings::sextant_binary;
use super::end_to_end::spread::{Spread, percentile};

const BUCKET: &str = "docs";
const CLIENTS: u64 = 8;
/// The number of documents of each open transaction.
const OPEN_DOCUMENTS: u64 = 100;
/// The time limit for a commit to become visible.
const SEEN_TIME_MAX: Duration = Duration::from_secs(60);
/// The number of the first document in large commits, above all documents of other figures.
const LARGE_FROM: u64 = 50_000_000;

/// The flags of `bench transactions`.
#[derive(Args, Clone, Debug)]
pub struct Settings {
    /// The binary `sextant`; by default the one beside this binary
    #[arg(long)]
    pub binary: Option<PathBuf>,
    /// Another binary, whose single statements are compared in turns
    #[arg(long)]
    pub other: Option<PathBuf>,
    /// Documents that are there before
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(10_000..=10_000_000))]
    pub rows: u64,
    /// Documents of the large transactions
    #[arg(long, value_delimiter = ',', default_value = "100000,500000")]
    pub large: Vec<u64>,
    /// Open transactions beside scans
    #[arg(long, default_value_t = 980)]
    pub open: u64,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
    /// Rounds of each figure
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub rounds: u64,
    /// Parent of the data directory, which is removed at the end; by default the system's temporary directory
    #[arg(long)]
    pub dir: Option<PathBuf>,
}

/// Measures all figures.
pub fn measure(settings: &Settings) -> Outcome<()> {
    let parent = settings.dir.clone().unwrap_or_else(std::env::temp_dir);
    let dir = tempfile::Builder::new().prefix("bench-").tempdir_in(parent)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let bench = Bench::start(settings, "binary", settings.binary.as_deref(), &dir).await?;
        if let Some(path) = &settings.other {
            let other = Bench::start(settings, "other", Some(path), &dir).await?;
            beside_another(&bench, &other).await?;
        }
        bench.small().await?;
        for documents in &settings.large {
            for beside in [Beside::Nothing, Beside::OtherDocuments, Beside::SameDocuments] {
                bench.large(*documents, beside).await?;
            }
        }
        bench.scans_beside_open().await
    })
}

/// Measures the single statements of two binaries in turns.
async fn beside_another(bench: &Bench, other: &Bench) -> Outcome<()> {
    let mut ratios = Vec::new();
    for round in 0..bench.settings.rounds {
        let [this, that] = match round % 2 {
            0 => [
                bench.upserts(round, bench.time()).await?,
                other.upserts(round, bench.time()).await?,
            ],
            _ => {
                let that = other.upserts(round, bench.time()).await?;
                [bench.upserts(round, bench.time()).await?, that]
            }
        };
        ratios.push(this / that);
    }
    print("single upserts, 8 clients, × the other binary", &ratios)
}

/// The writes of other clients during a large commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Nothing,
    OtherDocuments,
    /// Writes to documents of the transaction.
    SameDocuments,
}

/// A server with documents and an index.
struct Bench {
    settings: Settings,
    peer: Sextant,
    documents: Documents,
}

impl Bench {
    async fn start(
        settings: &Settings,
        name: &str,
        binary: Option<&Path>,
        dir: &tempfile::TempDir,
    ) -> Outcome<Self> {
        let dir = dir.path().join(name);
        std::fs::create_dir(&dir)?;
        let peer = Sextant::dev(&sextant_binary(binary)?, &dir)?;
        let client = peer.target().connect().await?;
        client.batch_execute(&peer.create_bucket(BUCKET)).await?;
        client.batch_execute(&peer.create_index(BUCKET, EIGHT_SLICES)).await?;
        let bench =
            Self { settings: settings.clone(), documents: Documents::new(settings.rows)?, peer };
        bench.copy_in(&client, bench.documents.all()).await?;
        Ok(bench)
    }

    fn time(&self) -> Duration {
        Duration::from_secs(self.settings.seconds)
    }

    async fn connect(&self) -> Outcome<Client> {
        self.peer.target().connect().await
    }

    async fn copy_in(&self, client: &Client, all: impl Iterator<Item = Document>) -> Outcome<()> {
        let sink = client.copy_in(&self.peer.copy_in(BUCKET)).await?;
        let mut sink = std::pin::pin!(sink);
        let mut lines = String::new();
        for document in all {
            lines += &self.peer.line(&document);
            lines.push('\n');
            if lines.len() > 1 << 18 {
                sink.send(Bytes::from(std::mem::take(&mut lines))).await?;
            }
        }
        sink.send(Bytes::from(lines)).await?;
        sink.finish().await?;
        Ok(())
    }

    /// Returns the rate of single upserts of eight clients, per second.
    async fn upserts(&self, seed: u64, time: Duration) -> Outcome<f64> {
        let (documents, parameters) = (self.documents, self.peer.upsert_parameters());
        let draw = move |rng: &mut fastrand::Rng| {
            let i = rng.u64(0..documents.rows());
            Request { parameters: parameters(&documents.with_key(i, rng.i64(0..1 << 30))), rows: 0 }
        };
        let statement = self.peer.upsert(BUCKET);
        self.load(statement, Arc::new(draw), seed, time).await
    }

    async fn load(
        &self,
        statement: String,
        draw: super::end_to_end::load::Draw,
        seed: u64,
        time: Duration,
    ) -> Outcome<f64> {
        let (clients, per_s, warm_up) = (CLIENTS, None, 20);
        let load = Load { statement, session: "", draw, clients, time, per_s, warm_up, seed };
        Ok(run(self.peer.target(), load).await?.per_s())
    }

    /// Measures transactions of one document, as one message and as three, and single statements.
    async fn small(&self) -> Outcome<()> {
        let client = self.connect().await?;
        let mut number = 0;
        let mut insert = || {
            number += 1;
            let document = self.documents.with_key(90_000_000 + number, number as i64);
            insert_of([document])
        };
        let (mut one, mut three) = (Vec::new(), Vec::new());
        for _ in 0..self.settings.rounds {
            let mut ms = [const { Vec::new() }; 4];
            let begun = Instant::now();
            while begun.elapsed() < self.time() {
                ms[0].push(timed(client.batch_execute(&insert())).await?);
                let text = format!("BEGIN; {}; COMMIT", insert());
                ms[1].push(timed(client.batch_execute(&text)).await?);
                let messages = async {
                    client.batch_execute("BEGIN").await?;
                    client.batch_execute(&insert()).await?;
                    client.batch_execute("COMMIT").await
                };
                ms[2].push(timed(messages).await?);
                ms[3].push(timed(client.batch_execute("")).await?);
            }
            let p50 = |n: usize| percentile(&ms[n], 50).unwrap_or_default();
            one.push(p50(1) / p50(0));
            three.push((p50(2) - 2.0 * p50(3)) / p50(1));
        }
        print("BEGIN; INSERT; COMMIT in one message, × INSERT (p50)", &one)?;
        print("the same in three messages less two empty ones, × one message (p50)", &three)
    }

    /// Measures a large commit: its duration, the time until it is visible, and the delay of other
    /// writes.
    async fn large(&self, documents: u64, beside: Beside) -> Outcome<()> {
        let client = self.connect().await?;
        let (mut commit, mut seen, mut longest, mut kept) =
            <(Vec<_>, Vec<_>, Vec<_>, Vec<_>)>::default();
        for round in 0..self.settings.rounds {
            // The transaction changes half of its documents, and inserts the others.
            let key = (round as i64 + 1) << 32;
            let of = |n: u64| {
                self.documents.with_key(LARGE_FROM + n + round * documents / 2, key + n as i64)
            };
            client.batch_execute("BEGIN").await?;
            self.copy_in(&client, (0..documents).map(of)).await?;
            let writer =
                self.write_beside(beside, key, LARGE_FROM + round * documents / 2, documents);
            let committed = async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let begun = Instant::now();
                client.batch_execute("COMMIT").await?;
                let done = Instant::now();
                self.until_seen(key).await?;
                let seen = done.elapsed().as_secs_f64() * 1e3;
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>((
                    (done - begun).as_secs_f64() * 1e3,
                    seen,
                    begun,
                ))
            };
            let (written, (commit_ms, seen_ms, begun)) = tokio::try_join!(writer, committed)?;
            commit.push(commit_ms);
            seen.push(seen_ms);
            if beside != Beside::Nothing {
                longest.push(written.iter().map(|of| of.1).fold(0.0, f64::max));
                let count = |from: Instant| {
                    let within =
                        |of: &&(Instant, f64)| of.0 >= from && of.0 < from + Duration::from_secs(1);
                    written.iter().filter(within).count() as f64
                };
                kept.push(count(begun) / count(begun - Duration::from_secs(1)).max(1.0));
            }
        }
        let name = format!("commit of {documents} documents, beside {beside:?}");
        print(&format!("{name}: COMMIT, ms"), &commit)?;
        print(&format!("{name}: visible after COMMIT, ms"), &seen)?;
        if beside == Beside::Nothing {
            return Ok(());
        }
        print(&format!("{name}: the longest write, ms"), &longest)?;
        print(&format!("{name}: rate of writes in the second from COMMIT on, × before"), &kept)
    }

    /// Lets eight clients write documents one by one for three seconds. Returns the start of each
    /// write, and its duration in milliseconds including waits.
    async fn write_beside(
        &self,
        beside: Beside,
        key: i64,
        from: u64,
        documents: u64,
    ) -> Outcome<Vec<(Instant, f64)>> {
        let clients = if beside == Beside::Nothing { 0 } else { CLIENTS };
        let one = async |n: u64| {
            let client = self.connect().await?;
            let upsert = client.prepare(&self.peer.upsert(BUCKET)).await?;
            let mut rng = fastrand::Rng::with_seed(n);
            let (begun, mut all) = (Instant::now(), Vec::new());
            while begun.elapsed() < Duration::from_secs(3) {
                let document = match beside {
                    // Below the keys that are waited for.
                    Beside::SameDocuments => {
                        self.documents.with_key(from + rng.u64(0..documents), key - 1)
                    }
                    _ => self.documents.with_key(rng.u64(0..self.documents.rows()), 7),
                };
                let sent = Instant::now();
                client.execute_raw(&upsert, self.peer.upsert_parameters()(&document)).await?;
                all.push((sent, sent.elapsed().as_secs_f64() * 1e3));
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(all)
        };
        Ok(try_join_all((0..clients).map(one)).await?.concat())
    }

    /// Waits until a scan with the default consistency shows documents of a commit.
    async fn until_seen(&self, key: i64) -> Outcome<()> {
        let client = self.connect().await?;
        let relation = self.peer.relation(BUCKET, EIGHT_SLICES);
        let text = format!("SELECT n FROM {relation} WHERE n >= {key} ORDER BY n LIMIT 1");
        let asked: Statement = client.prepare(&text).await?;
        let begun = Instant::now();
        while client.query(&asked, &[]).await?.is_empty() {
            if begun.elapsed() > SEEN_TIME_MAX {
                return Err(format!("a commit was not seen for {SEEN_TIME_MAX:?}").into());
            }
        }
        Ok(())
    }

    /// Measures scans of other sessions with many open transactions, and without.
    async fn scans_beside_open(&self) -> Outcome<()> {
        let mut clients = Vec::new();
        for _ in 0..self.settings.open {
            clients.push(self.connect().await?);
        }
        let mut ratios = Vec::new();
        for round in 0..self.settings.rounds {
            let without = self.scans(round).await?;
            for (n, client) in clients.iter().enumerate() {
                let from = 10_000_000 + n as u64 * OPEN_DOCUMENTS;
                let documents =
                    (from..from + OPEN_DOCUMENTS).map(|i| self.documents.with_key(i, i as i64));
                let insert = format!("BEGIN; {}", insert_of(documents));
                client.batch_execute(&insert).await?;
            }
            ratios.push(self.scans(round).await? / without);
            try_join_all(clients.iter().map(|client| client.batch_execute("ROLLBACK"))).await?;
        }
        let name =
            format!("scans of 100 rows beside {} open transactions, × without", clients.len());
        print(&name, &ratios)
    }

    /// Returns the rate of scans of 100 rows by eight clients, per second.
    async fn scans(&self, seed: u64) -> Outcome<f64> {
        let relation = self.peer.relation(BUCKET, EIGHT_SLICES);
        let statement = format!("SELECT id, n FROM {relation} WHERE n >= $1 ORDER BY n LIMIT 100");
        let rows = self.documents.rows() as i64;
        let draw = move |rng: &mut fastrand::Rng| Request {
            parameters: vec![Box::new(rng.i64(0..rows / 2))],
            rows: 100,
        };
        self.load(statement, Arc::new(draw), seed, self.time()).await
    }
}

/// Returns the statement that inserts documents.
fn insert_of(documents: impl IntoIterator<Item = Document>) -> String {
    let row = |document: Document| format!("('{}', '{}')", document.id, document.json());
    let rows: Vec<_> = documents.into_iter().map(row).collect();
    format!("INSERT INTO {BUCKET} (id, doc) VALUES {}", rows.join(","))
}

async fn timed<E>(work: impl Future<Output = Result<(), E>>) -> Result<f64, E> {
    let begun = Instant::now();
    work.await?;
    Ok(begun.elapsed().as_secs_f64() * 1e3)
}

fn print(name: &str, values: &[f64]) -> Outcome<()> {
    let Spread { median, min, max } = Spread::of(values).ok_or("no rounds")?;
    println!("{name}: {median:.3} ({min:.3} to {max:.3})");
    Ok(())
}
