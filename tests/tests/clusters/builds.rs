//! Tests builds that are watched, cancelled, and that outlive the statement that has begun them.
//!
//! Most of them wait for an indexer that is down, so that they do not end before the test has
//! checked them.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is a client of the product: real clocks, sockets, files and tasks"
)]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use proto::model::ids::NodeId;
use tests::harness::{TestCluster, eventually, sql};
use tokio_postgres::{Client, NoTls};

/// The node id of the first indexer.
const INDEXER: NodeId = NodeId(200);
/// The number of documents with tags.
const DOCUMENTS: u64 = 3_000;
const TAGS: u64 = 400;
/// The bytes of fragments that exist in any case, from writes during the build and from merges.
const OTHER_BYTES: u64 = 1 << 20;

/// The values of a row of `SHOW INDEXES`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shown {
    state: String,
    percent: Option<u64>,
    entries: Option<u64>,
    seconds_left: Option<u64>,
}

/// Returns the row of an index in SHOW INDEXES, if there is one.
async fn shown(client: &Client, name: &str) -> Option<Shown> {
    let rows = sql::simple(client, "SHOW INDEXES").await.expect("a list");
    let row = rows.into_iter().find(|row| row[0].as_deref() == Some(name))?;
    let number = |n: usize| row[n].as_ref().map(|text| text.parse().expect("a number"));
    let state = row[2].clone().expect("a state");
    Some(Shown { state, percent: number(6), entries: number(7), seconds_left: number(8) })
}

async fn fill(client: &Client) {
    let document = |n: u64| {
        let tags: Vec<_> = (0..TAGS).map(|tag| format!("\"tag {n} {tag}\"")).collect();
        format!("{{\"id\":\"d{n}\",\"n\":{n},\"tags\":[{}]}}\n", tags.join(","))
    };
    let lines: String = (0..DOCUMENTS).map(document).collect();
    let stored = sql::copy_in(client, "COPY b FROM STDIN", lines.as_bytes(), 64 << 10).await;
    assert_eq!(stored.expect("COPY"), DOCUMENTS);
}

