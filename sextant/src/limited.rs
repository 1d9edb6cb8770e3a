//! Limits of the number of connections of each port. A connection counts from its acceptance to
//! its end. A connection beyond the limit gets an error in its protocol and is closed. SQL has
//! separate limits with more detailed errors.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::{Stream, StreamExt};
use proto::env::Env;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use crate::descriptors::Shares;
use crate::flow::{AddressPlace, Calls, ClientCapacity, IdleTimer, OpenCall, ReadPace, StallTimer};
use crate::listen::connections;
use crate::tls::{Clients, Identity, Protocol, TlsSettings, accept};

/// The time for which a refused client may read the reason before the connection is closed.
const REFUSAL_WAIT: Duration = Duration::from_secs(1);
/// The maximum number of refused clients that get the reason at the same time. Further clients
/// are disconnected without a message.
const REFUSALS_MAX: usize = 16;

/// The configured maximum numbers of connections; `None` means the default. The limit of open
/// files reduces them further.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionsMax {
    /// `grpc_connections_max`: connections of gRPC clients.
    pub grpc: Option<usize>,
    /// `http_connections_max`: connections of HTTP clients.
    pub http: Option<usize>,
    /// `peer_connections_max`: connections of other processes.
    pub peers: Option<usize>,
}

/// The limit of a port's connections, with the name of its setting.
#[derive(Clone)]
pub struct PortLimit {
    /// The maximum number of connections.
    pub count_max: usize,
    /// The name of the setting.
    pub setting: &'static str,
    /// The limits of clients if the port is for users; otherwise `None`.
    pub flow: Option<Arc<ClientCapacity>>,
}

impl PortLimit {
    /// Returns the limit of a port that is not for users.
    fn new(count_max: usize, setting: &'static str) -> Self {
        Self { count_max, setting, flow: None }
    }

    /// Returns the limit of a port for users, with the limits of clients that all these ports
    /// share.
    pub fn of_users(self, flow: &Arc<ClientCapacity>) -> Self {
        Self { flow: Some(Arc::clone(flow)), ..self }
    }

    /// Returns the timer that ends a connection whose client accepts no bytes; `None` without
    /// such a limit.
    fn stall(&self) -> Option<StallTimer> {
        self.flow.as_ref().and_then(StallTimer::of)
    }

    /// Returns the timer that ends a gRPC connection without calls, and the limiter of its reads;
    /// `None` for other ports.
    fn quiet(&self, speech: PortProtocol, peer: &mut PeerInfo) -> Option<(IdleTimer, ReadPace)> {
        let flow = self.flow.as_ref().filter(|_| speech == PortProtocol::Grpc)?;
        let calls = Calls::new();
        peer.calls = Some(Arc::clone(&calls));
        Some((IdleTimer::new(Arc::clone(&calls), flow), ReadPace::new(calls)))
    }
}

impl ConnectionsMax {
    /// Returns the limit of a port for gRPC clients.
    pub fn of_grpc(self) -> PortLimit {
        let count_max = Shares::of_process().grpc(self.grpc);
        PortLimit::new(count_max, "grpc_connections_max")
    }

    /// Returns the limit of a port for HTTP clients.
    pub fn of_http(self) -> PortLimit {
        let count_max = Shares::of_process().http(self.http);
        PortLimit::new(count_max, "http_connections_max")
    }

    /// Returns the limit of a port for other processes.
    pub fn of_peers(self) -> PortLimit {
        let count_max = Shares::of_process().peers(self.peers);
        PortLimit::new(count_max, "peer_connections_max")
    }
}

/// The protocol of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortProtocol {
    /// HTTP/2.
    Grpc,
    /// HTTP/1.1, with readable errors.
    Http,
}

impl PortProtocol {
    /// Returns the bytes that tell a client the reason why its connection is refused.
    fn refusal(self, why: &str) -> Vec<u8> {
        match self {
            Self::Http => {
                let length = why.len() + 1;
                let head =
                    "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n";
                format!("{head}Content-Length: {length}\r\n\r\n{why}\n").into_bytes()
            }
            Self::Grpc => {
                const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
                const GOAWAY: u8 = 7;
                const ENHANCE_YOUR_CALM: u32 = 0xb;
                let length = 8 + why.len() as u32;
                let mut frames = SETTINGS.to_vec();
                frames.extend_from_slice(&length.to_be_bytes()[1..]);
                frames.extend_from_slice(&[GOAWAY, 0, 0, 0, 0, 0]);
                frames.extend_from_slice(&[0; 4]);
                frames.extend_from_slice(&ENHANCE_YOUR_CALM.to_be_bytes());
                frames.extend_from_slice(why.as_bytes());
                frames
            }
        }
    }
}

