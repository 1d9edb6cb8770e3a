//! Tests transactions of SQL sessions over several buckets.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is a client of the product: real clocks, sockets and tasks"
)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tests::harness::{TestCluster, connect, sql};
use tokio_postgres::Client;

async fn two_buckets() -> (TestCluster, Client, Client) {
    let cluster = TestCluster::start(1, 3).await;
    let (client, other) = (cluster.sql().await, cluster.sql().await);
    for bucket in ["one", "two"] {
        let create =
            format!("CREATE BUCKET {bucket}; CREATE INDEX n_{bucket} ON {bucket} (n::int8)");
        sql::run(&client, &create).await;
    }
    for session in [&client, &other] {
        sql::run(session, "SET consistency = 'request_plus'").await;
    }
    (cluster, client, other)
}

fn upsert(bucket: &str, id: &str, n: i64) -> String {
    format!(
        "INSERT INTO {bucket} (id, doc) VALUES ('{id}', '{{\"n\":{n}}}')
         ON CONFLICT (id) DO UPDATE SET doc = excluded.doc"
    )
}

async fn sum(client: &Client, bucket: &str) -> String {
    let select = format!("SELECT sum(n) FROM n_{bucket}");
    sql::value(client, &select).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_two_buckets_are_committed_together_or_not_at_all() {
    let (_cluster, client, other) = two_buckets().await;
    for bucket in ["one", "two"] {
        sql::run(&client, &upsert(bucket, "a", 1)).await;
    }
    sql::run(&client, "BEGIN").await;
    for bucket in ["two", "one"] {
        sql::run(&client, &upsert(bucket, "a", 10)).await;
        sql::run(&client, &upsert(bucket, "b", 5)).await;
        assert_eq!(sum(&client, bucket).await, "15", "its own changes");
        assert_eq!(sum(&other, bucket).await, "1", "others do not see them");
    }
    sql::run(&client, "COMMIT").await;
    for bucket in ["one", "two"] {
        assert_eq!(sum(&other, bucket).await, "15");
    }
    // A conflict in one bucket takes back the changes in the other.
    for conflict in ["one", "two"] {
        sql::run(&client, "BEGIN").await;
        assert_eq!(
            (sum(&client, "one").await, sum(&client, "two").await),
            ("15".into(), "15".into())
        );
        sql::run(&other, &upsert(conflict, "a", 20)).await;
        for bucket in ["one", "two"] {
            sql::run(&client, &upsert(bucket, "a", 99)).await;
        }
        assert_eq!(sql::sqlstate(&client, "COMMIT").await, "40001", "{conflict}");
        assert_eq!(sum(&other, conflict).await, "25");
        sql::run(&other, &upsert(conflict, "a", 10)).await;
        let rest = if conflict == "one" { "two" } else { "one" };
        assert_eq!(sum(&other, rest).await, "15");
        // No document is locked any more.
        sql::run(&other, &upsert(rest, "a", 10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn savepoints_and_rollbacks_take_back_changes_of_all_buckets() {
    let (_cluster, client, other) = two_buckets().await;
    sql::run(&client, "BEGIN").await;
    sql::run(&client, &upsert("one", "a", 1)).await;
    sql::run(&client, "SAVEPOINT s").await;
    sql::run(&client, &upsert("two", "a", 2)).await;
    sql::run(&client, &upsert("one", "b", 4)).await;
    sql::run(&client, "ROLLBACK TO s").await;
    assert_eq!((sum(&client, "one").await, sum(&client, "two").await), ("1".into(), String::new()));
    sql::run(&client, &upsert("two", "c", 8)).await;
    sql::run(&client, "COMMIT").await;
    assert_eq!((sum(&other, "one").await, sum(&other, "two").await), ("1".into(), "8".into()));
    sql::run(&client, "BEGIN").await;
    for bucket in ["one", "two"] {
        sql::run(&client, &upsert(bucket, "a", 99)).await;
    }
    sql::run(&client, "ROLLBACK").await;
    assert_eq!((sum(&other, "one").await, sum(&other, "two").await), ("1".into(), "8".into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_of_two_buckets_is_shown_and_cancelled_in_both() {
    let (_cluster, client, other) = two_buckets().await;
    sql::run(&client, "BEGIN").await;
    for bucket in ["one", "two"] {
        sql::run(&client, &upsert(bucket, "a", 1)).await;
    }
    let number = sql::value(&client, "SHOW transaction_id").await;
    let show = format!("SHOW TRANSACTION {number}");
    let shown = sql::simple(&other, &show).await.expect("rows");
    let states = |rows: &[Vec<Option<String>>]| {
        let cell = |cell: &Option<String>| cell.clone().unwrap_or_default();
        rows.iter().map(|row| (cell(&row[1]), cell(&row[2]))).collect::<Vec<_>>()
    };
    let both = |state: &str| ["one", "two"].map(|bucket| (bucket.to_owned(), state.to_owned()));
    assert_eq!(states(&shown), both("open"));
    sql::run(&client, "COMMIT").await;
    let shown = sql::simple(&other, &show).await.expect("rows");
    assert_eq!(states(&shown), both("committed"));

    sql::run(&client, "BEGIN").await;
    for bucket in ["one", "two"] {
        sql::run(&client, &upsert(bucket, "a", 2)).await;
    }
    let number = sql::value(&client, "SHOW transaction_id").await;
    sql::run(&other, &format!("CANCEL TRANSACTION {number}")).await;
    assert_eq!(sql::sqlstate(&client, "COMMIT").await, "40001");
    assert_eq!((sum(&other, "one").await, sum(&other, "two").await), ("1".into(), "1".into()));
}

/// Writers move amounts between two buckets, and readers always find the same sum.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_see_a_commit_in_all_its_buckets_or_in_none() {
    let (cluster, client, _other) = two_buckets().await;
    for bucket in ["one", "two"] {
        for id in 0..4 {
            sql::run(&client, &upsert(bucket, &id.to_string(), 100)).await;
        }
    }
    let (address, is_stopped) = (cluster.sql_address(), &AtomicBool::new(false));
    let writers = (0..4).map(|id| async move {
        let client = connect(address).await;
        let mut commits = 0;
        for amount in 1.. {
            if is_stopped.load(Ordering::Relaxed) {
                break;
            }
            let amount = amount % 50;
            let (one, two) = (
                upsert("one", &id.to_string(), 100 - amount),
                upsert("two", &id.to_string(), 100 + amount),
            );
            sql::run(&client, &format!("BEGIN; {one}; {two}; COMMIT")).await;
            commits += 1;
        }
        commits
    });
    let readers = (0..2).map(|reader| async move {
        let client = connect(address).await;
        sql::run(&client, "SET consistency = 'request_plus'").await;
        for round in 0..60 {
            let order = if (reader + round) % 2 == 0 { ["one", "two"] } else { ["two", "one"] };
            let begin = if round % 3 == 0 { "BEGIN READ ONLY" } else { "BEGIN" };
            sql::run(&client, begin).await;
            let mut total = 0;
            for bucket in order {
                total += sum(&client, bucket).await.parse::<i64>().expect("a sum");
                tokio::time::sleep(Duration::from_millis(round % 7)).await;
            }
            sql::run(&client, "COMMIT").await;
            assert_eq!(total, 800, "reader {reader}, round {round}");
        }
        is_stopped.store(true, Ordering::Relaxed);
    });
    let (commits, _) =
        futures::join!(futures::future::join_all(writers), futures::future::join_all(readers));
    assert!(commits.iter().sum::<u32>() > 20, "{commits:?}");
}
