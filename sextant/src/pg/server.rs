//! The SQL server. It accepts connections and runs a session for each.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use proto::env::Env;
use proto::{Error, ErrorCode};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::interrupt::Sessions;
use super::message::conn::Conn;
use super::message::error::{WireError, WireResult};
use super::protocol::session::Session;
use super::session::settings::Settings;
use super::session::state::Login;
use super::start::login::log_in;
use super::start::session_places::SessionPlaces;
use super::start::starting::{LoginPermit, StartingPlaces};
use super::start::startup::{self, Encryption, Parameters, Start};
use crate::access::AccessProvider;
use crate::auth::link::Link;
use crate::auth::login_policy::LoginPolicy;
use crate::auth::throttle::Throttle;
use crate::backend::Samples;
use crate::listen::connections;
use crate::principal::Principal;
use crate::tls::{self, Clients, Protocol, TlsSettings};

/// The time for which a refused client may read the reason before its connection is closed.
const REFUSAL_WAIT: Duration = Duration::from_secs(1);
/// The maximum number of clients that are told at the same time that their address has too many
/// connections.
const REFUSALS_MAX: usize = 16;
/// The time limit for the start-up packet of a client whose address has too many connections.
/// Such a client may still send a cancel request.
const CANCEL_WITHIN: Duration = Duration::from_secs(5);
/// The maximum number of cancel requests with a wrong secret that an address may send per minute.
const WRONG_CANCELS_MAX: u32 = 100;

/// The settings of the SQL port.
#[derive(Clone, Debug)]
pub struct PgConfig {
    /// The maximum number of concurrent sessions. Further sessions are refused. The last eighth
    /// is reserved for administrators.
    pub sessions_max: usize,
    /// The maximum number of connections that are logging in; these do not count as sessions. A
    /// further connection is refused, or replaces a connection whose client sends nothing.
    pub starting_max: usize,
    /// The time limit of a log-in, including the start-up messages and the TLS handshake.
    pub startup_timeout: Duration,
}

impl Default for PgConfig {
    /// Returns the default settings. They assume that an idle session takes some 100 KB of
    /// memory.
    fn default() -> Self {
        Self { sessions_max: 1000, starting_max: 64, startup_timeout: Duration::from_secs(30) }
    }
}

/// The SQL server of a process. A clone is cheap.
#[derive(Clone)]
pub struct PgServer {
    provider: Arc<dyn AccessProvider>,
    doors: Arc<LoginPolicy>,
    env: Env,
    config: PgConfig,
    sessions: Sessions,
    places: SessionPlaces,
    starting: StartingPlaces,
    /// The limit of clients that are told the reason of their refusal at the same time.
    refusals: Arc<Semaphore>,
    /// The number of cancel requests with a wrong secret from each address.
    wrong_cancels: Arc<Throttle>,
    /// The samples of indexes, from which notices about comparisons are derived.
    samples: Arc<Samples>,
}

impl PgServer {
    /// Returns a server for a cluster.
    pub fn new(
        provider: Arc<dyn AccessProvider>,
        doors: Arc<LoginPolicy>,
        env: Env,
        config: PgConfig,
    ) -> Self {
        let places = SessionPlaces::new(config.sessions_max);
        let starting = StartingPlaces::new(config.starting_max);
        let sessions = Sessions::default();
        let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
        let wrong_cancels = Arc::new(Throttle::new(WRONG_CANCELS_MAX));
        Self {
            provider,
            doors,
            env,
            config,
            sessions,
            places,
            starting,
            refusals,
            wrong_cancels,
            samples: Arc::default(),
        }
    }

    /// Accepts connections until the future is dropped, which ends all sessions. If the listener
    /// fails, returns the reason.
    pub async fn serve(self, listener: TcpListener) -> String {
        let mut connections = connections(listener);
        let stop = CancellationToken::new();
        let _ends_sessions = stop.clone().drop_guard();
        while let Some(accepted) = connections.next().await {
            match accepted {
                Ok(stream) => {
                    let (server, stop) = (self.clone(), stop.clone());
                    let session = async move {
                        tokio::select! {
                            () = stop.cancelled() => {}
                            () = server.serve_socket(stream) => {}
                        }
                    };
                    self.env.spawn_request("sql session", session).detach();
                }
                Err(error) => return format!("accepting connections failed: {error}"),
            }
        }
        "its listening socket was closed".to_owned()
    }

