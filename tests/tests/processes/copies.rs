//! Tests a bucket with copies on two projector processes: they are killed in turns while a client
//! writes, the bucket moves between them, and one of them loses its directory. No acknowledged
//! write is lost, and writes continue.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests run the product as processes: real clocks, sockets and tasks"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tests::harness::copies::{PROJECTORS, in_sync, is_led_by, until};
use tests::harness::processes::Processes;
use tests::harness::{connect, sql};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

/// The number of rounds, in each of which a projector is killed and restarted.
const ROUNDS: usize = 4;
/// The number of distinct documents of a writer.
const DOCUMENTS: u64 = 400;
/// A time limit that allows for a debug build, a busy machine and killed processes.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest time without an acknowledged write when a copy is killed: a take-over needs 1.5 s of silence and a new leader. A debug
/// build on a machine with other tests needs seconds for the work of milliseconds.
const PAUSE_MAX: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 3 });

/// A writer's record of its statements.
#[derive(Default)]
struct Written {
    /// The last acknowledged number of each document.
    acknowledged: BTreeMap<u64, u64>,
    /// The numbers whose statements have had no definite answer since, by document.
    in_doubt: BTreeMap<u64, BTreeSet<u64>>,
    statements: u64,
    longest_pause: Duration,
    errors: Vec<String>,
}

/// A client that writes until it is stopped.
struct Writer {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
    task: JoinHandle<Written>,
}

