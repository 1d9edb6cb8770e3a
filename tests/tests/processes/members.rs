//! Tests coordinators that are added and removed while the cluster serves: a member that lost its
//! disk is replaced, and the other processes continue although every member in their settings was
//! replaced.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests run the product as processes on real directories"
)]

use std::time::Duration;

use tests::harness::processes::Processes;
use tests::harness::{eventually, sql};
use tokio_postgres::Client;

/// Runs a statement that must fail; returns the message and the hint of its error.
async fn refused(client: &Client, statement: &str) -> String {
    let error = client.simple_query(statement).await.expect_err("it must be refused");
    let error = error.as_db_error().unwrap_or_else(|| panic!("{statement}: {error:?}"));
    format!("{} {}", error.message(), error.hint().unwrap_or_default())
}

/// Runs a statement, and retries while leadership changes.
async fn run(client: &Client, statement: &str) {
    let ran = || async { sql::simple(client, statement).await.ok() };
    eventually(statement, ran).await;
}

/// Waits until SHOW NODES lists a coordinator with a given state and note.
async fn is_told(client: &Client, id: u64, state: &str, note: &str) {
    eventually(&format!("coordinator {id} is {state}, {note:?}"), || async {
        let nodes = sql::simple(client, "SHOW NODES").await.ok()?;
        let row = nodes.into_iter().find(|row| row[0] == Some(id.to_string()))?;
        let has = |text: &str| row.iter().flatten().any(|told| told.starts_with(text));
        (has(state) && has(note)).then_some(())
    })
    .await;
}

async fn insert(client: &Client, numbers: std::ops::Range<u64>) {
    let rows: Vec<_> = numbers.map(|n| format!("('d{n}', '{{\"n\":{n}}}')")).collect();
    // The second time, a row is there already.
    let again = "ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc";
    run(client, &format!("INSERT INTO b (id, doc) VALUES {} {again}", rows.join(", "))).await;
}

