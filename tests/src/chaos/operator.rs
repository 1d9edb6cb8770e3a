//! The operator: creates the bucket and its indexes, creates and drops one index repeatedly, and moves slices.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_postgres::Client;

use super::clients::{Failed, PAUSE, Shared, Tasks, execute, select};
use super::cluster::{INDEXERS, PROJECTORS};
use super::documents::{INDEXES, PASSING};
use super::feed;
use super::history::Scan;
use super::{HEAL_WITHIN, Options};

/// The pause of the operator after a statement, in milliseconds.
const REST_MS: std::ops::Range<u64> = 300..2000;

/// Waits for all members, then creates the bucket and its indexes.
pub async fn prepare(shared: &Arc<Shared>, options: &Options) -> Result<(), Failed> {
    let client = joined(shared, options).await?;
    execute(&client, "CREATE BUCKET c WITH (vbuckets = 16); CREATE BUCKET probe").await?;
    for index in &INDEXES {
        execute(&client, &index.create()).await?;
    }
    feed::prepare(&client).await
}

/// Waits until all members have joined; returns a session.
pub async fn joined(shared: &Shared, options: &Options) -> Result<Client, Failed> {
    let begun = Instant::now();
    loop {
        match all_have_joined(shared, options.indexers.len()).await {
            Ok(client) => return Ok(client),
            Err(error) if begun.elapsed() > HEAL_WITHIN => return Err(error),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn all_have_joined(shared: &Shared, indexers: usize) -> Result<Client, Failed> {
    let client = shared.sql(0).await?;
    let nodes = crate::harness::sql::simple(&client, "SHOW NODES").await?;
    let services =
        nodes.iter().filter(|row| matches!(row[1].as_deref(), Some("indexer" | "projector")));
    match services.count() {
        all if all == indexers + PROJECTORS.len() => Ok(client),
        some => Err(Failed(format!("{some} indexers and projectors have joined"))),
    }
}

/// Starts the operator's tasks.
pub fn begin(shared: &Arc<Shared>, tasks: &mut Tasks) {
    tasks.run(define(Arc::clone(shared)));
    tasks.run(move_slices(Arc::clone(shared)));
}

/// Creates an index, reads it and drops it, repeatedly.
async fn define(shared: Arc<Shared>) {
    let mut random = fastrand::Rng::with_seed(shared.seed ^ 0xdef1);
    for router in 0.. {
        if !shared.is_running() {
            return;
        }
        if let Err(error) = define_once(&shared, router).await {
            shared.say(|| format!("definer: {error}"));
        }
        tokio::time::sleep(Duration::from_millis(random.u64(REST_MS))).await;
    }
}

async fn define_once(shared: &Shared, router: usize) -> Result<(), Failed> {
    let client = shared.sql(router).await?;
    execute(&client, &PASSING.create()).await?;
    execute(&client, "SET consistency = 'request_plus'").await?;
    let begun = shared.history().tick();
    let rows = select(&client, &PASSING.select()).await?;
    let end = shared.history().tick();
    let not_before = Some(begun);
    shared.judge(&Scan {
        index: &PASSING,
        range: None,
        not_before,
        end,
        ordered: false,
        rows: &rows,
    });
    execute(&client, "DROP INDEX passing").await?;
    shared.report(|report| report.ddl += 1);
    Ok(())
}

/// Moves slices, drains nodes, and changes the number of replicas.
async fn move_slices(shared: Arc<Shared>) {
    let mut random = fastrand::Rng::with_seed(shared.seed ^ 0x5e1f);
    let mut drained = None;
    for router in 0.. {
        tokio::time::sleep(Duration::from_millis(random.u64(REST_MS))).await;
        let statement = statement(&mut random, &mut drained);
        let asked = match shared.sql(router).await {
            // No node is drained at the end.
            Ok(client) if !shared.is_running() => match drained.take() {
                None => return,
                Some(node) => execute(&client, &cancel_drain(node)).await,
            },
            Ok(client) => execute(&client, &statement).await,
            Err(_) if !shared.is_running() => return,
            Err(error) => Err(error),
        };
        match asked {
            Ok(()) => shared.report(|report| report.moves_asked += 1),
            // A move in progress, an absent member, or no leader: another statement is tried.
            Err(error) => shared.say(|| format!("operator: {statement}: {error}")),
        }
    }
}

fn cancel_drain(node: u64) -> String {
    format!("CANCEL DRAIN NODE '{node}'")
}

fn statement(random: &mut fastrand::Rng, drained: &mut Option<u64>) -> String {
    if let Some(node) = *drained
        && random.bool()
    {
        *drained = None;
        return cancel_drain(node);
    }
    let node = INDEXERS[random.usize(..INDEXERS.len())];
    match random.u32(..8) {
        0 | 1 => "REBALANCE".into(),
        2 => "CANCEL REBALANCE".into(),
        3 if drained.is_none() => {
            *drained = Some(node);
            format!("DRAIN NODE '{node}'")
        }
        4 => format!("ALTER INDEX big SET (replicas = {})", random.u32(..2)),
        5 => format!("ALTER INDEX by_writer SET (separate_included_columns = {})", random.bool()),
        _ => format!("ALTER INDEX by_n MOVE SLICE {} TO '{node}'", random.u32(..6)),
    }
}
