//! Tests a pushed bucket on two projector processes: its vbuckets are handed over in both
//! directions while a producer pushes, scans run, and the projectors are killed. No mutation is
//! lost or doubled.
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
use proto::grpc::{PositionsRequest, PushMutation, PushRequest};
use tests::harness::grpc::channel;
use tests::harness::processes::Processes;
use tests::harness::sql;
use tonic::transport::Channel;

const PROJECTORS: [u64; 2] = [101, 102];
const VBUCKETS: u64 = 8;
/// A time limit that allows for a debug build, a busy machine and killed processes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A producer that numbers its mutations and stores them until the end of the test.
struct Producer {
    channel: Channel,
    /// The mutations by vbucket.
    logs: Vec<Vec<PushMutation>>,
    taken: Vec<usize>,
}

impl Producer {
    fn change(&mut self, id: String, n: u64) {
        let vbucket = xxhash_rust::xxh3::xxh3_64(id.as_bytes()) % VBUCKETS;
        let log = &mut self.logs[vbucket as usize];
        log.push(PushMutation {
            vbucket: vbucket as u32,
            vbuuid: 7 + vbucket,
            seqno: log.len() as u64 + 1,
            id,
            document: Some(Bytes::from(format!("{{\"n\":{n}}}"))),
            position: 0,
        });
    }

    /// Pushes all unacknowledged mutations in one request; after an error, queries the position
    /// from which to continue. Returns true after success.
    async fn push(&mut self) -> bool {
        let left =
            self.logs.iter().zip(&self.taken).flat_map(|(log, taken)| log[*taken..].to_vec());
        let request =
            PushRequest { bucket: "p".into(), mutations: left.collect(), ..PushRequest::default() };
        if request.mutations.is_empty() {
            return true;
        }
        let mut client = IngestClient::new(self.channel.clone());
        let mut replies = match client.push(futures::stream::iter([request])).await {
            Ok(replies) => replies.into_inner(),
            Err(_) => return false,
        };
        if let Some(Ok(_)) = replies.next().await {
            self.taken = self.logs.iter().map(Vec::len).collect();
            return true;
        }
        if let Ok(reply) = client.positions(PositionsRequest { bucket: "p".into() }).await {
            for position in reply.into_inner().positions {
                self.taken[position.vbucket as usize] = position.seqno as usize;
            }
        }
        false
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hand_overs_between_killed_projectors_lose_no_mutation() {
    let mut cluster = Processes::start(&[201, 202]).await;
    let client = cluster.sql().await;
    cluster.run(PROJECTORS[1]);
    cluster.joined(&client, PROJECTORS[1]).await;
    let state = sql::sqlstate(&client, "CREATE BUCKET e WITH (projectors = 2)").await;
    assert_eq!(state, "22023", "an embedded bucket is on one");
    sql::run(&client, "CREATE BUCKET p FROM PUSH WITH (vbuckets = 8, projectors = 2)").await;
    sql::run(&client, "CREATE INDEX i ON p (n::int8) WITH (slices = 3, replicas = 1)").await;
    let state = sql::sqlstate(&client, "ALTER BUCKET p MOVE VBUCKET 8 TO 102").await;
    assert_eq!(state, "22023", "there is no such vbucket");

    let stop = Arc::new(AtomicBool::new(false));
    let producing = {
        let (stop, channel) = (Arc::clone(&stop), channel(cluster.grpc_address()).await);
        tokio::spawn(async move {
            let vbuckets = VBUCKETS as usize;
            let (logs, taken) = (vec![Vec::new(); vbuckets], vec![0; vbuckets]);
            let mut producer = Producer { channel, logs, taken };
            let mut n = 0;
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..20 {
                    producer.change(format!("d{}", n % 1_500), n);
                    n += 1;
                }
                producer.push().await;
            }
            let deadline = Instant::now() + PATIENCE;
            while !producer.push().await {
                assert!(Instant::now() < deadline, "the last mutations are not accepted");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            n
        })
    };
    for round in 0..6 {
        let to = PROJECTORS[round % 2];
        let statement = format!("ALTER BUCKET p MOVE VBUCKET 0, 1, 2, 3, 4, 5 TO {to}");
        eventually_run(&client, &statement).await;
        match round {
            2 => {
                cluster.kill(PROJECTORS[0]);
                cluster.run(PROJECTORS[0]);
            }
            3 => {
                cluster.kill(PROJECTORS[1]);
                cluster.run(PROJECTORS[1]);
            }
            _ => {}
        }
        settled(&client).await;
    }
    stop.store(true, Ordering::Relaxed);
    let n = producing.await.expect("the producer");
    sql::run(&client, "SET consistency = 'request_plus'").await;
    assert_eq!(sql::value(&client, "SELECT count(*) FROM i").await, n.min(1_500).to_string());
    let newest = format!("SELECT count(*) FROM i WHERE n >= {}", n - n.min(1_500));
    assert_eq!(
        sql::value(&client, &newest).await,
        n.min(1_500).to_string(),
        "all as they are last"
    );
    let buckets = sql::simple(&client, "SHOW BUCKETS").await.expect("buckets");
    assert_eq!(buckets[0][4].as_deref(), Some("101: 1, 102: 7"));
}

/// Runs a statement, and retries until a router answers.
async fn eventually_run(client: &tokio_postgres::Client, statement: &str) {
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = client.batch_execute(statement).await {
        assert!(Instant::now() < deadline, "{statement}: {error}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until no vbucket is being transferred.
async fn settled(client: &tokio_postgres::Client) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let buckets = sql::simple(client, "SHOW BUCKETS").await.unwrap_or_default();
        if buckets.first().is_some_and(|row| row[5].as_deref() == Some("0")) {
            return;
        }
        assert!(Instant::now() < deadline, "vbuckets are still on their way: {buckets:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
