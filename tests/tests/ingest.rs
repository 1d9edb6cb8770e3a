//! gRPC and HTTP against a whole cluster: streams of writes and of pushed mutations, scans in pages with
//! continuation tokens, health, reflection, status and metrics.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bytes::Bytes;
use futures::StreamExt;
use proto::grpc::admin_client::AdminClient;
use proto::grpc::document_write::Kind;
use proto::grpc::ingest_client::IngestClient;
use proto::grpc::query_client::QueryClient;
use proto::grpc::{
    DocumentWrite, ExecuteRequest, ListBucketsRequest, ListIndexesRequest, PositionsRequest,
    PushMutation, PushReply, PushRequest, ScanReply, ScanRequest, VbucketPosition, WriteReply,
    WriteRequest,
};
use tests::harness::process::Dev;
use tests::harness::{TestCluster, sql};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

async fn channel(address: SocketAddr) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
    endpoint.connect().await.expect("a gRPC connection")
}

/// The code of a refusal, the SQLSTATE beside it, and that its message has a word.
fn refused<T: std::fmt::Debug>(answer: Result<T, Status>, code: Code, state: &str, word: &str) {
    let status = answer.expect_err("must be refused");
    let told = status.metadata().get("sqlstate").map(|value| value.to_str().expect("text"));
    assert_eq!((status.code(), told.unwrap_or_default()), (code, state), "{}", status.message());
    assert!(status.message().contains(word), "{:?} must say {word:?}", status.message());
}

fn insert(id: &str, document: &str) -> DocumentWrite {
    DocumentWrite { id: id.into(), kind: Some(Kind::Insert(Bytes::from(document.to_owned()))) }
}

fn upsert(id: &str, document: &str) -> DocumentWrite {
    DocumentWrite { id: id.into(), kind: Some(Kind::Upsert(Bytes::from(document.to_owned()))) }
}

fn delete(id: &str) -> DocumentWrite {
    DocumentWrite { id: id.into(), kind: Some(Kind::Delete(true)) }
}

