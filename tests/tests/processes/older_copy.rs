//! Tests that a coordinator that was restored from an older copy of its directory continues only
//! above all numbers that other processes know, and that data under a reused number is never shown.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests run the product as processes on real directories"
)]

use std::path::Path;
use std::time::Duration;

use proto::grpc::ScanRequest;
use tempfile::TempDir;
use tests::harness::grpc::{all, channel, scan};
use tests::harness::process::{Dev, dev};
use tests::harness::processes::Processes;
use tests::harness::{connect, eventually, sql};
use tokio::runtime::Runtime;
use tokio_postgres::Client;

/// Copies a directory of a process that is not running.
fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        match entry.file_type().expect("a type").is_dir() {
            true => copy_dir(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).expect("a copy")),
        }
    }
}

/// Replaces a directory with an older copy of it.
fn put_back(copy: &Path, dir: &Path) {
    std::fs::remove_dir_all(dir).expect("removed");
    copy_dir(copy, dir);
}

/// Returns a copy of the directory of coordinator 1, which is restarted afterwards.
fn copy_of_coordinator(processes: &mut Processes) -> TempDir {
    let copy = tempfile::tempdir().expect("a temporary directory");
    processes.kill(1);
    copy_dir(&processes.data_of(1), copy.path());
    processes.run(1);
    copy
}

async fn insert(client: &Client, numbers: std::ops::Range<u64>) {
    let rows: Vec<_> = numbers.map(|n| format!("('d{n}', '{{\"n\":{n}}}')")).collect();
    sql::run(client, &format!("INSERT INTO b (id, doc) VALUES {}", rows.join(", "))).await;
}

/// Returns the message and the hint of the error with which a statement fails.
async fn told(client: &Client, statement: &str) -> String {
    match client.simple_query(statement).await {
        Ok(_) => String::new(),
        Err(error) => error.as_db_error().map_or_else(
            || format!("{error:?}"),
            |error| format!("{} {}", error.message(), error.hint().unwrap_or_default()),
        ),
    }
}

