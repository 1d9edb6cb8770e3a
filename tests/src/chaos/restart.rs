//! The measurement of the time for which a killed indexer is absent. One indexer has all entries of
//! an index and writes continue; the indexer is killed with `kill -9` and restarted at once.

use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio_postgres::Client;

use super::clients::{Failed, PAUSE, Shared, execute};
use super::cluster::Cluster;
use super::{Options, operator};
use crate::harness::sql;

const INDEXER: u64 = 201;
/// The number of kills.
const ROUNDS: usize = 5;
/// The number of documents of each COPY.
const TOGETHER: u64 = 100_000;
/// The number of documents of each statement during the kills.
const FEW: u64 = 50;
const COUNT: &str = "SELECT count(*) FROM i";
/// The interval at which a client retries.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// One kill and restart; all times are since the kill, in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Round {
    /// The size of the indexer's commit log at the kill, in MiB.
    pub log_mb: u64,
    /// The time until the first row of an ordered scan.
    pub any_ms: u64,
    /// The time until the first row of an ordered scan with `request_plus`.
    pub request_plus_ms: u64,
    /// The time until a count of all entries.
    pub count_ms: u64,
}

/// The measurements of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Restarts {
    /// The number of entries of the index.
    pub entries: u64,
    /// The measurements of the kills, in order.
    pub rounds: Vec<Round>,
    /// The median of `any_ms`.
    pub any_median_ms: u64,
    /// The median of `request_plus_ms`.
    pub request_plus_median_ms: u64,
    /// The median of `count_ms`.
    pub count_median_ms: u64,
}

/// Loads documents, then kills and restarts the indexer several times.
pub async fn measure(entries: u64, mut options: Options) -> Result<Restarts, Failed> {
    (options.indexers, options.small_disks) = (vec![INDEXER], false);
    let mut cluster = Cluster::start(&options).await;
    let shared = Arc::new(Shared::new(options.seed, cluster.routers(), options.verbose));
    let client = operator::joined(&shared, &options).await?;
    execute(&client, "CREATE BUCKET r").await?;
    execute(&client, "CREATE INDEX i ON r (k, n::int8) INCLUDE (t) WITH (slices = 8)").await?;
    let mut random = fastrand::Rng::with_seed(options.seed);
    for from in (0..entries).step_by(TOGETHER as usize) {
        copy(&client, from..entries.min(from + TOGETHER), &mut random).await?;
        shared.say(|| format!("{from} documents"));
    }
    execute(&client, "SET statement_timeout = '60s'; SET consistency = 'request_plus'").await?;
    ask(&client, COUNT).await?;
    let mut rounds = Vec::new();
    for round in 0..ROUNDS as u64 {
        // The last epochs are always only in memory and in the log.
        for _ in 0..=round {
            let from = random.u64(0..entries.saturating_sub(TOGETHER).max(1));
            copy(&client, from..entries.min(from + TOGETHER), &mut random).await?;
        }
        rounds.push(one(&mut cluster, &shared, entries).await?);
        shared.say(|| format!("{:?}", rounds.last()));
    }
    let median = |of: fn(&Round) -> u64| {
        let mut all: Vec<_> = rounds.iter().map(of).collect();
        all.sort_unstable();
        all[all.len() / 2]
    };
    Ok(Restarts {
        entries,
        any_median_ms: median(|round| round.any_ms),
        request_plus_median_ms: median(|round| round.request_plus_ms),
        count_median_ms: median(|round| round.count_ms),
        rounds,
    })
}

async fn one(cluster: &mut Cluster, shared: &Arc<Shared>, entries: u64) -> Result<Round, Failed> {
    let log_mb = cluster.log_bytes(INDEXER) >> 20;
    let written = Arc::new(AtomicU64::new(0));
    let writer = tokio::spawn(write(Arc::clone(shared), entries, Arc::clone(&written)));
    while written.load(Ordering::Relaxed) < 10 {
        tokio::time::sleep(ASK_EVERY).await;
    }
    let begun = Instant::now();
    cluster.member(INDEXER).kill();
    cluster.member(INDEXER).run();
    let first = "SELECT k FROM i ORDER BY k, n LIMIT 1";
    let (any, request_plus) = tokio::join!(
        until_answered(shared, "any", first, begun),
        until_answered(shared, "request_plus", first, begun)
    );
    let count = until_answered(shared, "request_plus", COUNT, begun).await?;
    writer.abort();
    Ok(Round { log_mb, any_ms: any?, request_plus_ms: request_plus?, count_ms: count })
}

/// Writes a few documents repeatedly.
async fn write(shared: Arc<Shared>, entries: u64, written: Arc<AtomicU64>) {
    let mut random = fastrand::Rng::new();
    let Ok(client) = shared.sql(0).await else { return };
    loop {
        let from = random.u64(0..entries.saturating_sub(FEW).max(1));
        // The projector alone accepts writes, so that the absence of an indexer fails none of them.
        let _written = copy(&client, from..entries.min(from + FEW), &mut random).await;
        written.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(PAUSE / 20).await;
    }
}

/// Repeats a statement until it is answered; returns the milliseconds since `begun`.
async fn until_answered(
    shared: &Shared,
    consistency: &str,
    statement: &str,
    begun: Instant,
) -> Result<u64, Failed> {
    let client = shared.sql(1).await?;
    let set = format!("SET statement_timeout = '15s'; SET consistency = '{consistency}'");
    execute(&client, &set).await?;
    loop {
        match ask(&client, statement).await {
            Ok(()) => return Ok(begun.elapsed().as_millis() as u64),
            Err(error) if begun.elapsed() > super::HEAL_WITHIN => return Err(error),
            Err(error) => {
                shared.say(|| format!("{consistency}: {error}"));
                tokio::time::sleep(ASK_EVERY).await;
            }
        }
    }
}

async fn ask(client: &Client, statement: &str) -> Result<(), Failed> {
    match sql::simple(client, statement).await?.len() {
        0 => Err(Failed(format!("{statement}: no row"))),
        _ => Ok(()),
    }
}

async fn copy(
    client: &Client,
    documents: std::ops::Range<u64>,
    random: &mut fastrand::Rng,
) -> Result<(), Failed> {
    let mut lines = String::new();
    for n in documents {
        let (key, number) = (random.u64(..), random.u32(..));
        let text = "included text of about fifty bytes, as names have";
        // Writing to a string cannot fail.
        let _ = writeln!(
            lines,
            "{{\"id\":\"d{n:09}\",\"k\":\"key-{key:016x}\",\"n\":{number},\"t\":\"{text}\"}}"
        );
    }
    sql::copy_in(client, "COPY r FROM STDIN (FORMAT jsonl)", lines.as_bytes(), 64 << 10).await?;
    Ok(())
}

impl fmt::Display for Restarts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "an indexer of {} entries, killed with kill -9 while writes go on:",
            self.entries
        )?;
        for Round { log_mb, any_ms, request_plus_ms, count_ms } in &self.rounds {
            writeln!(
                f,
                "log of {log_mb} MiB: any {any_ms} ms, request_plus {request_plus_ms} ms, \
                 all counted {count_ms} ms"
            )?;
        }
        let (any, plus, count) =
            (self.any_median_ms, self.request_plus_median_ms, self.count_median_ms);
        writeln!(f, "medians: any {any} ms, request_plus {plus} ms, all counted {count} ms")
    }
}
