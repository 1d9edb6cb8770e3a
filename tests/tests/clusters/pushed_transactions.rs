//! Tests transactions of the producer of a pushed bucket over gRPC: visible with their commit and
//! as a whole, rolled back, refused, repeated.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is a client of the product: real clocks, sockets and tasks"
)]

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use proto::grpc::ingest_client::IngestClient;
use proto::grpc::{
    AbortPushRequest, BeginRequest, CommitPushRequest, PushMutation, PushReply, PushRequest,
    PushedPart, ScanRequest,
};
use tests::harness::grpc::{all, channel, ids, refused, scan};
use tests::harness::{TestCluster, sql};
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Code, Status};

const VBUCKETS: u64 = 4;
const BRANCH: u64 = 7;

/// A producer, which knows the end of each vbucket.
struct Producer {
    channel: Channel,
    ends: [u64; VBUCKETS as usize],
}

impl Producer {
    fn client(&self) -> IngestClient<Channel> {
        IngestClient::new(self.channel.clone())
    }

    /// Sends one request of a stream of pushes.
    async fn send(&self, request: PushRequest) -> Result<PushReply, Status> {
        let replies = self.client().push(futures::stream::iter([request])).await.expect("a stream");
        replies.into_inner().next().await.expect("a reply")
    }

    /// Pushes a document outside of a transaction.
    async fn push(&mut self, id: &str, n: u64) {
        let vbucket = vbucket(id);
        let seqno = &mut self.ends[vbucket as usize];
        *seqno += 1;
        let mutation = PushMutation { vbuuid: BRANCH, seqno: *seqno, ..mutation(id, n) };
        let mutations = vec![mutation];
        self.send(PushRequest { bucket: "p".into(), mutations, ..PushRequest::default() })
            .await
            .expect("pushed");
    }

    /// Pushes documents in a transaction.
    async fn push_in(
        &self,
        transaction: u64,
        changes: &[(&str, u64)],
    ) -> Result<PushReply, Status> {
        let mutations = in_transaction(changes);
        let bucket = "p".into();
        self.send(PushRequest { bucket, mutations, transaction, ..PushRequest::default() }).await
    }

    /// Returns the commit of a transaction with these changes.
    fn commit_of(&self, transaction: u64, changes: &[(&str, u64)]) -> CommitPushRequest {
        let mut counts = [0; VBUCKETS as usize];
        changes.iter().for_each(|(id, _)| counts[vbucket(id) as usize] += 1);
        let parts = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let part = |(n, count): (usize, &u64)| PushedPart {
            vbucket: n as u32,
            vbuuid: BRANCH,
            seqno: self.ends[n] + count,
            mutations: *count,
        };
        CommitPushRequest { bucket: "p".into(), transaction, parts: parts.map(part).collect() }
    }

    async fn commit(&self, request: &CommitPushRequest) -> Result<PushReply, Status> {
        self.client().commit_push(request.clone()).await.map(tonic::Response::into_inner)
    }

    async fn abort(&self, transaction: u64) {
        let request = AbortPushRequest { bucket: "p".into(), transaction };
        self.client().abort_push(request).await.expect("rolled back");
    }

    /// Returns the ids of the index, in its order, at an epoch that covers everything acknowledged
    /// before.
    async fn shown(&self) -> Vec<String> {
        let request = ScanRequest { consistency: "request_plus".into(), ..all("by_n") };
        let scanned = scan(&self.channel, request).await.expect("rows");
        ids(&scanned).into_iter().map(str::to_owned).collect()
    }
}

fn vbucket(id: &str) -> u32 {
    (xxhash_rust::xxh3::xxh3_64(id.as_bytes()) % VBUCKETS) as u32
}

fn mutation(id: &str, n: u64) -> PushMutation {
    let document = Some(Bytes::from(format!("{{\"n\":{n}}}")));
    PushMutation { vbucket: vbucket(id), id: id.into(), document, ..PushMutation::default() }
}

/// Returns mutations with their positions in a transaction.
fn in_transaction(changes: &[(&str, u64)]) -> Vec<PushMutation> {
    let mut positions = [0; VBUCKETS as usize];
    let of = |(id, n): &(&str, u64)| {
        let position = &mut positions[vbucket(id) as usize];
        *position += 1;
        PushMutation { position: *position, ..mutation(id, *n) }
    };
    changes.iter().map(of).collect()
}

