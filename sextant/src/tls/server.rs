//! The server's side of a handshake.

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

/// Time limit of a handshake.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

/// A connection after its handshake.
pub struct TlsConnection {
    /// The connection.
    pub stream: TlsStream<TcpStream>,
    /// The holder of the client's certificate, if it showed one.
    pub peer: Option<Identity>,
    /// The channel binding data `tls-server-end-point`, of the certificate that this handshake showed.
    pub end_point: Option<Vec<u8>>,
}

/// Makes the handshake of a connection. Any number of them may wait for their clients: each has a place of its port, and one that waits
/// costs some KiB. The processor's work is one signature, without a wait. A limit of concurrent handshakes would let silent clients exclude
/// all others. The error contains the reason of the refusal.
pub async fn accept(
    settings: &TlsSettings,
    clients: Clients,
    protocol: Protocol,
    stream: TcpStream,
) -> io::Result<TlsConnection> {
    // A set that is loaded meanwhile does not mix with this one.
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
