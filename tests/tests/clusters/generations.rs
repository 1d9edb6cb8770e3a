//! Tests transactions and scans that continue in the generation in which they began, and cancelled
//! builds of generations.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is a client of the product: real clocks, sockets, files and tasks"
)]

use std::time::Duration;

use proto::model::ids::NodeId;
use tests::harness::{TestCluster, eventually, sql};
use tokio_postgres::{Client, SimpleQueryMessage};

/// The number of documents of the bucket.
const DOCUMENTS: u64 = 500;

/// Starts a cluster with documents in an index, and opens a session.
async fn cluster() -> (TestCluster, Client) {
    let cluster = TestCluster::start(1, 3).await;
    let client = cluster.sql().await;
    sql::run(&client, "CREATE BUCKET b").await;
    sql::run(&client, "CREATE INDEX i ON b (n::int8) WITH (slices = 2)").await;
    let line = |n: u64| format!("{{\"id\":\"d{n:03}\",\"n\":{n},\"t\":\"t{n}\"}}\n");
    let lines: String = (0..DOCUMENTS).map(line).collect();
    sql::copy_in(&client, "COPY b FROM STDIN", lines.as_bytes(), 64 << 10).await.expect("COPY");
    sql::run(&client, "SET consistency = 'request_plus'").await;
    assert_eq!(count(&client).await, Some(DOCUMENTS));
    (cluster, client)
}

async fn count(client: &Client) -> Option<u64> {
    let rows = sql::simple(client, "SELECT count(*) FROM i").await.ok()?;
    rows[0][0].as_ref()?.parse().ok()
}

/// Returns the notes of `SHOW SLICES` about the index.
async fn notes(client: &Client) -> Vec<String> {
    let rows = sql::simple(client, "SHOW SLICES").await.expect("a list");
    rows.into_iter().filter_map(|row| row.last().cloned().flatten()).collect()
}

async fn is_kept(client: &Client) -> bool {
    notes(client).await.iter().any(|note| note.contains("older generation"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_goes_on_in_the_generation_in_which_it_began() {
    let (cluster, client) = cluster().await;
    let reader = cluster.sql().await;
    sql::run(&reader, "BEGIN").await;
    assert_eq!(count(&reader).await, Some(DOCUMENTS));
    sql::run(&reader, "INSERT INTO b (id, doc) VALUES ('own', '{\"n\":-1}')").await;
    sql::run(&client, "ALTER INDEX i SET WHERE n >= 100").await;
    assert_eq!(count(&client).await, Some(DOCUMENTS - 100));
    sql::run(&client, "INSERT INTO b (id, doc) VALUES ('late', '{\"n\":1000}')").await;
    for _ in 0..40 {
        assert_eq!(count(&reader).await, Some(DOCUMENTS + 1), "its snapshot and its own change");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!(is_kept(&client).await, "as long as the transaction is open");
    sql::run(&reader, "COMMIT").await;
    assert_eq!(count(&reader).await, Some(DOCUMENTS - 100 + 1), "without the one below 100");
    eventually("the old generation goes", || async { (!is_kept(&client).await).then_some(()) })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_that_is_under_way_ends_in_its_generation() {
    let (cluster, client) = cluster().await;
    let reader = cluster.sql().await;
    let statement = reader.prepare("SELECT id, n FROM i ORDER BY n").await.expect("prepared");
    let mut reader = reader;
    let transaction = reader.transaction().await.expect("begun");
    let portal = transaction.bind(&statement, &[]).await.expect("bound");
    let mut rows = transaction.query_portal(&portal, 10).await.expect("the first rows");
    sql::run(&client, "ALTER INDEX i SET KEYS (t)").await;
    sql::run(&client, "ALTER INDEX i SET (slices = 7)").await;
    loop {
        let more = transaction.query_portal(&portal, 100).await.expect("more rows");
        if more.is_empty() {
            break;
        }
        rows.extend(more);
    }
    let numbers: Vec<i64> = rows.iter().map(|row| row.get(1)).collect();
    assert_eq!(numbers, (0..DOCUMENTS as i64).collect::<Vec<_>>());
    transaction.commit().await.expect("committed");
    let error = reader.query(&statement, &[]).await.expect_err("the index has no n any more");
    assert_eq!(error.code().map(|code| code.code()), Some("42703"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_outgrows_its_slices_gets_more_of_them() {
    let (_cluster, client) = cluster().await;
    let text = "x".repeat(1_000);
    let line = |n: u64| format!("{{\"id\":\"d{n:03}\",\"n\":{n},\"text\":\"{n} {text}\"}}\n");
    let lines: String = (0..DOCUMENTS).map(line).collect();
    sql::copy_in(&client, "COPY b FROM STDIN", lines.as_bytes(), 64 << 10).await.expect("COPY");
    let create =
        "CREATE INDEX j ON b (n::int8) INCLUDE (text) WITH (slices = 1, slice_bytes_max = '100kB')";
    sql::run(&client, create).await;
    let grown = || async {
        let rows = sql::simple(&client, "SHOW INDEXES").await.ok()?;
        let row = rows.into_iter().find(|row| row[0].as_deref() == Some("j"))?;
        row.last()?.clone().filter(|definition| definition.contains("slices = 16"))
    };
    let definition = eventually("it has more slices", grown).await;
    assert_eq!(
        definition,
        "CREATE INDEX j ON b (n::int8) INCLUDE (text) WITH (slices = 16, slice_bytes_max = 102400)"
    );
    let rows = sql::simple(&client, "SELECT count(*), sum(n) FROM j").await.expect("a scan");
    let sum = (0..DOCUMENTS).sum::<u64>();
    assert_eq!(rows[0], [DOCUMENTS, sum].map(|n| Some(n.to_string())));
    sql::run(&client, "ALTER INDEX j ADD INCLUDE (t)").await;
    sql::run(&client, "ALTER INDEX j SET (slice_bytes_max = 0)").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_generation_leaves_the_index_as_it_was() {
    let (mut cluster, client) = cluster().await;
    cluster.cluster_mut().kill_indexer(NodeId(202));
    let other = cluster.sql().await;
    let altering = tokio::spawn(async move {
        other.simple_query("ALTER INDEX i SET (slices = 6)").await.map(|_| ())
    });
    let building = || async {
        let notes = notes(&client).await;
        notes.iter().any(|note| note.contains("next generation")).then_some(())
    };
    eventually("it is being built", building).await;
    let second = client.simple_query("REINDEX i").await.expect_err("one at a time");
    assert_eq!(second.code().map(|code| code.code()), Some("55000"), "{second:?}");
    sql::run(&client, "CANCEL BUILD i").await;
    let error = altering.await.expect("a session").expect_err("cancelled");
    let error = error.as_db_error().expect("an answer").clone();
    assert_eq!(error.code().code(), "57014");
    assert!(error.hint().is_some_and(|hint| hint.contains("as it did before")), "{error:?}");
    let shown = client.simple_query("SHOW INDEXES").await.expect("a list");
    let row = shown.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get("slices").map(str::to_owned),
        _ => None,
    });
    assert_eq!(row.as_deref(), Some("2"));
}
