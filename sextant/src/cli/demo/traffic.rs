//! Writers and scanners beside what happens to the cluster: first a build and a leader's death.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proto::{Error, Result};
use tokio::time::{Instant, sleep};
use tokio_postgres::{Client, types::Type};

use super::super::client::connect;
use super::model::{City, Model};
use super::report::{Report, progress};
use super::sql_error::sql;
use crate::roles::Cluster;

/// How long the traffic goes on before and after the leader dies.
const PHASE: Duration = Duration::from_secs(3);
/// A delete is sent after so many moves.
const MOVES_PER_DELETE: usize = 8;

/// Runs the traffic and returns the documents as the writers have left them.
pub async fn run(
    cluster: &mut Cluster,
    at: &str,
    model: Model,
    quiet: bool,
    report: &mut Report,
) -> Result<Model> {
    let entries = model.0.len();
    let happens = async |report: &mut Report| events(cluster, at, entries, quiet, report).await;
    beside(at, model, report, happens).await
}

/// Lets a writer and a scanner go on while something happens; returns the documents as the writer has left
/// them.
pub async fn beside(
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

/// What happens while the traffic goes on.
async fn events(
    cluster: &mut Cluster,
    at: &str,
    entries: usize,
    quiet: bool,
    report: &mut Report,
) -> Result<()> {
    let bar = progress(quiet, 4, "build, leader's death, updates while scanning");
    let client = connect(at).await?;
    sleep(PHASE / 3).await;
    bar.inc(1);

    let begun = Instant::now();
    let create =
        "CREATE INDEX by_name ON cities (lower(name), country) INCLUDE (name, population::int8)";
    client.batch_execute(create).await.map_err(sql(create))?;
    report.build_entries_per_s = (entries as f64 / begun.elapsed().as_secs_f64()) as u64;
    sleep(PHASE).await;
    bar.inc(1);

    let leader = cluster.leader().await.ok_or_else(|| Error::unavailable("no leader to kill"))?;
    let killed = Instant::now();
    cluster.kill_coordinator(leader);
    client.batch_execute("CREATE BUCKET after_failover").await.map_err(sql("CREATE BUCKET"))?;
    report.failover_ms = killed.elapsed().as_secs_f64() * 1000.0;
    report.coordinator_failovers = 1;
    bar.inc(1);
    sleep(PHASE).await;
    cluster.restart_coordinator(leader).await?;
    let known = client.query("SHOW BUCKETS", &[]).await.map_err(sql("SHOW BUCKETS"))?.len();
    report.check(known == 2, || format!("{known} buckets after the failover, not 2"));
    sleep(PHASE / 3).await;
    bar.inc(1);
    bar.finish();
    Ok(())
}

/// Moves inhabitants from city to city and deletes cities that have none.
async fn write(client: Client, mut model: Model, stop: Arc<AtomicBool>) -> Result<(Model, u64)> {
    let upsert = client
        .prepare_typed(
            "INSERT INTO cities (id, doc) VALUES ($1, $2), ($3, $4) \
             ON CONFLICT (id) DO UPDATE SET doc = excluded.doc",
            &[Type::TEXT, Type::TEXT, Type::TEXT, Type::TEXT],
        )
        .await
        .map_err(sql("preparing INSERT"))?;
    let mut random = fastrand::Rng::with_seed(7);
    let mut ids: Vec<String> = model.0.keys().cloned().collect();
    let mut empty: Vec<String> = Vec::new();
    for (id, city) in &model.0 {
        if city.population() == 0 {
            empty.push(id.clone());
        }
    }
    ids.retain(|id| model.0[id].population() > 0);
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
                .map_err(sql("INSERT"))?;
            let [left, right] = moved;
            model.0.insert(from, left);
            model.0.insert(to, right);
            writes += 2;
        }
        if let Some(id) = empty.pop() {
            let gone = client
                .execute(&format!("DELETE FROM cities WHERE id = '{id}'"), &[])
                .await
                .map_err(sql("DELETE"))?;
            if gone != 1 {
                return Err(Error::internal(format!("DELETE of {id} removed {gone} documents")));
            }
            model.0.remove(&id);
            writes += 1;
        }
    }
    Ok((model, writes))
}

fn move_inhabitants(model: &Model, from: &str, to: &str, random: &mut fastrand::Rng) -> [City; 2] {
    let (left, right) = (&model.0[from], &model.0[to]);
    let moving = random.i64(0..=left.population());
    [
        left.with_population(left.population() - moving),
        right.with_population(right.population() + moving),
    ]
}

/// Scans while writes go on: whatever the moment, the inhabitants are all there, once, and two indexes
/// in one transaction agree.
async fn scan(client: Client, population: i64, stop: Arc<AtomicBool>) -> Result<Report> {
    let mut report = Report::default();
    while !stop.load(Ordering::Relaxed) {
        let sums = "SELECT sum(population), count(*) FROM by_country";
        let begun = Instant::now();
        let row = client.query_one(sums, &[]).await;
        let sum: Numeric = row.map_err(sql(sums))?.get(0);
        report.timed.push((begun, begun.elapsed()));
        report.scans += 1;
        report.check(sum.0 == population.to_string(), || {
            format!("sum of populations {} while writing, not {population}", sum.0)
        });
        client.batch_execute("BEGIN READ ONLY").await.map_err(sql("BEGIN"))?;
        let mut counts = [0i64; 2];
        for (n, statement) in [
            "SELECT count(*) FROM by_country WHERE population >= 1000000",
            "SELECT count(*) FROM big_cities",
        ]
        .into_iter()
        .enumerate()
        {
            counts[n] = client.query_one(statement, &[]).await.map_err(sql(statement))?.get(0);
            report.scans += 1;
        }
        client.batch_execute("COMMIT").await.map_err(sql("COMMIT"))?;
        report.check(counts[0] == counts[1], || {
            format!("one transaction, two indexes: {} and {} big cities", counts[0], counts[1])
        });
    }
    Ok(report)
}

/// A numeric as text, read from its binary form without a library: the demo needs whole numbers only.
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
