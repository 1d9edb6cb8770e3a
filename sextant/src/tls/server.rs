//! The server's side of a TLS handshake.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::identity::Identity;
use super::ports::{Clients, Protocol};
use super::settings::TlsSettings;
use super::verify::in_words;

/// The time limit of a handshake.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

/// A connection after its TLS handshake.
pub struct TlsConnection {
    /// The connection.
    pub stream: TlsStream<TcpStream>,
    /// The identity of the client, from its certificate; `None` if the client has none.
    pub peer: Option<Identity>,
    /// The channel binding data `tls-server-end-point` of the server's certificate in this
    /// handshake.
    pub end_point: Option<Vec<u8>>,
}

/// Performs the handshake of a connection. An error contains the reason of a refusal. The number
/// of concurrent handshakes is not limited, since silent clients could then exclude all others.
/// Each handshake counts as a connection of its port, takes some KiB of memory, and computes one
/// signature.
pub async fn accept(
    settings: &TlsSettings,
    clients: Clients,
    protocol: Protocol,
    stream: TcpStream,
) -> io::Result<TlsConnection> {
    // The whole handshake uses one set of files, even if new files are loaded meanwhile.
    let generation = settings.generation();
    let acceptor = TlsAcceptor::from(generation.server(clients, protocol));
    let shaken = async { acceptor.accept(stream).await.map_err(in_words) };
    let late = || {
        let seconds = HANDSHAKE_WITHIN.as_secs();
        io::Error::new(io::ErrorKind::TimedOut, format!("no TLS handshake within {seconds} s"))
    };
    let stream = timeout(HANDSHAKE_WITHIN, shaken).await.map_err(|_| late())??;
    let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let peer = shown.map(Identity::of_certificate).transpose().map_err(io::Error::other)?;
    Ok(TlsConnection { stream, peer, end_point: generation.end_point.clone() })
}
