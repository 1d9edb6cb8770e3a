//! Tests indexes whose slices are ranges of an expression.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is a client of the product: real clocks, sockets, files and tasks"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tests::harness::{TestCluster, eventually, sql};
use tokio_postgres::Client;

/// The number of documents of the bucket.
const DOCUMENTS: u64 = 4_000;

/// Starts a cluster with documents whose numbers follow their ids, and opens a session.
async fn cluster() -> (TestCluster, Client) {
    let cluster = TestCluster::start(1, 3).await;
    let client = cluster.sql().await;
    sql::run(&client, "CREATE BUCKET b").await;
    let line = |n: u64| format!("{{\"id\":\"d{n:05}\",\"n\":{n},\"t\":\"t{}\"}}\n", n % 3);
    let lines: String = (0..DOCUMENTS).map(line).collect();
    sql::copy_in(&client, "COPY b FROM STDIN", lines.as_bytes(), 64 << 10).await.expect("COPY");
    sql::run(&client, "SET consistency = 'request_plus'").await;
    (cluster, client)
}

/// Returns the number of entries of each slice.
async fn entries(client: &Client) -> Vec<u64> {
    tests::harness::eventually("all slices are reported", || async {
        let rows = sql::simple(client, "SHOW SLICES").await.ok()?;
        let entries = rows.iter().filter(|row| row[4].as_deref() == Some("ready"));
        let entries = entries.map(|row| row[5].as_deref()?.parse().ok());
        let entries: Vec<u64> = entries.collect::<Option<_>>()?;
        (entries.iter().sum::<u64>() == DOCUMENTS).then_some(entries)
    })
    .await
}

