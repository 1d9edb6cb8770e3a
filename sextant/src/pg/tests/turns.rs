//! Tests that long documents are checked on blocking threads, and short ones are not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::SinkExt;
use proto::env::{BoxFuture, Spawner, Task, TaskFailure};

use super::{Cluster, LoginPolicy, MemoryAccess, PgConfig, PgServer, simple};

/// A counter of the work on blocking threads.
struct Counting {
    spawner: Arc<dyn Spawner>,
    blocking: Arc<AtomicU64>,
}

impl Spawner for Counting {
    fn spawn(&self, name: &'static str, future: BoxFuture<()>) -> Task {
        self.spawner.spawn(name, future)
    }
    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        self.blocking.fetch_add(1, Ordering::Relaxed);
        self.spawner.spawn_blocking(work);
    }
    fn failed(&self, failure: TaskFailure) {
        self.spawner.failed(failure);
    }
}

/// Returns a cluster with a counter of its blocking work.
fn counted() -> (Cluster, Arc<AtomicU64>) {
    let mut cluster = Cluster::new();
    let blocking = Arc::new(AtomicU64::new(0));
    let spawner = Arc::clone(&cluster.env.spawner);
    cluster.env.spawner = Arc::new(Counting { spawner, blocking: Arc::clone(&blocking) });
    let memory = Arc::clone(&cluster.memory);
    let provider = MemoryAccess { memory, principals: Arc::clone(&cluster.principals) };
    cluster.server = PgServer::new(
        Arc::new(provider),
        LoginPolicy::trust(&cluster.env),
        cluster.env.clone(),
        PgConfig::default(),
    );
    (cluster, blocking)
}

/// Returns a document of about this many bytes.
fn document(bytes: usize) -> String {
    format!("{{\"id\":\"one\",\"list\":[{}1]}}", "1,".repeat(bytes / 2))
}

#[tokio::test]
async fn the_documents_of_a_long_insert_are_checked_on_a_blocking_thread() {
    let (cluster, blocking) = counted();
    let (client, _task) = cluster.client().await;
    client.batch_execute("CREATE BUCKET b WITH (vbuckets = 4)").await.unwrap();
    let rows: Vec<_> = (0..4).map(|n| format!("('{n}', '{}')", document(100 << 10))).collect();
    let insert = format!("INSERT INTO b (id, doc) VALUES {}", rows.join(", "));
    client.batch_execute(&insert).await.unwrap();
    assert_eq!(blocking.swap(0, Ordering::Relaxed), 2, "its text, and then its documents");
    assert_eq!(simple(&client, "SELECT id FROM b WHERE id = '3'").await, ["3"]);
    let prepared = client.prepare("INSERT INTO b (id, doc) VALUES ($1, $2)").await.unwrap();
    client.execute(&prepared, &[&"long", &document(100 << 10)]).await.unwrap();
    assert_eq!(blocking.swap(0, Ordering::Relaxed), 1, "a document that is a parameter");
    client.execute(&prepared, &[&"short", &document(1 << 10)]).await.unwrap();
    let ids: Vec<_> = (0..5_000).map(|n| format!("'{n}'")).collect();
    assert_eq!(blocking.swap(0, Ordering::Relaxed), 0, "a hop would cost more than the check");
    let delete = format!("DELETE FROM b WHERE id IN ({})", ids.join(", "));
    client.batch_execute(&delete).await.unwrap();
    assert_eq!(blocking.swap(0, Ordering::Relaxed), 2, "the text and the ids of a DELETE");
    let bad = insert.replacen("1]", "1", 1);
    assert!(client.batch_execute(&bad).await.is_err(), "a bad document is found there too");
}

#[tokio::test]
async fn a_long_piece_of_a_copy_is_checked_on_a_blocking_thread() {
    let (cluster, blocking) = counted();
    let (client, _task) = cluster.client().await;
    client.batch_execute("CREATE BUCKET b WITH (vbuckets = 4)").await.unwrap();
    for (line_bytes, expected) in [(100 << 10, 1), (1 << 10, 0)] {
        let lines = format!("{}\n", document(line_bytes)).repeat(4);
        let copy = client.copy_in::<_, Bytes>("COPY b FROM STDIN (FORMAT jsonl)").await;
        let mut sink = std::pin::pin!(copy.unwrap());
        sink.send(Bytes::from(lines)).await.unwrap();
        assert_eq!(sink.as_mut().finish().await.unwrap(), 4);
        assert_eq!(blocking.swap(0, Ordering::Relaxed), expected, "lines of {line_bytes} bytes");
    }
}
