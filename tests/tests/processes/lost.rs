//! Tests the loss of the only copies of slices, from the operator's side: an indexer fails and
//! loses its directory, and others rebuild its slices from the documents, after
//! `REMOVE NODE … FORCE` or automatically after a time. Meanwhile a writer moves amounts between
//! accounts and scanners read: each answer has all rows of one epoch and is no older than an
//! earlier one, and each error is 57P03.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests run the product as processes: real clocks, sockets and tasks"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use proto::model::ids::NodeId;
use proto::rpc::api::Directory;
use tests::harness::processes::Processes;
use tests::harness::{connect, eventually, sql};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

const ACCOUNTS: u64 = 2_000;
const AMOUNT: i64 = 1_000;
/// The minimum numbers of answers of a scanner, and of writes. On a slow machine the traffic
/// continues until they are reached.
const SCANS_MIN: u64 = 20;
const WRITES_MIN: u64 = 100;
/// The account that counts the writes; it is not part of the sum.
const COUNTER: u64 = ACCOUNTS;

/// The traffic, which runs until it is stopped.
struct Traffic {
    stop: Arc<AtomicBool>,
    /// The number of acknowledged writes.
    written: Arc<AtomicU64>,
    writer: JoinHandle<BTreeMap<u64, i64>>,
    scanners: Vec<JoinHandle<(u64, BTreeSet<String>)>>,
}

impl Traffic {
    fn begin(address: SocketAddr) -> Self {
        let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let scanners = ["any", "request_plus"].map(|consistency| {
            tokio::spawn(scan(address, consistency, Arc::clone(&stop), Arc::clone(&written)))
        });
        let writer = tokio::spawn(write(address, Arc::clone(&stop), Arc::clone(&written)));
        Self { stop, written, writer, scanners: scanners.into() }
    }

    /// Ends the traffic; returns the accounts and the messages of the errors of scans.
    async fn end(self) -> (BTreeMap<u64, i64>, BTreeSet<String>) {
        self.stop.store(true, Ordering::SeqCst);
        let accounts = self.writer.await.expect("the writer");
        let mut errors = BTreeSet::new();
        for scanner in self.scanners {
            let ended = tokio::time::timeout(Duration::from_secs(120), scanner).await;
            let (scans, met) = ended.expect("scans find all rows again").expect("a scanner");
            assert!(scans >= SCANS_MIN);
            errors.extend(met);
        }
        let written = self.written.load(Ordering::SeqCst);
        println!("{written} writes; errors: {errors:#?}");
        assert!(written >= WRITES_MIN);
        (accounts, errors)
    }
}

fn upsert(rows: &[(u64, i64)]) -> String {
    let row = |(id, amount): &(u64, i64)| {
        format!("('a{id}', '{{\"account\":{id},\"amount\":{amount}}}')")
    };
    let rows: Vec<_> = rows.iter().map(row).collect();
    format!(
        "INSERT INTO bank VALUES {} ON CONFLICT (id) DO UPDATE SET doc = excluded.doc",
        rows.join(", ")
    )
}

