//! Hostile clients: random bytes, halves of messages, huge lengths, floods of connections, idle and slow clients, and the known abuses of
//! HTTP/2. They come from 127.0.0.2 to 127.0.0.250.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "clients of a running process, at real sockets"
)]

mod bytes;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use self::bytes::{ABUSES, begin_http2, frames_of, halves};

/// A kind of attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Attack {
    /// Random bytes, halves of messages and huge lengths, at one port after another
    Rubbish,
    /// Connections that are closed at once, as many as go
    Flood,
    /// Connections that are silent, and every fifth that sends a byte at a time
    Silence,
    /// Abuses of HTTP/2: resets, headers without an end, pings, settings, streams without an end
    Http2,
}

/// Runs an attack with this many clients at some ports until `end`; returns the number of
/// connections. Calls `begun` when there have been as many connections as clients.
pub async fn run(
    attack: Attack,
    ports: &[SocketAddr],
    clients: usize,
    begun: impl FnOnce(),
    end: impl Future<Output = ()>,
) -> u64 {
    let source = Source::new();
    let tasks: Vec<_> = (0..clients)
        .map(|n| tokio::spawn(client(attack, n, ports.to_vec(), source.clone())))
        .collect();
    let all_there = async {
        while source.connections.load(Ordering::Relaxed) < clients as u64 {
            sleep(Duration::from_millis(5)).await;
        }
        begun();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = end => {}
        () = all_there => {}
    }
    source.is_over.store(true, Ordering::Relaxed);
    for task in tasks {
        let ended = timeout(Duration::from_secs(20), task).await;
        ended.expect("a client ends").expect("no client fails");
    }
    source.connections.load(Ordering::Relaxed)
}

async fn client(attack: Attack, n: usize, ports: Vec<SocketAddr>, source: Source) {
    let port = ports[n % ports.len()];
    match attack {
        Attack::Rubbish => rubbish(ports, source).await,
        Attack::Flood => flood(ports, source).await,
        Attack::Silence if n.is_multiple_of(5) => slow(port, source).await,
        Attack::Silence => idle(port, source).await,
        Attack::Http2 => abuse(port, n % ABUSES, source).await,
    }
}

/// A source of hostile connections: each connection has another source address.
#[derive(Clone)]
struct Source {
    connections: Arc<AtomicU64>,
    seeds: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Source {
    fn new() -> Self {
        Self { connections: Arc::default(), seeds: Arc::default(), is_over: Arc::default() }
    }

    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    /// Returns a random generator, with another seed at each call.
    fn random(&self) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seeds.fetch_add(1, Ordering::Relaxed))
    }

    /// Connects; `None` if the port does not accept the connection.
    async fn connect(&self, to: SocketAddr) -> Option<TcpStream> {
        let last = 2 + (self.seeds.fetch_add(1, Ordering::Relaxed) % 249) as u8;
        let socket = TcpSocket::new_v4().ok()?;
        socket.bind(SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0))).ok()?;
        let stream = timeout(Duration::from_secs(2), socket.connect(to)).await.ok()?.ok()?;
        self.connections.fetch_add(1, Ordering::Relaxed);
        Some(stream)
    }
}

/// Sends bytes and reads the answer until its end or a time limit.
async fn send_and_read(stream: &mut TcpStream, bytes: &[u8], wait: Duration) {
    if stream.write_all(bytes).await.is_err() {
        return;
    }
    let mut answer = [0; 4096];
    let reads = async { while stream.read(&mut answer).await.is_ok_and(|read| read > 0) {} };
    let _over = timeout(wait, reads).await;
}

/// Sends random bytes, beginnings of messages and huge lengths, at one port after another.
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

/// Connects and sends nothing until the end of the connection.
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
        // A refused client does not try again at once.
        sleep(Duration::from_millis(200)).await;
    }
}

/// Sends a valid beginning, one byte at a time.
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

/// Opens connections as quickly as possible, and closes each at once.
async fn flood(ports: Vec<SocketAddr>, source: Source) {
    while source.goes_on() {
        for port in &ports {
            drop(source.connect(*port).await);
        }
        // Each port of the system waits a minute before it is used again.
        sleep(Duration::from_millis(10)).await;
    }
}

/// Commits an abuse of HTTP/2: sends frames as long as the server accepts them.
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
