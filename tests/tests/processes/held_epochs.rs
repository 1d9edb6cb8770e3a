//! Tests a projector that fails between the decision of a commit over two buckets and the commit of
//! its part: the status names the held bucket and the missing projector, other buckets continue,
//! and the hold ends when the projector returns.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests run the product as processes: real clocks, sockets and tasks"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, NodeId, TransactionId, TransactionPlace};
use proto::rpc::api::{
    CheckedWrites, Directory, ProjectorApi, TransactionCommit, TransactionWrite, WatchKind,
    WatchMessage, Write, WriteKind,
};
use proto::value::DOCUMENT_BYTES_MAX;
use tests::harness::processes::Processes;
use tests::harness::{eventually, sql};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

const COORDINATOR: u64 = 1;
const INDEXER: u64 = 200;
const SECOND_PROJECTOR: u64 = 102;
const TRANSACTION: TransactionId = TransactionId(7_000_001);

pub async fn catalog(cluster: &Processes) -> Arc<Catalog> {
    let coordinator = cluster.directory().coordinator();
    let mut messages = coordinator.watch(WatchKind::Catalog).await.expect("a watch");
    while let Some(message) = messages.next().await {
        if let WatchMessage::Catalog(catalog) = message.expect("a message") {
            return catalog;
        }
    }
    panic!("the watch has no catalog");
}

/// A bucket and its projector, for calls that normally a router makes.
struct Part {
    bucket: BucketId,
    projector: Arc<dyn ProjectorApi>,
    node: NodeId,
}

impl Part {
    fn of(cluster: &Processes, catalog: &Catalog, name: &str) -> Self {
        let info = catalog.buckets.values().find(|info| info.name == name).expect("the bucket");
        let node = *info.assignment.projectors().first().expect("a projector");
        let projector = cluster.directory().projector(&catalog.nodes[&node]);
        Self { bucket: info.id, projector, node }
    }

    /// Writes document `d` in the transaction. Returns the request that commits it.
    async fn write(&self, participants: &[BucketId]) -> TransactionCommit {
        let document = Bytes::from_static(b"{\"n\":1}");
        let write = Write { id: "d".into(), kind: WriteKind::Upsert(document) };
        let write = TransactionWrite {
            bucket: self.bucket,
            transaction: TRANSACTION,
            after: TransactionPlace(0),
            owner: "a test".to_owned(),
            snapshot: None,
            writes: CheckedWrites::new(vec![write], DOCUMENT_BYTES_MAX).expect("a document"),
        };
        let written = self.projector.write_for_transaction(write).await.expect("written");
        TransactionCommit {
            bucket: self.bucket,
            transaction: TRANSACTION,
            place: written.place,
            snapshot: None,
            behind: written.behind,
            participants: participants.to_vec(),
        }
    }
}

async fn count(client: &Client, bucket: &str) -> String {
    sql::value(client, &format!("SELECT count(*) FROM n_{bucket}")).await
}

/// Returns the only row of `SHOW HOLDS`, without the time; `None` if there is none.
async fn hold(client: &Client) -> Option<[String; 4]> {
    let rows = sql::simple(client, "SHOW HOLDS").await.expect("holds");
    let row = rows.first()?;
    assert_eq!(rows.len(), 1, "{rows:?}");
    Some([0, 2, 3, 4].map(|cell| row[cell].clone().expect("a value")))
}

async fn two_projectors() -> (Processes, Client) {
    let mut cluster = Processes::start_with(&[COORDINATOR], &[INDEXER]).await;
    cluster.run(SECOND_PROJECTOR);
    let client = cluster.sql().await;
    cluster.joined(&client, SECOND_PROJECTOR).await;
    for bucket in ["one", "two", "three"] {
        let create =
            format!("CREATE BUCKET {bucket}; CREATE INDEX n_{bucket} ON {bucket} (n::int8)");
        sql::run(&client, &create).await;
    }
    (cluster, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_projector_that_dies_before_it_has_its_part_is_named_while_others_go_on() {
    let (mut cluster, client) = two_projectors().await;
    let catalog = catalog(&cluster).await;
    let [one, two, three] = ["one", "two", "three"].map(|name| Part::of(&cluster, &catalog, name));
    let nodes = (one.node, two.node, three.node);
    assert_eq!(nodes, (NodeId(101), NodeId(SECOND_PROJECTOR), NodeId(101)), "spread over both");

    let both = [one.bucket, two.bucket];
    let (decided, prepared) = (one.write(&both).await, two.write(&both).await);
    two.projector.prepare(TRANSACTION, prepared).await.expect("prepared");
    cluster.kill(SECOND_PROJECTOR);
    one.projector.commit(decided).await.expect("decided");
    let began = Instant::now();
    let expected = ["one", "7000001", "two", "102"].map(str::to_owned);
    let named = eventually("the hold is named", || hold(&client)).await;
    assert_eq!(named, expected);
    assert!(began.elapsed() < Duration::from_secs(2), "named after {:?}", began.elapsed());

    sql::run(&client, "INSERT INTO one (id, doc) VALUES ('later', '{\"n\":2}')").await;
    sql::run(&client, "INSERT INTO three (id, doc) VALUES ('later', '{\"n\":2}')").await;
    sql::run(&client, "SET consistency = 'request_plus'").await;
    assert_eq!(count(&client, "three").await, "1", "epochs of other buckets go on");
    sql::run(&client, "SET consistency = 'any'").await;
    let refused = sql::simple(&client, "SELECT count(*) FROM n_one").await;
    let refused = refused.expect_err("no epoch has what the session has written there");
    assert_eq!(refused.code(), Some(&SqlState::CANNOT_CONNECT_NOW), "{refused:?}");
    sql::run(&client, "SET consistency = 'stale'").await;
    assert_eq!(count(&client, "one").await, "0", "nobody sees a part of the commit");
    eventually("the projector is named as silent", || async {
        let rows = sql::simple(&client, "SHOW HOLDS").await.expect("holds");
        let note = rows[0][5].clone()?;
        note.starts_with("node 102 has been silent for ").then_some(())
    })
    .await;

    cluster.run(SECOND_PROJECTOR);
    eventually("the hold ends", || async { hold(&client).await.is_none().then_some(()) }).await;
    sql::run(&client, "SET consistency = 'request_plus'").await;
    assert_eq!(
        (count(&client, "one").await, count(&client, "two").await),
        ("2".into(), "1".into())
    );
}
