//! Tests transactions of SQL sessions: own changes in scans, snapshot isolation, conflicts,
//! savepoints, lost connections.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is a client of the product: real clocks, sockets and tasks"
)]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use sextant::roles::ClusterConfig;
use tests::harness::{TestCluster, eventually, number_from_env, sql};
use tokio_postgres::Client;

/// The documents by id, each with the number in its field `n`, if it has one.
type Documents = BTreeMap<u32, Option<i64>>;

/// Starts a cluster of three nodes with indexes of each kind of partition, and opens two sessions.
async fn indexed() -> (TestCluster, Client, Client) {
    indexed_where(None).await
}

/// Starts such a cluster in which a commit of this many documents is large.
async fn indexed_where(large_commit_changes: Option<u64>) -> (TestCluster, Client, Client) {
    let large = |config: &mut ClusterConfig| config.large_commit_changes = large_commit_changes;
    let cluster = TestCluster::start_where(1, 3, large).await;
    let (client, other) = (cluster.sql().await, cluster.sql().await);
    sql::run(
        &client,
        "CREATE BUCKET b;
         CREATE INDEX by_n ON b (n::int8) INCLUDE (pad) WITH (slices = 5);
         CREATE INDEX by_part ON b (n::int8 DESC) INCLUDE (pad)
           PARTITION BY HASH (n) WITH (slices = 4);
         CREATE PRIMARY INDEX ids ON b",
    )
    .await;
    sql::run(&client, "SET consistency = 'request_plus'").await;
    sql::run(&other, "SET consistency = 'request_plus'").await;
    (cluster, client, other)
}

fn document(n: Option<i64>) -> String {
    match n {
        Some(n) => format!("{{\"n\":{n},\"pad\":\"p{}\"}}", n % 3),
        None => "{}".to_owned(),
    }
}

fn upsert(id: u32, n: Option<i64>) -> String {
    let document = document(n);
    format!(
        "INSERT INTO b (id, doc) VALUES ('{id}', '{document}')
         ON CONFLICT (id) DO UPDATE SET doc = excluded.doc"
    )
}

/// Returns the rows of a query, each with its values separated by `|`.
async fn rows(client: &Client, query: &str) -> Vec<String> {
    let rows = sql::simple(client, query).await;
    let rows = rows.unwrap_or_else(|error| panic!("{query}: {error:?}"));
    let text = |row: Vec<Option<String>>| {
        row.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>().join("|")
    };
    rows.into_iter().map(text).collect()
}

/// Compares the results of scans, and the documents, with a model.
async fn compare(client: &Client, model: &Documents, context: &str) {
    let mut entries: Vec<(i64, String)> =
        model.iter().filter_map(|(id, n)| Some(((*n)?, id.to_string()))).collect();
    entries.sort();
    let text = |(n, id): &(i64, String)| format!("{n}|{id}|p{}", n % 3);
    let expected: Vec<_> = entries.iter().map(text).collect();
    let ascending = rows(client, "SELECT n, id, pad FROM by_n ORDER BY n").await;
    assert_eq!(ascending, expected, "{context}");
    let mut last = entries.clone();
    last.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
    let expected: Vec<_> = last.iter().take(7).map(text).collect();
    let descending = rows(client, "SELECT n, id, pad FROM by_part ORDER BY n DESC LIMIT 7").await;
    assert_eq!(descending, expected, "{context}");
    let end = |entry: Option<&(i64, String)>| entry.map(|(n, _)| n.to_string());
    let end = |entry| end(entry).unwrap_or_default();
    let expected = format!("{}|{}|{}", entries.len(), end(entries.first()), end(entries.last()));
    let found = rows(client, "SELECT count(*), min(n), max(n) FROM by_part").await;
    assert_eq!(found, [expected], "{context}");
    let mut distinct: Vec<String> = entries.iter().map(|(n, _)| n.to_string()).collect();
    distinct.dedup();
    let found = rows(client, "SELECT DISTINCT n FROM by_n ORDER BY n").await;
    assert_eq!(found, distinct, "{context}");
    let found = rows(client, "SELECT count(*) FROM ids").await;
    assert_eq!(found, [model.len().to_string()], "{context}");
    let ids: Vec<String> = (0..30).map(|id| format!("'{id}'")).collect();
    let documents = format!("SELECT id, doc FROM b WHERE id IN ({})", ids.join(","));
    let mut found = rows(client, &documents).await;
    let mut expected: Vec<String> =
        model.iter().map(|(id, n)| format!("{id}|{}", document(*n))).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "{context}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_sees_its_changes_so_far_and_others_see_them_with_the_commit() {
    let (_cluster, client, other) = indexed().await;
    write_and_compare(&client, &other).await;
}