async fn start() -> (TestCluster, Producer, tokio_postgres::Client) {
    let cluster = TestCluster::start(1, 2).await;
    let client = cluster.sql().await;
    sql::run(
        &client,
        "CREATE BUCKET p FROM PUSH WITH (vbuckets = 4); CREATE BUCKET b;
         CREATE INDEX by_n ON p (n::int8) WITH (slices = 3)",
    )
    .await;
    let channel = channel(cluster.grpc_address()).await;
    (cluster, Producer { channel, ends: [0; VBUCKETS as usize] }, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_names_a_vbucket_which_the_bucket_lacks_is_refused() {
    let (_cluster, mut producer, _client) = start().await;
    producer.push("old", 9).await;
    producer.push_in(1, &[("a", 3)]).await.expect("kept");
    for vbucket in [4, 65_535, u32::MAX] {
        let mut commit = producer.commit_of(1, &[("a", 3)]);
        let far = PushedPart { vbucket, vbuuid: BRANCH, seqno: 1, mutations: 1 };
        commit.parts.push(far);
        let asked = timeout(Duration::from_secs(5), producer.commit(&commit)).await;
        let error = asked.expect("an answer").expect_err("refused");
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    }
    let commit = producer.commit_of(1, &[("a", 3)]);
    producer.commit(&commit).await.expect("the transaction is open still");
    assert_eq!(producer.shown().await, ["a", "old"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_producers_transaction_is_shown_with_its_commit_and_an_aborted_one_never() {
    let (_cluster, mut producer, client) = start().await;
    producer.push("old", 9).await;
    let changes = [("a", 3), ("b", 2), ("c", 1), ("a", 4), ("old", 5)];
    let reply = producer.push_in(1, &changes).await.expect("kept");
    assert!(reply.durable.is_empty());
    assert_eq!(reply.kept.iter().map(|kept| kept.position).sum::<u64>(), 5);
    producer.push_in(2, &[("d", 1)]).await.expect("kept");
    assert_eq!(producer.shown().await, ["old"]);
    let listed = sql::simple(&client, "SHOW TRANSACTIONS").await.expect("transactions");
    let owners: Vec<_> = listed.iter().map(|row| row[2].clone().unwrap_or_default()).collect();
    let names = |n: u64| {
        owners.iter().any(|owner| owner.starts_with(&format!("producer, transaction {n},")))
    };
    assert!(names(1) && names(2), "{owners:?}");
    let commit = producer.commit_of(1, &changes);
    let committed = producer.commit(&commit).await.expect("committed");
    assert_eq!(committed.durable.len(), commit.parts.len());
    assert_eq!(
        producer.shown().await,
        ["c", "b", "a", "old"],
        "the last change of a document counts"
    );
    let again = producer.commit(&commit).await.expect("the same answer");
    assert_eq!(again.durable, committed.durable);
    for part in &commit.parts {
        producer.ends[part.vbucket as usize] = part.seqno;
    }
    producer.abort(2).await;
    producer.push("e", 6).await;
    assert_eq!(producer.shown().await, ["c", "b", "a", "old", "e"]);
    assert_eq!(sql::simple(&client, "SHOW TRANSACTIONS").await.expect("none").len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_do_not_fit_are_refused_by_name_and_the_transaction_stays_open() {
    let (_cluster, mut producer, client) = start().await;
    let changes = [("a", 1), ("b", 2)];
    producer.push_in(1, &changes).await.expect("kept");
    let commit = producer.commit_of(1, &changes);
    let with = |change: &dyn Fn(&mut CommitPushRequest)| {
        let mut changed = commit.clone();
        change(&mut changed);
        changed
    };
    for (bad, code, state, word) in [
        (with(&|c| c.transaction = 5), Code::NotFound, "25P01", "transaction 5"),
        (with(&|c| c.transaction = 0), Code::InvalidArgument, "22023", "above 0"),
        (with(&|c| c.parts.clear()), Code::InvalidArgument, "22023", "no vbucket"),
        (with(&|c| c.parts[0].mutations = 0), Code::InvalidArgument, "22023", "no mutations"),
        (with(&|c| c.parts[0].mutations = 9), Code::InvalidArgument, "22023", "cannot end"),
        (with(&|c| c.parts[0].vbucket = 70_000), Code::InvalidArgument, "22023", "out of range"),
        (with(&|c| c.parts[0].vbucket = 4), Code::InvalidArgument, "22023", "vbucket 4"),
        (with(&|c| c.parts[0].seqno += 1), Code::FailedPrecondition, "22023", "gap"),
        (with(&|c| c.bucket = "b".into()), Code::Unimplemented, "0A000", "embedded"),
        (with(&|c| c.bucket = "x".into()), Code::NotFound, "42P01", "x"),
    ] {
        refused(producer.commit(&bad).await, code, state, word);
    }
    let request = |mutations, transaction| PushRequest {
        bucket: "p".into(),
        mutations,
        transaction,
        ..PushRequest::default()
    };
    let plain = PushMutation { vbuuid: BRANCH, seqno: 1, ..mutation("a", 1) };
    let inside = in_transaction(&[("a", 1)]);
    for (bad, word) in [
        (request(vec![plain.clone()], 1), "position above 0"),
        (request(inside.clone(), 0), "no transaction"),
        (PushRequest { branches: vec![Default::default()], ..request(inside, 1) }, "no branches"),
    ] {
        refused(producer.send(bad).await, Code::InvalidArgument, "22023", word);
    }
    let begin = BeginRequest { bucket: "p".into(), ..BeginRequest::default() };
    refused(producer.client().begin(begin).await, Code::Unimplemented, "0A000", "push");
    producer.commit(&commit).await.expect("it is open still");
    assert_eq!(producer.shown().await, ["a", "b"]);
    for part in &commit.parts {
        producer.ends[part.vbucket as usize] = part.seqno;
    }
    // An operator may cancel one; its producer learns that with the commit.
    producer.push_in(2, &[("c", 3)]).await.expect("kept");
    let listed = sql::simple(&client, "SHOW TRANSACTIONS").await.expect("transactions");
    let open =
        listed.iter().find(|row| row[2].as_deref().is_some_and(|o| o.contains("transaction 2,")));
    let number = open.and_then(|row| row[0].clone()).expect("it is listed");
    sql::run(&client, &format!("CANCEL TRANSACTION {number}")).await;
    let commit = producer.commit_of(2, &[("c", 3)]);
    refused(producer.commit(&commit).await, Code::NotFound, "25P01", "transaction 2");
}
