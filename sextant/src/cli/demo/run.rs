//! The steps of the demo.

use std::time::Duration;

use futures::SinkExt;
use proto::env::Env;
use proto::{Error, Result};
use tokio::time::Instant;
use tokio_postgres::Client;

use super::super::signal::stop_signal;
use super::super::sql_client::connect;
use super::model::Model;
use super::report::{Report, median_ms, progress};
use super::sql_error::sql_error;
use super::{final_checks, rebalance, traffic};
use crate::auth::login_policy::LoginPolicy;
use crate::roles::{Cluster, ClusterConfig, PortOptions, Ports, Server};

/// The documents of the demo, from GeoNames, CC BY 4.0; see assets/README.md.
const CITIES: &[u8] = include_bytes!("../../../assets/cities.jsonl.zst");
/// The number of samples for the median of a latency.
const LATENCY_SAMPLES: usize = 31;

/// `sextant demo`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print one line of JSON instead of progress and a table
    #[arg(long)]
    json: bool,
    /// Keep the cluster running afterwards, until SIGTERM or control-C
    #[arg(long)]
    serve: bool,
}

/// Runs the demo. Returns an error if a check fails.
pub async fn run(args: Args) -> Result<()> {
    let data = std::env::temp_dir().join(format!("sextant-demo-{}", std::process::id()));
    let outcome = demo(&args, &data).await;
    // A failure here only leaves temporary files.
    let _ = Env::real().fs.remove_dir_all(&data);
    let report = outcome?;
    match report.checks_failed {
        0 => Ok(()),
        failed => Err(Error::internal(format!("the demo found {failed} failed checks"))),
    }
}

async fn demo(args: &Args, data: &std::path::Path) -> Result<Report> {
    let env = Env::real();
    let config = ClusterConfig {
        data_dir: data.to_owned(),
        coordinators: 3,
        indexers: 3,
        log_bytes_max: None,
        files_dir: None,
        scans_max: None,
        memory_bytes: None,
        large_commit_changes: None,
        recovery: Default::default(),
    };
    let mut cluster = Cluster::start(config, env.clone()).await?;
    let server = Server::start(
        &cluster,
        LoginPolicy::trust(&env),
        &env,
        Ports::any().bind(&PortOptions::DEV).await?,
    )?;
    server.wait_ready().await?;
    let at = server.sql_address().to_string();
    let client = connect(&at).await?;
    let mut report = Report::default();
    let lines = zstd::decode_all(CITIES)?;
    let lines = String::from_utf8_lossy(&lines).into_owned();
    let model = Model::parse(&lines).map_err(|error| Error::internal(error.to_string()))?;
    load(&client, &lines, &model, args.json, &mut report).await?;
    latencies(&client, &mut report).await?;
    let model = traffic::run(&mut cluster, &at, model, args.json, &mut report).await?;
    let model = rebalance::run(&mut cluster, &at, model, args.json, &mut report).await?;
    final_checks::run(&client, &model, args.json, &mut report).await?;
    if args.json {
        let line = serde_json::to_string(&report).map_err(|e| Error::internal(e.to_string()))?;
        println!("{line}");
    } else {
        report.print();
    }
    if args.serve {
        println!("{}", server.ready_line());
        stop_signal().await;
    }
    Ok(report)
}

/// Creates a bucket with two indexes, loads the cities, and records the rate.
async fn load(
    client: &Client,
    lines: &str,
    model: &Model,
    quiet: bool,
    report: &mut Report,
) -> Result<()> {
    for statement in [
        "CREATE BUCKET cities",
        "CREATE INDEX by_country ON cities (country, population::int8 DESC) INCLUDE (name)",
        "CREATE INDEX big_cities ON cities (population::int8 DESC) INCLUDE (name, country) \
         WHERE population >= 1000000",
    ] {
        client.batch_execute(statement).await.map_err(sql_error(statement))?;
    }
    let bar = progress(quiet, model.0.len() as u64, "COPY of the cities with two indexes");
    let begun = Instant::now();
    let sink =
        client.copy_in("COPY cities FROM STDIN (FORMAT jsonl)").await.map_err(sql_error("COPY"))?;
    let mut sink = Box::pin(sink);
    let mut rest = lines.as_bytes();
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(rest.len().min(64 << 10));
        let piece = bytes::Bytes::copy_from_slice(piece);
        bar.inc(piece.iter().filter(|byte| **byte == b'\n').count() as u64);
        sink.send(piece).await.map_err(sql_error("COPY"))?;
        rest = tail;
    }
    let stored = sink.as_mut().finish().await.map_err(sql_error("COPY"))?;
    let seconds = begun.elapsed().as_secs_f64();
    bar.finish();
    report.documents = stored;
    report.ingest_docs_per_s = (stored as f64 / seconds) as u64;
    report
        .count_check(stored == model.0.len() as u64, || format!("COPY stored {stored} documents"));
    client.batch_execute("SET consistency = 'request_plus'").await.map_err(sql_error("SET"))?;
    let big = model.0.values().filter(|city| city.population() >= 1_000_000).count() as i64;
    for (statement, expected) in [
        ("SELECT count(*) FROM by_country", model.0.len() as i64),
        ("SELECT count(*) FROM big_cities", big),
    ] {
        let count: i64 =
            client.query_one(statement, &[]).await.map_err(sql_error(statement))?.get(0);
        report.count_check(count == expected, || format!("{statement}: {count}, not {expected}"));
    }
    Ok(())
}

/// Measures the time until a write is visible, and the time of a `request_plus` scan without load.
async fn latencies(client: &Client, report: &mut Report) -> Result<()> {
    client.batch_execute("SET consistency = 'any'").await.map_err(sql_error("SET"))?;
    let mut visible = Vec::new();
    for n in 0..LATENCY_SAMPLES {
        let insert = format!(
            "INSERT INTO cities (id, doc) VALUES ('probe', '{{\"country\":\"probe\",\"population\":0,\"name\":\"{n}\"}}') \
             ON CONFLICT (id) DO UPDATE SET doc = excluded.doc"
        );
        client.batch_execute(&insert).await.map_err(sql_error("INSERT"))?;
        let written = Instant::now();
        loop {
            let rows =
                client.query("SELECT name FROM by_country WHERE country = 'probe'", &[]).await;
            let rows = rows.map_err(sql_error("SELECT"))?;
            if rows.first().is_some_and(|row| row.get::<_, String>(0) == n.to_string()) {
                break;
            }
        }
        visible.push(written.elapsed());
    }
    client
        .batch_execute("DELETE FROM cities WHERE id = 'probe'")
        .await
        .map_err(sql_error("DELETE"))?;
    client.batch_execute("SET consistency = 'request_plus'").await.map_err(sql_error("SET"))?;
    let mut request_plus = Vec::new();
    for _ in 0..LATENCY_SAMPLES {
        tokio::time::sleep(Duration::from_millis(30)).await;
        let begun = Instant::now();
        client
            .query("SELECT id FROM big_cities LIMIT 1", &[])
            .await
            .map_err(sql_error("SELECT"))?;
        request_plus.push(begun.elapsed());
    }
    report.visible_ms_median = median_ms(visible);
    report.request_plus_ms_median = median_ms(request_plus);
    Ok(())
}