fn add(processes: &Processes, id: u64) -> String {
    format!("ADD COORDINATOR '{id}' AT '{}'", processes.address(id))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_lost_its_disk_is_replaced_while_the_cluster_serves() {
    let mut processes = Processes::start(&[201, 202]).await;
    let client = processes.sql().await;
    sql::run(&client, "CREATE BUCKET b WITH (vbuckets = 8); SET consistency = 'request_plus'")
        .await;
    insert(&client, 0..30).await;
    sql::run(&client, "CREATE INDEX i ON b (n::int8) WITH (slices = 2)").await;

    processes.kill(2);
    processes.remove_data(2);
    // The killed coordinator is still a voter; the others are a majority.
    let without_majority = refused(&client, "REMOVE COORDINATOR '3'").await;
    assert!(without_majority.contains("majority") && without_majority.contains("ADD COORDINATOR"));
    processes.run(4);
    sql::run(&client, &add(&processes, 4)).await;
    is_told(&client, 4, "alive", "voter").await;
    sql::run(&client, "REMOVE COORDINATOR '2'").await;
    is_told(&client, 2, "removed", "").await;
    insert(&client, 30..60).await;
    assert_eq!(sql::value(&client, "SELECT count(*) FROM i").await, "60");

    // The lost member stays out, with its old number and without its disk.
    let told = processes.try_run(2).expect_err("its number is used up");
    assert!(told.contains("was removed") && told.contains("ADD COORDINATOR"), "{told}");

    // Two of three old members are down now: 3 and 4 are a majority of 1, 3 and 4.
    processes.kill(1);
    run(&client, "CREATE INDEX j ON b (n::int8 DESC)").await;
    insert(&client, 60..70).await;
    assert_eq!(sql::value(&client, "SELECT count(*) FROM i").await, "70");

    // All members of the settings are replaced. The router and the indexers have run all the while.
    processes.run(5);
    sql::run(&client, &add(&processes, 5)).await;
    sql::run(&client, "REMOVE COORDINATOR '1'").await;
    processes.run(6);
    sql::run(&client, &add(&processes, 6)).await;
    sql::run(&client, "REMOVE COORDINATOR '3'").await;
    assert_eq!(processes.ended(3).await, Some(1), "it learns that it was removed");
    run(&client, "CREATE INDEX k ON b (n::int8)").await;
    insert(&client, 70..80).await;
    for index in ["i", "j", "k"] {
        let count = format!("SELECT count(*) FROM {index}");
        assert_eq!(sql::value(&client, &count).await, "80", "{index}");
    }
    let nodes = sql::simple(&client, "SHOW NODES").await.expect("the nodes");
    let silent: Vec<_> = nodes.iter().filter(|row| row[4].as_deref() == Some("silent")).collect();
    assert!(silent.is_empty(), "{silent:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_is_removed_and_the_last_one_is_not() {
    let mut processes = Processes::start(&[201]).await;
    let client = processes.sql().await;
    sql::run(&client, "CREATE BUCKET b WITH (vbuckets = 8)").await;
    let leader = processes.leader().await;
    sql::run(&client, &format!("REMOVE COORDINATOR '{leader}'")).await;
    assert_eq!(processes.ended(leader).await, Some(1));
    insert(&client, 0..10).await;
    run(&client, "CREATE INDEX i ON b (n::int8)").await;

    let taken = refused(&client, "ADD COORDINATOR '201' AT '127.0.0.1:1'").await;
    assert!(taken.contains("indexer"), "{taken}");
    let again = refused(&client, &format!("ADD COORDINATOR '{leader}' AT '127.0.0.1:1'")).await;
    assert!(again.contains("not given again") && again.contains("new --id"), "{again}");
    let nobody = refused(&client, "REMOVE COORDINATOR '77'").await;
    assert!(nobody.contains("not a coordinator") && nobody.contains("SHOW NODES"), "{nobody}");
    let elsewhere = refused(&client, "ADD COORDINATOR '4' AT '0.0.0.0:7000'").await;
    assert!(elsewhere.contains("--peer-listen"), "{elsewhere}");
    let by_node = refused(&client, &format!("REMOVE NODE '{}'", 1 + leader % 3)).await;
    assert!(by_node.contains("REMOVE COORDINATOR"), "{by_node}");

    let others: Vec<u64> = (1..=3).filter(|id| *id != leader).collect();
    sql::run(&client, &format!("REMOVE COORDINATOR '{}'", others[0])).await;
    let last = refused(&client, &format!("REMOVE COORDINATOR '{}'", others[1])).await;
    assert!(last.contains("last one") && last.contains("ADD COORDINATOR"), "{last}");

    // A member that does not run yet is added, and votes once it has started.
    let began = std::time::Instant::now();
    let address = processes.reserve(4);
    sql::run(&client, &format!("ADD COORDINATOR '4' AT '{address}'")).await;
    assert!(began.elapsed() < Duration::from_secs(40), "the wait is bounded");
    is_told(&client, 4, "silent", "learner").await;
    processes.run(4);
    is_told(&client, 4, "alive", "voter").await;
    insert(&client, 10..20).await;
    assert_eq!(sql::value(&client, "SELECT count(*) FROM i").await, "20");
}

/// One live address in the settings is sufficient after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_live_address_in_the_settings_is_enough_after_a_restart() {
    let mut processes = Processes::start(&[201]).await;
    let client = processes.sql().await;
    sql::run(&client, "CREATE BUCKET b WITH (vbuckets = 8)").await;
    insert(&client, 0..10).await;
    sql::run(&client, "CREATE INDEX i ON b (n::int8)").await;
    for (new, old) in [(4, 1), (5, 2)] {
        processes.run(new);
        sql::run(&client, &add(&processes, new)).await;
        sql::run(&client, &format!("REMOVE COORDINATOR '{old}'")).await;
        assert_eq!(processes.ended(old).await, Some(1));
    }
    // Of the settings (1, 2 and 3) only 3 is a member.
    for id in [201, 4, 5, 3] {
        processes.kill(id);
    }
    for id in [3, 4, 5, 201] {
        processes.run(id);
    }
    run(&client, "CREATE INDEX j ON b (n::int8 DESC)").await;
    processes.kill(3);
    insert(&client, 10..20).await;
    run(&client, "CREATE INDEX k ON b (n::int8)").await;
    eventually("all is shown", || async {
        let shown = sql::simple(&client, "SELECT count(*) FROM k").await.ok()?;
        (shown[0][0].as_deref() == Some("20")).then_some(())
    })
    .await;
}
