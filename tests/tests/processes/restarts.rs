//! Tests the start after many kills: a process that was repeatedly killed under writes starts as
//! fast as one that was killed once with as many documents, with all acknowledged documents.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests run the product as a process"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use tests::harness::process::{Dev, dev};
use tests::harness::{connect, sql};

/// The number of kills, more than the branches that a vbucket remembers.
const KILLS: usize = 40;
/// The duration of the writes before a kill.
const LOAD: Duration = Duration::from_millis(300);
/// The pause between two statements. A faster writer would measure the replay of mutations that no
/// flush covers.
const PACE: Duration = Duration::from_millis(3);
/// The number of documents of a statement.
const ROWS: u64 = 50;
/// The number of starts whose median is compared. The two sides alternate, so both bear equal load
/// of the machine.
const COMPARED: usize = 5;
/// The limit of a start after many kills, as a multiple of a start after a single kill.
const FACTOR_MAX: u32 = 3;

/// Starts the process; returns it with the time to the first answer that has all acknowledged
/// documents.
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

/// Returns the statement that inserts the documents of statement number `statement` in run number
/// `life`.
fn insert(life: usize, statement: u64) -> String {
    let text = "x".repeat(200);
    let row = |n: u64| format!("('{life}-{statement}-{n}', '{{\"n\":{n},\"text\":\"{text}\"}}')");
    let rows: Vec<_> = (0..ROWS).map(row).collect();
    format!("INSERT INTO b (id, doc) VALUES {}", rows.join(", "))
}

/// Writes new documents until the process has ended; returns the number of documents acknowledged
/// so far.
async fn write_until_killed(process: Dev, mut acknowledged: u64, life: usize) -> u64 {
    let client = connect(process.sql_address()).await;
    let writing = async {
        for statement in 0.. {
            if sql::simple(&client, &insert(life, statement)).await.is_err() {
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

/// Writes this many new documents in one run of a process, and kills it.
async fn write_in_one_life(data: &Path, documents: u64) {
    let (process, _) = start(data, 0).await;
    let client = connect(process.sql_address()).await;
    for statement in 0..documents / ROWS {
        sql::run(&client, &insert(0, statement)).await;
    }
    process.kill();
}

/// Starts the process, kills it, and returns the time to its first answer.
async fn start_and_kill(data: &Path, acknowledged: u64) -> Duration {
    let (process, taken) = start(data, acknowledged).await;
    process.kill();
    taken
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forty_kills_under_writes_do_not_slow_the_next_start_down() {
    let [often, once] = [(); 2].map(|()| tempfile::tempdir().expect("a temporary directory"));
    let mut acknowledged = 0;
    for life in 0..KILLS {
        let (process, _) = start(often.path(), acknowledged).await;
        acknowledged = write_until_killed(process, acknowledged, life).await;
    }
    assert!(acknowledged > KILLS as u64 * ROWS, "{acknowledged} documents are no load");
    write_in_one_life(once.path(), acknowledged).await;

    let (mut after_many, mut after_one) = (Vec::new(), Vec::new());
    for _ in 0..COMPARED {
        after_many.push(start_and_kill(often.path(), acknowledged).await);
        after_one.push(start_and_kill(once.path(), acknowledged).await);
    }
    println!(
        "{acknowledged} documents; after {KILLS} kills {after_many:?}, after one {after_one:?}"
    );
    after_many.sort_unstable();
    after_one.sort_unstable();
    let (many, one) = (after_many[COMPARED / 2], after_one[COMPARED / 2]);
    assert!(
        many < one * FACTOR_MAX,
        "a start took {many:?} after {KILLS} kills, {one:?} after one"
    );
}
