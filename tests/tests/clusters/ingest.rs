//! Tests gRPC ingest against a whole cluster: streams of writes, and streams of mutations that
//! their producer numbers.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is a client of the product: real clocks, sockets and tasks"
)]

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::StreamExt;
use proto::grpc::admin_client::AdminClient;
use proto::grpc::document_write::Kind;
use proto::grpc::ingest_client::IngestClient;
use proto::grpc::{
    DocumentWrite, ExecuteRequest, ListBucketsRequest, ListIndexesRequest, PositionsRequest,
    PushMutation, PushReply, PushRequest, ScanRequest, VbucketPosition, WriteReply, WriteRequest,
};
use tests::harness::grpc::{all, channel, ids, refused, scan};
use tests::harness::process::Dev;
use tests::harness::{TestCluster, sql};
use tonic::transport::Channel;
use tonic::{Code, Status};

fn insert(id: &str, document: &str) -> DocumentWrite {
    DocumentWrite { id: id.into(), kind: Some(Kind::Insert(Bytes::from(document.to_owned()))) }
}

fn upsert(id: &str, document: &str) -> DocumentWrite {
    DocumentWrite { id: id.into(), kind: Some(Kind::Upsert(Bytes::from(document.to_owned()))) }
}

fn delete(id: &str) -> DocumentWrite {
    DocumentWrite { id: id.into(), kind: Some(Kind::Delete(true)) }
}

/// Sends requests in one stream; returns the replies up to the end or the first error.
async fn write(channel: &Channel, requests: Vec<WriteRequest>) -> Vec<Result<WriteReply, Status>> {
    let mut client = IngestClient::new(channel.clone());
    let replies = client.write(futures::stream::iter(requests)).await.expect("a stream");
    replies.into_inner().collect().await
}