/// The certificates of a port with encryption.
#[derive(Clone)]
pub struct PortTls {
    /// The certificate of this process.
    pub settings: Arc<TlsSettings>,
    /// The kinds of clients that the port accepts.
    pub clients: Clients,
}

/// An accepted connection, which counts against the limits of its port until it is dropped.
pub struct LimitedConnection {
    stream: Transport,
    /// The first bytes that the client must send; `None` after they have arrived.
    opening: Option<Opening>,
    peer: PeerInfo,
    stall: Option<StallTimer>,
    /// The timer that ends a gRPC connection without calls, and the limiter of its reads.
    quiet: Option<(IdleTimer, ReadPace)>,
    _place: Place,
}

/// The permissions of a connection: one of its port, and one of its address.
struct Place {
    _port: OwnedSemaphorePermit,
    _address: Option<AddressPlace>,
}

/// The first bytes that an HTTP/2 client must send: the preface and the head of its settings. The
/// library would wait for these bytes without a time limit.
struct Opening {
    deadline: Pin<Box<Sleep>>,
    bytes_left: usize,
}

impl Opening {
    const BYTES: usize = 24 + 9;
    const WITHIN: Duration = Duration::from_secs(10);

    /// Returns the first bytes of a protocol; `None` for HTTP/1, which has different time limits.
    fn of(speech: PortProtocol) -> Option<Self> {
        let deadline = || Box::pin(sleep(Self::WITHIN));
        (speech == PortProtocol::Grpc)
            .then(|| Self { deadline: deadline(), bytes_left: Self::BYTES })
    }
}

/// The socket of a connection, with or without TLS.
enum Transport {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// The properties of a connection. They are attached to each of its gRPC requests.
#[derive(Clone, Debug, Default)]
pub struct PeerInfo {
    /// The address of the client.
    pub address: Option<SocketAddr>,
    /// The address of the socket on this machine.
    pub local: Option<SocketAddr>,
    /// True if the connection is encrypted.
    pub is_encrypted: bool,
    /// The identity in the client's certificate, if the client has one.
    pub holder: Option<Arc<Identity>>,
    calls: Option<Arc<Calls>>,
}

impl PeerInfo {
    /// Returns the properties of a connection from the same machine.
    #[cfg(test)]
    pub fn loopback() -> Self {
        let end = Some(SocketAddr::from(([127, 0, 0, 1], 1)));
        Self { address: end, local: end, ..Self::default() }
    }

    /// Returns the properties of a connection whose calls are counted by `calls`.
    #[cfg(test)]
    pub fn with_calls(calls: &Arc<Calls>) -> Self {
        Self { calls: Some(Arc::clone(calls)), ..Self::loopback() }
    }

    /// Records that a call of a user was admitted. The call counts as open until the result is
    /// dropped.
    pub fn begin_call(&self) -> Option<OpenCall> {
        self.calls.as_ref().map(Calls::begin)
    }

    /// Records a call of a public service. The call counts as open until the result is dropped.
    pub fn begin_public_call(&self) -> Option<OpenCall> {
        self.calls.as_ref().map(Calls::begin_of_anybody)
    }

    /// Records that a call was refused because its sender is unknown.
    pub fn note_refused(&self) {
        if let Some(calls) = &self.calls {
            calls.refuse();
        }
    }

    /// Records that a call of a user was refused because of a limit.
    pub fn note_refused_user(&self) {
        if let Some(calls) = &self.calls {
            calls.refuse_user();
        }
    }

