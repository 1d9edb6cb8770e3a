//! Hostile clients at every port of a running node: random bytes, halves of messages, huge lengths, floods of connections, idle and slow
//! clients, and the known abuses of HTTP/2. The process goes on, its memory stays in a budget, its log stays short, and another client's
//! scans stay quick.
//!
//! The hostile clients come from 127.0.0.2 to 127.0.0.250, and the good one from 127.0.0.1. `SEXTANT_HOSTILE_SECONDS` is the time of each
//! attack, and of the quiet time before it (60 for the campaign); it multiplies the numbers of clients as well.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the test is made of clients of a running process"
)]

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tests::harness::process::{self, Dev};
use tests::harness::processes::Processes;
use tests::harness::{connect, number_from_env, sql};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_postgres::Client;

/// Memory that an attack may take. Full ports take 64 log-ins of 150 KiB, 512 connections of gRPC of 100 KiB (frames of 16 KiB in both
/// directions, and tables of headers), and 128 of HTTP of 60 KiB: 68 MiB, and as much again for what the allocator keeps.
const MEMORY_MAX_KB: u64 = 136 << 10;
/// Lines that an attack of a minute may write into the log.
const LOG_LINES_MAX: u64 = 1_000;
/// Below this a scan is not slow: the attackers and the process share the processors of the test.
const QUICK: Duration = Duration::from_millis(100);
/// Seconds of an attack in `./test`.
const SECONDS: u64 = 2;
/// Time between two scans of the good client.
const PACE: Duration = Duration::from_millis(3);

/// The settings of an attack.
#[derive(Clone, Copy)]
struct Scale {
    seconds: u64,
}

impl Scale {
    fn from_env() -> Self {
        Self { seconds: number_from_env("SEXTANT_HOSTILE_SECONDS", SECONDS) }
    }

    fn time(self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    /// A number of clients: that of the campaign, or a smaller one.
    fn clients(self, in_campaign: usize, in_test: usize) -> usize {
        if self.seconds > SECONDS { in_campaign } else { in_test }
    }
}

/// A source of hostile connections: each comes from another address.
#[derive(Clone)]
struct Source {
    next: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Source {
    fn new() -> Self {
        Self { next: Arc::default(), is_over: Arc::default() }
    }

    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    /// Random numbers, other ones at each call.
    fn random(&self) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Connects; `None` if the port does not take the connection.
    async fn connect(&self, to: SocketAddr) -> Option<TcpStream> {
        let last = 2 + (self.next.fetch_add(1, Ordering::Relaxed) % 249) as u8;
        let socket = TcpSocket::new_v4().ok()?;
        socket.bind(SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0))).ok()?;
        timeout(Duration::from_secs(2), socket.connect(to)).await.ok()?.ok()
    }
}

/// A process under attack, with a good client.
struct Victim {
    process: u32,
    log: PathBuf,
    client: Client,
    sql: SocketAddr,
}

impl Victim {
    async fn new(process: u32, log: &Path, sql_address: SocketAddr) -> Self {
        let client = connect(sql_address).await;
        sql::run(&client, "CREATE BUCKET b; CREATE INDEX i ON b (n::int8) INCLUDE (t)").await;
        for first in (0..1_000).step_by(100) {
            let rows: Vec<_> = (first..first + 100)
                .map(|n| format!("('{n}', '{{\"n\":{n},\"t\":\"text {n}\"}}')"))
                .collect();
            sql::run(&client, &format!("INSERT INTO b (id, doc) VALUES {}", rows.join(", "))).await;
        }
        Self { process, log: log.to_owned(), client, sql: sql_address }
    }

