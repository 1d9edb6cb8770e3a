//! The server's side of a handshake.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::identity::Identity;
use super::settings::TlsSettings;
use super::verify::in_words;

/// Time limit of a handshake.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// Handshakes at once, for users and for nodes each. A client that has sent nothing yet does not count.
pub(super) const HANDSHAKES_MAX: usize = 64;

/// The clients of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// Users, with a certificate or without one.
    Anyone,
    /// Nodes and operators, with a certificate.
    Nodes,
}

/// The protocol of a port. A client that names protocols gets no connection to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// PostgreSQL's.
    Sql,
    /// HTTP/2.
    Grpc,
    /// HTTP/1.1.
    Http,
}

impl Protocol {
    pub(super) const ALL: [Self; 3] = [Self::Sql, Self::Grpc, Self::Http];

    pub(super) fn alpn(self) -> Vec<Vec<u8>> {
        let name: &[u8] = match self {
            Self::Sql => b"postgresql",
            Self::Grpc => b"h2",
            Self::Http => b"http/1.1",
        };
        vec![name.to_vec()]
    }
}

/// A connection after its handshake.
pub struct Handshaken {
    /// The connection.
    pub stream: TlsStream<TcpStream>,
    /// The holder of the client's certificate, if it showed one.
    pub peer: Option<Identity>,
    /// The channel binding data `tls-server-end-point`, of the certificate that this handshake showed.
    pub end_point: Option<Vec<u8>>,
}

/// Makes the handshake of a connection. The error says why the client was refused.
pub async fn accept(
    settings: &TlsSettings,
    clients: Clients,
    protocol: Protocol,
    stream: TcpStream,
) -> io::Result<Handshaken> {
    // A set that is taken over meanwhile does not mix with this one.
    let generation = settings.generation();
    let acceptor = TlsAcceptor::from(generation.server(clients, protocol));
    let shaken = async {
        stream.readable().await?;
        // It is never closed.
        let _turn = settings.handshakes(clients).acquire().await.map_err(io::Error::other)?;
        acceptor.accept(stream).await.map_err(in_words)
    };
    let late = || {
        let seconds = HANDSHAKE_WITHIN.as_secs();
        io::Error::new(io::ErrorKind::TimedOut, format!("no TLS handshake within {seconds} s"))
    };
    let stream = timeout(HANDSHAKE_WITHIN, shaken).await.map_err(|_| late())??;
    let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let peer = shown.map(Identity::of_certificate).transpose().map_err(io::Error::other)?;
    Ok(Handshaken { stream, peer, end_point: generation.end_point.clone() })
}