/// Sends requests in one stream; the answers up to the end or to the error that ends it.
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
    assert_eq!((&*indexes.indexes[0].state, indexes.indexes[0].slices), ("maintenance", 3));

    // Several requests before the first reply; the bucket is named once.
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
async fn a_bad_write_ends_its_stream_and_keeps_what_came_before() {
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

/// A producer of a push bucket: it numbers its mutations itself.
struct Producer {
    vbuckets: u64,
    vbuuid: u64,
    seqnos: BTreeMap<u32, u64>,
}

impl Producer {
    /// The published hash of an id.
    fn vbucket(&self, id: &str) -> u32 {
        (xxhash_rust::xxh3::xxh3_64(id.as_bytes()) % self.vbuckets) as u32
    }

    fn next(&mut self, id: &str, document: Option<String>) -> PushMutation {
        let vbucket = self.vbucket(id);
        let seqno = self.seqnos.entry(vbucket).or_default();
        *seqno += 1;
        let (vbuuid, seqno) = (self.vbuuid + u64::from(vbucket), *seqno);
        PushMutation { vbucket, vbuuid, seqno, id: id.into(), document: document.map(Bytes::from) }
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
    let request = |mutations| PushRequest { bucket: "p".into(), mutations };
    let requests: Vec<_> = requests.into_iter().map(request).collect();
    let replies = client.push(futures::stream::iter(requests)).await.expect("a stream");
    replies.into_inner().collect().await
}

/// The positions above zero.
async fn positions(channel: &Channel) -> Vec<(u32, u64, u64)> {
    let mut client = IngestClient::new(channel.clone());
    let reply = client.positions(PositionsRequest { bucket: "p".into() }).await.expect("positions");
    let position = |p: &VbucketPosition| (p.vbucket, p.vbuuid, p.seqno);
    let all = reply.into_inner().positions;
    all.iter().map(position).filter(|(_, _, seqno)| *seqno > 0).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pushed_mutations_are_kept_in_the_order_of_their_numbers() {
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
        (bad(|m| m.seqno -= 1), Code::FailedPrecondition, "is here already"),
        (bad(|m| m.vbuuid += 9), Code::FailedPrecondition, "branch"),
    ] {
        let replies = push(&channel, vec![vec![mutation], vec![good.clone()]]).await;
        assert_eq!(replies.len(), 1, "the error ends the stream: {replies:?}");
        refused(replies.into_iter().next().expect("a reply"), code, "22023", word);
    }
    let json = bad(|m| m.document = Some(Bytes::from_static(b"{")));
    let replies = push(&channel, vec![vec![json]]).await;
    refused(replies.into_iter().next().expect("a reply"), Code::InvalidArgument, "22P02", "JSON");
    // What stands before the bad one in a request is kept, and Positions says so.
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
fn a_producer_goes_on_from_the_positions_after_a_crash() {
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

fn all(index: &str) -> ScanRequest {
    ScanRequest { index: index.into(), ..ScanRequest::default() }
}

async fn open(channel: &Channel, request: ScanRequest) -> Result<Streaming<ScanReply>, Status> {
    QueryClient::new(channel.clone()).scan(request).await.map(tonic::Response::into_inner)
}

/// What a scan answers, to its end.
#[derive(Clone, Debug, Default)]
struct Scanned {
    columns: Vec<String>,
    rows: Vec<Vec<Option<String>>>,
    epochs: Vec<u64>,
    token: String,
}

async fn scan(channel: &Channel, request: ScanRequest) -> Result<Scanned, Status> {
    let mut replies = open(channel, request).await?;
    let mut scanned = Scanned::default();
    while let Some(reply) = replies.message().await? {
        scanned.columns.extend(reply.columns);
        let row =
            |row: proto::grpc::ScanRow| row.values.into_iter().map(|value| value.text).collect();
        scanned.rows.extend(reply.rows.into_iter().map(row));
        scanned.epochs.push(reply.epoch);
        scanned.token = reply.token;
    }
    Ok(scanned)
}

fn ids(scanned: &Scanned) -> Vec<&str> {
    scanned.rows.iter().map(|row| row[0].as_deref().expect("an id")).collect()
}

/// A cluster with 500 documents and two indexes.
async fn numbered() -> (TestCluster, tokio_postgres::Client, Channel) {
    let cluster = TestCluster::start(1, 3).await;
    let client = cluster.sql().await;
    sql::run(
        &client,
        "CREATE BUCKET b; CREATE INDEX i ON b (k, n::int8 DESC) INCLUDE (pad) WITH (slices = 5);
         CREATE INDEX j ON b (k, n::int8 DESC); SET consistency = 'request_plus'",
    )
    .await;
    let pad = "p".repeat(200);
    let line =
        |n: u32| format!("{{\"id\":{n},\"n\":{n},\"k\":\"k{}\",\"pad\":\"{pad}\"}}\n", n % 7);
    let lines: String = (0..500).map(line).collect();
    sql::copy_in(&client, "COPY b FROM STDIN", lines.as_bytes(), 9999).await.expect("COPY");
    let channel = channel(cluster.grpc_address()).await;
    (cluster, client, channel)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_put_together_are_the_whole_at_one_moment() {
    let (cluster, client, first) = numbered().await;
    let plain = |reverse, limit, offset, filter: &str| ScanRequest {
        columns: vec!["id".into(), "k".into(), "n".into(), "lower(pad)".into()],
        r#where: filter.into(),
        reverse,
        limit,
        offset,
        consistency: "request_plus".into(),
        ..all("i")
    };
    let mut written = 0;
    for (request, rows, page_rows) in [
        (plain(false, None, 0, ""), 500, 37),
        (plain(true, None, 0, ""), 500, 100),
        (plain(false, Some(120), 30, ""), 120, 50),
        (plain(true, Some(10), 490, ""), 10, 3),
        (plain(false, None, 0, "k > 'k2' AND n < 100 OR n = 499"), 57, 7),
        (plain(false, None, 0, "k = 'nothing'"), 0, 5),
    ] {
        let request = ScanRequest { r#where: keep_out_new(&request.r#where), ..request };
        let whole = scan(&first, request.clone()).await.expect("rows");
        assert_eq!((whole.rows.len(), &*whole.token), (rows, ""), "{request:?}");
        assert_eq!(whole.columns[..3], ["id", "k", "n"]);
        let (mut pages, mut token) = (Vec::new(), String::new());
        let mut epochs = Vec::new();
        loop {
            // Each page by a connection of its own: a token is all that is needed.
            let channel = channel(cluster.grpc_address()).await;
            let page = ScanRequest { token, page_rows, ..request.clone() };
            let page = scan(&channel, page).await.expect("a page");
            pages.extend(page.rows);
            epochs.extend(page.epochs);
            token = page.token;
            if token.is_empty() {
                break;
            }
            // What is written between the pages is not of their moment.
            written += 1;
            let write = format!(
                "INSERT INTO b (id, doc) VALUES ('new{written}', '{{\"k\":\"k3\",\"n\":{written}}}'), \
                 ('{written}', '{{\"k\":\"moved\",\"n\":0}}') \
                 ON CONFLICT (id) DO UPDATE SET doc = excluded.doc"
            );
            sql::run(&client, &write).await;
            sql::run(&client, &format!("DELETE FROM b WHERE id = 'new{written}'")).await;
        }
        assert_eq!(pages.len(), rows, "{request:?}");
        assert!(pages == whole.rows, "pages differ from the whole: {request:?}");
        epochs.dedup();
        assert_eq!(epochs.len(), 1, "one epoch: {epochs:?}");
        restore(&client, written).await;
    }
    assert!(written >= 5, "{written} writes between pages");
}

/// Only documents with a pad: those that are written between pages have none, nor a place in the answer.
fn keep_out_new(filter: &str) -> String {
    match filter {
        "" => "length(pad) = 200".to_owned(),
        filter => format!("({filter}) AND length(pad) = 200"),
    }
}

/// The documents as they were before the pages were read.
async fn restore(client: &tokio_postgres::Client, written: u32) {
    let pad = "p".repeat(200);
    let line =
        |n: u32| format!("{{\"id\":{n},\"n\":{n},\"k\":\"k{}\",\"pad\":\"{pad}\"}}\n", n % 7);
    let lines: String = (0..=written).map(line).collect();
    sql::copy_in(client, "COPY b FROM STDIN", lines.as_bytes(), 9999).await.expect("COPY");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_from_elsewhere_is_refused() {
    let (_cluster, client, channel) = numbered().await;
    let request =
        ScanRequest { r#where: "n >= 10".into(), consistency: "request_plus".into(), ..all("i") };
    let page =
        scan(&channel, ScanRequest { page_rows: 20, ..request.clone() }).await.expect("a page");
    let token = page.token;
    assert!(!token.is_empty());
    let with = |token: &str| ScanRequest { token: token.into(), ..request.clone() };
    let rest = scan(&channel, with(&token)).await.expect("the rest");
    assert_eq!(page.rows.len() + rest.rows.len(), 490, "the token is good, and stays so");
    for at in 0..token.len() {
        let mut flipped = token.clone().into_bytes();
        flipped[at] = if flipped[at] == b'A' { b'B' } else { b'A' };
        let flipped = String::from_utf8(flipped).expect("ASCII");
        refused(
            open(&channel, with(&flipped)).await.map(drop),
            Code::InvalidArgument,
            "22023",
            "token",
        );
    }
    let (cut, long) = (&token[..token.len() - 1], "A".repeat(1 << 20));
    for wrong in [cut, &format!("{token}A"), "x", "\u{e9}", &long] {
        refused(
            open(&channel, with(wrong)).await.map(drop),
            Code::InvalidArgument,
            "22023",
            "token",
        );
    }
    for other in [
        ScanRequest { r#where: "n >= 11".into(), ..with(&token) },
        ScanRequest { reverse: true, ..with(&token) },
        ScanRequest { index: "j".into(), ..with(&token) },
        ScanRequest { limit: Some(9), ..with(&token) },
    ] {
        refused(open(&channel, other).await.map(drop), Code::InvalidArgument, "22023", "another");
    }
    sql::run(&client, "DROP INDEX i; CREATE INDEX i ON b (k, n::int8 DESC) INCLUDE (pad)").await;
    refused(
        open(&channel, with(&token)).await.map(drop),
        Code::InvalidArgument,
        "22023",
        "another",
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_that_makes_no_sense_is_refused() {
    let (_cluster, _client, channel) = numbered().await;
    for (request, code, state) in [
        (all("nowhere"), Code::NotFound, "42P01"),
        (all("b"), Code::Unimplemented, "0A000"),
        (ScanRequest { r#where: "n >".into(), ..all("i") }, Code::InvalidArgument, "42601"),
        (
            ScanRequest { r#where: "1 = 1) LIMIT 1 --".into(), ..all("i") },
            Code::InvalidArgument,
            "42601",
        ),
        (ScanRequest { r#where: "absent = 1".into(), ..all("i") }, Code::Unimplemented, "0A000"),
        (
            ScanRequest { columns: vec!["count(*)".into()], ..all("i") },
            Code::Unimplemented,
            "0A000",
        ),
        (ScanRequest { consistency: "strong".into(), ..all("i") }, Code::InvalidArgument, "22023"),
        (ScanRequest { at_plus: "x".into(), ..all("i") }, Code::InvalidArgument, "22023"),
    ] {
        let shown = format!("{request:?}");
        let status = open(&channel, request).await.map(drop).expect_err(&shown);
        let told = status.metadata().get("sqlstate").map(|value| value.to_str().expect("text"));
        assert_eq!((status.code(), told), (code, Some(state)), "{shown}: {}", status.message());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_and_reflection_answer() {
    let cluster = TestCluster::start(1, 1).await;
    let channel = channel(cluster.grpc_address()).await;
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel.clone());
    let asked = tonic_health::pb::HealthCheckRequest { service: String::new() };
    let answer = health.check(asked).await.expect("health").into_inner();
    assert_eq!(answer.status(), ServingStatus::Serving);
    let mut reflection =
        tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient::new(channel);
    let asked = tonic_reflection::pb::v1::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let answers = reflection.server_reflection_info(futures::stream::iter([asked])).await;
    let mut answers = answers.expect("reflection").into_inner();
    let answer = answers.message().await.expect("an answer").expect("an answer");
    let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else {
        panic!("{answer:?}");
    };
    let names: Vec<_> = list.service.into_iter().map(|service| service.name).collect();
    for name in
        ["sextant.v1.Admin", "sextant.v1.Ingest", "sextant.v1.Query", "grpc.health.v1.Health"]
    {
        assert!(names.iter().any(|known| known == name), "{name} among {names:?}");
    }
}

/// Status line, headers and body of a GET.
async fn get(address: SocketAddr, path: &str) -> (String, String) {
    let mut socket = tokio::net::TcpStream::connect(address).await.expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (head.to_owned(), body.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_tells_how_it_is() {
    let (cluster, _client, channel) = numbered().await;
    scan(&channel, all("i")).await.expect("rows");
    let address = cluster.http_address();
    let (head, body) = get(address, "/healthz").await;
    assert!(head.starts_with("HTTP/1.1 200") && body == "ok\n", "{head} {body}");
    let (head, body) = get(address, "/status").await;
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("application/json"), "{head}");
    let status: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(status["buckets"][0]["name"], "b");
    assert_eq!(status["indexes"][0]["state"], "maintenance");
    assert_eq!(status["local_indexers"].as_array().map(Vec::len), Some(3));
    assert!(status["coordinator"]["leader"].is_u64(), "{body}");
    let (head, body) = get(address, "/metrics").await;
    assert!(head.contains("application/openmetrics-text"), "{head}");
    assert!(body.ends_with("# EOF\n"), "{body}");
    for line in ["sextant_documents_written_total 500", "sextant_scans_total "] {
        assert!(body.lines().any(|found| found.starts_with(line)), "{line} in {body}");
    }
    let (head, _) = get(address, "/nowhere").await;
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
}