    /// Memory of the process in KiB.
    fn memory_kb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process));
        let status = status.expect("the process lives");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.trim().split(' ').next()?.parse().ok());
        number.expect("the memory of a process that lives")
    }

    fn log_lines(&self) -> usize {
        std::fs::read_to_string(&self.log).unwrap_or_default().lines().count()
    }

    /// Scans for a while; returns the time that 99 of 100 scans take at most.
    async fn scan_for(&self, time: Duration) -> Duration {
        let select = self.client.prepare("SELECT n, t FROM i WHERE n BETWEEN $1 AND $2").await;
        let select = select.expect("a statement");
        let (begun, mut times, mut n) = (Instant::now(), Vec::new(), 0i64);
        while begun.elapsed() < time {
            n = (n + 37) % 900;
            let asked = Instant::now();
            let rows = self.client.query(&select, &[&n, &(n + 49)]).await.expect("rows");
            times.push(asked.elapsed());
            assert_eq!(rows.len(), 50, "all rows");
            sleep(PACE).await;
        }
        times.sort();
        times[(times.len() * 99 / 100).min(times.len() - 1)]
    }

    /// Scans in a quiet time and then during an attack, and judges the process.
    async fn judge<F: Future<Output = ()> + Send + 'static>(
        &self,
        what: &str,
        scale: Scale,
        attack: impl Fn(Source) -> F,
        attackers: usize,
    ) {
        let (quiet, lines, memory) =
            (self.scan_for(scale.time()).await, self.log_lines(), self.memory_kb());
        let source = Source::new();
        let tasks: Vec<_> = (0..attackers).map(|_| tokio::spawn(attack(source.clone()))).collect();
        let busy = self.scan_for(scale.time()).await;
        let attacked = self.memory_kb();
        source.is_over.store(true, Ordering::Relaxed);
        for task in tasks {
            let ended = timeout(Duration::from_secs(20), task).await;
            ended.expect("an attacker ends").expect("no attacker fails");
        }
        let (new_lines, connections) =
            (self.log_lines() - lines, source.next.load(Ordering::Relaxed));
        println!(
            "{what}: {connections} connections, p99 {quiet:?} before and {busy:?} meanwhile, \
             memory {memory} KiB before and {attacked} KiB meanwhile, {new_lines} lines of log"
        );
        let slowest = (2 * quiet).max(QUICK);
        assert!(busy <= slowest, "{what}: p99 of {busy:?}, and {quiet:?} before");
        let grown = attacked.saturating_sub(memory);
        assert!(grown <= MEMORY_MAX_KB, "{what}: {grown} KiB of memory more");
        let lines_max = (LOG_LINES_MAX * scale.seconds / 60) as usize;
        assert!(new_lines <= lines_max, "{what}: {new_lines} lines of log");
        // Soon the places are free again.
        sleep(Duration::from_millis(500)).await;
        let late = connect(self.sql);
        let late = timeout(Duration::from_secs(20), late).await.expect("a new session");
        assert_eq!(sql::value(&late, "SELECT count(*) FROM i").await, "1000");
    }
}

