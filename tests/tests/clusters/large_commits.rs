//! Tests commits that are larger than the memory of their indexers.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is a client of the product: real clocks, sockets and tasks"
)]

use std::fmt::Write;
use std::time::{Duration, Instant};

use tests::harness::{TestCluster, number_from_env, sql};
use tokio_postgres::Client;

/// Returns the documents as JSON lines; each document is in both indexes.
fn lines(documents: std::ops::Range<u64>) -> String {
    let mut lines = String::new();
    for n in documents {
        let part = n * 7919 % 1000;
        let _ =
            writeln!(lines, "{{\"id\":\"d{n:07}\",\"n\":{part},\"pad\":\"padding of {n:07}\"}}");
    }
    lines
}

/// Returns the value of a query in the transaction's own view. It retries, because the indexers may
/// take longer to receive the changes than a scan waits for them.
async fn own_view(client: &Client, sql: &str) -> String {
    let began = Instant::now();
    loop {
        sql::run(client, "SAVEPOINT view").await;
        match sql::sqlstate(client, sql).await.as_str() {
            "" => return sql::value(client, sql).await,
            "57P03" if began.elapsed() < Duration::from_secs(60) => {
                sql::run(client, "ROLLBACK TO view").await;
            }
            other => panic!("{sql}: {other}"),
        }
    }
}

/// `DOCUMENTS=500000` makes the commit larger; the test prints its duration.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_larger_than_the_memory_of_its_indexers_is_seen_as_a_whole() {
    let documents = number_from_env("DOCUMENTS", 60_000);
    let memory_bytes = number_from_env("MEMORY_MB", 12) << 20;
    let cluster = TestCluster::start_where(1, 2, |config| {
        config.memory_bytes = Some(memory_bytes);
        config.large_commit_changes = Some(20_000);
    })
    .await;
    let (client, other) = (cluster.sql().await, cluster.sql().await);
    let schema = "CREATE BUCKET b;
         CREATE INDEX by_n ON b (n::int8) INCLUDE (pad) WITH (slices = 4);
         CREATE INDEX by_pad ON b (pad) PARTITION BY HASH (n) WITH (slices = 4)";
    sql::run(&client, schema).await;
    // A tenth of the documents is there already, with other entries.
    let old = lines(0..documents / 10).replace("padding", "older");
    sql::copy_in(&client, "COPY b FROM STDIN", old.as_bytes(), 1 << 20).await.expect("COPY");
    let before = (documents / 10).to_string();
    sql::run(&other, "SET consistency = 'request_plus'").await;
    let count = "SELECT count(*) FROM by_pad";
    assert_eq!(sql::value(&other, count).await, before);
    sql::run(&other, "SET consistency = 'any'").await;
    sql::run(&client, "BEGIN").await;
    sql::run(&client, "DELETE FROM b WHERE id = 'd0000001'").await;
    let copy = "COPY b FROM STDIN";
    let began = Instant::now();
    let copied = sql::copy_in(&client, copy, lines(2..documents).as_bytes(), 1 << 20).await;
    assert_eq!(copied.expect("COPY"), documents - 2);
    println!("COPY: {:?}", began.elapsed());
    let all = (documents - 1).to_string();
    assert_eq!(own_view(&client, count).await, all, "its own view");
    assert_eq!(sql::value(&other, count).await, before);
    let began = Instant::now();
    sql::run(&client, "COMMIT").await;
    println!("COMMIT: {:?}", began.elapsed());
    let began = Instant::now();
    loop {
        let seen = sql::value(&other, count).await;
        if seen == all {
            break;
        }
        assert_eq!(seen, before, "none or all");
        assert!(began.elapsed() < Duration::from_secs(60), "it is never seen");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    println!("visible: {:?}", began.elapsed());
    let older = "SELECT count(*) FROM by_pad WHERE pad < 'padding'";
    assert_eq!(sql::value(&other, older).await, "1", "the document that stayed");
    assert_eq!(sql::value(&other, "SELECT count(*) FROM by_n").await, all);
    for node in [200, 201] {
        let figure = async |name: &str| cluster.figure(name, &format!("node=\"{node}\"")).await;
        assert_eq!(figure("late_commit_given_up_total").await, 0.0);
        assert!(figure("late_commit_spilled_total").await > 0.0);
        assert_eq!(figure("late_commit_entered_total").await, 1.0, "it was not sent again");
        let prepared = figure("late_commit_entered_prepared_total").await;
        assert_eq!(prepared, 1.0, "it was written ahead of its epoch");
    }
}
