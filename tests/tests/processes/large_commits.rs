//! Tests large commits of buckets with copies, and over two buckets, whose projectors are killed: a
//! commit survives as a whole, or not at all.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests run the product as processes: real clocks, sockets and tasks"
)]

use std::fmt::Write as _;
use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::Bytes;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, NodeId, TransactionId, TransactionPlace};
use proto::rpc::api::{
    CheckedWrites, Decision, Directory, ProjectorApi, TransactionCommit, TransactionState,
    TransactionWrite, Write, WriteKind,
};
use proto::value::DOCUMENT_BYTES_MAX;
use tests::harness::copies::{PROJECTORS, in_sync, is_led_by, roles, until};
use tests::harness::processes::Processes;
use tests::harness::{connect, eventually, number_from_env, sql};
use tokio_postgres::Client;

use crate::held_epochs::catalog;

/// The number of documents of a commit in a bucket with copies: more than 40 MB.
const DOCUMENTS: u64 = 30_000;
/// The number of documents of a commit in each of two buckets: more than 20 MB.
const IN_EACH: u64 = 15_000;
/// The number of documents in one call.
const OF_CALL: u64 = 1_500;
/// The length of the text that makes a document large, in bytes.
const PAD: usize = 1_400;

fn document(n: u64) -> String {
    format!("{{\"n\":{n},\"pad\":\"{}\"}}", "x".repeat(PAD))
}

fn lines(documents: Range<u64>) -> String {
    let mut lines = String::new();
    for n in documents {
        let _ = writeln!(lines, "{{\"id\":\"d{n:07}\",{}", &document(n)[1..]);
    }
    lines
}

async fn count(client: &Client, index: &str) -> Result<u64, tokio_postgres::Error> {
    let rows = sql::simple(client, &format!("SELECT count(*) FROM {index}")).await?;
    Ok(rows[0][0].as_ref().expect("a number").parse().expect("a number"))
}

/// Returns the number of documents in an index, at an epoch that covers everything acknowledged
/// before.
async fn counted(client: &Client, index: &str) -> u64 {
    sql::run(client, "SET consistency = 'request_plus'").await;
    eventually("the index answers", || async { count(client, index).await.ok() }).await
}

/// `DOCUMENTS=250000` makes the commit nearly as large as the limit of a transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_commit_is_whole_on_both_copies_or_on_none_whenever_its_leader_dies() {
    let mut cluster = Processes::start_with(&[1], &[201]).await;
    let client = cluster.sql().await;
    cluster.run(PROJECTORS[1]);
    cluster.joined(&client, PROJECTORS[1]).await;
    sql::run(&client, "CREATE BUCKET b WITH (vbuckets = 16, copies = 2)").await;
    sql::run(&client, "CREATE INDEX i ON b (n::int8)").await;
    let documents = number_from_env("DOCUMENTS", DOCUMENTS);
    let mut there = 0;
    // At once, in the midst, and after the answer.
    let (mut rounds, mut given_up) = (vec![None, Some(200), Some(20)], 0);
    for round in 0.. {
        let Some(after) = rounds.pop() else { break };
        let text = lines(round * documents..(round + 1) * documents);
        assert!(text.len() > PAD * documents as usize);
        let (leader, follower) = in_sync(&client).await;
        let session = connect(cluster.sql_address()).await;
        sql::run(&session, "BEGIN").await;
        sql::copy_in(&session, "COPY b FROM STDIN", text.as_bytes(), 1 << 20).await.expect("COPY");
        let commit = tokio::spawn(async move { session.batch_execute("COMMIT").await });
        let committed = match after {
            Some(millis) => {
                tokio::time::sleep(Duration::from_millis(millis)).await;
                cluster.kill(leader);
                commit.await.expect("the session")
            }
            None => {
                let began = Instant::now();
                let committed = commit.await.expect("the session");
                println!("COMMIT: {:?}", began.elapsed());
                let role = roles(&client).await.remove(&follower);
                if role.as_deref() != Some("in sync") {
                    // A stalled machine makes a copy silent, but a commit does not, so the test tries another commit.
                    given_up += 1;
                    assert!(given_up < 3, "the other copy is given up in each large commit");
                    committed.expect("the commit of a leader that lives");
                    there += documents;
                    rounds.push(None);
                    continue;
                }
                cluster.kill(leader);
                committed
            }
        };
        until(&client, "the other copy leads", is_led_by(follower)).await;
        let found = counted(&client, "i").await;
        println!("killed after {after:?}: {found} documents, {committed:?}");
        let is_there = found == there + documents;
        assert!(found == there || is_there, "{found} documents: all of the commit or nothing");
        assert!(is_there || committed.is_err(), "it was acknowledged");
        there = found;
        // The other copy has the same.
        cluster.run(leader);
        let (leader, follower) = in_sync(&client).await;
        cluster.kill(leader);
        until(&client, "the first copy leads again", is_led_by(follower)).await;
        assert_eq!(counted(&client, "i").await, found);
        let last = format!("SELECT id FROM b WHERE id = 'd{:07}'", (round + 1) * documents - 1);
        let rows = sql::simple(&client, &last).await.expect("a document by id");
        assert_eq!(rows.len(), usize::from(is_there), "the documents are those of the index");
        cluster.run(leader);
    }
    assert!(there >= documents, "the last one was acknowledged");
}