/// Sends bytes, and reads what comes until the end or for a while.
async fn send_and_read(stream: &mut TcpStream, bytes: &[u8], wait: Duration) {
    if stream.write_all(bytes).await.is_err() {
        return;
    }
    let mut answer = [0; 4096];
    let reads = async { while stream.read(&mut answer).await.is_ok_and(|read| read > 0) {} };
    let _over = timeout(wait, reads).await;
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: u8 = 4;
const HEADERS: u8 = 1;
const DATA: u8 = 0;
const RST_STREAM: u8 = 3;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// The headers of a call, in HPACK without a table: each name and value as it is.
fn headers(path: &str) -> Vec<u8> {
    let mut block = Vec::new();
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "x"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(text.len() as u8);
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

fn begin_http2() -> Vec<u8> {
    [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()
}

/// The beginnings of messages, whose other halves never come, and messages with huge lengths.
fn halves() -> Vec<Vec<u8>> {
    let startup = b"\0\0\0\x12\0\x03\0\0user\0ada\0\0".to_vec();
    let with = |more: &[u8]| [&startup[..], more].concat();
    vec![
        startup[..11].to_vec(),
        b"\0\0\0\x08\x04\xd2\x16/".to_vec(),
        b"\x7f\xff\xff\xff\0\x03\0\0user".to_vec(),
        b"\0\0\x27\x10\0\x03\0\0user\0".to_vec(),
        with(b"Q\0\0\x01\0SELECT "),
        with(b"Q\x7f\xff\xff\xff"),
        with(b"B\0\xff\xff\xff\0\0\xff\xff"),
        with(b"p\xff\xff\xff\xff"),
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03".to_vec(),
        PREFACE[..15].to_vec(),
        [&begin_http2()[..], &[0xff, 0xff, 0xff, DATA, 0, 0, 0, 0, 1]].concat(),
        [&begin_http2()[..], &frame(HEADERS, 0, 1, &headers("/sextant.v1.Query/Scan"))].concat(),
        [
            &begin_http2()[..],
            &frame(HEADERS, END_HEADERS, 1, &headers("/sextant.v1.Query/Scan")),
            &frame(DATA, 0, 1, &[0, 0xff, 0xff, 0xff, 0xff, 1]),
        ]
        .concat(),
        [
            &begin_http2()[..],
            &frame(HEADERS, END_HEADERS, 1, &headers("/sextant.v1.Peer/Call")),
            &frame(DATA, END_STREAM, 1, &[0, 0, 0, 0, 5, 1, 2, 3, 4, 5]),
        ]
        .concat(),
        b"GET /status HTTP/1.1\r\nhost: x\r\n".to_vec(),
        b"POST /status HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\nx".to_vec(),
        b"GET /".to_vec(),
        [b"GET / HTTP/1.1\r\nx: ".to_vec(), vec![b'a'; 1 << 20]].concat(),
    ]
}

/// Random bytes, halves of messages and huge lengths, at one port after another.
async fn rubbish(ports: Vec<SocketAddr>, source: Source) {
    let halves = halves();
    while source.goes_on() {
        let mut random = source.random();
        let port = ports[random.usize(..ports.len())];
        let Some(mut stream) = source.connect(port).await else { continue };
        let bytes = match random.u8(..3) {
            0 => (0..random.usize(..4096)).map(|_| random.u8(..)).collect(),
            1 => halves[random.usize(..halves.len())].clone(),
            _ => {
                let mut half = halves[random.usize(..halves.len())].clone();
                half.extend((0..random.usize(..64)).map(|_| random.u8(..)));
                half
            }
        };
        let wait = Duration::from_millis(random.u64(1..200));
        send_and_read(&mut stream, &bytes, wait).await;
    }
}

/// Connects and is silent to the end.
async fn idle(port: SocketAddr, source: Source) {
    while source.goes_on() {
        let Some(mut stream) = source.connect(port).await else {
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let mut byte = [0; 64];
        while source.goes_on() {
            let read = timeout(Duration::from_millis(100), stream.read(&mut byte)).await;
            if let Ok(Ok(0) | Err(_)) = read {
                break;
            }
        }
        // One that is refused does not try again at once.
        sleep(Duration::from_millis(200)).await;
    }
}

/// Sends a good beginning, a byte at a time.
async fn slow(port: SocketAddr, source: Source) {
    let halves = halves();
    while source.goes_on() {
        let half = &halves[source.random().usize(..halves.len())];
        let Some(mut stream) = source.connect(port).await else {
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        for byte in half {
            if !source.goes_on() || stream.write_all(&[*byte]).await.is_err() {
                break;
            }
            sleep(Duration::from_millis(100)).await;
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// Opens connections as quickly as it can, and closes each at once.
async fn flood(ports: Vec<SocketAddr>, source: Source) {
    while source.goes_on() {
        for port in &ports {
            drop(source.connect(*port).await);
        }
        // Each port of the system waits a minute before it is used again.
        sleep(Duration::from_millis(10)).await;
    }
}

/// An abuse of HTTP/2: frames that are sent as long as the server takes them.
async fn abuse(port: SocketAddr, abuse: usize, source: Source) {
    while source.goes_on() {
        let Some(mut stream) = source.connect(port).await else { continue };
        if stream.write_all(&begin_http2()).await.is_err() {
            continue;
        }
        let (mut reader, mut writer) = stream.split();
        let mut answers = [0; 4096];
        let reads = async { while reader.read(&mut answers).await.is_ok_and(|read| read > 0) {} };
        let writes = async {
            for round in 0u32.. {
                let piece = frames_of(abuse, round);
                if !source.goes_on() || writer.write_all(&piece).await.is_err() {
                    break;
                }
                sleep(Duration::from_millis(1)).await;
            }
        };
        // The server closes a connection that abuses it.
        tokio::select! {
            () = reads => {}
            () = writes => {}
            () = sleep(Duration::from_secs(5)) => {}
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// Some frames of an abuse: streams that are reset at once, a request whose headers never end, pings, settings, and streams that stay open.
fn frames_of(abuse: usize, round: u32) -> Vec<u8> {
    let call = headers("/sextant.v1.Admin/ListBuckets");
    let stream = |n: u32| 2 * (round * 50 + n) + 1;
    let many = |of: &dyn Fn(u32) -> Vec<u8>| (0..50).flat_map(of).collect::<Vec<u8>>();
    match abuse {
        0 => many(&|n| {
            let reset = frame(RST_STREAM, 0, stream(n), &[0, 0, 0, 8]);
            [frame(HEADERS, END_HEADERS | END_STREAM, stream(n), &call), reset].concat()
        }),
        1 if round == 0 => frame(HEADERS, 0, 1, &call),
        1 => many(&|n| {
            frame(
                CONTINUATION,
                0,
                1,
                &[&[0, 4][..], b"x-aa", &[8], &[b'a' + n as u8 % 26; 8]].concat(),
            )
        }),
        2 => many(&|_| frame(PING, 0, 0, &[7; 8])),
        3 => many(&|_| frame(SETTINGS, 0, 0, &[])),
        _ => many(&|n| frame(HEADERS, END_HEADERS, stream(n), &call)),
    }
}

const ABUSES: usize = 5;

#[tokio::test(flavor = "multi_thread")]
async fn hostile_clients_at_the_ports_for_users_leave_others_alone() {
    let (scale, dir) = (Scale::from_env(), tempfile::tempdir().expect("a directory"));
    let log = dir.path().join("log");
    let mut command = process::dev(&dir.path().join("data"));
    command.args(["--nodes", "1"]).stderr(File::create(&log).expect("a file"));
    let dev = Dev::start_by(&mut command);
    let (sql, grpc, http) = (dev.sql_address(), dev.grpc_address(), dev.http_address());
    let victim = Victim::new(dev.process(), &log, sql).await;
    let all = vec![sql, grpc, http];

    let ports = all.clone();
    let attack = move |source| rubbish(ports.clone(), source);
    victim.judge("random bytes and halves", scale, attack, scale.clients(100, 20)).await;

    let ports = all.clone();
    let attack = move |source| flood(ports.clone(), source);
    victim.judge("floods of connections", scale, attack, scale.clients(200, 20)).await;

    let next = AtomicU64::new(0);
    let ports = all.clone();
    let attack = move |source| {
        let n = next.fetch_add(1, Ordering::Relaxed) as usize;
        let port = ports[n % ports.len()];
        async move {
            if n.is_multiple_of(5) { slow(port, source).await } else { idle(port, source).await }
        }
    };
    victim.judge("idle and slow clients", scale, attack, scale.clients(2_500, 500)).await;

    let next = AtomicU64::new(0);
    let attack =
        move |source| abuse(grpc, next.fetch_add(1, Ordering::Relaxed) as usize % ABUSES, source);
    victim.judge("abuses of HTTP/2", scale, attack, scale.clients(50, 10)).await;
    assert!(dev.terminate().success(), "it ends in order");
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_bytes_at_the_ports_for_other_processes_stop_nobody() {
    let scale = Scale::from_env();
    let processes = Processes::start(&[201]).await;
    let client = processes.sql().await;
    sql::run(&client, "CREATE BUCKET b; CREATE INDEX i ON b (n::int8)").await;
    sql::run(&client, "INSERT INTO b (id, doc) VALUES ('1', '{\"n\":1}')").await;
    let members = [1, 2, 3, 101, 201];
    let ports: Vec<SocketAddr> =
        members.iter().map(|id| processes.address(*id).parse().expect("an address")).collect();
    let source = Source::new();
    let attackers = scale.clients(100, 10);
    let mut tasks: Vec<_> =
        (0..attackers).map(|_| tokio::spawn(rubbish(ports.clone(), source.clone()))).collect();
    tasks.extend((0..ABUSES).map(|n| tokio::spawn(abuse(ports[n], n, source.clone()))));
    let (begun, mut written) = (Instant::now(), 1);
    while begun.elapsed() < 2 * scale.time() {
        written += 1;
        let write = format!("INSERT INTO b (id, doc) VALUES ('{written}', '{{\"n\":{written}}}')");
        sql::run(&client, &write).await;
        sleep(Duration::from_millis(20)).await;
    }
    source.is_over.store(true, Ordering::Relaxed);
    for task in tasks {
        timeout(Duration::from_secs(20), task).await.expect("it ends").expect("no attacker fails");
    }
    sql::run(&client, "SET consistency = 'request_plus'").await;
    let count = sql::value(&client, "SELECT count(*) FROM i").await;
    assert_eq!(count, written.to_string(), "each write is there");
    println!("{} connections to ports of processes", source.next.load(Ordering::Relaxed));
}
