//! Tests statements that run while members fail and return: a replica serves the scans of a dead
//! indexer, another coordinator leads, and no entry is lost or doubled.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is a client of the product: real clocks, sockets and tasks"
)]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use proto::model::ids::NodeId;
use tests::harness::{TestCluster, eventually, sql};
use tokio_postgres::Client;

/// The node id of the first indexer.
const INDEXER: NodeId = NodeId(200);

async fn insert(client: &Client, from: u32, to: u32) {
    let lines: String = (from..to).map(|n| format!("{{\"id\":{n},\"n\":{n}}}\n")).collect();
    let stored = sql::copy_in(client, "COPY b FROM STDIN", lines.as_bytes(), 4000).await;
    assert_eq!(stored.expect("COPY"), u64::from(to - from));
}

/// Returns the numbers in an index, and asserts that they are distinct.
async fn numbers(client: &Client, index: &str) -> BTreeSet<u32> {
    let rows = sql::simple(client, &format!("SELECT n FROM {index} ORDER BY n")).await;
    let rows = rows.unwrap_or_else(|error| panic!("{index}: {error:?}"));
    let number = |row: &Vec<Option<String>>| row[0].as_ref().and_then(|n| n.parse().ok());
    let numbers: Vec<u32> = rows.iter().map(|row| number(row).expect("a number")).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{index}: in order, and each once");
    numbers.into_iter().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_serves_the_scans_of_a_dead_indexer() {
    let mut cluster = TestCluster::start(1, 3).await;
    let client = cluster.sql().await;
    sql::run(
        &client,
        "CREATE BUCKET b; SET consistency = 'request_plus';
         CREATE INDEX copied ON b (n::int8) WITH (slices = 6, replicas = 1);
         CREATE INDEX lone ON b (n::int8) WITH (slices = 6)",
    )
    .await;
    insert(&client, 0, 3000).await;
    assert_eq!(numbers(&client, "copied").await, (0..3000).collect());
    cluster.cluster_mut().kill_indexer(INDEXER);
    let began = Instant::now();
    assert_eq!(numbers(&client, "copied").await, (0..3000).collect());
    insert(&client, 3000, 4000).await;
    assert_eq!(numbers(&client, "copied").await, (0..4000).collect());
    assert!(began.elapsed() < Duration::from_secs(10), "with one node gone: {:?}", began.elapsed());
    assert_eq!(
        sql::sqlstate(&client, "SELECT * FROM lone").await,
        "57P03",
        "no node has its slices"
    );
    what_is_lost_is_named_at_once(&client).await;
    cluster.cluster_mut().restart_indexer(INDEXER).await.expect("it starts from its data");
    let client = &client;
    eventually("the index without copies serves again", || async move {
        let rows = sql::simple(client, "SELECT count(*) FROM lone").await.ok()?;
        (rows[0][0].as_deref() == Some("4000")).then_some(())
    })
    .await;
    assert_eq!(numbers(client, "lone").await, (0..4000).collect());
    assert_eq!(numbers(client, "copied").await, (0..4000).collect());
}

/// Once the leader counts the dead node as silent, a scan that needs it fails immediately, and its
/// error names the index, the slice and the node.
async fn what_is_lost_is_named_at_once(client: &Client) {
    let node = INDEXER.0.to_string();
    eventually("SHOW NODES calls the dead node silent", || async {
        let nodes = sql::simple(client, "SHOW NODES").await.ok()?;
        let state = nodes.iter().find(|row| row[0].as_ref() == Some(&node))?[4].clone();
        (state.as_deref() == Some("silent")).then_some(())
    })
    .await;
    let slices = sql::simple(client, "SHOW SLICES").await.expect("the slices");
    for slice in slices {
        let expected = if slice[3].as_ref() == Some(&node) { "silent" } else { "ready" };
        assert_eq!(slice[4].as_deref(), Some(expected), "{slice:?}");
    }
    eventually("the router hears of it with a heartbeat", || async {
        let began = Instant::now();
        let error = client.simple_query("SELECT * FROM lone").await.expect_err("a slice is lost");
        let text = error.as_db_error().expect("an answer").message().to_owned();
        let named = ["\"lone\"", "slice ", &format!("node {node}"), "silent"];
        let is_named = named.iter().all(|part| text.contains(part));
        (is_named && began.elapsed() < Duration::from_secs(1)).then_some(())
    })
    .await;
    assert_eq!(numbers(client, "copied").await, (0..4000).collect(), "a replica still serves");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ddl_continues_under_the_next_leader() {
    let mut cluster = TestCluster::start(3, 2).await;
    let client = cluster.sql().await;
    sql::run(
        &client,
        "CREATE BUCKET b; SET consistency = 'request_plus'; CREATE INDEX i0 ON b (n::int8)",
    )
    .await;
    let mut gone = None;
    for round in 1..4u32 {
        insert(&client, (round - 1) * 500, round * 500).await;
        if let Some(member) = gone {
            cluster
                .cluster_mut()
                .restart_coordinator(member)
                .await
                .expect("it starts from its data");
        }
        let here = &cluster;
        let leader = eventually("a leader", || here.cluster().leader()).await;
        cluster.cluster_mut().kill_coordinator(leader);
        gone = Some(leader);
        // The statement is sent at once: it waits for the next leader and is executed once.
        let created = format!("CREATE INDEX i{round} ON b (n::int8)");
        sql::run(&client, &created).await;
        assert_eq!(sql::sqlstate(&client, &created).await, "42P07");
        for index in 0..=round {
            let found = numbers(&client, &format!("i{index}")).await;
            assert_eq!(found, (0..round * 500).collect(), "i{index} in round {round}");
        }
    }
    let indexes = sql::simple(&client, "SHOW INDEXES").await.expect("indexes");
    assert_eq!(indexes.len(), 4);
}
