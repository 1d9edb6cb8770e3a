//! Tests that data directories, processes and coordinators of different clusters are never
//! confused.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests run the product as processes on real directories"
)]

use std::path::Path;
use std::time::Duration;

use tests::harness::process::{Dev, dev, output};
use tests::harness::processes::Processes;
use tests::harness::{connect, eventually, sql};
use tokio::runtime::Runtime;

fn start(data: &Path) -> Dev {
    Dev::start_by(dev(data).args(["--nodes", "1"]))
}

/// Returns a directory with a bucket and an index of 30 documents.
fn filled() -> tempfile::TempDir {
    let data = tempfile::tempdir().expect("a temporary directory");
    let process = start(data.path());
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = connect(process.sql_address()).await;
        sql::run(&client, "CREATE BUCKET b WITH (vbuckets = 8)").await;
        let rows: Vec<_> = (0..30).map(|n| format!("('d{n}', '{{\"n\":{n}}}')")).collect();
        sql::run(&client, &format!("INSERT INTO b (id, doc) VALUES {}", rows.join(", "))).await;
        sql::run(&client, "CREATE INDEX i ON b (n::int8)").await;
    });
    assert_eq!(process.terminate().code(), Some(0));
    data
}

/// Starts the binary on a directory that it must refuse with a message that contains all these
/// words.
fn refused(data: &Path, words: &[&str]) {
    let ran = output(dev(data).args(["--nodes", "1"]));
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(1), "{told}");
    for word in words {
        assert!(told.contains(word), "the refusal must name {word:?}: {told}");
    }
}

#[test]
fn a_coordinator_without_its_log_does_not_begin_anew_beside_the_data_of_others() {
    let data = filled();
    let coordinator = data.path().join("coordinator-1");
    let log = std::fs::read(coordinator.join("raft.redb")).expect("the log");
    std::fs::remove_file(coordinator.join("raft.redb")).expect("removed");
    refused(data.path(), &["coordinator", "cluster", "hint:"]);
    std::fs::remove_dir_all(&coordinator).expect("removed");
    refused(data.path(), &["no coordinator", "cluster", "hint:"]);
    drop(log);
}

#[test]
fn a_directory_of_another_cluster_or_another_node_is_refused() {
    let (one, other) = (filled(), filled());
    for part in ["projector-1", "indexer-1"] {
        let (kept, foreign) = (one.path().join(part), other.path().join(part));
        let aside = one.path().join("aside");
        std::fs::rename(&kept, &aside).expect("moved");
        std::fs::rename(&foreign, &kept).expect("moved");
        refused(one.path(), &["belongs to cluster", part]);
        std::fs::rename(&kept, &foreign).expect("moved");
        std::fs::rename(&aside, &kept).expect("moved");
    }
    let runtime = Runtime::new().expect("a runtime");
    let process = start(one.path());
    runtime.block_on(async {
        let client = connect(process.sql_address()).await;
        assert_eq!(sql::value(&client, "SELECT count(*) FROM i").await, "30", "its own again");
    });
}

/// A second process with an indexer's node id is refused as long as the first one is alive, and
/// causes no damage. A process that has lost its directory gets the node id once the old process
/// has been silent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_under_a_nodes_number_takes_over_nothing_from_a_living_one() {
    let mut processes = Processes::start(&[201]).await;
    let client = processes.sql().await;
    sql::run(&client, "CREATE BUCKET b WITH (vbuckets = 8)").await;
    let rows: Vec<_> = (0..30).map(|n| format!("('d{n}', '{{\"n\":{n}}}')")).collect();
    sql::run(&client, &format!("INSERT INTO b (id, doc) VALUES {}", rows.join(", "))).await;
    sql::run(&client, "CREATE INDEX i ON b (n::int8)").await;
    sql::run(&client, "SET consistency = 'request_plus'").await;
    let count = "SELECT count(*) FROM i";
    assert_eq!(sql::value(&client, count).await, "30");
    let address = |rows: sql::Rows| {
        let row = rows.into_iter().find(|row| row[0].as_deref() == Some("201"));
        row.and_then(|row| row[2].clone())
    };
    let before = address(sql::simple(&client, "SHOW NODES").await.expect("the nodes"));

    let second = processes.run_beside(201);
    tokio::time::sleep(Duration::from_secs(8)).await;
    let now = address(sql::simple(&client, "SHOW NODES").await.expect("the nodes"));
    assert_eq!(now, before, "the address of the first");
    assert_eq!(
        processes.cluster_beside(201),
        "-",
        "a process that has not joined takes over no catalog"
    );
    assert_eq!(sql::value(&client, count).await, "30");
    drop(second);
    assert_eq!(sql::value(&client, count).await, "30");

    processes.kill(201);
    processes.remove_data(201);
    processes.run(201);
    eventually("the index is read again", || async {
        let rows = sql::simple(&client, count).await.ok()?;
        (rows == [vec![Some("30".to_owned())]]).then_some(())
    })
    .await;
}

#[test]
fn a_forced_new_cluster_of_dev_puts_the_files_of_the_old_one_aside() {
    let data = filled();
    let forced = || Dev::start_by(dev(data.path()).args(["--nodes", "1", "--force-new-cluster"]));
    let runtime = Runtime::new().expect("a runtime");
    let process = forced();
    runtime.block_on(async {
        let client = connect(process.sql_address()).await;
        assert_eq!(sql::value(&client, "SELECT count(*) FROM i").await, "30", "nothing is lost");
    });
    assert_eq!(process.terminate().code(), Some(0));
    assert!(
        !data.path().join("old-cluster-1").exists(),
        "the flag has no effect on a whole cluster"
    );

    std::fs::remove_dir_all(data.path().join("coordinator-1")).expect("removed");
    refused(data.path(), &["no coordinator", "--force-new-cluster"]);
    let process = forced();
    runtime.block_on(async {
        let client = connect(process.sql_address()).await;
        sql::run(&client, "CREATE BUCKET b WITH (vbuckets = 8); CREATE INDEX i ON b (n::int8)")
            .await;
        assert_eq!(sql::value(&client, "SELECT count(*) FROM i").await, "0", "another cluster");
    });
    assert_eq!(process.terminate().code(), Some(0));
    for part in ["projector-1", "indexer-1"] {
        assert!(data.path().join("old-cluster-1").join(part).join("IDENTITY").exists(), "{part}");
    }
}

/// A router without a data directory stores nothing. So it ends, and follows the new cluster after
/// its restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_router_ends_when_its_coordinators_begin_a_new_cluster() {
    let mut processes = Processes::start_with(&[1], &[201]).await;
    let client = processes.sql().await;
    sql::run(&client, "CREATE BUCKET b WITH (vbuckets = 8); CREATE INDEX i ON b (n::int8)").await;
    processes.kill(1);
    for id in [101, 201] {
        processes.kill(id);
        processes.remove_data(id);
    }
    std::fs::remove_file(processes.data_of(1).join("raft.redb")).expect("removed");
    processes.run_with(1, &["--force-new-cluster"]);
    processes.run(101);
    assert_eq!(processes.ended(301).await, Some(1));
    processes.run(201);
    let ready = processes.run(301);
    let address = ready.split_whitespace().find_map(|word| word.strip_prefix("sql="));
    let client = connect(address.expect("an address").parse().expect("an address")).await;
    eventually("the new cluster is followed", || async {
        sql::simple(&client, "CREATE BUCKET other WITH (vbuckets = 8)").await.ok()
    })
    .await;
    let buckets = sql::simple(&client, "SHOW BUCKETS").await.expect("the buckets");
    assert_eq!(buckets.len(), 1, "{buckets:?}");
}