    /// Serves the connection of a client in the same process until it ends.
    pub async fn connection<S: AsyncRead + AsyncWrite + Unpin + Send>(&self, stream: S) {
        let mut conn = Conn::new(stream);
        let link = Link::in_process();
        match self.begin(&link, None) {
            Err(busy) => refuse(conn, busy).await,
            Ok(newcomer) => {
                let started = self.start(&mut conn, &link, Encryption::Absent, &newcomer).await;
                self.run_or_refuse(conn, started, newcomer).await;
            }
        }
    }

    /// Serves a TCP connection until it ends.
    async fn serve_socket(&self, stream: TcpStream) {
        let link = Link::of(&stream);
        let (_address, refusal) = match self.doors.flow().addresses.take(link.address()) {
            Ok(place) => (Some(place), None),
            Err(busy) => (None, Some(WireError::from(busy).fatal())),
        };
        let newcomer = match self.begin(&link, refusal.clone()) {
            Ok(newcomer) => newcomer,
            Err(busy) => match refusal {
                Some(why) => return self.refuse_with_reason(stream, why).await,
                None => return refuse(Conn::new(stream), busy).await,
            },
        };
        let Some(tls) = self.doors.tls() else {
            let mut conn = Conn::new(stream);
            let started = self.start(&mut conn, &link, Encryption::Absent, &newcomer).await;
            return self.run_or_refuse(conn, started, newcomer).await;
        };
        let is_direct = newcomer.starting.run(begins_with_tls(&stream)).await;
        if matches!(is_direct, Some(Ok(true))) {
            return self.serve_encrypted(tls, stream, Negotiation::Direct, link, newcomer).await;
        }
        let mut conn = Conn::new(stream);
        match self.start(&mut conn, &link, Encryption::Offered, &newcomer).await {
            Ok(StartState::Encrypt) => {
                let stream = conn.into_stream();
                self.serve_encrypted(tls, stream, Negotiation::Asked, link, newcomer).await;
            }
            started => self.run_or_refuse(conn, started, newcomer).await,
        }
    }

    /// Handles a cancel request. A secret has only 32 bits, so the number of wrong secrets from
    /// an address is limited; above this limit no secret is checked.
    fn cancel(&self, link: &Link, process: i32, secret: i32) {
        let is_allowed = self.wrong_cancels.check(link.address()).is_ok();
        if is_allowed && !self.sessions.cancel(process, secret) {
            self.wrong_cancels.count_failure(link.address());
        }
    }

    /// Tells a client why it is refused. If too many clients are being refused, the connection is
    /// closed without the reason.
    async fn refuse_with_reason(&self, stream: TcpStream, why: WireError) {
        if let Ok(_turn) = self.refusals.try_acquire() {
            refuse(Conn::new(stream), why).await;
        }
    }

    /// Performs a TLS handshake and serves the connection until it ends.
    async fn serve_encrypted(
        &self,
        tls: &TlsSettings,
        stream: TcpStream,
        negotiation: Negotiation,
        link: Link,
        newcomer: PendingLogin,
    ) {
        let shaken = tls::accept(tls, Clients::Anyone, Protocol::Sql, stream);
        let shaken = match newcomer.starting.run(shaken).await {
            Some(Ok(shaken)) => shaken,
            Some(Err(error)) => return tracing::debug!(?link, %error, "a TLS handshake failed"),
            None => return,
        };
        let link = link.encrypted(&shaken);
        // A client of another protocol that begins with TLS at once must not be answered in this one.
        let is_named = shaken.stream.get_ref().1.alpn_protocol().is_some();
        let mut conn = Conn::new(shaken.stream);
        if negotiation == Negotiation::Direct && !is_named {
            let text = "a direct TLS connection names its protocol with ALPN: postgresql";
            return refuse(conn, WireError::protocol(text)).await;
        }
        let started = self.start(&mut conn, &link, Encryption::Present, &newcomer).await;
        self.run_or_refuse(conn, started, newcomer).await;
    }

    /// Admits a connection to those that are logging in. A client with a `refusal` is admitted
    /// only so that it can send a cancel request.
    fn begin(&self, link: &Link, refusal: Option<WireError>) -> WireResult<PendingLogin> {
        let timeout = self.config.startup_timeout;
        let within = if refusal.is_some() { timeout.min(CANCEL_WITHIN) } else { timeout };
        let taken = self.starting.take(within, link.address());
        taken.map(|starting| PendingLogin { starting, refusal }).ok_or_else(|| {
            let text = format!("{} connections are logging in", self.config.starting_max);
            let busy = Error::new(ErrorCode::TooBusy, text).with_hint("try again later");
            WireError::from(busy).fatal()
        })
    }