    /// Returns the properties of a socket without encryption.
    fn of(stream: &TcpStream) -> Self {
        let (address, local) = (stream.peer_addr().ok(), stream.local_addr().ok());
        Self { address, local, is_encrypted: false, holder: None, calls: None }
    }
}

/// Returns the address of the client that has sent a gRPC request.
pub fn remote_address<T>(request: &tonic::Request<T>) -> Option<SocketAddr> {
    let ours = request.extensions().get::<PeerInfo>().and_then(|peer| peer.address);
    ours.or_else(|| request.remote_addr())
}

/// The minimum interval between log lines about refused handshakes.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// A stream of accepted connections, whose number is limited.
pub type LimitedConnections = Pin<Box<dyn Stream<Item = io::Result<LimitedConnection>> + Send>>;

/// Returns the accepted connections of a listener, up to the limit.
pub fn limited_connections(
    listener: TcpListener,
    speech: PortProtocol,
    limit: PortLimit,
    env: &Env,
) -> LimitedConnections {
    let its_limit = limit.clone();
    let plain = within_limit(listener, Some(speech), limit, env).map(move |(stream, place)| {
        let mut peer = PeerInfo::of(&stream);
        let (opening, stall) = (Opening::of(speech), its_limit.stall());
        let quiet = its_limit.quiet(speech, &mut peer);
        Ok(LimitedConnection {
            stream: Transport::Plain(stream),
            opening,
            peer,
            stall,
            quiet,
            _place: place,
        })
    });
    Box::pin(plain)
}

/// Returns the accepted TLS connections of a listener, up to the limit. A connection counts
/// before its handshake, and is not returned if the handshake fails. A connection beyond the
/// limit is closed without a message, since the client could not decrypt it.
pub fn limited_tls_connections(
    listener: TcpListener,
    speech: PortProtocol,
    limit: PortLimit,
    env: &Env,
    tls: PortTls,
) -> LimitedConnections {
    let protocol = match speech {
        PortProtocol::Grpc => Protocol::Grpc,
        PortProtocol::Http => Protocol::Http,
    };
    let (its_limit, count_max) = (limit.clone(), limit.count_max);
    let shaken = within_limit(listener, None, limit, env).map(move |(stream, place)| {
        let (tls, its_limit) = (tls.clone(), its_limit.clone());
        async move {
            let plain = PeerInfo::of(&stream);
            let address = plain.address;
            let shaken = accept(&tls.settings, tls.clients, protocol, stream).await;
            let limited = shaken.map(|shaken| {
                let holder = shaken.peer.map(Arc::new);
                let mut peer = PeerInfo { is_encrypted: true, holder, ..plain };
                LimitedConnection {
                    stream: Transport::Tls(Box::new(shaken.stream)),
                    opening: Opening::of(speech),
                    quiet: its_limit.quiet(speech, &mut peer),
                    stall: its_limit.stall(),
                    peer,
                    _place: place,
                }
            });
            (address, limited)
        }
    });
    let mut reported: Option<Instant> = None;
    let made = shaken.buffer_unordered(count_max.max(1)).filter_map(move |(from, shaken)| {
        if let Err(error) = &shaken
            && reported.is_none_or(|at| at.elapsed() >= REPORT_EVERY)
        {
            reported = Some(Instant::now());
            let from =
                from.map_or_else(|| "an unknown address".to_owned(), |from| from.to_string());
            tracing::warn!("a connection from {from} was refused: {error}");
        }
        std::future::ready(shaken.ok().map(Ok))
    });
    Box::pin(made)
}

/// Returns the connections within the limit. Other connections get an error in the protocol
/// `speech`, if it is given, and are closed.
fn within_limit(
    listener: TcpListener,
    speech: Option<PortProtocol>,
    limit: PortLimit,
    env: &Env,
) -> impl Stream<Item = (TcpStream, Place)> + Send + use<> {
    let PortLimit { count_max, setting, flow } = limit;
    let (places, refusals) =
        (Arc::new(Semaphore::new(count_max)), Arc::new(Semaphore::new(REFUSALS_MAX)));
    let full = format!(
        "{count_max} connections are open at this port: try again later ({setting} and the open files of the process limit them)"
    );
    let env = env.clone();
    connections(listener).filter_map(move |accepted| {
        let place = |stream: &TcpStream| {
            let peer = stream.peer_addr().ok().map(|peer| peer.ip());
            let address = flow.as_ref().map(|flow| flow.addresses.take(peer)).transpose();
            let address = address.map_err(|error| {
                format!("{}: {}", error.message, error.hint.unwrap_or_default())
            })?;
            let port = Arc::clone(&places).try_acquire_owned().map_err(|_| full.clone())?;
            Ok::<_, String>(Place { _port: port, _address: address })
        };
        // The listener has logged errors.
        std::future::ready(accepted.ok().and_then(|stream| match place(&stream) {
            Ok(place) => Some((stream, place)),
            Err(why) => {
                if let Some(speech) = speech
                    && let Ok(turn) = Arc::clone(&refusals).try_acquire_owned()
                {
                    let refusal = speech.refusal(&why);
                    env.spawn_request("refusal", refuse(stream, refusal, turn)).detach();
                }
                None
            }
        }))
    })
}

/// Tells a client why its connection is refused. Then waits for a short time until the client
/// closes the connection, because an immediate end of the connection could arrive before the
/// reason.
async fn refuse(mut stream: TcpStream, refusal: Vec<u8>, _turn: OwnedSemaphorePermit) {
    let told = async {
        stream.write_all(&refusal).await?;
        stream.shutdown().await?;
        let mut rest = [0; 1024];
        while stream.read(&mut rest).await? > 0 {}
        Ok::<_, io::Error>(())
    };
    // The client may have disconnected.
    let _ = timeout(REFUSAL_WAIT, told).await;
}

/// A listener for HTTP with a limit of connections.
pub struct LimitedListener {
    address: SocketAddr,
    connections: LimitedConnections,
}

impl LimitedListener {
    /// Returns a listener that accepts connections up to the limit.
    pub fn new(listener: TcpListener, limit: PortLimit, env: &Env) -> io::Result<Self> {
        let address = listener.local_addr()?;
        Ok(Self {
            address,
            connections: limited_connections(listener, PortProtocol::Http, limit, env),
        })
    }