/// Moves amounts between accounts. Each statement is atomic, so the sum never changes.
async fn write(
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    written: Arc<AtomicU64>,
) -> BTreeMap<u64, i64> {
    let client = connect(address).await;
    let mut accounts: BTreeMap<u64, i64> = (0..ACCOUNTS).map(|id| (id, AMOUNT)).collect();
    accounts.insert(COUNTER, 0);
    let mut random = fastrand::Rng::with_seed(4);
    while !stop.load(Ordering::SeqCst) || written.load(Ordering::SeqCst) < WRITES_MIN {
        let (from, to) = (random.u64(..ACCOUNTS), random.u64(..ACCOUNTS));
        if from == to {
            continue;
        }
        let (amount, count) = (random.i64(1..50), accounts[&COUNTER] + 1);
        let rows =
            [(from, accounts[&from] - amount), (to, accounts[&to] + amount), (COUNTER, count)];
        // Writes need no indexer.
        sql::run(&client, &upsert(&rows)).await;
        accounts.extend(rows);
        written.store(count as u64, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    accounts
}

/// Scans the whole index repeatedly. Returns the number of answers, and the messages of the errors.
async fn scan(
    address: SocketAddr,
    consistency: &str,
    stop: Arc<AtomicBool>,
    written: Arc<AtomicU64>,
) -> (u64, BTreeSet<String>) {
    let client = connect(address).await;
    sql::run(&client, &format!("SET consistency = '{consistency}'")).await;
    let (mut scans, mut last, mut errors) = (0, 0, BTreeSet::new());
    while !stop.load(Ordering::SeqCst) || scans < SCANS_MIN {
        let acknowledged = written.load(Ordering::SeqCst) as i64;
        match sql::simple(&client, "SELECT account, amount FROM by_amount").await {
            Ok(rows) => {
                let count = check(&rows);
                assert!(count >= last, "{count} writes are shown after {last}");
                let is_present = consistency == "any" || count >= acknowledged;
                assert!(is_present, "{count} of {acknowledged} acknowledged writes are shown");
                (scans, last) = (scans + 1, count);
            }
            Err(error) => {
                let error = error.as_db_error().expect("an error of the server");
                assert_eq!(error.code().code(), "57P03", "{error:?}");
                errors.insert(error.message().to_owned());
            }
        }
    }
    (scans, errors)
}

/// Checks that a scan has returned every account once and the right sum; returns the number of
/// writes that the scan includes.
fn check(rows: &sql::Rows) -> i64 {
    let number = |cell: &Option<String>| cell.as_ref().expect("no NULL").parse::<i64>();
    let numbers = rows.iter().map(|row| (number(&row[0]), number(&row[1])));
    let shown: BTreeMap<i64, i64> =
        numbers.map(|(id, amount)| (id.expect("a number"), amount.expect("a number"))).collect();
    assert_eq!((rows.len(), shown.len()), (ACCOUNTS as usize + 1, ACCOUNTS as usize + 1));
    let count = shown[&(COUNTER as i64)];
    assert_eq!(shown.values().sum::<i64>() - count, ACCOUNTS as i64 * AMOUNT);
    count
}

/// Creates a bucket, and an index whose slices have one copy each.
async fn fill(client: &Client) {
    sql::run(client, "CREATE BUCKET bank WITH (vbuckets = 16)").await;
    sql::run(
        client,
        "CREATE INDEX by_amount ON bank (amount::int8, account::int8) WITH (slices = 6)",
    )
    .await;
    let all: Vec<_> = (0..ACCOUNTS).map(|id| (id, AMOUNT)).chain([(COUNTER, 0)]).collect();
    for rows in all.chunks(500) {
        sql::run(client, &upsert(rows)).await;
    }
    sql::run(client, "SET consistency = 'request_plus'").await;
    check(&sql::simple(client, "SELECT account, amount FROM by_amount").await.expect("rows"));
}

/// Returns the nodes of the slices of an index; `None` unless all slices are ready.
async fn ready_on(client: &Client, index: &str) -> Option<BTreeSet<u64>> {
    let rows = sql::simple(client, "SHOW SLICES").await.ok()?;
    let of_index: Vec<_> = rows.iter().filter(|row| row[0].as_deref() == Some(index)).collect();
    let is_ready = of_index.iter().all(|row| row[4].as_deref() == Some("ready"));
    let node = |row: &&Vec<Option<String>>| row[3].as_ref().and_then(|node| node.parse().ok());
    (is_ready && !of_index.is_empty()).then(|| of_index.iter().filter_map(node).collect())
}

async fn state_of_node(client: &Client, id: u64) -> Option<String> {
    let nodes = sql::simple(client, "SHOW NODES").await.ok()?;
    let row = nodes.into_iter().find(|row| row[0] == Some(id.to_string()))?;
    row[4].clone()
}

async fn silent(client: &Client, id: u64) {
    eventually("the dead indexer is silent", || async {
        state_of_node(client, id).await.filter(|state| state.starts_with("silent"))
    })
    .await;
}

/// Asserts that the index contains exactly the writer's accounts.
async fn shows(client: &Client, accounts: &BTreeMap<u64, i64>) {
    sql::run(client, "SET consistency = 'request_plus'").await;
    let mut rows =
        sql::simple(client, "SELECT account, amount FROM by_amount").await.expect("rows");
    let row = |(id, amount): (&u64, &i64)| vec![Some(id.to_string()), Some(amount.to_string())];
    let mut expected: sql::Rows = accounts.iter().map(row).collect();
    rows.sort();
    expected.sort();
    assert_eq!(rows, expected);
}

async fn refused(client: &Client, statement: &str, state: &str, word: &str, hint: &str) {
    let error = client.simple_query(statement).await.expect_err(statement);
    let error = error.as_db_error().unwrap_or_else(|| panic!("{statement}: {error:?}"));
    assert_eq!(error.code().code(), state, "{error:?}");
    assert!(error.message().contains(word), "{statement} must say {word:?}: {error:?}");
    assert!(error.hint().unwrap_or_default().contains(hint), "{statement}: {error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn force_rebuilds_the_slices_of_a_lost_indexer_while_writes_go_on() {
    let mut cluster = Processes::start(&[201, 202, 203]).await;
    let client = cluster.sql().await;
    fill(&client).await;
    assert_eq!(ready_on(&client, "by_amount").await, Some([201, 202, 203].into()));
    let traffic = Traffic::begin(cluster.sql_address());
    tokio::time::sleep(Duration::from_secs(1)).await;
    refused(&client, "REMOVE NODE 201 FORCE", "55000", "201 is alive", "DRAIN NODE").await;
    cluster.kill(201);
    cluster.remove_data(201);
    silent(&client, 201).await;
    refused(&client, "REMOVE NODE 201", "22023", "has the only copy", "FORCE").await;
    refused(&client, "REMOVE NODE 101 FORCE", "22023", "bank", "never documents").await;
    // A new index is not placed on the dead node, so its build ends.
    sql::run(&client, "CREATE INDEX late ON bank (account::int8) WITH (slices = 4)").await;
    assert_eq!(ready_on(&client, "late").await, Some([202, 203].into()));
    sql::run(&client, "REMOVE NODE 201 FORCE").await;
    let left = eventually("the slices are rebuilt", || ready_on(&client, "by_amount")).await;
    assert_eq!(left, [202, 203].into());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (accounts, errors) = traffic.end().await;
    shows(&client, &accounts).await;
    let names_reason = |error: &String| {
        let names = error.contains("\"by_amount\"") || error.contains("slice");
        names && (error.contains("silent") || error.contains("rebuilds"))
    };
    assert!(errors.iter().any(names_reason), "{errors:?}");
    // The number may be used again by a node with an empty directory.
    cluster.run(201);
    cluster.joined(&client, 201).await;
    shows(&client, &accounts).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slices_are_rebuilt_after_a_time_and_a_node_that_comes_back_drops_its_own() {
    let mut cluster = Processes::start_with(&[1], &[201, 202, 203]).await;
    cluster.kill(1);
    cluster.run_with(1, &["--lost-after-s", "7"]);
    cluster.leader().await;
    let client = cluster.sql().await;
    fill(&client).await;
    let traffic = Traffic::begin(cluster.sql_address());
    tokio::time::sleep(Duration::from_secs(1)).await;
    cluster.kill(202);
    let left = eventually("the slices are rebuilt elsewhere", || async {
        ready_on(&client, "by_amount").await.filter(|nodes| !nodes.contains(&202))
    });
    assert_eq!(left.await, [201, 203].into());
    assert!(state_of_node(&client, 202).await.is_some_and(|state| state.starts_with("silent")));
    cluster.run(202);
    eventually("node 202 has dropped what others have now", || async {
        let coordinator = Arc::clone(&cluster.directory().coordinator_member(NodeId(1)).ok()?);
        let nodes = coordinator.status().await.ok()?.nodes;
        let back = nodes.iter().find(|node| node.node == NodeId(202) && node.silent_ms < 5_000)?;
        back.slices.is_empty().then_some(())
    })
    .await;
    assert_eq!(ready_on(&client, "by_amount").await, Some([201, 203].into()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (accounts, _) = traffic.end().await;
    shows(&client, &accounts).await;
    // No statement has requested it, and the coordinator's audit records it anyway.
    let audit = std::fs::read_to_string(cluster.data_of(1).join("audit.jsonl")).expect("an audit");
    let facts = audit.lines().map(|line| serde_json::from_str(line).expect(line));
    let facts: Vec<serde_json::Value> =
        facts.filter(|line: &serde_json::Value| line.get("of").is_some()).collect();
    let heirs = facts.iter().filter(|fact| fact["was"] == "202");
    let heirs: BTreeSet<&str> = heirs.filter_map(|fact| fact["is"].as_str()).collect();
    assert_eq!(heirs, ["201", "203"].into(), "{audit}");
    let made = facts.iter().filter(|fact| fact["of"] == "index \"by_amount\"");
    assert_eq!(made.count(), 1, "{audit}");
}
