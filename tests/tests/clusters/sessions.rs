//! Tests that a session sees its own writes, and that its scans never show older data.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is a client of the product: real clocks, sockets and tasks"
)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tests::harness::{TestCluster, sql};
use tokio_postgres::Client;

async fn number(client: &Client, query: &str) -> i64 {
    let rows = sql::simple(client, query).await;
    let rows = rows.unwrap_or_else(|error| panic!("{query}: {error:?}"));
    rows[0][0].as_deref().unwrap_or("-1").parse().unwrap()
}

async fn cluster() -> TestCluster {
    let cluster = TestCluster::start(1, 3).await;
    let client = cluster.sql().await;
    sql::run(
        &client,
        "CREATE BUCKET b; CREATE BUCKET other;
         CREATE INDEX by_n ON b (n::int8) WITH (slices = 5);
         CREATE INDEX by_m ON b (m::int8) WITH (slices = 3);
         CREATE INDEX of_other ON other (n::int8)",
    )
    .await;
    cluster
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_scan_shows_what_its_session_has_written_before() {
    let cluster = cluster().await;
    let client = cluster.sql().await;
    let mut waited = Vec::new();
    for n in 1..=150_i64 {
        let write = match n % 3 {
            0 => format!(
                "BEGIN; INSERT INTO b (id, doc) VALUES ('{n}', '{{\"n\":{n},\"m\":{n}}}'); COMMIT"
            ),
            _ => format!("INSERT INTO b (id, doc) VALUES ('{n}', '{{\"n\":{n},\"m\":{n}}}')"),
        };
        sql::run(&client, &write).await;
        let began = Instant::now();
        let index = if n % 2 == 0 { "by_n" } else { "by_m" };
        assert_eq!(number(&client, &format!("SELECT count(*) FROM {index}")).await, n);
        waited.push(began.elapsed());
        assert_eq!(number(&client, "SELECT max(n) FROM by_n").await, n);
        assert_eq!(number(&client, "SELECT count(*) FROM of_other").await, 0);
    }
    waited.sort();
    println!("a scan behind a write took {:?}, 99 % at most {:?}", waited[75], waited[148]);
    assert!(waited[75] < Duration::from_millis(500), "{:?}", waited[75]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_never_sees_less_than_before_while_others_write() {
    let cluster = cluster().await;
    let (writer, is_over) = (cluster.sql().await, AtomicBool::new(false));
    let writes = async {
        let mut n = 0;
        while !is_over.load(Ordering::Relaxed) {
            n += 1;
            let write =
                format!("INSERT INTO b (id, doc) VALUES ('{n}', '{{\"n\":{n},\"m\":{n}}}')");
            sql::run(&writer, &write).await;
        }
    };
    let readers = (0..4).map(async |_| {
        let client = cluster.sql().await;
        let (mut seen, began) = (0, Instant::now());
        while began.elapsed() < Duration::from_secs(2) {
            let now = number(&client, "SELECT count(*) FROM by_n").await;
            assert!(now >= seen, "{now} behind {seen}");
            seen = now;
        }
        is_over.store(true, Ordering::Relaxed);
        seen
    });
    let (seen, ()) = tokio::join!(futures::future::join_all(readers), writes);
    assert!(seen.iter().all(|seen| *seen > 0), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_transaction_begins_where_its_session_was() {
    let cluster = cluster().await;
    let (writer, client) = (cluster.sql().await, cluster.sql().await);
    for n in 1..=40_i64 {
        let write = format!("INSERT INTO b (id, doc) VALUES ('{n}', '{{\"n\":{n},\"m\":{n}}}')");
        sql::run(&writer, &write).await;
        let seen = number(&client, "SELECT count(*) FROM by_n").await;
        let again = "BEGIN READ ONLY; SELECT count(*) FROM by_m; COMMIT";
        let again = number(&client, again).await;
        assert!(again >= seen, "{again} behind {seen}");
    }
}
