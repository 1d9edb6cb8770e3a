//! Tests a producer's transactions over two projector processes, which are killed and hand vbuckets
//! over meanwhile: a scan sees a whole transaction or nothing of it.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests run the product as processes: real clocks, sockets and tasks"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use proto::grpc::ingest_client::IngestClient;
use proto::grpc::{CommitPushRequest, PushMutation, PushRequest, PushedPart};
use tests::harness::grpc::channel;
use tests::harness::processes::Processes;
use tests::harness::sql;
use tonic::transport::Channel;

const PROJECTORS: [u64; 2] = [101, 102];
const VBUCKETS: u64 = 8;
/// The number of documents that each transaction changes.
const DOCUMENTS: u64 = 40;
/// A time limit that allows for a debug build, a busy machine and killed processes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A producer. Each of its transactions sets all documents to the transaction's number.
struct Producer {
    channel: Channel,
    ends: [u64; VBUCKETS as usize],
    /// The number of commits that were sent more than once.
    repeated: u64,
}

impl Producer {
    /// Makes and commits transaction `n`, and retries calls that fail.
    async fn transact(&mut self, n: u64) {
        let mut positions = [0; VBUCKETS as usize];
        let mutation = |d: u64| {
            let id = format!("d{d}");
            let vbucket = xxhash_rust::xxh3::xxh3_64(id.as_bytes()) % VBUCKETS;
            let position = &mut positions[vbucket as usize];
            *position += 1;
            let document = Some(Bytes::from(format!("{{\"n\":{n}}}")));
            let (vbucket, position) = (vbucket as u32, *position);
            PushMutation { vbucket, id, document, position, ..PushMutation::default() }
        };
        let mutations: Vec<_> = (0..DOCUMENTS).map(mutation).collect();
        let counts =
            positions.iter().zip(&self.ends).enumerate().filter(|(_, (count, _))| **count > 0);
        let part = |(v, (count, end)): (usize, (&u64, &u64))| PushedPart {
            vbucket: v as u32,
            vbuuid: 7,
            seqno: end + count,
            mutations: *count,
        };
        let parts: Vec<_> = counts.map(part).collect();
        let deadline = Instant::now() + PATIENCE;
        for tries in 0.. {
            self.repeated += u64::from(tries == 1);
            if self.try_once(n, &mutations, &parts).await {
                break;
            }
            assert!(Instant::now() < deadline, "transaction {n} is not committed");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        parts.iter().for_each(|part| self.ends[part.vbucket as usize] = part.seqno);
    }

    async fn try_once(&self, n: u64, mutations: &[PushMutation], parts: &[PushedPart]) -> bool {
        let mut client = IngestClient::new(self.channel.clone());
        let bucket = || "p".to_owned();
        let request = PushRequest {
            bucket: bucket(),
            mutations: mutations.to_vec(),
            transaction: n,
            ..PushRequest::default()
        };
        let Ok(replies) = client.push(futures::stream::iter([request])).await else { return false };
        if !matches!(replies.into_inner().next().await, Some(Ok(_))) {
            return false;
        }
        let commit = CommitPushRequest { bucket: bucket(), transaction: n, parts: parts.to_vec() };
        client.commit_push(commit).await.is_ok()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_sees_all_of_a_producers_transaction_or_nothing_while_projectors_are_killed() {
    let mut cluster = Processes::start(&[201, 202]).await;
    let client = cluster.sql().await;
    cluster.run(PROJECTORS[1]);
    cluster.joined(&client, PROJECTORS[1]).await;
    sql::run(&client, "CREATE BUCKET p FROM PUSH WITH (vbuckets = 8, projectors = 2)").await;
    sql::run(&client, "CREATE INDEX i ON p (n::int8) WITH (slices = 3, replicas = 1)").await;
    let stop = Arc::new(AtomicBool::new(false));
    let producing = {
        let (stop, channel) = (Arc::clone(&stop), channel(cluster.grpc_address()).await);
        tokio::spawn(async move {
            let mut producer = Producer { channel, ends: [0; VBUCKETS as usize], repeated: 0 };
            let mut n = 0;
            while !stop.load(Ordering::Relaxed) {
                n += 1;
                producer.transact(n).await;
            }
            (n, producer.repeated)
        })
    };
    let scanning = {
        let (stop, client) = (Arc::clone(&stop), cluster.sql().await);
        tokio::spawn(async move {
            let mut seen = 0;
            while !stop.load(Ordering::Relaxed) {
                let all = sql::simple(&client, "SELECT min(n), max(n), count(*) FROM i").await;
                let Ok(all) = all else { continue };
                let [least, most, count] = [0, 1, 2].map(|n| all[0][n].clone());
                assert_eq!(least, most, "a part of a transaction");
                let expected = if least.is_some() { DOCUMENTS } else { 0 };
                assert_eq!(count, Some(expected.to_string()), "a part of the first transaction");
                seen += 1;
            }
            seen
        })
    };
    for round in 0..6 {
        let to = PROJECTORS[round % 2];
        let statement = format!("ALTER BUCKET p MOVE VBUCKET 0, 1, 2 TO {to}");
        let deadline = Instant::now() + PATIENCE;
        while client.simple_query(&statement).await.is_err() {
            assert!(Instant::now() < deadline, "{statement}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let killed = PROJECTORS[(round / 2) % 2];
        tokio::time::sleep(Duration::from_millis(300)).await;
        cluster.kill(killed);
        tokio::time::sleep(Duration::from_millis(200)).await;
        cluster.run(killed);
        tokio::time::sleep(Duration::from_millis(1_000)).await;
    }
    stop.store(true, Ordering::Relaxed);
    let (n, repeated) = producing.await.expect("the producer");
    let seen: u64 = scanning.await.expect("every scan saw whole transactions");
    eprintln!("{n} transactions, {repeated} of them repeated, {seen} scans");
    assert!(repeated > 0 && seen > 0, "{n} transactions, {repeated} repeated, {seen} scans");
    sql::run(&client, "SET consistency = 'request_plus'").await;
    let last = format!("SELECT count(*) FROM i WHERE n = {n}");
    assert_eq!(sql::value(&client, &last).await, DOCUMENTS.to_string());
}