async fn slices_of(client: &Client, condition: &str) -> String {
    let explain = format!("EXPLAIN SELECT id FROM i WHERE {condition}");
    let rows = sql::simple(client, &explain).await.expect("a plan");
    rows.last().and_then(|row| row[0].clone()).expect("a line").trim().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sampled_ranges_have_about_the_same_number_of_entries() {
    let (_cluster, client) = cluster().await;
    sql::run(
        &client,
        "CREATE INDEX i ON b (n::int8) PARTITION BY RANGE (n::int8) WITH (slices = 4)",
    )
    .await;
    let entries = entries(&client).await;
    assert_eq!(entries.len(), 4);
    let even = DOCUMENTS / 4;
    assert!(entries.iter().all(|count| (even / 2..2 * even).contains(count)), "{entries:?}");
    let definition = sql::simple(&client, "SHOW INDEXES").await.expect("a list")[0].last().cloned();
    let definition = definition.flatten().expect("a definition");
    assert!(definition.contains("PARTITION BY RANGE (n::int8) SPLIT AT ("), "{definition}");
    assert_eq!(slices_of(&client, "n::int8 < 10").await, "Slices: 1 of 4, by range of n::int8");
    sql::run(&client, "ALTER INDEX i SET (slices = 6)").await;
    assert_eq!(slices_of(&client, "n::int8 < 10").await, "Slices: 1 of 6, by range of n::int8");
    sql::run(&client, "ALTER INDEX i PARTITION BY HASH (META().id)").await;
    let count = "SELECT count(*) FROM i WHERE n::int8 BETWEEN 1000 AND 2999";
    assert_eq!(sql::value(&client, count).await, "2000");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_goes_to_the_range_of_its_new_value() {
    let (_cluster, client) = cluster().await;
    let create = "CREATE INDEX i ON b (n, t) PARTITION BY RANGE (n) SPLIT AT (1000, 2000, 'm')";
    sql::run(&client, create).await;
    let count = |condition: &'static str| {
        let select = format!("SELECT count(*) FROM i WHERE {condition}");
        let client = &client;
        async move { sql::value(client, &select).await }
    };
    assert_eq!(entries(&client).await, [1_000, 1_000, 2_000, 0]);
    let upsert = |value: &str| {
        format!(
            "INSERT INTO b (id, doc) VALUES ('d00007', '{{\"n\":{value}}}') ON CONFLICT (id) DO UPDATE SET doc = excluded.doc"
        )
    };
    for (value, condition) in
        [("1500", "n = 1500"), ("\"z\"", "n >= 'm'"), ("-3", "n < 0"), ("2500.5", "n = 2500.5")]
    {
        sql::run(&client, &upsert(value)).await;
        let found = sql::simple(&client, &format!("SELECT id FROM i WHERE {condition}")).await;
        let found = found.expect("a scan");
        assert!(found.iter().any(|row| row[0].as_deref() == Some("d00007")), "{condition}");
        assert_eq!(count("n >= -10 OR n >= 'a'").await, DOCUMENTS.to_string(), "after {value}");
    }
    sql::run(&client, "DELETE FROM b WHERE id = 'd00007'").await;
    assert_eq!(count("n >= -10").await, (DOCUMENTS - 1).to_string());
    let refused = [
        ("CREATE INDEX j ON b (n) PARTITION BY RANGE (n) SPLIT AT (5, 3)", "22023"),
        ("CREATE INDEX j ON b (n) PARTITION BY RANGE (n) SPLIT AT (5) WITH (slices = 4)", "22023"),
        ("CREATE INDEX j ON b (n) PARTITION BY RANGE (missing)", "55000"),
    ];
    for (sql, state) in refused {
        assert_eq!(sql::sqlstate(&client, sql).await, state, "{sql}");
    }
}

/// Returns the number of snapshots that builds have read, and of generations whose slices were
/// split in place, on all indexers.
fn made(cluster: &TestCluster) -> (u64, u64) {
    let statuses: Vec<_> =
        cluster.cluster().indexers().iter().map(|indexer| indexer.status()).collect();
    let backfills = statuses.iter().map(|status| status.backfills).sum();
    (backfills, statuses.iter().map(|status| status.slices_split).sum())
}

/// Returns the number of slices of an index and its definition.
async fn defined(client: &Client, name: &str) -> Option<(usize, String)> {
    let rows = sql::simple(client, "SHOW INDEXES").await.ok()?;
    let row = rows.into_iter().find(|row| row[0].as_deref() == Some(name))?;
    Some((row[4].as_ref()?.parse().ok()?, row.last()?.clone()?))
}

/// Writes documents one after another, each with a new number, until `stops` is set. Acknowledged
/// documents must be in each later scan.
async fn write(client: Client, pad: String, written: Arc<AtomicU64>, stops: Arc<AtomicBool>) {
    while !stops.load(Ordering::Relaxed) {
        let n = written.load(Ordering::Relaxed);
        let insert = format!(
            "INSERT INTO b (id, doc) VALUES ('w{n:05}', '{{\"n\":{},\"p\":\"{n} {pad}\"}}')",
            100_000 + n
        );
        sql::run(&client, &insert).await;
        written.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slices_that_have_outgrown_their_limit_are_split_in_place_under_writes() {
    let cluster = TestCluster::start(1, 3).await;
    let client = cluster.sql().await;
    sql::run(&client, "CREATE BUCKET b").await;
    let create = "CREATE INDEX j ON b (n::int8) INCLUDE (p) PARTITION BY RANGE (n::int8) SPLIT AT (-1) \
                  WITH (replicas = 1, slice_bytes_max = '300kB')";
    sql::run(&client, create).await;
    sql::run(&client, "SET consistency = 'request_plus'").await;
    let (backfills, split) = made(&cluster);
    assert_eq!(split, 0);
    let (written, stops) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let writer = cluster.sql().await;
    let writing =
        tokio::spawn(write(writer, "x".repeat(1_000), Arc::clone(&written), Arc::clone(&stops)));
    // Scans before, during and after the splits: each has all numbers in order, without a gap and without a double.
    eventually("it is split twice", || async {
        let least = written.load(Ordering::Relaxed);
        let rows = sql::simple(&client, "SELECT n FROM j ORDER BY n").await.expect("a scan");
        let numbers = rows.iter().map(|row| row[0].as_ref()?.parse::<u64>().ok());
        let numbers: Option<Vec<u64>> = numbers.collect();
        let count = rows.len() as u64;
        assert_eq!(numbers, Some((100_000..100_000 + count).collect()), "the scan is exact");
        assert!(count >= least, "{count} rows, {least} were acknowledged before");
        defined(&client, "j").await.filter(|(slices, _)| *slices >= 4).map(|_| ())
    })
    .await;
    stops.store(true, Ordering::Relaxed);
    writing.await.expect("a writer");
    let all = written.load(Ordering::Relaxed);
    let (_, definition) = defined(&client, "j").await.expect("an index");
    assert!(definition.contains("SPLIT AT (-1, 10"), "{definition}");
    assert!(definition.contains("slice_bytes_max = 307200"), "{definition}");
    let counted = "SELECT count(*), sum(n) FROM j";
    let expected = [all, (100_000..100_000 + all).sum()].map(|n| Some(n.to_string()));
    assert_eq!(sql::simple(&client, counted).await.expect("a scan")[0], expected);
    let (after, split) = made(&cluster);
    assert_eq!(after, backfills, "no documents were read");
    assert!(split >= 2, "{split} generations were made in place");
    // Joining slices is a build from the source.
    sql::run(&client, "ALTER INDEX j PARTITION BY RANGE (n::int8) SPLIT AT (-1)").await;
    assert!(made(&cluster).0 > backfills);
    assert_eq!(sql::simple(&client, counted).await.expect("a scan")[0], expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_further_split_point_splits_in_place_and_a_limit_needs_the_first_key() {
    let (cluster, client) = cluster().await;
    let create = "CREATE INDEX i ON b (n, t) PARTITION BY RANGE (n) SPLIT AT (1000, 2000)";
    sql::run(&client, create).await;
    let before = made(&cluster).0;
    sql::run(&client, "ALTER INDEX i PARTITION BY RANGE (n) SPLIT AT (500, 1000, 2000, 3000)")
        .await;
    assert_eq!(entries(&client).await, [500, 500, 1_000, 1_000, 1_000]);
    assert_eq!(made(&cluster).0, before, "no documents were read");
    assert_eq!(sql::value(&client, "SELECT count(*) FROM i WHERE n = 500").await, "1");
    sql::run(&client, "ALTER INDEX i PARTITION BY RANGE (t) SPLIT AT ('t1')").await;
    let limit = "ALTER INDEX i SET (slice_bytes_max = '1GB')";
    let error = client.simple_query(limit).await.expect_err("other entries");
    assert_eq!(error.code().map(|code| code.code()), Some("55000"), "{error:?}");
}
