//! The cost of single requests, counted: allocations, tasks, changes of threads and writes to the socket. Times depend on the machine
//! and its other work; these counts do not.
#![allow(clippy::disallowed_methods, reason = "the test is a client and the operator of a cluster")]

use std::alloc::System;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use proto::env::{BoxFuture, Env, LentThread, Spawner, Task, TaskFailure};
use sextant::auth::login_policy::LoginPolicy;
use sextant::backend::ClusterBackend;
use sextant::pg::{PgConfig, PgServer};
use sextant::roles::{Cluster, ClusterConfig};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};
use tokio::sync::Mutex;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Counts what the services start, and what their sessions write.
#[derive(Default)]
struct Counts {
    tasks: AtomicU64,
    hops: AtomicU64,
    writes: AtomicU64,
}

/// The mean cost of a request.
#[derive(Clone, Copy, Debug)]
struct Cost {
    allocations: f64,
    tasks: f64,
    hops: f64,
    writes: f64,
}

impl Cost {
    /// Checks that no count exceeds `allowed`. The counts include the background work of the
    /// services, so the limits are about a quarter above the counts that were measured when the
    /// limits were set.
    fn check(self, what: &str, allowed: Self) {
        println!("{what}: {self:?}");
        let pairs = [
            ("allocations", self.allocations, allowed.allocations),
            ("tasks", self.tasks, allowed.tasks),
            ("changes of threads", self.hops, allowed.hops),
            ("writes to the socket", self.writes, allowed.writes),
        ];
        for (name, counted, most) in pairs {
            assert!(
                counted <= most,
                "{what}: {counted} {name}, at most {most} are allowed: {self:?}"
            );
        }
    }
}

/// Counts tasks and blocking work.
struct CountingSpawner {
    inner: Arc<dyn Spawner>,
    counts: Arc<Counts>,
}

impl Spawner for CountingSpawner {
    fn spawn(&self, name: &'static str, future: BoxFuture<()>) -> Task {
        self.counts.tasks.fetch_add(1, Ordering::Relaxed);
        self.inner.spawn(name, future)
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        self.counts.hops.fetch_add(1, Ordering::Relaxed);
        self.inner.spawn_blocking(work);
    }

    fn lend_thread(&self) -> Option<LentThread> {
        self.inner.lend_thread()
    }

    fn pause(&self, time: Duration) {
        self.inner.pause(time);
    }

    fn failed(&self, failure: TaskFailure) {
        self.inner.failed(failure);
    }
}

/// The server's end of a session's connection, which counts writes.
struct CountingSocket {
    inner: DuplexStream,
    counts: Arc<Counts>,
}

impl AsyncRead for CountingSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl AsyncWrite for CountingSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.counts.writes.fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// A client that allocates nothing while it waits for its rows.
struct RawClient {
    socket: DuplexStream,
    read: Vec<u8>,
}

/// The answers up to the end of a request.
#[derive(Debug, PartialEq)]
struct Answers {
    rows: usize,
    /// The SQLSTATE of an error, if there was one.
    error: Option<String>,
}

impl RawClient {
    async fn connect(socket: DuplexStream) -> Self {
        let mut client = Self { socket, read: Vec::with_capacity(1 << 20) };
        let start = [&196_608u32.to_be_bytes()[..], b"user\0u\0\0"].concat();
        client.ask(&[&(start.len() as u32 + 4).to_be_bytes()[..], &start].concat()).await;
        client
    }

    /// Sends messages, and reads all answers up to ReadyForQuery.
    async fn ask(&mut self, messages: &[u8]) -> Answers {
        self.socket.write_all(messages).await.expect("sent");
        self.read.clear();
        let (mut at, mut answers) = (0, Answers { rows: 0, error: None });
        loop {
            while let Some(head) = self.read.get(at..at + 5) {
                let len = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
                let Some(body) = self.read.get(at + 5..at + 1 + len) else { break };
                match head[0] {
                    b'D' => answers.rows += 1,
                    b'E' => {
                        let field =
                            body.split(|byte| *byte == 0).find(|f| f.first() == Some(&b'C'));
                        let code = field.expect("a code");
                        answers.error = Some(String::from_utf8_lossy(&code[1..]).into_owned());
                    }
                    b'Z' => return answers,
                    _ => {}
                }
                at += 1 + len;
            }
            let read = self.socket.read_buf(&mut self.read).await.expect("answers");
            assert!(read > 0, "the session has ended");
        }
    }

