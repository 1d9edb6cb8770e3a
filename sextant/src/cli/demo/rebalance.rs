//! The moves of slices in the demo: an indexer joins and gets slices, then another indexer is
//! drained, while scans and writes continue.

use std::time::Duration;

use proto::{Error, Result};
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::{Client, SimpleQueryMessage};

use super::super::sql_client::connect;
use super::model::Model;
use super::report::{Report, percentile_ms, progress};
use super::sql_error::sql_error;
use super::traffic;
use crate::roles::Cluster;

/// The duration of the measurement of scans without moves, once before and once after the moves.
const REST: Duration = Duration::from_secs(1);
/// The time limit for all moves of one step.
const PATIENCE: Duration = Duration::from_secs(60);
/// The number of the drained node, the first indexer.
const DRAINED: &str = "200";

/// The times at which a step began and ended.
type TimeSpan = (Instant, Instant);

/// Moves slices while scans and writes continue. Returns the model with all of the writer's
/// changes.
pub async fn run(
    cluster: &mut Cluster,
    at: &str,
    model: Model,
    quiet: bool,
    report: &mut Report,
) -> Result<Model> {
    let failed_before = report.checks_failed;
    report.timed.clear();
    let (mut rest, mut moving) = (Vec::new(), Vec::new());
    let happens = async |report: &mut Report| {
        rest.push(wait_without_moves().await);
        moving = move_slices(cluster, at, quiet, report).await?;
        rest.push(wait_without_moves().await);
        Ok(())
    };
    let model = traffic::run_during(at, model, report, happens).await?;
    report.moves_wrong_answers = report.checks_failed - failed_before;
    let (rest_per_s, rest_ms) = scans_within(report, &rest);
    let (moving_per_s, moving_ms) = scans_within(report, &moving);
    report.moves_scan_rate_ratio = moving_per_s / rest_per_s;
    (report.scan_rest_ms_p99, report.scan_moves_ms_p99) = (rest_ms, moving_ms);
    report.moves_ms = moving.iter().map(|(from, to)| (*to - *from).as_secs_f64() * 1e3).sum();
    Ok(model)
}

/// Waits for the time `REST`, and returns its beginning and end.
async fn wait_without_moves() -> TimeSpan {
    let begun = Instant::now();
    sleep(REST).await;
    (begun, Instant::now())
}

/// Moves slices to a new node and then away from another one. Returns the time span of each step.
async fn move_slices(
    cluster: &mut Cluster,
    at: &str,
    quiet: bool,
    report: &mut Report,
) -> Result<Vec<TimeSpan>> {
    let bar = progress(quiet, 3, "one node joins, another is drained");
    let client = connect(at).await?;
    let mut windows = Vec::new();
    let joined = cluster.add_indexer().await?.to_string();
    wait_until(&client, "the registration of the new node", async || {
        Ok(column(&client, "SHOW NODES", "node").await?.contains(&joined))
    })
    .await?;
    for statement in ["REBALANCE".to_owned(), format!("DRAIN NODE '{DRAINED}'")] {
        let begun = Instant::now();
        client.batch_execute(&statement).await.map_err(sql_error(&statement))?;
        let drains = statement.starts_with("DRAIN");
        wait_until(&client, &statement, async || {
            let nodes = column(&client, "SHOW SLICES", "node").await?;
            let placed = if drains {
                !nodes.is_empty() && nodes.iter().all(|node| node != DRAINED)
            } else {
                nodes.contains(&joined)
            };
            let stages = column(&client, "SHOW MOVES", "stage").await?;
            let under_way = |stage: &String| matches!(&**stage, "start" | "pending" | "catchup");
            Ok(placed && !stages.iter().any(under_way))
        })
        .await?;
        windows.push((begun, Instant::now()));
        bar.inc(1);
    }
    let stages = column(&client, "SHOW MOVES", "stage").await?;
    report.moves_undone = stages.iter().filter(|stage| *stage == "undone").count() as u64;
    report.moves = stages.len() as u64 - report.moves_undone;
    report.count_check(report.moves_undone == 0, || format!("moves were undone: {stages:?}"));
    bar.finish();
    Ok(windows)
}

/// Calls `look` repeatedly until it returns true. Returns an error after the time limit.
async fn wait_until(
    client: &Client,
    what: &str,
    mut look: impl AsyncFnMut() -> Result<bool>,
) -> Result<()> {
    let looks = async {
        while !look().await? {
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    };
    match timeout(PATIENCE, looks).await {
        Ok(outcome) => outcome,
        Err(_) => {
            let notes = column(client, "SHOW MOVES", "note").await?;
            let text = format!("{what} did not finish within {PATIENCE:?}; moves: {notes:?}");
            Err(Error::unavailable(text))
        }
    }
}

/// Returns one column of a SHOW statement, with empty text for NULL.
async fn column(client: &Client, statement: &str, name: &str) -> Result<Vec<String>> {
    let messages = client.simple_query(statement).await.map_err(sql_error(statement))?;
    let cell = |message: SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(name).unwrap_or_default().to_owned()),
        _ => None,
    };
    Ok(messages.into_iter().filter_map(cell).collect())
}

/// Returns the rate per second of the scans that began within some time spans, and the 99th
/// percentile of the durations of these scans in milliseconds.
fn scans_within(report: &Report, windows: &[TimeSpan]) -> (f64, f64) {
    let within = |at: Instant| windows.iter().any(|(from, to)| (*from..*to).contains(&at));
    let times: Vec<Duration> =
        report.timed.iter().filter(|(at, _)| within(*at)).map(|(_, time)| *time).collect();
    let seconds: f64 = windows.iter().map(|(from, to)| (*to - *from).as_secs_f64()).sum();
    (times.len() as f64 / seconds, percentile_ms(times, 99))
}