/// Waits until a present read of an index returns exactly these numbers.
async fn shows(client: &Client, index: &str, numbers: impl Iterator<Item = u64>) {
    let wanted: Vec<_> = numbers.map(|n| vec![Some(n.to_string())]).collect();
    let select = format!("SELECT n FROM {index} ORDER BY n");
    let mut last = None;
    for _ in 0..600 {
        match sql::simple(client, &select).await {
            Ok(rows) if rows == wanted => return,
            // After the flag an index shows everything or nothing: rows that lack something are wrong.
            Ok(rows) => panic!("{index} has {} rows of {}: {rows:?}", rows.len(), wanted.len()),
            Err(error) => last = Some(error),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{index} cannot be read: {last:?}");
}

/// Opens a session at the router whose first output line is `ready`.
async fn client_of(ready: &str) -> Client {
    let address = ready.split_whitespace().find_map(|word| word.strip_prefix("sql="));
    connect(address.expect("an address").parse().expect("an address")).await
}

/// The only coordinator restarts with an older copy of its directory. The other processes have
/// epochs, indexes and buckets that are missing in the copy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_copy_of_the_only_coordinator_goes_on_only_above_all_known_numbers() {
    let mut processes = Processes::start_with(&[1], &[201, 202]).await;
    let client = processes.sql().await;
    sql::run(&client, "CREATE BUCKET b WITH (vbuckets = 8); SET consistency = 'request_plus'")
        .await;
    insert(&client, 0..30).await;
    sql::run(&client, "CREATE INDEX i ON b (n::int8) WITH (slices = 2, replicas = 1)").await;
    sql::run(&client, "CREATE INDEX dropped_later ON b (n::int8) WITH (slices = 2)").await;
    shows(&client, "i", 0..30).await;
    let copy = copy_of_coordinator(&mut processes);

    // A future that the copy does not know.
    eventually("a new leader takes commands", || async {
        sql::simple(&client, "CREATE INDEX made_later ON b (n::int8 DESC)").await.ok()
    })
    .await;
    for n in 3..7 {
        insert(&client, 10 * n..10 * n + 10).await;
        assert_eq!(sql::value(&client, "SELECT count(*) FROM i").await, (10 * n + 10).to_string());
    }
    sql::run(&client, "DELETE FROM b WHERE id = 'd5'").await;
    sql::run(&client, "DROP INDEX dropped_later").await;
    sql::run(
        &client,
        "CREATE BUCKET c WITH (vbuckets = 8); INSERT INTO c (id, doc) VALUES ('old', '{}')",
    )
    .await;
    let left = (0..70).filter(|n| *n != 5);
    shows(&client, "i", left.clone()).await;
    let grpc = channel(processes.grpc_address()).await;
    let page = ScanRequest { page_rows: 10, consistency: "request_plus".into(), ..all("i") };
    let page = scan(&grpc, page).await.expect("a page");

    processes.kill(1);
    put_back(copy.path(), &processes.data_of(1));
    processes.run(1);
    insert(&client, 70..80).await;
    // All answers meanwhile are right; then the error names the remedy.
    eventually("the older copy is named", || async {
        let told = told(&client, "SELECT count(*) FROM i").await;
        (told.contains("older copy") && told.contains("--skip-epochs")).then_some(())
    })
    .await;
    let refused = told(&client, "CREATE INDEX k ON b (n::int8)").await;
    assert!(refused.contains("--skip-epochs"), "{refused}");

    processes.kill(1);
    processes.run_with(1, &["--skip-epochs"]);
    let left = left.chain(70..80);
    eventually("the flag is carried out", || async {
        let rows = sql::simple(&client, "SHOW BUCKETS").await.ok()?;
        rows.iter().all(|row| row.iter().flatten().all(|cell| cell != "c")).then_some(())
    })
    .await;
    shows(&client, "i", left.clone()).await;
    // Dropped after the copy was made: it is there again, and right.
    shows(&client, "dropped_later", left.clone()).await;
    let lost = told(&client, "SELECT count(*) FROM made_later").await;
    assert!(lost.contains("there is no index or bucket \"made_later\""), "{lost}");
    let resumed = scan(&grpc, ScanRequest { token: page.token.clone(), ..all("i") }).await;
    let refused = resumed.expect_err("its epoch is of the lost future");
    assert!(refused.message().contains("epoch"), "{refused:?}");

    insert(&client, 80..90).await;
    let left = left.chain(80..90);
    shows(&client, "i", left.clone()).await;
    sql::run(
        &client,
        "CREATE INDEX made_later ON b (n::int8); CREATE BUCKET c WITH (vbuckets = 8)",
    )
    .await;
    shows(&client, "made_later", left.clone()).await;
    let old = sql::simple(&client, "SELECT doc FROM c WHERE id = 'old'").await.expect("rows");
    assert!(old.is_empty(), "another bucket c: {old:?}");
    for id in [1, 101, 201, 202] {
        processes.kill(id);
        processes.run(id);
    }
    for index in ["i", "dropped_later", "made_later"] {
        shows(&client, index, left.clone()).await;
    }
}

/// The copy does not contain the index, so the coordinator cannot know which nodes have its slices.
/// It waits for all nodes before it publishes an epoch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_the_copy_does_not_know_never_lacks_an_acknowledged_row() {
    let mut processes = Processes::start_with(&[1], &[201]).await;
    let client = processes.sql().await;
    sql::run(&client, "CREATE BUCKET b WITH (vbuckets = 8); SET consistency = 'request_plus'")
        .await;
    let copy = copy_of_coordinator(&mut processes);
    eventually("a new leader takes commands", || async {
        sql::simple(&client, "CREATE INDEX lost ON b (n::int8)").await.ok()
    })
    .await;
    for n in 0..20 {
        insert(&client, n..n + 1).await;
        assert_eq!(sql::value(&client, "SELECT count(*) FROM lost").await, (n + 1).to_string());
    }
    processes.kill(1);
    put_back(copy.path(), &processes.data_of(1));
    processes.run(1);
    for written in 20..200 {
        insert(&client, written..written + 1).await;
        match sql::simple(&client, "SELECT count(*) FROM lost").await {
            Ok(rows) => assert_eq!(rows, [vec![Some((written + 1).to_string())]], "all of them"),
            Err(_) if told(&client, "SELECT count(*) FROM lost").await.contains("older copy") => {
                return;
            }
            Err(_) => {}
        }
    }
    panic!("the older copy is not named");
}