/// A bucket and its projector, for calls that normally a router makes.
struct Part {
    bucket: BucketId,
    node: NodeId,
}

const TRANSACTION: TransactionId = TransactionId(7_000_001);

impl Part {
    fn of(catalog: &Catalog, name: &str) -> Self {
        let info = catalog.buckets.values().find(|info| info.name == name).expect("the bucket");
        let node = *info.assignment.projectors().first().expect("a projector");
        Self { bucket: info.id, node }
    }

    fn projector(
        &self,
        cluster: &Processes,
        catalog: &Catalog,
    ) -> std::sync::Arc<dyn ProjectorApi> {
        cluster.directory().projector(&catalog.nodes[&self.node])
    }

    /// Writes all documents in the transaction. Returns the request that commits it.
    async fn write(&self, projector: &dyn ProjectorApi, both: &[BucketId]) -> TransactionCommit {
        let (mut place, mut behind) = (TransactionPlace(0), 0);
        for first in (0..IN_EACH).step_by(OF_CALL as usize) {
            let write = |n: u64| Write {
                id: format!("d{n:07}"),
                kind: WriteKind::Upsert(Bytes::from(document(n))),
            };
            let writes = (first..first + OF_CALL).map(write);
            let request = TransactionWrite {
                bucket: self.bucket,
                transaction: TRANSACTION,
                after: place,
                owner: "a test".to_owned(),
                snapshot: None,
                writes: CheckedWrites::new(writes.collect(), DOCUMENT_BYTES_MAX).expect("JSON"),
            };
            let written = projector.write_for_transaction(request).await.expect("written");
            (place, behind) = (written.place, written.behind);
        }
        let participants = both.to_vec();
        let (bucket, transaction) = (self.bucket, TRANSACTION);
        TransactionCommit { bucket, transaction, place, snapshot: None, behind, participants }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_participant_that_was_restarted_after_it_has_prepared_finishes_a_large_commit() {
    let mut cluster = Processes::start_with(&[1], &[201]).await;
    cluster.run(PROJECTORS[1]);
    let client = cluster.sql().await;
    cluster.joined(&client, PROJECTORS[1]).await;
    for bucket in ["one", "two"] {
        let create =
            format!("CREATE BUCKET {bucket}; CREATE INDEX n_{bucket} ON {bucket} (n::int8)");
        sql::run(&client, &create).await;
    }
    let known = catalog(&cluster).await;
    let [one, two] = ["one", "two"].map(|name| Part::of(&known, name));
    assert_ne!(one.node, two.node, "on both projectors");
    let both = [one.bucket, two.bucket];
    let (of_one, of_two) = (one.projector(&cluster, &known), two.projector(&cluster, &known));
    let decided = one.write(&*of_one, &both).await;
    let prepared = two.write(&*of_two, &both).await;
    assert_eq!(of_two.prepare(TRANSACTION, prepared).await.expect("prepared"), IN_EACH);
    cluster.kill(two.node.0);
    cluster.run(two.node.0);
    let known = eventually("it is back", || async {
        let known = catalog(&cluster).await;
        let fate = two.projector(&cluster, &known).transaction_state(two.bucket, TRANSACTION).await;
        matches!(fate, Ok(TransactionState::Prepared)).then_some(known)
    })
    .await;
    one.projector(&cluster, &known).commit(decided).await.expect("decided");
    let decision = Decision::Commit { participants: both.to_vec() };
    let finished = two
        .projector(&cluster, &known)
        .end_prepared_transaction(two.bucket, TRANSACTION, decision)
        .await;
    assert_eq!(finished.expect("finished").affected, IN_EACH);
    for index in ["n_one", "n_two"] {
        assert_eq!(counted(&client, index).await, IN_EACH);
    }
}