fn request(bucket: &str, writes: Vec<DocumentWrite>) -> WriteRequest {
    WriteRequest { bucket: bucket.into(), writes }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_writes_is_answered_request_by_request() {
    let cluster = TestCluster::start(1, 2).await;
    let channel = channel(cluster.grpc_address()).await;
    let mut admin = AdminClient::new(channel.clone());
    for (statement, tag) in [
        ("CREATE BUCKET b WITH (vbuckets = 8)", "CREATE BUCKET"),
        ("CREATE INDEX i ON b (n::int8) WITH (slices = 3)", "CREATE INDEX"),
    ] {
        let reply = admin.execute(ExecuteRequest { sql: statement.into() }).await.expect("DDL");
        assert_eq!(reply.into_inner().tag, tag);
    }
    let buckets = admin.list_buckets(ListBucketsRequest {}).await.expect("buckets").into_inner();
    assert_eq!((&*buckets.buckets[0].name, buckets.buckets[0].vbuckets), ("b", 8));
    let indexes = admin.list_indexes(ListIndexesRequest {}).await.expect("indexes").into_inner();
    assert_eq!((&*indexes.indexes[0].state, indexes.indexes[0].slices), ("online", 3));

    for (statement, tag) in [
        ("ALTER INDEX i SET (replicas = 1)", "ALTER INDEX"),
        ("CREATE INDEX packed ON b (n::int8) WITH (compression = 'zstd')", "CREATE INDEX"),
        ("REBALANCE INDEX packed", "REBALANCE 0"),
    ] {
        let reply = admin.execute(ExecuteRequest { sql: statement.into() }).await;
        assert_eq!(reply.unwrap_or_else(|e| panic!("{statement}: {e:?}")).into_inner().tag, tag);
    }
    let select = ExecuteRequest { sql: "SELECT 1".into() };
    refused(admin.execute(select).await, Code::Unimplemented, "0A000", "definitions");

    // Several requests before the first reply; only the first one names the bucket.
    let many: Vec<_> =
        (0..200).map(|n| upsert(&format!("d{n}"), &format!("{{\"n\":{n}}}"))).collect();
    let mut requests: Vec<_> = many.chunks(20).map(|part| request("", part.to_vec())).collect();
    requests[0].bucket = "b".into();
    requests.push(request("", vec![delete("d0"), delete("never"), insert("d0", "{\"n\":-5}")]));
    let replies = write(&channel, requests).await;
    let replies: Vec<_> = replies.into_iter().map(|reply| reply.expect("a reply")).collect();
    let affected: Vec<_> = replies.iter().map(|reply| reply.affected).collect();
    assert_eq!(affected, [&[20; 10][..], &[2]].concat());
    let last = replies.last().expect("a reply").write_position.clone();
    let rows = scan(&channel, ScanRequest { at_plus: last, limit: Some(3), ..all("i") }).await;
    assert_eq!(
        ids(&rows.expect("rows")),
        ["d0", "d1", "d2"],
        "its own writes are seen at its position"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_write_ends_its_stream_and_keeps_earlier_writes() {
    let cluster = TestCluster::start(1, 1).await;
    let channel = channel(cluster.grpc_address()).await;
    let client = cluster.sql().await;
    sql::run(&client, "CREATE BUCKET b; CREATE BUCKET p FROM PUSH; CREATE PRIMARY INDEX i ON b")
        .await;
    let first = || request("b", vec![upsert("a", "{}")]);
    let unanswered = || request("b", vec![upsert("later", "{}")]);
    let long = "x".repeat(300);
    for (bad, code, state, word) in [
        (
            request("b", vec![upsert("x", "{}"), insert("a", "{}")]),
            Code::AlreadyExists,
            "23505",
            "\"a\"",
        ),
        (
            request("b", vec![upsert("x", "{}"), upsert("y", "{\"a\":")]),
            Code::InvalidArgument,
            "22P02",
            "\"y\"",
        ),
        (
            request("b", vec![upsert("x", "{}"), upsert(&long, "{}")]),
            Code::ResourceExhausted,
            "54000",
            "250",
        ),
        (
            request("b", vec![upsert("x", "{}"), upsert("", "{}")]),
            Code::InvalidArgument,
            "22P02",
            "id",
        ),
        (request("nowhere", vec![upsert("x", "{}")]), Code::NotFound, "42P01", "nowhere"),
        (request("i", vec![upsert("x", "{}")]), Code::NotFound, "42P01", "index"),
    ] {
        let mut replies = write(&channel, vec![first(), bad, unanswered()]).await;
        assert_eq!(replies.len(), 2, "the error ends the stream: {replies:?}");
        refused(replies.pop().expect("a reply"), code, state, word);
        assert_eq!(replies.pop().expect("a reply").expect("written").affected, 1);
    }
    let replies = write(&channel, vec![request("", vec![upsert("x", "{}")])]).await;
    refused(replies.into_iter().next().expect("a reply"), Code::InvalidArgument, "22023", "bucket");
    let replies = write(&channel, vec![request("p", vec![upsert("x", "{}")])]).await;
    let status = replies.into_iter().next().expect("a reply").expect_err("one kind of writer");
    assert!(status.message().contains("PUSH") || status.message().contains("push"), "{status:?}");
    let over = format!("{{\"pad\":\"{}\"}}", "x".repeat(17 << 20));
    let replies = write(&channel, vec![first(), request("b", vec![upsert("x", &over)])]).await;
    let status = replies.into_iter().nth(1).expect("a reply").expect_err("a message over its size");
    assert!(status.message().contains("too large"), "{status:?}");
    sql::run(&client, "SET consistency = 'request_plus'").await;
    assert_eq!(
        sql::simple(&client, "SELECT id FROM i").await.expect("rows"),
        [[Some("a".to_owned())]]
    );
}

/// A producer of a pushed bucket, which numbers its mutations.
struct Producer {
    vbuckets: u64,
    vbuuid: u64,
    seqnos: BTreeMap<u32, u64>,
}

impl Producer {
    /// Returns the vbucket of an id, by the published hash.
    fn vbucket(&self, id: &str) -> u32 {
        (xxhash_rust::xxh3::xxh3_64(id.as_bytes()) % self.vbuckets) as u32
    }

    fn next(&mut self, id: &str, document: Option<String>) -> PushMutation {
        let vbucket = self.vbucket(id);
        let seqno = self.seqnos.entry(vbucket).or_default();
        *seqno += 1;
        let (vbuuid, seqno) = (self.vbuuid + u64::from(vbucket), *seqno);
        let document = document.map(Bytes::from);
        PushMutation { vbucket, vbuuid, seqno, id: id.into(), document, position: 0 }
    }

    fn positions(&self) -> Vec<(u32, u64, u64)> {
        let position =
            |(vbucket, seqno): (&u32, &u64)| (*vbucket, self.vbuuid + u64::from(*vbucket), *seqno);
        self.seqnos.iter().map(position).collect()
    }
}

async fn push(
    channel: &Channel,
    requests: Vec<Vec<PushMutation>>,
) -> Vec<Result<PushReply, Status>> {
    let mut client = IngestClient::new(channel.clone());
    let request =
        |mutations| PushRequest { bucket: "p".into(), mutations, ..PushRequest::default() };
    let requests: Vec<_> = requests.into_iter().map(request).collect();
    let replies = client.push(futures::stream::iter(requests)).await.expect("a stream");
    replies.into_inner().collect().await
}

/// Returns the positions with a seqno above zero, as (vbucket, vbuuid, seqno).
async fn positions(channel: &Channel) -> Vec<(u32, u64, u64)> {
    let mut client = IngestClient::new(channel.clone());
    let reply = client.positions(PositionsRequest { bucket: "p".into() }).await.expect("positions");
    let position = |p: &VbucketPosition| (p.vbucket, p.vbuuid, p.seqno);
    let all = reply.into_inner().positions;
    all.iter().map(position).filter(|(_, _, seqno)| *seqno > 0).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pushed_mutations_are_stored_in_the_order_of_their_numbers() {
    let cluster = TestCluster::start(1, 2).await;
    let channel = channel(cluster.grpc_address()).await;
    let client = cluster.sql().await;
    sql::run(&client, "CREATE BUCKET p FROM PUSH WITH (vbuckets = 4)").await;
    let mut producer = Producer { vbuckets: 4, vbuuid: 1000, seqnos: BTreeMap::new() };
    let document = |n: usize| Some(format!("{{\"n\":{n}}}"));
    let all: Vec<_> = (0..100).map(|n| producer.next(&format!("d{n}"), document(n))).collect();
    let replies = push(&channel, all.chunks(30).map(<[_]>::to_vec).collect()).await;
    assert_eq!(replies.len(), 4);
    assert!(replies.iter().all(Result::is_ok), "{replies:?}");
    assert_eq!(positions(&channel).await, producer.positions());
    sql::run(&client, "CREATE INDEX i ON p (n::int8)").await;

    let good = producer.next("d0", document(1000));
    let bad = |change: fn(&mut PushMutation)| {
        let mut mutation = good.clone();
        change(&mut mutation);
        mutation
    };
    for (mutation, code, word) in [
        (bad(|m| m.vbucket = (m.vbucket + 1) % 4), Code::InvalidArgument, "belongs to vbucket"),
        (bad(|m| m.vbucket = 70_000), Code::InvalidArgument, "vbucket 70000"),
        (bad(|m| m.seqno += 1), Code::FailedPrecondition, "gap"),
        (bad(|m| m.seqno -= 1), Code::FailedPrecondition, "is stored already"),
        (bad(|m| m.vbuuid += 9), Code::FailedPrecondition, "branch"),
    ] {
        let replies = push(&channel, vec![vec![mutation], vec![good.clone()]]).await;
        assert_eq!(replies.len(), 1, "the error ends the stream: {replies:?}");
        refused(replies.into_iter().next().expect("a reply"), code, "22023", word);
    }
    let json = bad(|m| m.document = Some(Bytes::from_static(b"{")));
    let replies = push(&channel, vec![vec![json]]).await;
    refused(replies.into_iter().next().expect("a reply"), Code::InvalidArgument, "22P02", "JSON");
    // The part of the request before the bad mutation is stored, and Positions reports it.
    let later = producer.next("d1", None);
    let replies = push(&channel, vec![vec![good, later.clone(), later]]).await;
    refused(
        replies.into_iter().next().expect("a reply"),
        Code::FailedPrecondition,
        "22023",
        "durable position",
    );
    assert_eq!(positions(&channel).await, producer.positions());
    let state = sql::sqlstate(&client, "INSERT INTO p (id, doc) VALUES ('x', '{}')").await;
    assert!(!state.is_empty(), "a bucket has one kind of writer");
    sql::run(&client, "SET consistency = 'request_plus'").await;
    assert_eq!(sql::value(&client, "SELECT count(*) FROM i").await, "99");
    let last =
        sql::simple(&client, "SELECT id, n FROM i ORDER BY n DESC LIMIT 1").await.expect("rows");
    assert_eq!(last, [[Some("d0".to_owned()), Some("1000".to_owned())]]);
}

#[test]
fn a_producer_continues_from_the_reported_positions_after_a_crash() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut producer = Producer { vbuckets: 16, vbuuid: 5, seqnos: BTreeMap::new() };
    for round in 0..3 {
        let process = Dev::start(data.path());
        runtime.block_on(async {
            let client = tests::harness::connect(process.sql_address()).await;
            sql::run(
                &client,
                "CREATE BUCKET IF NOT EXISTS p FROM PUSH WITH (vbuckets = 16);
                 CREATE INDEX IF NOT EXISTS i ON p (round::int8); SET consistency = 'request_plus'",
            )
            .await;
            let channel = channel(process.grpc_address()).await;
            assert_eq!(positions(&channel).await, producer.positions(), "round {round}");
            let document = || Some(format!("{{\"round\":{round}}}"));
            let all: Vec<_> = (0..150)
                .map(|n| producer.next(&format!("d{}", n + round * 50), document()))
                .collect();
            let replies = push(&channel, all.chunks(10).map(<[_]>::to_vec).collect()).await;
            assert!(replies.len() == 15 && replies.iter().all(Result::is_ok), "{replies:?}");
            let count = sql::value(&client, "SELECT count(*) FROM i").await;
            assert_eq!(count, (150 + round * 50).to_string());
            let newest =
                sql::value(&client, &format!("SELECT count(*) FROM i WHERE round = {round}")).await;
            assert_eq!(newest, "150");
        });
        process.kill();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_says_at_its_deadline_that_nothing_else_was_done() {
    let cluster = TestCluster::start(1, 1).await;
    let channel = channel(cluster.grpc_address()).await;
    sql::run(&cluster.sql().await, "CREATE BUCKET b").await;
    let first = futures::stream::iter([request("b", vec![upsert("a", "{}")])]);
    let mut call = tonic::Request::new(first.chain(futures::stream::pending()));
    call.set_timeout(std::time::Duration::from_secs(1));
    let replies = IngestClient::new(channel).write(call).await.expect("a stream").into_inner();
    let mut replies: Vec<_> = replies.collect().await;
    assert_eq!(replies.len(), 2, "{replies:?}");
    refused(replies.remove(1), Code::DeadlineExceeded, "57014", "nothing else was done");
    assert_eq!(replies.remove(0).expect("in time").affected, 1);
}
