//! Connections of the client commands to a SQL port, with TLS and with a password or a
//! certificate for the log-in.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use proto::env::Env;
use proto::{Error, ErrorCode, Result};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, NoTls, TlsConnect, TlsStream};
use tokio_postgres::{Client, Config, Connection};

use super::secrets;
use crate::tls::{Protocol, UserTls, read_private, read_public};

/// The time limit for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The time limit for the log-in.
const LOG_IN_TIMEOUT: Duration = Duration::from_secs(15);

/// The text of the SQL library's error for a server that requires a password if none was given.
const NO_PASSWORD: &str = "password missing";

/// The environment variable for the password, the same as in PostgreSQL's programs.
const PASSWORD: &str = "PGPASSWORD";

/// The cluster to connect to, and the user.
#[derive(Debug, clap::Args)]
pub struct Target {
    /// Address of the cluster's SQL port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7432", env = "SEXTANT_SQL")]
    pub(super) at: String,
    /// User to log in as. The password comes from --password-file, from PGPASSWORD or from the terminal
    #[arg(long, value_name = "NAME", default_value = "sextant", env = "SEXTANT_USER")]
    user: String,
    /// File with the password, readable by its owner only
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Certificate of the cluster's authority (PEM): the connection is encrypted, and the server proves who it is
    #[arg(long, value_name = "FILE", env = "SEXTANT_CA")]
    ca: Option<PathBuf>,
    /// Certificate of the user (PEM), in place of a password
    #[arg(long, value_name = "FILE", requires_all = ["key", "ca"])]
    cert: Option<PathBuf>,
    /// Private key of the user's certificate, readable by its owner only
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
}

impl Target {
    /// Connects to the SQL port. If the server requires a password and none was given, it is read
    /// from the terminal.
    pub(super) async fn connect(&self) -> Result<Client> {
        let (env, tls) = (Env::real(), self.tls().await?);
        let known = match &self.password_file {
            Some(path) => Some(secrets::from_file(&env, path).await?),
            None => secrets::from_environment(PASSWORD),
        };
        let missing = match connect_as(&self.at, &self.user, known.as_deref(), tls.as_ref()).await {
            Err(ConnectFailure::NoPassword) => ConnectFailure::NoPassword.into_error(&self.at),
            done => return done.map_err(|failed| failed.into_error(&self.at)),
        };
        let prompt = format!("password of user {}: ", self.user);
        let password = secrets::from_terminal(&prompt)?.ok_or(missing)?;
        let done = connect_as(&self.at, &self.user, Some(&password), tls.as_ref()).await;
        done.map_err(|failed| failed.into_error(&self.at))
    }

    /// Reads the certificates for TLS; `None` if no authority was given.
    async fn tls(&self) -> Result<Option<UserTls>> {
        let Some(ca) = self.ca.clone() else { return Ok(None) };
        let (env, own) = (Env::real(), self.cert.clone().zip(self.key.clone()));
        let its_env = env.clone();
        env.blocking(move || {
            let fs = &*its_env.fs;
            let ca = read_public(fs, &ca)?;
            let own = match own {
                Some((cert, key)) => Some((read_public(fs, &cert)?, read_private(fs, &key)?)),
                None => None,
            };
            let own = own.as_ref().map(|(cert, key)| (&cert[..], &key[..]));
            UserTls::new(&its_env, &ca, own, Protocol::Sql).map(Some)
        })
        .await
    }
}

/// The reason why a connection failed.
enum ConnectFailure {
    /// The server requires a password that was not given.
    NoPassword,
    Other(Error),
}

impl ConnectFailure {
    /// Returns the failure as an error for the user.
    fn into_error(self, at: &str) -> Error {
        match self {
            Self::Other(error) => error,
            Self::NoPassword => {
                let what = format!("connecting to {at}: the server asks for a password");
                Error::new(ErrorCode::BadLogin, what)
                    .with_hint("give it with --password-file or PGPASSWORD")
            }
        }
    }
}

/// Connects to a SQL port of this machine that trusts its clients.
pub async fn connect(at: &str) -> Result<Client> {
    connect_as(at, "sextant", None, None).await.map_err(|failed| failed.into_error(at))
}

