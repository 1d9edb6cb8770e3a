//! Tests transactions of gRPC clients: own changes in scans, conflicts, failed requests, other
//! clients, time-outs, lost transactions.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is a client of the product: real clocks, sockets and tasks"
)]

use bytes::Bytes;
use futures::StreamExt;
use proto::grpc::document_write::Kind;
use proto::grpc::ingest_client::IngestClient;
use proto::grpc::{
    AbortRequest, BeginReply, BeginRequest, CommitReply, CommitRequest, DocumentWrite,
    MutationsReply, MutationsRequest, ScanRequest,
};
use tests::harness::grpc::{all, channel, ids, refused, scan};
use tests::harness::{TestCluster, eventually, sql};
use tokio_postgres::Client;
use tonic::transport::Channel;
use tonic::{Code, Status};

/// A client of the calls of transactions.
struct Transactions(Channel);

impl Transactions {
    fn client(&self) -> IngestClient<Channel> {
        IngestClient::new(self.0.clone())
    }

    async fn begin(&self, request: BeginRequest) -> Result<BeginReply, Status> {
        self.client().begin(request).await.map(tonic::Response::into_inner)
    }

    /// Begins a transaction that writes blindly, or with a snapshot; returns its id.
    async fn begun(&self, snapshot: bool) -> u64 {
        let request = BeginRequest { bucket: "b".into(), snapshot, idle_timeout_ms: 0 };
        let begun = self.begin(request).await.expect("begun");
        assert_eq!(begun.epoch.is_some(), snapshot);
        begun.transaction
    }

    /// Sends requests in one stream; returns the replies up to the end or the first error.
    async fn stream(&self, requests: Vec<MutationsRequest>) -> Vec<Result<MutationsReply, Status>> {
        let replies = self.client().mutations(futures::stream::iter(requests)).await;
        replies.expect("a stream").into_inner().collect().await
    }

    async fn write(
        &self,
        transaction: u64,
        writes: Vec<DocumentWrite>,
    ) -> Result<MutationsReply, Status> {
        let replies = self.stream(vec![request(transaction, "", writes)]).await;
        let [only] = &replies[..] else { panic!("one reply: {replies:?}") };
        only.clone()
    }

    async fn written(&self, transaction: u64, writes: Vec<DocumentWrite>) -> (u64, u64) {
        let reply = self.write(transaction, writes).await.expect("written");
        (reply.affected, reply.place)
    }

    async fn commit(&self, transaction: u64) -> Result<CommitReply, Status> {
        self.client().commit(CommitRequest { transaction }).await.map(tonic::Response::into_inner)
    }

    async fn abort(&self, transaction: u64) -> Result<(), Status> {
        self.client().abort(AbortRequest { transaction }).await.map(|_| ())
    }

    /// Returns the ids of an index that a transaction sees, in the order of the index.
    async fn seen(&self, transaction: u64) -> Vec<String> {
        let request = ScanRequest { transaction, ..all("by_n") };
        let scanned = scan(&self.0, request).await.expect("rows");
        ids(&scanned).into_iter().map(str::to_owned).collect()
    }

    /// Returns the ids of an index at a write position, outside of transactions.
    async fn shown_at(&self, position: &str) -> Vec<String> {
        let request = ScanRequest { at_plus: position.into(), ..all("by_n") };
        let scanned = scan(&self.0, request).await.expect("rows");
        ids(&scanned).into_iter().map(str::to_owned).collect()
    }
}

async fn indexed() -> (TestCluster, Transactions, Client) {
    let cluster = TestCluster::start(1, 3).await;
    let client = cluster.sql().await;
    sql::run(
        &client,
        "CREATE BUCKET b; CREATE BUCKET c; CREATE BUCKET p FROM PUSH;
         CREATE INDEX by_n ON b (n::int8) WITH (slices = 5);
         CREATE PRIMARY INDEX other ON c;
         SET consistency = 'request_plus'",
    )
    .await;
    let transactions = Transactions(channel(cluster.grpc_address()).await);
    (cluster, transactions, client)
}

