//! Accepts SQL connections and runs a session for each.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use proto::env::Env;
use proto::{Error, ErrorCode};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::conn::Conn;
use super::error::WireError;
use super::interrupt::Sessions;
use super::session::Session;
use super::startup::{self, Start};
use crate::listen::connections;
use crate::principal::Principal;
use crate::sql::backend::Backends;

/// Time limit for a refused client to read the reason.
const REFUSAL_WAIT: Duration = Duration::from_secs(1);

/// Settings of the SQL port.
#[derive(Clone, Debug)]
pub struct PgConfig {
    /// Maximum of concurrent sessions; further ones are refused.
    pub sessions_max: usize,
    /// Maximum of connections that have not sent their start-up packet; further ones are refused. They take no session's
    /// place.
    pub starting_max: usize,
    /// Time-out of the start-up messages.
    pub startup_timeout: Duration,
}

impl Default for PgConfig {
    /// An idle session takes some 100 KB.
    fn default() -> Self {
        Self { sessions_max: 1000, starting_max: 64, startup_timeout: Duration::from_secs(30) }
    }
}

/// Serves SQL over PostgreSQL's protocol; cheap to clone.
#[derive(Clone)]
pub struct PgServer {
    backends: Arc<dyn Backends>,
    env: Env,
    config: PgConfig,
    sessions: Sessions,
    places: Arc<Semaphore>,
    starting: Arc<Semaphore>,
}

impl PgServer {
    /// A server over a cluster.
    pub fn new(backends: Arc<dyn Backends>, env: Env, config: PgConfig) -> Self {
        let places = Arc::new(Semaphore::new(config.sessions_max));
        let starting = Arc::new(Semaphore::new(config.starting_max));
        Self { backends, env, config, sessions: Sessions::default(), places, starting }
    }

    /// Accepts connections until it is dropped, which ends all sessions.
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
                            () = server.connection(stream) => {}
                        }
                    };
                    self.env.spawn_request("sql session", session).detach();
                }
                Err(error) => return format!("accepting connections failed: {error}"),
            }
        }
        "its listening socket was closed".to_owned()
    }

    /// Runs one connection to its end.
    pub async fn connection<S: AsyncRead + AsyncWrite + Unpin + Send>(&self, stream: S) {
        let Ok(starting) = self.starting.try_acquire() else {
            let text = format!("{} connections are logging in", self.config.starting_max);
            let busy = Error::new(ErrorCode::TooBusy, text).with_hint("try again later");
            return refuse(Conn::new(stream), WireError::from(busy).fatal()).await;
        };
        let mut conn = Conn::new(stream);
        let start = tokio::time::timeout(self.config.startup_timeout, startup::begin(&mut conn));
        let start = start.await;
        drop(starting);
        let refusal = match start {
            Err(_) | Ok(Ok(Start::Closed)) => return,
            Ok(Ok(Start::Cancel(process, secret))) => {
                return self.sessions.cancel(process, secret);
            }
            Ok(Ok(Start::Session(parameters))) => match self.places.try_acquire() {
                Ok(_place) => {
                    let (registration, interrupt) = self.sessions.register(&*self.env.random);
                    // Sessions have no authentication yet: the user of the start-up packet is only a name.
                    let backend = self.backends.for_principal(Principal::Trusted);
                    let seams = (self.env.clone(), interrupt);
                    let session = Session::new(conn, seams, backend, parameters, registration);
                    return session.run().await;
                }
                Err(_) => WireError::from(
                    Error::new(
                        ErrorCode::TooBusy,
                        format!("{} sessions are open", self.config.sessions_max),
                    )
                    .with_hint("close some sessions, or try again later"),
                )
                .fatal(),
            },
            Ok(Err(error)) => error,
        };
        refuse(conn, refusal).await;
    }
}

/// Sends the client the reason for the end of its connection.
async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(mut conn: Conn<S>, refusal: WireError) {
    if conn.send(refusal.response()).is_ok() {
        // A client that does not read must not keep the connection.
        let _client_may_be_gone = tokio::time::timeout(REFUSAL_WAIT, conn.flush()).await;
    }
}