/// Writes documents without tags until `stop` is set; returns their number.
async fn write_on(client: &Client, stop: &AtomicBool) -> u64 {
    let mut written = 0;
    while !stop.load(Ordering::Relaxed) {
        written += 1;
        let insert =
            format!("INSERT INTO b (id, doc) VALUES ('w{written}', '{{\"n\":{written}}}')");
        sql::run(client, &insert).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    written
}

/// Returns the bytes of all fragments of all indexers.
fn fragment_bytes(data: &Path) -> u64 {
    let entries = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten();
    let nodes = entries(data).flat_map(|node| entries(&node.path().join("fragments")));
    nodes.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}

/// Polls a build until `is_enough` returns true, and checks that its percentage never decreases.
/// Returns the polled rows.
async fn watch(client: &Client, name: &str, is_enough: impl Fn(&Shown) -> bool) -> Vec<Shown> {
    let (mut seen, began) = (Vec::<Shown>::new(), Instant::now());
    loop {
        if let Some(now) = shown(client, name).await {
            let before = seen.last().map_or(0, |shown| shown.percent.unwrap_or(0));
            let percent = now.percent.unwrap_or(if now.state == "online" { 100 } else { before });
            assert!((before..=100).contains(&percent), "{now:?} behind {seen:?}");
            if seen.last() != Some(&now) {
                seen.push(now.clone());
            }
            if is_enough(&now) {
                return seen;
            }
        }
        assert!(began.elapsed() < Duration::from_secs(90), "{seen:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Returns the SQLSTATE, the message and the hint of a statement's error.
fn told(done: Result<(), tokio_postgres::Error>) -> (String, String, String) {
    let error = done.expect_err("an error");
    let of_server = error.as_db_error().expect("from the server");
    let hint = of_server.hint().unwrap_or_default().to_owned();
    (sql::state_of(&error), of_server.message().to_owned(), hint)
}

const CREATE_WIDE: &str = "CREATE INDEX wide ON b (UNNEST(tags)) WITH (slices = 6)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_is_watched_and_cancelled_while_writes_go_on() {
    // So little memory that a build writes files soon.
    let mut cluster =
        TestCluster::start_where(1, 3, |config| config.memory_bytes = Some(16 << 20)).await;
    let (client, other) = (cluster.sql().await, cluster.sql().await);
    let (writer, stop) = (cluster.sql().await, AtomicBool::new(false));
    sql::run(
        &client,
        "CREATE BUCKET b; SET consistency = 'request_plus';
         CREATE INDEX by_n ON b (n::int8) WITH (slices = 3, replicas = 1)",
    )
    .await;
    fill(&client).await;
    assert_eq!(sql::value(&client, "SELECT count(*) FROM by_n").await, DOCUMENTS.to_string());
    cluster.cluster_mut().kill_indexer(INDEXER);
    let before = fragment_bytes(cluster.data());

    let cancel = async {
        let has_files = || fragment_bytes(cluster.data()) > before + 2 * OTHER_BYTES;
        let seen = watch(&other, "wide", |now| {
            now.percent > Some(20) && now.entries > Some(10_000) && has_files()
        });
        let seen = seen.await;
        println!("watched: {seen:?}");
        assert!(
            seen.iter().all(|shown| shown.seconds_left.is_none()),
            "a node is silent: {seen:?}"
        );
        assert_eq!(sql::sqlstate(&other, "SELECT count(*) FROM wide").await, "57P03");
        sql::run(&other, "CANCEL BUILD wide").await;
        assert_eq!(shown(&other, "wide").await, None);
        assert_eq!(sql::sqlstate(&other, "CANCEL BUILD wide").await, "42P01");
        stop.store(true, Ordering::Relaxed);
    };
    let (created, (), written) =
        tokio::join!(client.batch_execute(CREATE_WIDE), cancel, write_on(&writer, &stop));
    let (state, message, _) = told(created);
    assert_eq!(state, "57014");
    assert!(message.contains("build of index \"wide\" was cancelled"), "{message}");

    let all = (DOCUMENTS + written).to_string();
    assert_eq!(sql::value(&client, "SELECT count(*) FROM by_n").await, all, "it serves");
    let (state, message, hint) = told(client.batch_execute("CANCEL BUILD by_n").await);
    assert_eq!(state, "55000");
    assert!(message.contains("serves scans") && hint.contains("DROP INDEX"), "{message} {hint}");
    eventually("the files of the build are gone", || async {
        (fragment_bytes(cluster.data()) < before + OTHER_BYTES).then_some(())
    })
    .await;

    cluster.cluster_mut().restart_indexer(INDEXER).await.expect("it starts from its data");
    let began = Instant::now();
    let (created, seen) = tokio::join!(
        client.batch_execute(CREATE_WIDE),
        watch(&other, "wide", |now| now.state == "online")
    );
    created.expect("the name is free");
    println!("built in {:?}: {seen:?}", began.elapsed());
    let told_end = seen.iter().any(|shown| shown.seconds_left.is_some());
    assert!(told_end || began.elapsed() < Duration::from_secs(6), "{seen:?}");
    let done = Shown { state: "online".into(), ..Shown::default() };
    assert_eq!(seen.last(), Some(&done), "no figures of a build that has ended");
    let entries = (DOCUMENTS * TAGS).to_string();
    assert_eq!(sql::value(&client, "SELECT count(*) FROM wide").await, entries);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_create_index_goes_on_and_says_so() {
    let mut cluster = TestCluster::start(1, 2).await;
    let (client, other) = (cluster.sql().await, cluster.sql().await);
    sql::run(
        &client,
        "CREATE BUCKET b; INSERT INTO b (id, doc) VALUES ('a', '{\"n\":1}'), ('b', '{\"n\":2}')",
    )
    .await;
    cluster.cluster_mut().kill_indexer(INDEXER);

    let cancel = async {
        watch(&other, "by_n", |now| now.state == "backfill").await;
        client.cancel_token().cancel_query(NoTls).await.expect("the request is taken");
    };
    let create = "CREATE INDEX by_n ON b (n::int8)";
    let (done, ()) = tokio::join!(client.batch_execute(create), cancel);
    let goes_on = |(state, message, hint): (String, String, String), name: &str, written: &str| {
        assert_eq!(state, "57014");
        let expected = format!("the build of index \"{name}\" goes on in the background");
        assert!(message.ends_with(&expected), "{message}");
        let expected = format!("CANCEL BUILD {written} ends it");
        assert!(hint.contains("SHOW INDEXES") && hint.contains(&expected), "{hint}");
    };
    goes_on(told(done), "by_n", "by_n");

    sql::run(&client, "CREATE INDEX deferred ON b (n) WITH (defer_build)").await;
    sql::run(&client, "SET statement_timeout = '2s'").await;
    let create_odd = "CREATE INDEX \"By N\" ON b (n::int8)";
    goes_on(told(client.batch_execute(create_odd).await), "By N", "\"By N\"");
    let built = client.batch_execute("BUILD INDEX ON b (deferred)").await;
    goes_on(told(built), "deferred", "deferred");
    sql::run(&client, "RESET statement_timeout").await;
    lose_connection(&cluster, "CREATE INDEX left_behind ON b (n)", &other).await;

    let (state, message, hint) = told(client.batch_execute(create).await);
    assert_eq!(state, "42P07", "{message}");
    assert!(hint.contains("goes on") && hint.contains("CANCEL BUILD by_n"), "{hint}");
    sql::run(&client, "CREATE INDEX IF NOT EXISTS by_n ON b (n::int8)").await;
    assert_eq!(shown(&client, "by_n").await.expect("it is there").state, "backfill");

    sql::run(&client, "CANCEL BUILD \"By N\"").await;
    cluster.cluster_mut().restart_indexer(INDEXER).await.expect("it starts from its data");
    for name in ["by_n", "deferred", "left_behind"] {
        watch(&client, name, |now| now.state == "online").await;
    }
    assert_eq!(shown(&client, "By N").await, None, "it was cancelled while a node was away");
    sql::run(&client, "SET consistency = 'request_plus'").await;
    assert_eq!(sql::value(&client, "SELECT count(*) FROM by_n").await, "2");
}

/// Runs a CREATE INDEX whose client disconnects before it ends.
async fn lose_connection(cluster: &TestCluster, create: &str, other: &Client) {
    let address = cluster.sql_address();
    let parameters =
        format!("host={} port={} user=tester dbname=sextant", address.ip(), address.port());
    let (client, connection) =
        tokio_postgres::connect(&parameters, NoTls).await.expect("a SQL session");
    let connection = tokio::spawn(connection);
    let cut = async {
        watch(other, "left_behind", |now| now.state == "backfill").await;
        connection.abort();
    };
    let (done, ()) = tokio::join!(client.batch_execute(create), cut);
    assert!(done.is_err(), "the connection was lost");
}

/// A session that has written in its transaction, and is idle, delays no build and no DDL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_transaction_with_writes_holds_no_build() {
    let cluster = TestCluster::start(1, 3).await;
    let (idle, client) = (cluster.sql().await, cluster.sql().await);
    sql::run(&client, "CREATE BUCKET b").await;
    sql::run(&client, "CREATE INDEX first ON b (n)").await;
    sql::run(&client, "INSERT INTO b (id, doc) VALUES ('a', '{\"n\":1}')").await;
    sql::run(&idle, "BEGIN").await;
    sql::run(&idle, "INSERT INTO b (id, doc) VALUES ('b', '{\"n\":2}')").await;
    assert_eq!(sql::value(&idle, "SELECT count(*) FROM first").await, "2");
    sql::run(&idle, "INSERT INTO b (id, doc) VALUES ('a', '{\"n\":3}') ON CONFLICT (id) DO UPDATE SET doc = excluded.doc").await;
    for statement in [
        "CREATE INDEX second ON b (n) WITH (slices = 2)",
        "ALTER INDEX first SET (slices = 3)",
        "REINDEX INDEX second",
        "CREATE INDEX third ON b (n) PARTITION BY RANGE (n) SPLIT AT (2)",
        "ALTER INDEX third PARTITION BY RANGE (n) SPLIT AT (2, 5)",
        "DROP INDEX third",
    ] {
        let done = tokio::time::timeout(Duration::from_secs(60), client.simple_query(statement));
        done.await.unwrap_or_else(|_| panic!("{statement} hangs")).expect(statement);
    }
    let all = "SELECT count(*), sum(n::int8) FROM second";
    assert_eq!(
        sql::simple(&client, all).await.expect("a scan")[0],
        [Some("1".into()), Some("1".into())]
    );
    sql::run(&idle, "COMMIT").await;
    sql::run(&client, "SET consistency = 'request_plus'").await;
    for index in ["first", "second"] {
        let all = format!("SELECT count(*), sum(n::int8) FROM {index}");
        let expected = [Some("2".to_owned()), Some("5".to_owned())];
        assert_eq!(sql::simple(&client, &all).await.expect("a scan")[0], expected, "{index}");
    }
}