    async fn query(&mut self, sql: &str) -> Answers {
        self.ask(&message(b'Q', &[sql.as_bytes(), b"\0"])).await
    }
}

fn message(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), &body].concat()
}

/// Returns the messages that execute a prepared statement with two parameters, as pgbench does.
fn execution(statement: &str, values: [i64; 2]) -> Vec<u8> {
    let value = |value: i64| {
        let text = value.to_string();
        [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat()
    };
    let (first, second) = (value(values[0]), value(values[1]));
    let head = [b"\0", statement.as_bytes(), b"\0\0\0\0\x02"].concat();
    [
        message(b'B', &[&head, &first, &second, b"\0\0"]),
        message(b'D', &[b"P\0"]),
        message(b'E', &[b"\0\0\0\0\0"]),
        message(b'S', &[]),
    ]
    .concat()
}

/// A cluster of three indexers, and a client.
struct Counted {
    counts: Arc<Counts>,
    client: Mutex<RawClient>,
    _cluster: Cluster,
    _data: tempfile::TempDir,
}

impl Counted {
    async fn start() -> Self {
        let counts = Arc::new(Counts::default());
        let mut env = Env::real();
        env.spawner =
            Arc::new(CountingSpawner { inner: env.spawner.clone(), counts: Arc::clone(&counts) });
        let data = tempfile::tempdir().expect("a temporary directory");
        let config = ClusterConfig {
            data_dir: data.path().to_owned(),
            coordinators: 1,
            indexers: 3,
            log_bytes_max: None,
            files_dir: None,
            scans_max: None,
            memory_bytes: None,
            large_commit_changes: None,
            recovery: Default::default(),
        };
        let cluster = Cluster::start(config, env.clone()).await.expect("the cluster starts");
        let (router, directory) = (cluster.router(), cluster.directory());
        let backend = ClusterBackend::new(router, directory, env.clone(), Arc::default());
        let doors = LoginPolicy::trust(&env);
        let access = Arc::new(Arc::new(backend).authorization(doors.flow()));
        let server = PgServer::new(access, doors, env, PgConfig::default());
        let (theirs, inner) = tokio::io::duplex(1 << 20);
        let socket = CountingSocket { inner, counts: Arc::clone(&counts) };
        tokio::spawn(async move { server.connection(socket).await });
        let client = Mutex::new(RawClient::connect(theirs).await);
        Self { counts, client, _cluster: cluster, _data: data }
    }

    /// Runs a statement, and retries until the cluster accepts it.
    async fn run(&self, sql: &str) {
        for _ in 0..600 {
            match self.client.lock().await.query(sql).await.error {
                None => return,
                Some(code) if code == "57P03" => {}
                Some(code) => panic!("{sql:.60}…: {code}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{sql:.60}…: the cluster does not serve");
    }

    async fn prepare(&self, name: &str, sql: &str) {
        let parse = message(b'P', &[name.as_bytes(), b"\0", sql.as_bytes(), b"\0\0\0"]);
        let answers = self.client.lock().await.ask(&[parse, message(b'S', &[])].concat()).await;
        assert_eq!(answers.error, None, "{sql}");
    }

    /// Executes a prepared statement; returns the number of rows.
    async fn execute(&self, name: &str, values: [i64; 2]) -> usize {
        let answers = self.client.lock().await.ask(&execution(name, values)).await;
        assert_eq!(answers.error, None);
        answers.rows
    }

    /// Returns the id of the session's last transaction as text; empty if it has had none.
    async fn transaction(&self) -> String {
        let mut client = self.client.lock().await;
        assert_eq!(client.query("SHOW transaction_id").await.rows, 1);
        // Behind the description of the column: the type and length of the row, the number of its columns, and the length of its value.
        let described = 1 + u32::from_be_bytes([1, 2, 3, 4].map(|n| client.read[n])) as usize;
        let value = &client.read[described + 7..];
        let length = u32::from_be_bytes([0, 1, 2, 3].map(|n| value[n])) as usize;
        String::from_utf8_lossy(&value[4..4 + length]).into_owned()
    }

    fn now(&self) -> [u64; 4] {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let stats = ALLOCATOR.stats();
        let allocations = stats.allocations + stats.reallocations;
        let Counts { tasks, hops, writes } = &*self.counts;
        [allocations as u64, of(tasks), of(hops), of(writes)]
    }

    /// Returns the mean cost of some requests.
    async fn cost(&self, requests: u64, run: impl AsyncFn(u64)) -> Cost {
        let before = self.now();
        for n in 0..requests {
            run(n).await;
        }
        let after = self.now();
        let each = |n: usize| (after[n] - before[n]) as f64 / requests as f64;
        Cost { allocations: each(0), tasks: each(1), hops: each(2), writes: each(3) }
    }
}

#[tokio::test]
async fn requests_cost_no_more_than_is_stated() {
    const DOCUMENTS: u64 = 20_000;
    let counted = Counted::start().await;
    counted.run("CREATE BUCKET b").await;
    counted.run("CREATE INDEX i ON b (n::int8) WITH (slices = 8)").await;
    counted
        .run("CREATE INDEX p ON b (m::int8) PARTITION BY HASH (m::int8) WITH (slices = 8)")
        .await;
    let statement = |from: u64| {
        let row = |n: u64| format!("('k{n}', '{{\"n\":{n},\"m\":{n}}}')");
        let rows: Vec<String> = (from..from + 1000).map(row).collect();
        format!(
            "INSERT INTO b VALUES {} ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc",
            rows.join(", ")
        )
    };
    let upsert_all = async |counted: &Counted| {
        for from in (0..DOCUMENTS).step_by(1000) {
            counted.run(&statement(from)).await;
        }
        counted
            .run("SET consistency = 'request_plus'; SELECT count(*) FROM i; RESET consistency")
            .await;
    };
    upsert_all(&counted).await;

    counted.prepare("range", "SELECT id, n FROM i WHERE n >= $1 AND n < $2 ORDER BY n").await;
    counted.prepare("one", "SELECT id, m FROM p WHERE m = $1 AND m = $2").await;
    let scan = async |n: u64| {
        let from = (n * 7919 % (DOCUMENTS - 100)) as i64;
        assert_eq!(counted.execute("range", [from, from + 100]).await, 100);
    };
    let look_up = async |n: u64| {
        let key = (n * 7919 % DOCUMENTS) as i64;
        assert_eq!(counted.execute("one", [key, key]).await, 1);
    };
    scan(0).await;
    look_up(0).await;
    let allowed = Cost { allocations: 225.0, tasks: 0.05, hops: 0.05, writes: 1.05 };
    let cost = counted.cost(2000, scan).await;
    cost.check("a prepared scan of 100 rows, 8 slices on 3 nodes", allowed);
    let cost = counted.cost(2000, look_up).await;
    cost.check("one key of an index that is partitioned by it", allowed);

    let write = "INSERT INTO b VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc";
    counted.prepare("write", write).await;
    for n in 0..10 {
        counted.execute("write", [n, n]).await;
    }
    assert_eq!(counted.transaction().await, "", "a write that is alone costs no transaction");
    counted.run("DELETE FROM b WHERE id = '1'; DELETE FROM b WHERE id = '2'").await;
    assert_ne!(counted.transaction().await, "", "two writes are one");

    let cost = counted.cost(20, async |n| {
        counted.run(&statement(n * 1000)).await;
        let read = "SET consistency = 'request_plus'; SELECT count(*) FROM i; RESET consistency";
        counted.run(read).await;
    });
    cost.await.check(
        "an epoch of 1,000 documents in two indexes, written and visible",
        Cost { allocations: 48_000.0, tasks: 4.5, hops: 22.0, writes: 4.5 },
    );
}
