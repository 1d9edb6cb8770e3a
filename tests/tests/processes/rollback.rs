//! Tests a source that loses a part of its history, from the side of operators and producers:
//! indexes show the surviving documents with the values that the lost mutations had overwritten,
//! and nothing of the lost mutations.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests run the product as a process and copy its directories"
)]

use std::path::Path;

use bytes::Bytes;
use proto::grpc::ingest_client::IngestClient;
use proto::grpc::{PushMutation, PushReply, PushRequest, VbucketPosition};
use proto::model::ids::NodeId;
use tests::harness::process::{Dev, output, sextant};
use tests::harness::sql::{self, Rows, simple};
use tests::harness::{TestCluster, connect, eventually, grpc};
use tokio_postgres::Client;
use tonic::transport::Channel;
use tonic::{Code, Status};

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true => copy(&path, &target),
            false => drop(std::fs::copy(&path, &target).expect("a copy")),
        }
    }
}

/// Returns all entries of the index, read with `request_plus`.
async fn indexed(client: &Client) -> Rows {
    sql::run(client, "SET consistency = 'request_plus'").await;
    let rows = simple(client, "SELECT id, n FROM by_n ORDER BY n, id").await;
    rows.unwrap_or_else(|error| panic!("a scan: {error:?}"))
}

fn rows(expected: &[(&str, &str)]) -> Rows {
    let row = |(id, n): &(&str, &str)| vec![Some((*id).into()), Some((*n).into())];
    expected.iter().map(row).collect()
}

/// Returns the rows of the index before the loss.
fn later_than_backup() -> Rows {
    rows(&[("c", "3"), ("d", "4"), ("a", "10")])
}

#[test]
fn indexes_follow_a_source_restored_from_an_older_copy() {
    let (data, backup) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir());
    let backup = backup.expect("a directory");
    let source = data.path().join("projector-1");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let before = rows(&[("a", "1"), ("b", "2"), ("c", "3")]);

    let process = Dev::start(data.path());
    runtime.block_on(async {
        let client = connect(process.sql_address()).await;
        sql::run(&client, "CREATE BUCKET b WITH (vbuckets = 8)").await;
        sql::run(&client, "CREATE INDEX by_n ON b (n::int8) WITH (slices = 3, replicas = 1)").await;
        sql::run(&client, "INSERT INTO b VALUES ('a', '{\"n\":1}'), ('b', '{\"n\":2}')").await;
        sql::run(&client, "INSERT INTO b VALUES ('c', '{\"n\":3}')").await;
        assert_eq!(indexed(&client).await, before);
    });
    process.terminate();
    copy(&source, backup.path());

    let process = Dev::start(data.path());
    runtime.block_on(async {
        let client = connect(process.sql_address()).await;
        let replace = "INSERT INTO b VALUES ('a', '{\"n\":10}') ON CONFLICT (id) DO UPDATE SET doc = excluded.doc";
        sql::run(&client, replace).await;
        sql::run(&client, "DELETE FROM b WHERE id = 'b'").await;
        sql::run(&client, "INSERT INTO b VALUES ('d', '{\"n\":4}')").await;
        assert_eq!(indexed(&client).await, later_than_backup());
        assert!(simple(&client, "SHOW ROLLBACKS").await.expect("rollbacks").is_empty());
    });
    // A stop, since a kill may lose the end of the indexers' logs, which only the source could repeat.
    process.terminate();
    std::fs::remove_dir_all(&source).expect("the source's directory");
    copy(backup.path(), &source);

    // The lost mutations exist nowhere else, so no index is rolled back before an operator accepts the loss.
    let process = Dev::start(data.path());
    let report = backup.path().join("known.jsonl");
    runtime.block_on(async {
        let client = connect(process.sql_address()).await;
        let refused = eventually("the loss is named", || async {
            let error =
                simple(&client, "SELECT doc FROM b WHERE id = 'a'").await.expect_err("a loss");
            let error = error.as_db_error().expect("the server's").clone();
            (error.code().code() == "XX001").then_some(error)
        });
        let refused = refused.await;
        assert!(refused.message().contains("the projector lacks 3 mutations"), "{refused}");
        assert!(refused.hint().is_some_and(|hint| hint.contains("--accept-loss")), "{refused:?}");
        let written = simple(&client, "INSERT INTO b VALUES ('x', '{\"n\":9}')").await;
        written.expect_err("no write either");
        let mut known = simple(&client, "SELECT id, n FROM by_n ORDER BY n, id").await;
        assert_eq!(known.as_mut().map_err(|e| e.to_string()), Ok(&mut later_than_backup()));
        assert!(simple(&client, "SHOW ROLLBACKS").await.expect("rollbacks").is_empty());
    });
    let at = process.sql_address().to_string();
    let reported = ["source", "recover", "--bucket", "b", "--at", &at, "--report"];
    let reported = output(sextant().args(reported).arg(&report));
    assert!(reported.status.success(), "{reported:?}");
    let lines = std::fs::read_to_string(&report).expect("the report");
    let entry = r#"{"entry":{"id":"d","n":"4"},"index":"by_n"}"#;
    assert!(lines.lines().count() == 3 && lines.contains(entry), "{lines}");
    process.terminate();
    let recover = ["source", "recover", "--accept-loss", "--data"];
    let recovered = output(sextant().args(recover).arg(data.path()));
    assert!(recovered.status.success(), "{recovered:?}");
    let said = String::from_utf8_lossy(&recovered.stdout).into_owned();
    let accepted = "its files are whole; that it lacks a part of epoch";
    assert!(said.contains("bucket \"b\"") && said.contains(accepted), "{said}");

    let process = Dev::start(data.path());
    runtime.block_on(async {
        let client = connect(process.sql_address()).await;
        assert_eq!(indexed(&client).await, before, "nothing is lost, doubled or a ghost");
        sql::run(&client, "INSERT INTO b VALUES ('e', '{\"n\":5}')").await;
        let later = rows(&[("a", "1"), ("b", "2"), ("c", "3"), ("e", "5")]);
        assert_eq!(indexed(&client).await, later);
        let ended = async || {
            let rows = simple(&client, "SHOW ROLLBACKS").await.expect("rollbacks");
            let stage = rows.first().and_then(|row| row[1].clone());
            (rows.len() == 1 && stage.as_deref() == Some("ended")).then_some(())
        };
        eventually("the rollback has ended", ended).await;
    });
    process.terminate();
}