    /// Returns a listener that accepts TLS connections up to the limit.
    pub fn with_tls(
        listener: TcpListener,
        limit: PortLimit,
        env: &Env,
        tls: PortTls,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        Ok(Self {
            address,
            connections: limited_tls_connections(listener, PortProtocol::Http, limit, env, tls),
        })
    }
}

impl axum::serve::Listener for LimitedListener {
    type Io = LimitedConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            match self.connections.next().await {
                Some(Ok(accepted)) => return (accepted, self.address),
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Ok(self.address)
    }
}

impl Connected for LimitedConnection {
    type ConnectInfo = PeerInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.peer.clone()
    }
}

impl AsyncRead for LimitedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let paused = self.quiet.as_mut().map(|(_, pace)| pace.poll_ready(context));
        let read = match &mut self.stream {
            _ if paused.is_some_and(|paused| paused.is_pending()) => Poll::Pending,
            Transport::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Transport::Tls(stream) => Pin::new(&mut **stream).poll_read(context, buffer),
        };
        let bytes = buffer.filled().len() - before;
        if let Some((_, pace)) = &mut self.quiet {
            pace.count(bytes);
        }
        // Received bytes may begin a call, so the read must not fail after it has filled the
        // buffer.
        if read.is_pending()
            && let Some((quiet, _)) = &mut self.quiet
            && quiet.is_over(context)
        {
            let what = "the connection has no calls";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, what)));
        }
        let Some(opening) = &mut self.opening else { return read };
        if read.is_pending() {
            let late = || io::Error::new(io::ErrorKind::TimedOut, "the client does not begin");
            return opening.deadline.as_mut().poll(context).map(|()| Err(late()));
        }
        opening.bytes_left = opening.bytes_left.saturating_sub(bytes);
        if opening.bytes_left == 0 {
            self.opening = None;
        }
        read
    }
}

impl AsyncWrite for LimitedConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, stall, .. } = &mut *self;
        let wrote = match stream {
            Transport::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Transport::Tls(stream) => Pin::new(&mut **stream).poll_write(context, bytes),
        };
        StallTimer::watch(stall, context, wrote)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, stall, .. } = &mut *self;
        let flushed = match stream {
            Transport::Plain(stream) => Pin::new(stream).poll_flush(context),
            Transport::Tls(stream) => Pin::new(&mut **stream).poll_flush(context),
        };
        StallTimer::watch(stall, context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Transport::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Transport::Tls(stream) => Pin::new(&mut **stream).poll_shutdown(context),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, stall, .. } = &mut *self;
        let wrote = match stream {
            Transport::Plain(stream) => Pin::new(stream).poll_write_vectored(context, buffers),
            Transport::Tls(stream) => Pin::new(&mut **stream).poll_write_vectored(context, buffers),
        };
        StallTimer::watch(stall, context, wrote)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Transport::Plain(stream) => stream.is_write_vectored(),
            Transport::Tls(stream) => stream.is_write_vectored(),
        }
    }
}

#[cfg(test)]
#[path = "limited_tests.rs"]
mod tests;