    /// Reads the start-up packet and logs the client in. Returns the next step of the connection.
    async fn start<S: AsyncRead + AsyncWrite + Unpin + Send>(
        &self,
        conn: &mut Conn<S>,
        link: &Link,
        encryption: Encryption,
        newcomer: &PendingLogin,
    ) -> WireResult<StartState> {
        let starts = async {
            match startup::begin(conn, encryption).await? {
                Start::Closed => Ok(StartState::Ended),
                Start::Encrypt => Ok(StartState::Encrypt),
                Start::Cancel(process, secret) => {
                    self.cancel(link, process, secret);
                    Ok(StartState::Ended)
                }
                Start::Session(parameters) => {
                    if self.doors.flow().stop.has_begun() {
                        return Err(WireError::stopping());
                    }
                    if let Some(refusal) = &newcomer.refusal {
                        return Err(refusal.clone());
                    }
                    let user = parameters.user();
                    // The client may disconnect here if it needs the newer version, before it authenticates.
                    if let Some(negotiation) = parameters.negotiation() {
                        conn.send(negotiation)?;
                    }
                    Ok(match log_in(conn, &self.doors, link, &user).await? {
                        Some(principal) => StartState::Session(parameters, principal),
                        None => StartState::Ended,
                    })
                }
            }
        };
        newcomer.starting.run(starts).await.unwrap_or(Ok(StartState::Ended))
    }

    /// Runs the session that a connection has started, or sends the reason why there is none.
    async fn run_or_refuse<S: AsyncRead + AsyncWrite + Unpin + Send>(
        &self,
        mut conn: Conn<S>,
        started: WireResult<StartState>,
        newcomer: PendingLogin,
    ) {
        // Only this limit bounds the number of clients that are refused because of their address.
        let _until_told = newcomer.refusal.is_some().then_some(newcomer.starting);
        let refusal = match started {
            Ok(StartState::Ended | StartState::Encrypt) => return conn.close().await,
            Ok(StartState::Session(parameters, principal)) => {
                let is_administrator = self.doors.is_administrator(&principal);
                let mut settings = Settings::default();
                settings.idle_session = self.doors.flow().limits.session_idle;
                let places = (self.places.take(is_administrator), self.doors.session(&principal));
                match (places, parameters.apply(&mut settings)) {
                    ((Ok(_place), Ok(_own)), Ok(warnings)) => {
                        let (registration, interrupt) = self
                            .sessions
                            .register(&*self.env.random, self.doors.flow().stop.watch());
                        let access = self.provider.access_of(principal.clone());
                        let seams = (self.env.clone(), interrupt);
                        let login = Login::new(&self.doors, principal);
                        let started = (parameters, settings);
                        let of_client = (access, Arc::clone(&self.samples), login);
                        let mut session =
                            Session::new(conn, seams, of_client, started, registration);
                        session.state.warn_of_settings(warnings);
                        return session.run().await;
                    }
                    ((Err(error), _) | (_, Err(error)), _) | (_, Err(error)) => error.into(),
                }
            }
            Err(error) => error,
        };
        refuse(conn, refusal.fatal()).await;
    }
}

/// A connection whose client is logging in.
struct PendingLogin {
    starting: LoginPermit,
    /// The error with which the connection is refused, unless it sends a cancel request: a client
    /// whose address has too many connections must still be able to cancel statements.
    refusal: Option<WireError>,
}

/// The next step of a connection after its start-up packet.
enum StartState {
    /// A session of a client that has logged in.
    Session(Parameters, Principal),
    /// A TLS handshake.
    Encrypt,
    /// The end of the connection, which has done everything.
    Ended,
}

/// The ways in which a client begins encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Negotiation {
    /// The client has sent SSLRequest.
    Asked,
    /// The client begins the handshake directly, with its first bytes.
    Direct,
}

/// The first byte of a TLS handshake. A start-up packet begins with zero, the high byte of its
/// length.
const TLS_HANDSHAKE: u8 = 0x16;

/// Returns true if a connection begins with a TLS handshake.
async fn begins_with_tls(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    Ok(stream.peek(&mut first).await? == 1 && first == [TLS_HANDSHAKE])
}

/// Sends the client the reason of the end of its connection.
async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(mut conn: Conn<S>, refusal: WireError) {
    if conn.send(refusal.response()).is_ok() {
        // A client that does not read must not keep the connection.
        let _client_may_be_gone = tokio::time::timeout(REFUSAL_WAIT, conn.flush()).await;
        conn.close().await;
    }
}