fn mutation(vbuuid: u64, seqno: u64, id: &str, n: u64) -> PushMutation {
    let document = Some(Bytes::from(format!("{{\"n\":{n}}}")));
    PushMutation { vbucket: 0, vbuuid, seqno, id: id.into(), document, position: 0 }
}

/// Pushes to bucket `b`, after the vbucket's branches.
async fn push(
    channel: &Channel,
    branches: &[(u64, u64)],
    mutations: Vec<PushMutation>,
) -> Result<PushReply, Status> {
    let branch = |(vbuuid, seqno): &(u64, u64)| VbucketPosition {
        vbucket: 0,
        vbuuid: *vbuuid,
        seqno: *seqno,
    };
    let branches = branches.iter().map(branch).collect();
    let request = PushRequest { bucket: "b".into(), mutations, branches, transaction: 0 };
    let mut ingest = IngestClient::new(channel.clone());
    let replies = ingest.push(futures::stream::iter([request])).await.expect("a stream");
    replies.into_inner().message().await.map(|reply| reply.expect("a reply"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_producer_names_its_new_branch_after_a_failover() {
    let cluster = TestCluster::start(1, 2).await;
    let client = cluster.sql().await;
    sql::run(&client, "CREATE BUCKET b FROM PUSH WITH (vbuckets = 1)").await;
    sql::run(&client, "CREATE INDEX by_n ON b (n::int8) WITH (slices = 2, replicas = 1)").await;
    let channel = grpc::channel(cluster.grpc_address()).await;
    let push = async |branches: &[_], mutations| push(&channel, branches, mutations).await;
    let first = vec![mutation(7, 1, "a", 1), mutation(7, 2, "b", 2), mutation(7, 3, "a", 3)];
    push(&[], first).await.expect("durable");
    assert_eq!(indexed(&client).await, rows(&[("b", "2"), ("a", "3")]));

    let too_far = push(&[(8, 9)], vec![]).await;
    grpc::refused(too_far, Code::FailedPrecondition, "22023", "ends at 3");
    let known = push(&[(7, 1)], vec![]).await;
    grpc::refused(known, Code::InvalidArgument, "22023", "is not new");
    let twice = push(&[(8, 2), (9, 3)], vec![]).await;
    grpc::refused(twice, Code::InvalidArgument, "22023", "names the vbucket twice");
    let next = vec![mutation(8, 3, "c", 5)];
    push(&[(8, 2)], next).await.expect("durable");
    assert_eq!(indexed(&client).await, rows(&[("a", "1"), ("b", "2"), ("c", "5")]));
    push(&[(8, 2)], vec![mutation(8, 4, "d", 6)]).await.expect("said again it changes nothing");
    assert_eq!(indexed(&client).await, rows(&[("a", "1"), ("b", "2"), ("c", "5"), ("d", "6")]));
    // The whole log, from the beginning.
    push(&[(9, 0)], vec![mutation(9, 1, "z", 1)]).await.expect("durable");
    assert_eq!(indexed(&client).await, rows(&[("z", "1")]));
}

/// A copy of a slice: its node, its number of entries, and its floor.
type Copy = (u64, u64, u64);

/// Waits until all copies of an index are ready, and returns them.
async fn copies(client: &Client) -> Vec<Copy> {
    let number = |cell: &Option<String>| cell.as_deref()?.parse::<u64>().ok();
    let ready = async || {
        let rows = simple(client, "SHOW SLICES").await.ok()?;
        rows.iter()
            .map(|row| {
                let is_ready = row[4].as_deref() == Some("ready");
                let copy = (number(&row[3])?, number(&row[5])?, number(&row[7])?);
                Some(copy).filter(|_| is_ready)
            })
            .collect::<Option<Vec<_>>>()
    };
    eventually("all copies are ready", ready).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_an_empty_disk_can_roll_back_as_far_as_its_fetched_copies() {
    /// The node whose data the test deletes.
    const EMPTY: NodeId = NodeId(201);
    let mut cluster = TestCluster::start(1, 2).await;
    let client = cluster.sql().await;
    sql::run(&client, "CREATE BUCKET b FROM PUSH WITH (vbuckets = 1)").await;
    sql::run(&client, "CREATE INDEX by_n ON b (n::int8) WITH (slices = 2, replicas = 1)").await;
    let channel = grpc::channel(cluster.grpc_address()).await;
    let first = vec![mutation(7, 1, "a", 1), mutation(7, 2, "b", 2), mutation(7, 3, "c", 3)];
    push(&channel, &[], first).await.expect("durable");
    let survives = rows(&[("a", "1"), ("b", "2"), ("c", "3")]);
    assert_eq!(indexed(&client).await, survives);
    // The transaction leases the epoch that it shows, however long the rest takes.
    let reader = cluster.sql().await;
    sql::run(&reader, "BEGIN").await;
    assert_eq!(sql::value(&reader, "SELECT count(*) FROM by_n").await, "3");

    push(&channel, &[], vec![mutation(7, 4, "d", 4)]).await.expect("durable");
    indexed(&client).await;
    cluster.cluster_mut().kill_indexer(EMPTY);
    std::fs::remove_dir_all(cluster.data().join("indexer-2")).expect("its data");
    cluster.cluster_mut().restart_indexer(EMPTY).await.expect("it starts from nothing");
    push(&channel, &[], vec![mutation(7, 5, "e", 5)]).await.expect("durable");
    indexed(&client).await;
    let is_empty = |(node, ..): &&Copy| *node == EMPTY.0;
    // The coordinator may still list the node's former copies.
    let fetched = eventually("the node has fetched its slices", async || {
        let copies = copies(&client).await;
        let entries: u64 = copies.iter().filter(is_empty).map(|(_, entries, _)| entries).sum();
        (entries == 5).then_some(copies)
    })
    .await;
    let oldest = |copies: &[Copy], empty: bool| {
        let of = copies.iter().filter(|copy| is_empty(copy) == empty);
        of.map(|(.., floor)| *floor).max()
    };
    assert!(oldest(&fetched, true) <= oldest(&fetched, false), "{fetched:?}");

    push(&channel, &[(8, 3)], vec![]).await.expect("durable");
    assert_eq!(indexed(&client).await, survives);
    let rollbacks = simple(&client, "SHOW ROLLBACKS").await.expect("rollbacks");
    let point: u64 = rollbacks[0][2].as_deref().expect("a point").parse().expect("an epoch");
    eventually("the copies of the node go as far back as the other's", async || {
        let all = copies(&client).await;
        all.iter().filter(is_empty).all(|(.., floor)| *floor <= point).then_some(())
    })
    .await;
    assert_eq!(indexed(&client).await, survives);
    sql::run(&reader, "COMMIT").await;
}