impl Writer {
    fn start(address: SocketAddr) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let acknowledged = Arc::new(AtomicU64::new(0));
        let task = tokio::spawn(write(address, Arc::clone(&stop), Arc::clone(&acknowledged)));
        Self { stop, acknowledged, task }
    }

    /// Waits until this many further statements are acknowledged.
    async fn makes(&self, statements: u64) {
        let until = self.acknowledged.load(Ordering::Relaxed) + statements;
        let deadline = Instant::now() + PATIENCE;
        while self.acknowledged.load(Ordering::Relaxed) < until {
            assert!(Instant::now() < deadline, "writes go on");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn stop(self) -> Written {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.expect("the writer")
    }
}

impl Written {
    /// Adds, from an earlier writer, the documents without an acknowledged statement of this one.
    fn after(mut self, mut before: Self) -> Self {
        before.in_doubt.retain(|document, _| !self.acknowledged.contains_key(document));
        for (document, doubtful) in before.in_doubt {
            self.in_doubt.entry(document).or_default().extend(doubtful);
        }
        for (document, n) in before.acknowledged {
            self.acknowledged.entry(document).or_insert(n);
        }
        self
    }
}

async fn write(
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
) -> Written {
    let client = connect(address).await;
    let (mut written, mut last) = (Written::default(), Instant::now());
    for n in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let document = n % DOCUMENTS;
        let statement = format!(
            "INSERT INTO b (id, doc) VALUES ('d{document}', '{{\"n\":{n}}}') \
             ON CONFLICT (id) DO UPDATE SET doc = excluded.doc"
        );
        match client.batch_execute(&statement).await {
            Ok(()) => {
                written.longest_pause = written.longest_pause.max(last.elapsed());
                last = Instant::now();
                written.statements += 1;
                acknowledged.store(written.statements, Ordering::Relaxed);
                written.acknowledged.insert(document, n);
                written.in_doubt.remove(&document);
            }
            Err(error) => {
                assert!(error.as_db_error().is_some(), "the router goes on: {error:?}");
                written.in_doubt.entry(document).or_default().insert(n);
                written.errors.push(sql::state_of(&error));
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
    written
}

/// Starts a cluster with two projectors, and a bucket with an index.
async fn cluster(coordinators: &[u64], copies: u8) -> (Processes, Client) {
    let mut cluster = Processes::start_with(coordinators, &[201]).await;
    let client = cluster.sql().await;
    cluster.run(PROJECTORS[1]);
    cluster.joined(&client, PROJECTORS[1]).await;
    let create = format!("CREATE BUCKET b WITH (vbuckets = 8, copies = {copies})");
    sql::run(&client, &create).await;
    sql::run(&client, "CREATE INDEX i ON b (n::int8) WITH (slices = 3)").await;
    (cluster, client)
}

/// Checks that documents and index contain all acknowledged writes, and no writes other than the
/// sent ones.
async fn check(client: &Client, written: &Written) {
    let deadline = Instant::now() + PATIENCE;
    let of = |rows: sql::Rows| -> BTreeMap<u64, u64> {
        let number = |cell: &Option<String>, prefix: &str| {
            let text = cell.as_deref().expect("no NULL").trim_start_matches(prefix);
            text.parse().unwrap_or_else(|_| panic!("{text}"))
        };
        rows.iter().map(|row| (number(&row[0], "d"), number(&row[1], ""))).collect()
    };
    sql::run(client, "SET consistency = 'request_plus'").await;
    let rows = loop {
        match sql::simple(client, "SELECT id, n FROM i").await {
            Ok(rows) => break rows,
            Err(error) => assert!(Instant::now() < deadline, "the index: {error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(rows.len(), of(rows.clone()).len(), "each document has one entry");
    let index = of(rows);
    for (document, n) in &written.acknowledged {
        let doubtful = written.in_doubt.get(document);
        let found = index.get(document);
        let is_right = found == Some(n)
            || found.is_some_and(|found| doubtful.is_some_and(|all| all.contains(found)));
        assert!(is_right, "document {document} was acknowledged as {n}, and is {found:?}");
    }
    for document in index.keys() {
        let is_known =
            written.acknowledged.contains_key(document) || written.in_doubt.contains_key(document);
        assert!(is_known, "nobody wrote document {document}");
        let select = format!("SELECT doc FROM b WHERE id = 'd{document}'");
        let doc: serde_json::Value =
            serde_json::from_str(&sql::value(client, &select).await).expect("JSON");
        assert_eq!(doc["n"].as_u64(), index.get(document).copied(), "document {document}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_go_on_when_a_copy_is_killed() {
    let (mut cluster, client) = cluster(&[1, 2, 3], 2).await;
    in_sync(&client).await;
    let writer = Writer::start(cluster.sql_address());
    for round in 0..ROUNDS {
        let (leader, follower) = in_sync(&client).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let killed = if round % 2 == 0 { leader } else { follower };
        cluster.kill(killed);
        let other = if killed == leader { follower } else { leader };
        until(&client, "the other copy leads", is_led_by(other)).await;
        // A busy machine needs longer for the same load.
        futures::join!(tokio::time::sleep(Duration::from_millis(1_500)), writer.makes(55));
        cluster.run(killed);
    }
    in_sync(&client).await;
    let written = writer.stop().await;
    println!("{} statements, longest pause {:?}", written.statements, written.longest_pause);
    assert!(written.statements > 200, "{} statements are no load", written.statements);
    assert!(
        written.longest_pause < PAUSE_MAX,
        "{:?} without a write; errors {:?}",
        written.longest_pause,
        written.errors
    );
    check(&client, &written).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_moves_under_writes_without_an_error() {
    let (cluster, client) = cluster(&[1], 1).await;
    let writer = Writer::start(cluster.sql_address());
    let first = until(&client, "a copy leads", |roles| roles.len() == 1).await;
    let mut leader = *first.keys().next().expect("one");
    for _ in 0..ROUNDS {
        let to = if leader == PROJECTORS[0] { PROJECTORS[1] } else { PROJECTORS[0] };
        tokio::time::sleep(Duration::from_millis(300)).await;
        sql::run(&client, &format!("ALTER BUCKET b MOVE TO '{to}'")).await;
        let moved = move |roles: &BTreeMap<u64, String>| is_led_by(to)(roles) && roles.len() == 1;
        until(&client, "the bucket has moved", moved).await;
        leader = to;
    }
    let written = writer.stop().await;
    println!("{} statements, longest pause {:?}", written.statements, written.longest_pause);
    assert_eq!(written.errors, Vec::<String>::new(), "a move is no error");
    assert!(written.longest_pause < PAUSE_MAX, "{:?} without a write", written.longest_pause);
    check(&client, &written).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_whose_directory_is_gone_is_made_again() {
    let (mut cluster, client) = cluster(&[1], 2).await;
    let mut before = Written::default();
    for of_leader in [false, true] {
        let (leader, follower) = in_sync(&client).await;
        let writer = Writer::start(cluster.sql_address());
        tokio::time::sleep(Duration::from_millis(500)).await;
        let (lost, other) = if of_leader { (leader, follower) } else { (follower, leader) };
        cluster.kill(lost);
        cluster.remove_data(lost);
        let alone = move |roles: &BTreeMap<u64, String>| {
            is_led_by(other)(roles) && roles.get(&lost).is_none_or(|role| role != "in sync")
        };
        until(&client, "the other copy leads alone", alone).await;
        // The number of a lost directory is given again when its process has been silent for five seconds.
        tokio::time::sleep(Duration::from_secs(6)).await;
        cluster.run(lost);
        in_sync(&client).await;
        let written = writer.stop().await.after(before);
        check(&client, &written).await;
        // The copy that was made again has everything.
        cluster.kill(other);
        until(&client, "the new copy leads", is_led_by(lost)).await;
        check(&client, &written).await;
        cluster.run(other);
        before = written;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_became_of_a_transaction_is_unknown_while_nobody_leads_and_never_denied() {
    let (mut cluster, client) = cluster(&[1], 2).await;
    let (leader, _) = in_sync(&client).await;
    sql::run(&client, "BEGIN; INSERT INTO b VALUES ('t', '{\"n\":1}'); COMMIT").await;
    let number = sql::value(&client, "SHOW transaction_id").await;
    let look_up =
        async |number: &str| sql::simple(&client, &format!("SHOW TRANSACTION {number}")).await;
    assert_eq!(look_up(&number).await.expect("known").len(), 1);
    cluster.kill(leader);
    let deadline = Instant::now() + PATIENCE;
    let mut unknown = 0;
    loop {
        match look_up(&number).await {
            Ok(rows) => {
                assert_eq!(rows.len(), 1, "it was committed, and no answer may say otherwise");
                break;
            }
            Err(error) => {
                assert_eq!(sql::state_of(&error), "57P03", "{error:?}");
                unknown += 1;
                if unknown == 1 {
                    cluster.run(leader);
                }
            }
        }
        assert!(Instant::now() < deadline, "nobody leads");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(unknown > 0, "a leader was there at once");
    // A projector that leads no bucket is not needed.
    let (leader, follower) = in_sync(&client).await;
    cluster.kill(follower);
    until(&client, "it leads", is_led_by(leader)).await;
    assert_eq!(look_up("99").await.expect("an answer").len(), 0, "there is no such transaction");
}
