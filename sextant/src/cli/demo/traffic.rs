//! The demo's traffic: a writer and a scanner, which run while an index is built and the leading
//! coordinator is killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proto::{Error, Result};
use tokio::time::{Instant, sleep};
use tokio_postgres::{Client, types::Type};

use super::super::sql_client::connect;
use super::model::{City, Model};
use super::report::{Report, progress};
use super::sql_error::sql_error;
use crate::roles::Cluster;

/// The time during which the traffic runs before and after the kill of the leader.
const PHASE: Duration = Duration::from_secs(3);
/// The number of moves of inhabitants for each deleted city.
const MOVES_PER_DELETE: usize = 8;

/// Runs the writer and the scanner during an index build and a failover. Returns the model with
/// all of the writer's changes.
pub async fn run(
    cluster: &mut Cluster,
    at: &str,
    model: Model,
    quiet: bool,
    report: &mut Report,
) -> Result<Model> {
    let entries = model.0.len();
    let happens =
        async |report: &mut Report| build_and_failover(cluster, at, entries, quiet, report).await;
    run_during(at, model, report, happens).await
}

/// Runs a writer and a scanner while `events` runs. Returns the model with all of the writer's
/// changes.
pub async fn run_during(
    at: &str,
    model: Model,
    report: &mut Report,
    happens: impl AsyncFnOnce(&mut Report) -> Result<()>,
) -> Result<Model> {
    let stop = Arc::new(AtomicBool::new(false));
    let population = model.population();
    let (writer, scanner) = (connect(at).await?, connect(at).await?);
    let events = async {
        let outcome = happens(report).await;
        stop.store(true, Ordering::Relaxed);
        outcome
    };
    let ((), (model, writes), scans) = futures::try_join!(
        events,
        write(writer, model, Arc::clone(&stop)),
        scan(scanner, population, Arc::clone(&stop)),
    )?;
    report.writes += writes;
    report.merge(scans);
    Ok(model)
}

/// Creates an index and kills the leading coordinator during the traffic.
async fn build_and_failover(
    cluster: &mut Cluster,
    at: &str,
    entries: usize,
    quiet: bool,
    report: &mut Report,
) -> Result<()> {
    let bar = progress(quiet, 4, "build, kill of the leader, updates during scans");
    let client = connect(at).await?;
    sleep(PHASE / 3).await;
    bar.inc(1);

    let begun = Instant::now();
    let create =
        "CREATE INDEX by_name ON cities (lower(name), country) INCLUDE (name, population::int8)";
    client.batch_execute(create).await.map_err(sql_error(create))?;
    report.build_entries_per_s = (entries as f64 / begun.elapsed().as_secs_f64()) as u64;
    sleep(PHASE).await;
    bar.inc(1);

    let no_leader = || Error::unavailable("the coordinator has no leader to kill");
    let leader = cluster.leader().await.ok_or_else(no_leader)?;
    let killed = Instant::now();
    cluster.kill_coordinator(leader);
    client
        .batch_execute("CREATE BUCKET after_failover")
        .await
        .map_err(sql_error("CREATE BUCKET"))?;
    report.failover_ms = killed.elapsed().as_secs_f64() * 1000.0;
    report.coordinator_failovers = 1;
    bar.inc(1);
    sleep(PHASE).await;
    cluster.restart_coordinator(leader).await?;
    let known = client.query("SHOW BUCKETS", &[]).await.map_err(sql_error("SHOW BUCKETS"))?.len();
    report.count_check(known == 2, || format!("{known} buckets after the failover, not 2"));
    sleep(PHASE / 3).await;
    bar.inc(1);
    bar.finish();
    Ok(())
}

