//! Tests that a transaction reads all buckets at one moment, which its first read fixes.
//!
//! A writer writes n to bucket `one` and, after the acknowledgement, n to bucket `two`. At any
//! moment the number in `one` is that of `two`, or the next one. A transaction that read each
//! bucket at a separate moment would see more in the bucket that it reads last.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is a client of the product: real clocks, sockets and tasks"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tests::harness::{TestCluster, connect, eventually, sql};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

/// Starts a cluster with two buckets with an index each, at number zero.
async fn two_buckets(coordinators: u64) -> (TestCluster, Client) {
    let cluster = TestCluster::start(coordinators, 2).await;
    let client = cluster.sql().await;
    sql::run(
        &client,
        "CREATE BUCKET one; CREATE INDEX one_n ON one (n::int8) WITH (slices = 3);
         CREATE BUCKET two; CREATE INDEX two_n ON two (n::int8) WITH (slices = 3)",
    )
    .await;
    write(&client, "one", 0).await;
    write(&client, "two", 0).await;
    // The moment of a read-only transaction is that of the last heartbeat, which is a second old at most.
    sql::run(&client, "SET consistency = 'request_plus'; SELECT n FROM one_n; SELECT n FROM two_n")
        .await;
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    (cluster, client)
}

async fn write(client: &Client, bucket: &str, n: u64) {
    sql::run(
        client,
        &format!(
            "INSERT INTO {bucket} (id, doc) VALUES ('d', '{{\"n\":{n}}}')
             ON CONFLICT (id) DO UPDATE SET doc = excluded.doc"
        ),
    )
    .await;
}

/// A way to read the number of a bucket.
#[derive(Clone, Copy, Debug)]
enum By {
    Scan,
    Id,
}

async fn read(client: &Client, bucket: &str, by: By) -> u64 {
    let query = match by {
        By::Scan => format!("SELECT n FROM {bucket}_n"),
        By::Id => format!("SELECT doc FROM {bucket} WHERE id = 'd'"),
    };
    let text = sql::value(client, &query).await;
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("{query}: {text}"))
}

/// A writer that runs until it is stopped.
struct Writing(Arc<AtomicBool>, JoinHandle<u64>);

impl Writing {
    async fn begin(cluster: &TestCluster) -> Self {
        let (address, ends) = (cluster.sql_address(), Arc::new(AtomicBool::new(false)));
        let told = Arc::clone(&ends);
        let writing = tokio::spawn(async move {
            let client = connect(address).await;
            let mut n = 0;
            while !told.load(Ordering::Relaxed) {
                n += 1;
                write(&client, "one", n).await;
                write(&client, "two", n).await;
            }
            n
        });
        Self(ends, writing)
    }

    async fn end(self) -> u64 {
        self.0.store(true, Ordering::Relaxed);
        self.1.await.expect("the writer")
    }
}

/// Reads both buckets in a transaction, some milliseconds apart, and returns the numbers of `one` and of `two`.
async fn both(client: &Client, begin: &str, order: [&str; 2], by: [By; 2]) -> (u64, u64) {
    sql::run(client, begin).await;
    let first = read(client, order[0], by[0]).await;
    tokio::time::sleep(Duration::from_millis(15)).await;
    let second = read(client, order[1], by[1]).await;
    let again = read(client, order[0], by[1]).await;
    assert_eq!(first, again, "{begin}: {order:?} by {by:?}");
    sql::run(client, "COMMIT").await;
    if order[0] == "one" { (first, second) } else { (second, first) }
}

const BEGINS: [&str; 3] =
    ["BEGIN", "BEGIN READ ONLY", "BEGIN READ ONLY; SET LOCAL consistency = 'request_plus'"];

const WAYS: [[By; 2]; 4] =
    [[By::Scan, By::Scan], [By::Id, By::Id], [By::Scan, By::Id], [By::Id, By::Scan]];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_buckets_are_read_at_one_moment_whichever_comes_first() {
    let (cluster, _client) = two_buckets(1).await;
    let reader = cluster.sql().await;
    let writing = Writing::begin(&cluster).await;
    let mut seen = 0;
    for round in 0..10 {
        for begin in BEGINS {
            for order in [["one", "two"], ["two", "one"]] {
                for by in WAYS {
                    let (one, two) = both(&reader, begin, order, by).await;
                    assert!(
                        two <= one && one <= two + 1,
                        "round {round}, {begin}: {order:?} by {by:?} show {one} and {two}"
                    );
                    seen = two;
                }
            }
        }
    }
    let written = writing.end().await;
    assert!(seen > 100 && written >= seen, "the writer was on its way: {seen} of {written}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_in_another_bucket_before_begin_is_seen() {
    let (cluster, writer) = two_buckets(1).await;
    let reader = cluster.sql().await;
    let needs_newest = [BEGINS[0], BEGINS[2]];
    for n in 1..=20 {
        for by in WAYS {
            for begin in needs_newest {
                write(&writer, "two", n).await;
                let (_, two) = both(&reader, begin, ["one", "two"], by).await;
                assert_eq!(two, n, "{begin} by {by:?}");
            }
            // The session's own writes are visible at any consistency.
            write(&writer, "two", n).await;
            sql::run(&writer, "SET consistency = 'any'").await;
            let (_, two) = both(&writer, BEGINS[1], ["one", "two"], by).await;
            assert_eq!(two, n, "by {by:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_moment_outlasts_the_horizon_and_the_leader_of_the_coordinators() {
    let (mut cluster, writer) = two_buckets(3).await;
    let mut readers = Vec::new();
    for (begin, by) in [(BEGINS[0], By::Scan), (BEGINS[0], By::Id), (BEGINS[1], By::Scan)] {
        let reader = cluster.sql().await;
        sql::run(&reader, begin).await;
        assert_eq!(read(&reader, "one", by).await, 0);
        readers.push((reader, by));
    }
    let writing = Writing::begin(&cluster).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let here = &cluster;
    let leader = eventually("a leader", || here.cluster().leader()).await;
    cluster.cluster_mut().kill_coordinator(leader);
    // A new leader moves the horizon after ten seconds, to five seconds before the present.
    tokio::time::sleep(Duration::from_secs(19)).await;
    for (reader, by) in &readers {
        let two = read(reader, "two", *by).await;
        assert_eq!((two, read(reader, "one", *by).await), (0, 0), "by {by:?}");
        sql::run(reader, "COMMIT").await;
    }
    assert!(read(&writer, "two", By::Id).await > 100);
    assert!(writing.end().await > 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_is_younger_than_the_moment_says_so() {
    let (cluster, writer) = two_buckets(1).await;
    let reader = cluster.sql().await;
    sql::run(&reader, "BEGIN").await;
    assert_eq!(read(&reader, "one", By::Id).await, 0);
    sql::run(&writer, "CREATE BUCKET three").await;
    write(&writer, "three", 7).await;
    let refused = reader.simple_query("SELECT doc FROM three WHERE id = 'd'").await;
    let refused = refused.expect_err("the moment is older");
    assert_eq!(sql::state_of(&refused), "72000");
    let text = refused.as_db_error().expect("an answer").message().to_owned();
    assert!(text.contains("\"three\": it was created after the moment"), "{text}");
    sql::run(&reader, "ROLLBACK; BEGIN").await;
    assert_eq!(read(&reader, "three", By::Id).await, 7);
}