/// In `dev` all processes restart together. The second restore of one older copy with the flag
/// continues above the numbers of the first.
#[test]
fn dev_goes_on_from_an_older_copy_of_its_coordinator_more_than_once() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let start = || Dev::start_by(dev(data.path()).args(["--nodes", "1"]));
    let copies = tempfile::tempdir().expect("a temporary directory");
    let (coordinator, copy) = (data.path().join("coordinator-1"), copies.path().join("older"));
    let runtime = Runtime::new().expect("a runtime");
    let process = start();
    runtime.block_on(async {
        let client = connect(process.sql_address()).await;
        sql::run(&client, "CREATE BUCKET b WITH (vbuckets = 8)").await;
        insert(&client, 0..30).await;
        sql::run(&client, "CREATE INDEX i ON b (n::int8)").await;
    });
    assert_eq!(process.terminate().code(), Some(0));
    copy_dir(&coordinator, &copy);
    for round in 0..2 {
        let numbers = 30 + 20 * round;
        let process = start();
        runtime.block_on(async {
            let client = connect(process.sql_address()).await;
            sql::run(&client, "SET consistency = 'request_plus'").await;
            insert(&client, numbers..numbers + 10).await;
            shows(&client, "i", 0..numbers + 10).await;
            sql::run(&client, &format!("CREATE INDEX later{round} ON b (n::int8)")).await;
        });
        assert_eq!(process.terminate().code(), Some(0));
        put_back(&copy, &coordinator);
        let process = Dev::start_by(dev(data.path()).args(["--nodes", "1", "--skip-epochs"]));
        runtime.block_on(async {
            let client = connect(process.sql_address()).await;
            sql::run(&client, "SET consistency = 'request_plus'").await;
            eventually("the flag is carried out", || async {
                let rows = sql::simple(&client, "SELECT count(*) FROM i").await.ok()?;
                (rows == [vec![Some((numbers + 10).to_string())]]).then_some(())
            })
            .await;
            insert(&client, numbers + 10..numbers + 20).await;
            shows(&client, "i", 0..numbers + 20).await;
            sql::run(&client, "CREATE INDEX again ON b (n::int8)").await;
            shows(&client, "again", 0..numbers + 20).await;
        });
        assert_eq!(process.terminate().code(), Some(0));
    }
}

/// A coordinator from an older copy, without a warning, reuses the numbers of a bucket and an index
/// under which nodes store other data.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_under_a_number_that_was_given_again_is_never_shown() {
    let mut processes = Processes::start_with(&[1], &[201]).await;
    let client = processes.sql().await;
    sql::run(&client, "CREATE BUCKET b WITH (vbuckets = 8); SET consistency = 'request_plus'")
        .await;
    insert(&client, 0..30).await;
    let copy = copy_of_coordinator(&mut processes);
    eventually("a new leader takes commands", || async {
        sql::simple(&client, "CREATE INDEX lost ON b (n::int8 DESC)").await.ok()
    })
    .await;
    shows(&client, "lost", 0..30).await;
    sql::run(&client, "CREATE BUCKET c WITH (vbuckets = 8)").await;
    sql::run(&client, "INSERT INTO c (id, doc) VALUES ('old', '{\"n\":7}')").await;

    for id in [1, 101, 201, 301] {
        processes.kill(id);
    }
    put_back(copy.path(), &processes.data_of(1));
    processes.run(1);
    let client = client_of(&processes.run(301)).await;
    eventually("the copy takes commands, since nobody warns it", || async {
        let create = "CREATE BUCKET IF NOT EXISTS d WITH (vbuckets = 8);
                      CREATE INDEX IF NOT EXISTS i ON b (n::int8) WITH (defer_build)";
        sql::simple(&client, create).await.ok()
    })
    .await;
    for id in [101, 201] {
        processes.run(id);
    }
    let select = "SELECT doc FROM d WHERE id = 'old'";
    for _ in 0..5 {
        if let Ok(rows) = sql::simple(&client, select).await {
            assert!(rows.is_empty(), "the document of another bucket: {rows:?}");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    processes.kill(1);
    processes.run_with(1, &["--skip-epochs"]);
    eventually("the bucket that is in the way is named", || async {
        told(&client, select).await.contains("documents of another bucket").then_some(())
    })
    .await;
    sql::run(&client, "SET consistency = 'request_plus'; BUILD INDEX ON b (i)").await;
    eventually("the index shows its own entries", || async {
        let rows = sql::simple(&client, "SELECT count(*) FROM i").await.ok()?;
        (rows == [vec![Some("30".to_owned())]]).then_some(())
    })
    .await;
    sql::run(&client, "DROP BUCKET d; CREATE BUCKET d WITH (vbuckets = 8)").await;
    sql::run(&client, "INSERT INTO d (id, doc) VALUES ('new', '{}')").await;
    assert!(sql::simple(&client, select).await.expect("rows").is_empty());
}