/// Returns a request that writes in a bucket. The request that begins a transaction has no bucket
/// name.
fn request(transaction: u64, bucket: &str, writes: Vec<DocumentWrite>) -> MutationsRequest {
    MutationsRequest { transaction, writes, bucket: bucket.to_owned() }
}

fn upsert(id: &str, n: i64) -> DocumentWrite {
    let document = Bytes::from(format!("{{\"n\":{n}}}"));
    DocumentWrite { id: id.into(), kind: Some(Kind::Upsert(document)) }
}

fn insert(id: &str, n: i64) -> DocumentWrite {
    let document = Bytes::from(format!("{{\"n\":{n}}}"));
    DocumentWrite { id: id.into(), kind: Some(Kind::Insert(document)) }
}

fn delete(id: &str) -> DocumentWrite {
    DocumentWrite { id: id.into(), kind: Some(Kind::Delete(true)) }
}

/// Returns the number of open transactions that have changes.
async fn open(client: &Client) -> usize {
    sql::simple(client, "SHOW TRANSACTIONS").await.expect("transactions").len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_is_visible_as_a_whole_at_its_position_and_an_abort_leaves_nothing() {
    let (_cluster, transactions, client) = indexed().await;
    sql::run(&client, "INSERT INTO b (id, doc) VALUES ('old', '{\"n\": 3}')").await;
    let number = transactions.begun(false).await;
    assert_eq!(open(&client).await, 0, "it has no changes yet");
    // Several requests before the first reply; only the first one names the transaction.
    let request = |transaction, writes| request(transaction, "", writes);
    let requests = vec![
        request(number, vec![upsert("a", 2), upsert("b", 1)]),
        request(0, vec![delete("old"), delete("never")]),
        request(0, vec![]),
        request(0, vec![insert("old", 4)]),
    ];
    let replies: Vec<_> = transactions.stream(requests).await;
    let replies: Vec<_> = replies.into_iter().map(|reply| reply.expect("a reply")).collect();
    let told: Vec<_> = replies.iter().map(|reply| (reply.affected, reply.place)).collect();
    assert_eq!(told, [(2, 2), (1, 3), (0, 3), (1, 4)]);
    assert_eq!(transactions.seen(number).await, ["b", "a", "old"], "its own changes");
    assert_eq!(sql::value(&client, "SELECT n FROM by_n").await, "3", "nobody else sees them");
    let listed = sql::simple(&client, "SHOW TRANSACTIONS").await.expect("transactions");
    let text = |n: usize| listed[0][n].clone().unwrap_or_default();
    assert_eq!((listed.len(), text(0), text(1)), (1, number.to_string(), "b".to_owned()));
    assert!(text(2).starts_with("local superuser, gRPC from 127.0.0.1:"), "{}", text(2));
    let committed = transactions.commit(number).await.expect("committed");
    assert_eq!(committed.affected, 3);
    assert_eq!(transactions.shown_at(&committed.write_position).await, ["b", "a", "old"]);
    let again = transactions.commit(number).await.expect("the same answer again");
    assert_eq!(again, committed);
    refused(transactions.abort(number).await, Code::FailedPrecondition, "25000", "committed");
    assert_eq!(open(&client).await, 0);

    let number = transactions.begun(true).await;
    assert_eq!(transactions.written(number, vec![delete("a"), upsert("z", 9)]).await, (2, 2));
    assert_eq!(transactions.seen(number).await, ["b", "old", "z"]);
    transactions.abort(number).await.expect("aborted");
    transactions.abort(number).await.expect("a second time");
    for ended in [
        transactions.write(number, vec![upsert("y", 9)]).await.map(|_| ()),
        transactions.commit(number).await.map(|_| ()),
        scan(&transactions.0, ScanRequest { transaction: number, ..all("by_n") }).await.map(|_| ()),
    ] {
        refused(ended, Code::Aborted, "40001", "begin the transaction again");
    }
    assert_eq!(sql::value(&client, "SELECT max(n) FROM by_n").await, "4");
    eventually("the abort has come to the projector", async || {
        (open(&client).await == 0).then_some(())
    })
    .await;
    // A transaction that has changed nothing.
    let number = transactions.begun(true).await;
    let committed = transactions.commit(number).await.expect("committed");
    assert_eq!(committed.affected, 0);
    assert_eq!(transactions.shown_at(&committed.write_position).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_committer_wins_and_a_failed_request_leaves_nothing() {
    let (_cluster, transactions, client) = indexed().await;
    sql::run(&client, "INSERT INTO b (id, doc) VALUES ('a', '{\"n\": 1}')").await;
    // A plain write after the snapshot: of a transaction that asked for one, and of one that has scanned.
    for early in [true, false] {
        let number = transactions.begun(early).await;
        if !early {
            assert_eq!(transactions.seen(number).await, ["a"]);
        }
        let reset = "INSERT INTO b (id, doc) VALUES ('a', '{\"n\": 1}')
                     ON CONFLICT (id) DO UPDATE SET doc = excluded.doc";
        sql::run(&client, reset).await;
        sql::run(&client, "INSERT INTO b (id, doc) VALUES ('new', '{\"n\": 2}')").await;
        assert_eq!(transactions.written(number, vec![upsert("a", 5)]).await, (1, 1));
        assert_eq!(transactions.seen(number).await, ["a"], "it reads its moment");
        refused(transactions.commit(number).await, Code::Aborted, "40001", "a");
        refused(transactions.commit(number).await, Code::Aborted, "40001", "a");
        sql::run(&client, "DELETE FROM b WHERE id = 'new'").await;
        assert_eq!(sql::value(&client, "SELECT n FROM by_n").await, "1", "nothing of it is there");
    }
    // Without a snapshot it replaces what is there.
    let number = transactions.begun(false).await;
    transactions.written(number, vec![upsert("a", 7)]).await;
    sql::run(&client, "DELETE FROM b WHERE id = 'a'").await;
    transactions.commit(number).await.expect("committed");
    // A request that fails is in the transaction as little as in the bucket; those before and after it are.
    let number = transactions.begun(true).await;
    let request = |writes| request(number, "", writes);
    let replies = transactions
        .stream(vec![
            request(vec![upsert("b", 8)]),
            request(vec![upsert("x", 1), insert("a", 1)]),
            request(vec![upsert("y", 1)]),
        ])
        .await;
    assert_eq!(replies.len(), 2, "the error ends the stream: {replies:?}");
    refused(replies[1].clone(), Code::AlreadyExists, "23505", "\"a\"");
    let bad = DocumentWrite { id: "z".into(), kind: Some(Kind::Upsert("{".into())) };
    let bad = transactions.write(number, vec![upsert("x", 1), bad]).await;
    refused(bad, Code::InvalidArgument, "22P02", "\"z\"");
    assert_eq!(transactions.written(number, vec![insert("c", 9)]).await, (1, 2));
    assert_eq!(transactions.seen(number).await, ["a", "b", "c"]);
    let committed = transactions.commit(number).await.expect("committed");
    assert_eq!(committed.affected, 2);
    assert_eq!(transactions.shown_at(&committed.write_position).await, ["a", "b", "c"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_that_are_not_open_here_are_told_from_each_other() {
    let (_cluster, transactions, client) = indexed().await;
    let begin = |bucket: &str, idle_timeout_ms| BeginRequest {
        bucket: bucket.into(),
        snapshot: true,
        idle_timeout_ms,
    };
    refused(transactions.begin(begin("no", 0)).await, Code::NotFound, "42P01", "\"no\"");
    refused(transactions.begin(begin("by_n", 0)).await, Code::NotFound, "42P01", "an index");
    refused(transactions.begin(begin("p", 0)).await, Code::Unimplemented, "0A000", "Push");
    let long = transactions.begin(begin("b", 3_600_001)).await;
    refused(long, Code::InvalidArgument, "22023", "3600000");
    for answer in [
        transactions.write(12345, vec![upsert("a", 1)]).await.map(|_| ()),
        transactions.commit(12345).await.map(|_| ()),
        transactions.abort(12345).await,
        scan(&transactions.0, ScanRequest { transaction: 12345, ..all("by_n") }).await.map(|_| ()),
    ] {
        refused(answer, Code::NotFound, "25P01", "transaction 12345 is not open in this process");
    }
    refused(transactions.write(0, vec![]).await, Code::InvalidArgument, "22023", "must name");

    let number = transactions.begun(true).await;
    for request in [
        ScanRequest { page_rows: 1, ..all("by_n") },
        ScanRequest { consistency: "any".into(), ..all("by_n") },
        ScanRequest { token: "x".into(), ..all("by_n") },
    ] {
        let answer = scan(&transactions.0, ScanRequest { transaction: number, ..request }).await;
        refused(answer, Code::InvalidArgument, "22023", "takes no");
    }
    // CANCEL TRANSACTION knows the number, and the client learns that it was rolled back.
    transactions.written(number, vec![upsert("a", 1)]).await;
    sql::run(&client, &format!("CANCEL TRANSACTION {number}")).await;
    let lost = transactions.write(number, vec![upsert("b", 1)]).await;
    refused(lost, Code::Aborted, "40001", "begin the transaction again");
    refused(transactions.commit(number).await, Code::Aborted, "40001", "begin the transaction");

    let idle = transactions.begin(begin("b", 300)).await.expect("begun").transaction;
    transactions.written(idle, vec![upsert("a", 1)]).await;
    eventually("the idle transaction is rolled back", async || {
        (open(&client).await == 0).then_some(())
    })
    .await;
    refused(transactions.commit(idle).await, Code::Aborted, "40001", "no call came for 300 ms");
    assert_eq!(sql::value(&client, "SELECT count(*) FROM by_n").await, "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_reads_and_writes_several_buckets_and_commits_them_together() {
    let (_cluster, transactions, client) = indexed().await;
    let number = transactions.begun(true).await;
    let requests =
        vec![request(number, "c", vec![upsert("x", 1)]), request(number, "", vec![upsert("a", 1)])];
    let replies = transactions.stream(requests).await;
    let places: Vec<_> = replies.into_iter().map(|reply| reply.expect("written").place).collect();
    assert_eq!(places, [1, 2]);
    let seen = ScanRequest { transaction: number, ..all("other") };
    assert_eq!(ids(&scan(&transactions.0, seen.clone()).await.expect("rows")), ["x"]);
    assert_eq!(sql::value(&client, "SELECT count(*) FROM other").await, "0");
    let committed = transactions.commit(number).await.expect("committed");
    assert_eq!(committed.affected, 2);
    assert_eq!(transactions.shown_at(&committed.write_position).await, ["a"]);
    let at = ScanRequest { at_plus: committed.write_position.clone(), ..all("other") };
    assert_eq!(ids(&scan(&transactions.0, at).await.expect("rows")), ["x"]);
    assert_eq!(transactions.commit(number).await.expect("the same answer"), committed);

    // Another writer changes a document of one bucket after the moment.
    let number = transactions.begun(true).await;
    sql::run(&client, "INSERT INTO c (id, doc) VALUES ('y', '{}')").await;
    let requests =
        vec![request(number, "c", vec![upsert("y", 1)]), request(number, "", vec![upsert("b", 1)])];
    assert!(transactions.stream(requests).await.iter().all(Result::is_ok));
    let refused = transactions.commit(number).await.expect_err("a conflict");
    assert_eq!(refused.code(), Code::Aborted, "{refused}");
    assert_eq!(sql::value(&client, "SELECT count(*) FROM by_n").await, "1", "nothing of it");
    let number = transactions.begun(false).await;
    let pushed = transactions.stream(vec![request(number, "p", vec![upsert("a", 1)])]).await;
    assert_eq!(pushed[0].as_ref().expect_err("pushed").code(), Code::Unimplemented);
}