/// Connects as a user with a password and TLS settings, and logs in.
async fn connect_as(
    at: &str,
    user: &str,
    password: Option<&str>,
    tls: Option<&UserTls>,
) -> std::result::Result<Client, ConnectFailure> {
    let (host, port) = host_and_port(at).map_err(ConnectFailure::Other)?;
    let mut config = Config::new();
    config.user(user).ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
    if let Some(password) = password {
        config.password(password);
    }
    let opened = async {
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        Ok::<_, io::Error>(stream)
    };
    let opened = tokio::time::timeout(CONNECT_TIMEOUT, opened).await;
    let opened = opened.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let stream = opened.map_err(|error| unreachable(at, &error.to_string()))?;
    let is_local = stream.peer_addr().is_ok_and(|peer| peer.ip().to_canonical().is_loopback());
    if password.is_some() && tls.is_none() && !is_local {
        let what = format!("connecting to {at}: a password is not sent over a network in clear");
        return Err(ConnectFailure::Other(
            Error::new(ErrorCode::BadLogin, what)
                .with_hint("give the certificate of the cluster's authority with --ca"),
        ));
    }
    let begun = async {
        match tls {
            Some(tls) => {
                let host = HostTls { tls: tls.clone(), host: host.to_owned() };
                start_connection(at, config.connect_raw(stream, host).await)
            }
            None => start_connection(at, config.connect_raw(stream, NoTls).await),
        }
    };
    let late = |_| Err(unreachable(at, "no answer to the log-in"));
    tokio::time::timeout(LOG_IN_TIMEOUT, begun).await.unwrap_or_else(late)
}

/// Returns the error for a server that cannot be reached.
fn unreachable(at: &str, why: &str) -> ConnectFailure {
    ConnectFailure::Other(
        Error::unavailable(format!("connecting to {at}: {why}"))
            .with_hint("is the cluster running? `sextant dev` starts one and prints its ports"),
    )
}

/// Starts the task of a connection whose client is logged in, and returns the client.
fn start_connection<S, T>(
    at: &str,
    begun: std::result::Result<(Client, Connection<S, T>), tokio_postgres::Error>,
) -> std::result::Result<Client, ConnectFailure>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (client, connection) = begun.map_err(|error| match error.as_db_error() {
        Some(_) => {
            let what = format!("connecting to {at}: {}", describe(&error));
            ConnectFailure::Other(Error::new(ErrorCode::BadLogin, what))
        }
        None if describe(&error).contains(NO_PASSWORD) => ConnectFailure::NoPassword,
        None => unreachable(at, &describe(&error)),
    })?;
    // The task ends when the client is dropped.
    Env::real()
        .spawn_request("sql-connection", async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "SQL connection");
            }
        })
        .detach();
    Ok(client)
}

/// Returns the text of a PostgreSQL error and of its causes.
pub fn describe(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        let hint = error.hint().map(|hint| format!(" (hint: {hint})")).unwrap_or_default();
        return format!("{} [{}]{hint}", error.message(), error.code().code());
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Splits `HOST:PORT` into the host and the port. An IPv6 address is in brackets.
fn host_and_port(at: &str) -> Result<(&str, u16)> {
    let parts = at.rsplit_once(':').and_then(|(host, port)| {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = bare.unwrap_or(host);
        // Without brackets the port may be a part of the address.
        let is_clear = bare.is_some() || !host.contains(':');
        Some((host, port.parse().ok()?)).filter(|_| is_clear && !host.is_empty())
    });
    parts.ok_or_else(|| {
        Error::new(ErrorCode::InvalidParameter, format!("{at:?} is not HOST:PORT"))
            .with_hint("write an IPv6 address in brackets: [::1]:7432")
    })
}

/// The TLS settings for one host, in the form that the library of the SQL client requires.
struct HostTls {
    tls: UserTls,
    host: String,
}

/// An encrypted connection with its data for channel binding.
struct Encrypted {
    stream: tokio_rustls::client::TlsStream<TcpStream>,
    end_point: Option<Vec<u8>>,
}

impl TlsConnect<TcpStream> for HostTls {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, stream: TcpStream) -> Self::Future {
        Box::pin(async move {
            let (stream, end_point) = self.tls.connect(&self.host, stream).await?;
            Ok(Encrypted { stream, end_point })
        })
    }
}

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        match &self.end_point {
            Some(end_point) => ChannelBinding::tls_server_end_point(end_point.clone()),
            None => ChannelBinding::none(),
        }
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_addresses_are_in_brackets() {
        assert_eq!(host_and_port("[::1]:7432").expect("an address"), ("::1", 7432));
        assert_eq!(host_and_port("db.example:1").expect("an address"), ("db.example", 1));
        for wrong in ["::1:7432", "localhost", ":7432", "[]:7432", "h:port", "h:99999"] {
            assert!(host_and_port(wrong).expect_err(wrong).hint.is_some(), "{wrong}");
        }
    }
}
