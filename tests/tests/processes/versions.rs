//! Tests versions of a data set that are loaded and switched while clients read, and projectors
//! fail and join.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests run the product as processes: real clocks, sockets, files and tasks"
)]

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tests::harness::processes::Processes;
use tests::harness::{connect, eventually, sql};
use tokio_postgres::Client;

/// The number of clients that read.
const CLIENTS: usize = 4;
/// The projectors that load versions.
const PROJECTORS: [u64; 3] = [101, 102, 103];

/// Returns the number of documents of a version, which differs between versions.
fn documents(version: u64) -> u64 {
    1_000 + 100 * version
}

/// Writes the files of a version, in different formats. Every document contains the version's
/// number.
fn write_files(dir: &Path, version: u64) {
    let dir = dir.join(format!("v{version}"));
    std::fs::create_dir_all(&dir).expect("a directory");
    let half = documents(version) / 2;
    let line = |n: u64| format!("{{\"id\":\"d{n}\",\"n\":{n},\"v\":{version}}}\n");
    let lines: String = (0..half).map(line).collect();
    std::fs::write(dir.join("1.jsonl"), lines).expect("a file");
    let row = |n: u64| format!("d{n},{n},{version}\n");
    let rows: String = (half..documents(version)).map(row).collect();
    // A later row with the same id replaces an earlier one.
    let again = format!("d{half},{half},{version}\n");
    std::fs::write(dir.join("2.csv"), format!("id,n,v\n{rows}{again}")).expect("a file");
}

async fn load(client: &Client, version: u64) {
    let name = format!("v{version}");
    let load = format!("ALTER BUCKET b LOAD VERSION '{name}' FROM '{name}/*'");
    sql::run(client, &load).await;
}

/// Reads until `stop` is set, and checks that a statement sees one version only, and that a session
/// never returns to an older one. Returns the number of statements.
async fn read(address: SocketAddr, stop: Arc<AtomicBool>) -> u64 {
    let client = connect(address).await;
    let (mut statements, mut before) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let scan = "SELECT count(*), min(v), max(v) FROM i";
        let rows = sql::simple(&client, scan).await.expect("a scan");
        let cell = |n: usize| -> u64 {
            rows[0][n].as_deref().expect("no NULL").parse().expect("a number")
        };
        let version = cell(1);
        assert_eq!((cell(2), cell(0)), (version, documents(version)), "of one version");
        assert!(version >= before, "version {version} after {before}");
        let shown = sql::value(&client, "SHOW read_version").await;
        assert_eq!(shown, format!("v{version}"));
        let document = "SELECT doc FROM b WHERE id = 'd7'";
        let rows = sql::simple(&client, document).await.expect("a document");
        let text = rows[0][0].clone().expect("no NULL");
        let read: u64 = text
            .split("\"v\":")
            .nth(1)
            .expect("v")
            .trim_end_matches('}')
            .parse()
            .expect("a number");
        assert!(read >= version, "version {read} after {version}");
        before = read;
        statements += 2;
    }
    statements
}

/// Starts a cluster with three projectors that read the same files, and creates a data set with two
/// indexes. Each partition has two copies.
async fn started(files: &Path) -> (Processes, Client) {
    started_with([files; PROJECTORS.len()], 2).await
}

/// Starts a cluster with a directory of files for each projector.
async fn started_with(files: [&Path; PROJECTORS.len()], replication: u16) -> (Processes, Client) {
    let mut cluster = Processes::start_with(&[1], &[201, 202]).await;
    let client = cluster.sql().await;
    cluster.kill(PROJECTORS[0]);
    for (projector, files) in PROJECTORS.into_iter().zip(files) {
        cluster.run_with(projector, &["--files-dir", files.to_str().expect("a path")]);
        cluster.joined(&client, projector).await;
    }
    let create = format!(
        "CREATE BUCKET b FROM FILES WITH (partitions = 8, replication = {replication}, version_idle = '1s')"
    );
    sql::run(&client, &create).await;
    sql::run(&client, "CREATE INDEX i ON b (n::int8) INCLUDE (v::int8) WITH (slices = 3)").await;
    sql::run(&client, "CREATE INDEX j ON b (v::int8)").await;
    (cluster, client)
}