/// Moves inhabitants from city to city and deletes empty cities, until stopped. Returns the model
/// with these changes, and the number of changes.
async fn write(client: Client, mut model: Model, stop: Arc<AtomicBool>) -> Result<(Model, u64)> {
    let upsert = client
        .prepare_typed(
            "INSERT INTO cities (id, doc) VALUES ($1, $2), ($3, $4) \
             ON CONFLICT (id) DO UPDATE SET doc = excluded.doc",
            &[Type::TEXT, Type::TEXT, Type::TEXT, Type::TEXT],
        )
        .await
        .map_err(sql_error("preparing INSERT"))?;
    let mut random = fastrand::Rng::with_seed(7);
    let (ids, mut empty): (Vec<String>, Vec<String>) =
        model.0.keys().cloned().partition(|id| model.0[id].population() > 0);
    let mut writes = 0;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..MOVES_PER_DELETE {
            let (from, to) = (random.usize(..ids.len()), random.usize(..ids.len()));
            if from == to {
                continue;
            }
            let (from, to) = (ids[from].clone(), ids[to].clone());
            let moved = move_inhabitants(&model, &from, &to, &mut random);
            let texts = moved.each_ref().map(|city: &City| city.document.to_string());
            client
                .execute(&upsert, &[&from, &texts[0], &to, &texts[1]])
                .await
                .map_err(sql_error("INSERT"))?;
            let [left, right] = moved;
            model.0.insert(from, left);
            model.0.insert(to, right);
            writes += 2;
        }
        if let Some(id) = empty.pop() {
            let gone = client
                .execute(&format!("DELETE FROM cities WHERE id = '{id}'"), &[])
                .await
                .map_err(sql_error("DELETE"))?;
            if gone != 1 {
                return Err(Error::internal(format!("DELETE of {id} removed {gone} documents")));
            }
            model.0.remove(&id);
            writes += 1;
        }
    }
    Ok((model, writes))
}

/// Returns two cities after a random number of inhabitants has moved from one to the other.
fn move_inhabitants(model: &Model, from: &str, to: &str, random: &mut fastrand::Rng) -> [City; 2] {
    let (left, right) = (&model.0[from], &model.0[to]);
    let moving = random.i64(0..=left.population());
    [
        left.with_population(left.population() - moving),
        right.with_population(right.population() + moving),
    ]
}

/// Scans until stopped. The total population must be the same in each scan, and two indexes must
/// agree within one transaction.
async fn scan(client: Client, population: i64, stop: Arc<AtomicBool>) -> Result<Report> {
    let mut report = Report::default();
    while !stop.load(Ordering::Relaxed) {
        let sums = "SELECT sum(population), count(*) FROM by_country";
        let begun = Instant::now();
        let row = client.query_one(sums, &[]).await;
        let sum: Numeric = row.map_err(sql_error(sums))?.get(0);
        report.timed.push((begun, begun.elapsed()));
        report.scans += 1;
        report.count_check(sum.0 == population.to_string(), || {
            format!("sum of populations {} while writing, not {population}", sum.0)
        });
        client.batch_execute("BEGIN READ ONLY").await.map_err(sql_error("BEGIN"))?;
        let mut counts = [0i64; 2];
        for (n, statement) in [
            "SELECT count(*) FROM by_country WHERE population >= 1000000",
            "SELECT count(*) FROM big_cities",
        ]
        .into_iter()
        .enumerate()
        {
            counts[n] =
                client.query_one(statement, &[]).await.map_err(sql_error(statement))?.get(0);
            report.scans += 1;
        }
        client.batch_execute("COMMIT").await.map_err(sql_error("COMMIT"))?;
        report.count_check(counts[0] == counts[1], || {
            format!("one transaction, two indexes: {} and {} big cities", counts[0], counts[1])
        });
    }
    Ok(report)
}

/// A whole number as text, decoded from PostgreSQL's binary form of a numeric. Fractions are not
/// supported.
struct Numeric(String);

impl<'a> tokio_postgres::types::FromSql<'a> for Numeric {
    fn from_sql(
        _: &Type,
        raw: &'a [u8],
    ) -> std::result::Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        let word = |n: usize| raw.get(2 * n..2 * n + 2).map(|b| i16::from_be_bytes([b[0], b[1]]));
        let (Some(digits), Some(weight)) = (word(0), word(1)) else { return Err("short".into()) };
        let mut value: i128 = 0;
        for n in 0..=i128::from(weight) {
            let digit = if n < i128::from(digits) { word(4 + n as usize) } else { Some(0) };
            value = value * 10_000 + i128::from(digit.ok_or("short")?);
        }
        Ok(Self(if word(2) == Some(0x4000) { -value } else { value }.to_string()))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::NUMERIC
    }
}
