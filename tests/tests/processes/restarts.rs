//! Many kills in a row: a process that is killed again and again under writes starts as fast as after the first kill, with
//! all acknowledged documents.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests run the product as a process"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use tests::harness::process::{Dev, dev};
use tests::harness::{connect, sql};

/// More kills than a vbucket remembers branches.
const KILLS: usize = 40;
/// Time of the writes before a kill.
const LOAD: Duration = Duration::from_millis(300);
/// Pause between two statements. A start replays what the last flush does not cover, so a faster writer would measure that.
const PACE: Duration = Duration::from_millis(3);
/// Documents of a statement.
const ROWS: u64 = 50;
/// Starts whose median is compared.
const COMPARED: usize = 5;
/// Maximum of the last starts' median, as a multiple of the first ones'.
const FACTOR_MAX: u32 = 10;

/// Starts the process; returns it with the time to the first answer that has all acknowledged documents.
async fn start(data: &Path, acknowledged: u64) -> (Dev, Duration) {
    let begun = Instant::now();
    let process = Dev::start_by(dev(data).args(["--nodes", "1"]));
    let client = connect(process.sql_address()).await;
    sql::run(
        &client,
        "SET consistency = 'request_plus'; \
         CREATE BUCKET IF NOT EXISTS b WITH (vbuckets = 16); \
         CREATE INDEX IF NOT EXISTS by_n ON b (n::int8) INCLUDE (text) WITH (slices = 4)",
    )
    .await;
    let count = sql::value(&client, "SELECT count(*) FROM by_n").await;
    let taken = begun.elapsed();
    assert!(count.parse::<u64>().is_ok_and(|count| count >= acknowledged), "{count}");
    (process, taken)
}

/// Writes new documents until the process is gone; returns the number of those that were acknowledged so far.
async fn write(process: Dev, mut acknowledged: u64, kill: usize) -> u64 {
    let client = connect(process.sql_address()).await;
    let text = "x".repeat(200);
    let writing = async {
        for statement in 0_u64.. {
            let row =
                |n: u64| format!("('{kill}-{statement}-{n}', '{{\"n\":{n},\"text\":\"{text}\"}}')");
            let rows: Vec<_> = (0..ROWS).map(row).collect();
            let insert = format!("INSERT INTO b (id, doc) VALUES {}", rows.join(", "));
            if sql::simple(&client, &insert).await.is_err() {
                return;
            }
            acknowledged += ROWS;
            tokio::time::sleep(PACE).await;
        }
    };
    let _killed_meanwhile = tokio::time::timeout(LOAD, writing).await;
    process.kill();
    acknowledged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forty_kills_under_writes_do_not_slow_the_next_start_down() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let (mut acknowledged, mut starts) = (0, Vec::new());
    for kill in 0..KILLS {
        let (process, taken) = start(data.path(), acknowledged).await;
        starts.push(taken);
        acknowledged = write(process, acknowledged, kill).await;
    }
    let (_process, taken) = start(data.path(), acknowledged).await;
    starts.push(taken);
    // The first start makes the bucket and the index.
    let mut first = starts[1..=COMPARED].to_vec();
    let mut last = starts[starts.len() - COMPARED..].to_vec();
    first.sort_unstable();
    last.sort_unstable();
    let (first, last) = (first[COMPARED / 2], last[COMPARED / 2]);
    println!(
        "{acknowledged} documents; a start took {first:?} first and {last:?} after {KILLS} kills"
    );
    println!("all starts: {starts:?}");
    assert!(acknowledged > KILLS as u64 * ROWS, "{acknowledged} documents are no load");
    assert!(last < first * FACTOR_MAX, "a start took {first:?} first, and {last:?} at last");
}