/// The results are equal if each commit enters the indexes from the late-commit stores.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_that_are_not_sent_again_show_the_same() {
    let (cluster, client, other) = indexed_where(Some(1)).await;
    write_and_compare(&client, &other).await;
    let mut entered = 0.0;
    for node in 200..203 {
        let labels = format!("node=\"{node}\"");
        entered += cluster.figure("late_commit_entered_total", &labels).await;
    }
    assert!(entered > 6.0, "{entered} commits were not sent again");
}

/// Writes in transactions, and compares what these and other sessions see with a model.
async fn write_and_compare(client: &Client, other: &Client) {
    let mut random = fastrand::Rng::with_seed(number_from_env("SEED", 7));
    let mut committed = Documents::new();
    for round in 0..12 {
        sql::run(client, "BEGIN").await;
        let (mut now, mut saved) = (committed.clone(), Vec::new());
        for step in 0..random.usize(1..9) {
            let context = format!("round {round}, step {step}");
            match random.u8(0..10) {
                0 => {
                    sql::run(client, "SAVEPOINT s").await;
                    saved.push(now.clone());
                }
                1 if !saved.is_empty() => {
                    sql::run(client, "ROLLBACK TO s").await;
                    now = saved.last().cloned().unwrap_or_default();
                }
                2..4 => {
                    let id = random.u32(0..30);
                    let deleted =
                        client.execute(&format!("DELETE FROM b WHERE id = '{id}'"), &[]).await;
                    let expected = u64::from(now.remove(&id).is_some());
                    assert_eq!(deleted.expect("DELETE"), expected, "{context}");
                }
                _ => {
                    let id = random.u32(0..30);
                    let n = random.bool().then(|| random.i64(0..12));
                    sql::run(client, &upsert(id, n)).await;
                    now.insert(id, n);
                }
            }
            compare(client, &now, &context).await;
            if step == 2 {
                compare(other, &committed, &format!("{context}, another session")).await;
            }
        }
        if random.u8(0..4) > 0 {
            sql::run(client, "COMMIT").await;
            committed = now;
        } else {
            sql::run(client, "ROLLBACK").await;
        }
        compare(other, &committed, &format!("round {round}, after its end")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_reads_one_moment_and_the_first_committer_wins() {
    let (_cluster, client, other) = indexed().await;
    for id in 0..6 {
        sql::run(&client, &upsert(id, Some(i64::from(id)))).await;
    }
    let moment: Documents = (0..6).map(|id| (id, Some(i64::from(id)))).collect();
    for change in
        [upsert(1, Some(100)), "DELETE FROM b WHERE id = '1'".to_owned(), upsert(9, Some(1))]
    {
        sql::run(&client, "BEGIN").await;
        compare(&client, &moment, "its first read").await;
        sql::run(&other, &change).await;
        compare(&client, &moment, "somebody else has changed a document").await;
        let id = if change.contains("'9'") { 9 } else { 1 };
        sql::run(&client, &upsert(id, Some(5))).await;
        assert_eq!(sql::sqlstate(&client, "COMMIT").await, "40001", "{change}");
        assert_eq!(sql::value(&client, "SELECT 1").await, "1", "the transaction is over");
        sql::run(&other, &upsert(1, Some(1))).await;
        sql::run(&other, "DELETE FROM b WHERE id = '9'").await;
        compare(&client, &moment, "nothing of it is there").await;
    }
    // A transaction that has read nothing replaces the writes of others, and has no conflict with documents that it
    // does not change.
    sql::run(&client, "BEGIN").await;
    sql::run(&client, &upsert(2, Some(22))).await;
    sql::run(&other, &upsert(2, Some(7))).await;
    sql::run(&client, "COMMIT; BEGIN").await;
    assert_eq!(sql::value(&client, "SELECT n FROM by_n WHERE id = '2'").await, "22");
    sql::run(&other, &upsert(3, Some(33))).await;
    sql::run(&client, &upsert(2, Some(2))).await;
    sql::run(&client, "COMMIT").await;
    assert_eq!(sql::value(&other, "SELECT sum(n) FROM by_n").await, "45");
    // A duplicate is found in the transaction's own view.
    let insert = "INSERT INTO b (id, doc) VALUES ('50', '{}')";
    sql::run(&client, &format!("BEGIN; {insert}")).await;
    assert_eq!(sql::sqlstate(&client, insert).await, "23505");
    sql::run(&client, "ROLLBACK").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_connection_rolls_back() {
    let (cluster, client, other) = indexed().await;
    let lost = cluster.sql().await;
    sql::run(&lost, &format!("BEGIN; {}", upsert(1, Some(1)))).await;
    assert_eq!(sql::value(&lost, "SELECT count(*) FROM by_n").await, "1");
    drop(lost);
    compare(&other, &Documents::new(), "nothing is committed").await;
    sql::run(&client, "INSERT INTO b (id, doc) VALUES ('1', '{}')").await;
    assert_eq!(sql::value(&other, "SELECT count(*) FROM ids").await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_count_open_and_ended_transactions() {
    const PROJECTOR: &str = "node=\"100\"";
    let (cluster, client, other) = indexed().await;
    let figure = async |name: &str| cluster.figure(name, PROJECTOR).await;
    let rolled_back = async |reason: &str| {
        let labels = format!("{PROJECTOR},reason=\"{reason}\"");
        cluster.figure("transactions_rolled_back_total", &labels).await
    };
    let on_indexers = async |name: &str| {
        let mut sum = 0.0;
        for node in 200..203 {
            sum += cluster.figure(name, &format!("node=\"{node}\"")).await;
        }
        sum
    };
    for name in
        ["open", "changes_bytes", "oldest_age_seconds", "committed_total", "conflicts_total"]
    {
        assert_eq!(figure(&format!("transactions_{name}")).await, 0.0, "{name}");
    }
    sql::run(&client, &format!("BEGIN; {}", upsert(1, Some(1)))).await;
    sql::run(&other, &format!("BEGIN; {}", upsert(2, Some(2)))).await;
    assert_eq!(sql::value(&client, "SELECT count(*) FROM by_n").await, "1");
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    assert_eq!(figure("transactions_open").await, 2.0);
    assert!(figure("transactions_changes_bytes").await > 100.0);
    let age = figure("transactions_oldest_age_seconds").await;
    assert!((0.02..60.0).contains(&age), "{age} s");
    eventually("the indexers know both transactions", async || {
        let (open, bytes) =
            (on_indexers("late_commit_open").await, on_indexers("late_commit_bytes").await);
        (open == 6.0 && bytes > 1000.0).then_some(())
    })
    .await;
    sql::run(&client, "COMMIT").await;
    sql::run(&other, "ROLLBACK").await;
    sql::run(&client, "BEGIN; SELECT count(*) FROM by_n").await;
    sql::run(&other, &upsert(1, Some(3))).await;
    sql::run(&client, &upsert(1, Some(4))).await;
    assert_eq!(sql::sqlstate(&client, "COMMIT").await, "40001");
    assert_eq!(figure("transactions_committed_total").await, 1.0);
    assert_eq!(figure("transactions_conflicts_total").await, 1.0);
    // ROLLBACK informs the projector after its answer.
    eventually("nothing is open any more", async || {
        let is_told = rolled_back("abort").await == 1.0 && figure("transactions_open").await == 0.0;
        (is_told && on_indexers("late_commit_open").await == 0.0).then_some(())
    })
    .await;
    assert_eq!(rolled_back("forgotten").await, 0.0);
    assert_eq!(figure("transactions_changes_bytes").await, 0.0);
    assert_eq!(figure("transactions_oldest_age_seconds").await, 0.0);
    assert_eq!(on_indexers("late_commit_given_up_total").await, 0.0);
}

/// Transfers between accounts keep their sum, in each transaction that reads them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transfers_keep_the_sum_of_all_accounts() {
    const ACCOUNTS: u32 = 12;
    let (cluster, client, _other) = indexed().await;
    for id in 0..ACCOUNTS {
        sql::run(&client, &upsert(id, Some(100))).await;
    }
    let (done, conflicts) = (AtomicU64::new(0), AtomicU64::new(0));
    let transfer = async |n: u64| {
        let client = cluster.sql().await;
        let mut random = fastrand::Rng::with_seed(number_from_env("SEED", 7) + n);
        for _ in 0..25 {
            let (from, to) = (random.u32(0..ACCOUNTS), random.u32(0..ACCOUNTS));
            if from == to {
                continue;
            }
            sql::run(&client, "BEGIN").await;
            let read = format!("SELECT id, doc FROM b WHERE id IN ('{from}', '{to}')");
            let accounts = sql::simple(&client, &read).await.expect("accounts");
            let balance = |id: u32| {
                let row = accounts.iter().find(|row| row[0].as_deref() == Some(&*id.to_string()));
                let text = row.and_then(|row| row[1].clone()).expect("an account");
                let digits: String = text.chars().skip(5).take_while(|c| *c != ',').collect();
                digits.parse::<i64>().expect("a balance")
            };
            let amount = random.i64(1..20);
            sql::run(&client, &upsert(from, Some(balance(from) - amount))).await;
            if random.bool() {
                sql::run(&client, "SAVEPOINT s").await;
                sql::run(&client, &upsert(to, Some(balance(to) + 1_000_000))).await;
                sql::run(&client, "ROLLBACK TO s").await;
            }
            sql::run(&client, &upsert(to, Some(balance(to) + amount))).await;
            let sum = sql::value(&client, "SELECT sum(n) FROM by_part").await;
            assert_eq!(sum, "1200", "its own view");
            match sql::sqlstate(&client, "COMMIT").await.as_str() {
                "" => done.fetch_add(1, Ordering::Relaxed),
                "40001" => conflicts.fetch_add(1, Ordering::Relaxed),
                other => panic!("COMMIT: {other}"),
            };
        }
    };
    let watch = async {
        let client = cluster.sql().await;
        sql::run(&client, "SET consistency = 'request_plus'").await;
        for n in 0..40 {
            let index = ["by_n", "by_part"][n % 2];
            sql::run(&client, "BEGIN READ ONLY").await;
            for _ in 0..2 {
                let found = rows(&client, &format!("SELECT sum(n), count(*) FROM {index}")).await;
                assert_eq!(found, ["1200|12"], "{index}");
            }
            sql::run(&client, "COMMIT").await;
        }
    };
    futures::join!(transfer(1), transfer(2), transfer(3), transfer(4), watch);
    let (done, conflicts) = (done.into_inner(), conflicts.into_inner());
    assert!(done > 30 && conflicts > 0, "{done} transfers, {conflicts} conflicts");
    assert_eq!(sql::value(&client, "SELECT sum(n) FROM by_n").await, "1200");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_names_the_bucket_that_was_dropped_meanwhile() {
    let (_cluster, client, other) = indexed().await;
    sql::run(&client, "BEGIN").await;
    sql::run(&client, &upsert(1, Some(1))).await;
    sql::run(&other, "DROP BUCKET b").await;
    let error = client.simple_query("COMMIT").await.expect_err("it is gone");
    let error = error.as_db_error().expect("an answer").message().to_owned();
    assert!(error.contains("bucket \"b\" was dropped"), "{error}");
}