async fn states(client: &Client) -> Vec<String> {
    let rows = sql::simple(client, "SHOW VERSIONS").await.expect("a list");
    let cell = |cell: &Option<String>| cell.clone().unwrap_or_default();
    rows.iter().map(|row| format!("{} {}", cell(&row[2]), cell(&row[3]))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_see_whole_versions_and_never_go_back_while_versions_are_loaded() {
    let files = tempfile::tempdir().expect("a directory");
    let (cluster, client) = started(files.path()).await;
    assert_eq!(sql::value(&client, "SELECT count(*) FROM i").await, "0");
    (1..=4).for_each(|version| write_files(files.path(), version));
    load(&client, 1).await;
    let (stop, address) = (Arc::new(AtomicBool::new(false)), cluster.sql_address());
    let readers: Vec<_> =
        (0..CLIENTS).map(|_| tokio::spawn(read(address, Arc::clone(&stop)))).collect();

    let reader = cluster.sql().await;
    sql::run(&reader, "BEGIN READ ONLY").await;
    assert_eq!(sql::value(&reader, "SELECT max(v) FROM i").await, "1");
    for version in 2..=4 {
        load(&client, version).await;
        std::fs::remove_dir_all(files.path().join(format!("v{version}"))).expect("it is removed");
        for select in ["SELECT max(v) FROM i", "SELECT max(v) FROM j"] {
            let read = sql::value(&reader, select).await;
            assert_eq!(read, "1", "{select} in the transaction from before version {version}");
        }
        let document = sql::value(&reader, "SELECT doc FROM b WHERE id = 'd3'").await;
        assert!(document.contains("\"v\":1"), "{document}");
    }
    assert_eq!(states(&client).await, ["v1 kept", "v2 kept", "v3 kept", "v4 current"]);
    stop.store(true, Ordering::Relaxed);
    let mut statements = 0;
    for reader in readers {
        statements += reader.await.expect("a client that read one version at a time");
    }
    println!("{statements} statements, 0 failed");
    sql::run(&reader, "COMMIT").await;
    eventually("old versions go", || async {
        (states(&client).await == ["v4 current"]).then_some(())
    })
    .await;
    assert_eq!(sql::value(&client, "SELECT count(*) FROM j").await, documents(4).to_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_key_is_answered_without_a_projector_and_with_an_empty_one() {
    let files = tempfile::tempdir().expect("a directory");
    let (mut cluster, client) = started(files.path()).await;
    (1..=2).for_each(|version| write_files(files.path(), version));
    load(&client, 1).await;
    let ids: Vec<String> = (0..documents(1)).map(|n| format!("'d{n}'")).collect();
    let all = format!("SELECT id, doc FROM b WHERE id IN ({})", ids.join(", "));
    let found = |client: Client| {
        let all = all.clone();
        async move { sql::simple(&client, &all).await.ok().map(|rows| rows.len() as u64) }
    };
    assert_eq!(found(cluster.sql().await).await, Some(documents(1)));

    cluster.kill(102);
    let began = Instant::now();
    assert_eq!(found(cluster.sql().await).await, Some(documents(1)), "other holders answer");
    let waited = began.elapsed();
    assert!(waited < Duration::from_secs(4), "{waited:?}: before its partitions have other owners");
    // The files are not needed any more, and a new projector takes part in the next version only.
    std::fs::remove_dir_all(files.path().join("v1")).expect("it is removed");
    cluster.run_with(104, &["--files-dir", files.path().to_str().expect("a path")]);
    cluster.joined(&client, 104).await;
    assert_eq!(found(cluster.sql().await).await, Some(documents(1)));
    load(&client, 2).await;
    assert_eq!(sql::value(&client, "SELECT count(*) FROM i").await, documents(2).to_string());
    cluster.remove_data(102);
    cluster.run_with(102, &["--files-dir", files.path().to_str().expect("a path")]);
    assert_eq!(found(cluster.sql().await).await, Some(documents(1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_cannot_be_loaded_says_where_and_leaves_what_serves() {
    let files = tempfile::tempdir().expect("a directory");
    let (_cluster, client) = started(files.path()).await;
    (1..=2).for_each(|version| write_files(files.path(), version));
    load(&client, 1).await;
    let broken = files.path().join("v2/1.jsonl");
    let text = std::fs::read_to_string(&broken).expect("the file");
    let lines: Vec<_> = text.lines().collect();
    let text = format!("{}\n{{\"id\":\n{}\n", lines[..9].join("\n"), lines[9..].join("\n"));
    std::fs::write(&broken, text).expect("a file");
    let statement = "ALTER BUCKET b LOAD VERSION 'v2' FROM 'v2/*'";
    let error = sql::simple(&client, statement).await.expect_err("a line is broken");
    let message = error.as_db_error().expect("a refusal").message().to_owned();
    assert!(message.contains("v2/1.jsonl") && message.contains("line 10"), "{message}");
    assert_eq!(sql::value(&client, "SELECT max(v) FROM i").await, "1");
    assert_eq!(states(&client).await, ["v1 current", "v2 failed"]);

    for (statement, state, what) in [
        ("INSERT INTO b (id, doc) VALUES ('x', '{}')", "0A000", "takes no writes"),
        ("ALTER BUCKET b LOAD VERSION 'v3' FROM '../x.csv'", "22P02", ".."),
        ("ALTER BUCKET b LOAD VERSION 'v3' FROM 'v9/*.csv'", "22P02", "v9"),
        ("ALTER BUCKET b LOAD VERSION 'v1' FROM 'v1/*'", "42P07", "has a version"),
        ("ALTER BUCKET b CANCEL VERSION 'v1'", "55000", "not loading"),
    ] {
        let error = sql::simple(&client, statement).await.expect_err(statement);
        let error = error.as_db_error().expect("a refusal");
        assert_eq!(error.code().code(), state, "{statement}: {error}");
        assert!(error.message().contains(what), "{statement}: {error}");
    }
    write_files(files.path(), 2);
    load(&client, 2).await;
    assert_eq!(sql::value(&client, "SELECT max(v) FROM j").await, "2");
    sql::run(&client, "DROP BUCKET b").await;
    assert!(states(&client).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn projectors_with_different_files_make_no_version_although_each_partition_has_one_copy() {
    let dirs = PROJECTORS.map(|_| tempfile::tempdir().expect("a directory"));
    let paths = [dirs[0].path(), dirs[1].path(), dirs[2].path()];
    let (_cluster, client) = started_with(paths, 1).await;
    for path in paths {
        write_files(path, 1);
    }
    let other = paths[2].join("v1/2.csv");
    let text = std::fs::read_to_string(&other).expect("the file");
    std::fs::write(&other, format!("{text}more,1,1\n")).expect("a file");
    let statement = "ALTER BUCKET b LOAD VERSION 'v1' FROM 'v1/*'";
    let error = sql::simple(&client, statement).await.expect_err("the files differ");
    let message = error.as_db_error().expect("a refusal").message().to_owned();
    assert!(message.contains("has read other rows than projector"), "{message}");
    assert_eq!(states(&client).await, ["v1 failed"]);
    std::fs::write(&other, text).expect("a file");
    load(&client, 1).await;
    assert_eq!(sql::value(&client, "SELECT count(*) FROM i").await, documents(1).to_string());
}
