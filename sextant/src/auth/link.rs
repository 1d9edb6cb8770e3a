//! The properties of a client's connection on which a log-in depends.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::net::TcpStream;

use crate::limited::PeerInfo;
use crate::tls::{Identity, TlsConnection};

/// The two ends of a client's connection, and its encryption.
#[derive(Clone, Debug, Default)]
pub struct Link {
    ends: Option<Ends>,
    tls: Option<Arc<Encryption>>,
}

/// The addresses of a socket; `None` if the system does not report one.
#[derive(Clone, Copy, Debug)]
struct Ends {
    local: Option<SocketAddr>,
    peer: Option<SocketAddr>,
}

/// The encryption of a connection, if there is any.
#[derive(Debug)]
struct Encryption {
    certificate: Option<Arc<Identity>>,
    end_point: Option<Vec<u8>>,
}

impl Link {
    /// Returns the link of a connection within this process, which has no addresses.
    pub fn in_process() -> Self {
        Self::default()
    }

    /// Returns the link of a socket's connection.
    pub fn of(stream: &TcpStream) -> Self {
        let ends = Ends { local: stream.local_addr().ok(), peer: stream.peer_addr().ok() };
        Self { ends: Some(ends), tls: None }
    }

    /// Returns the link of a gRPC or HTTP request.
    pub fn of_request(peer: &PeerInfo) -> Self {
        let ends = Ends { local: peer.local, peer: peer.address };
        let certificate = peer.holder.clone();
        // The proof of a gRPC or HTTP request is never bound to its connection.
        let tls = peer.is_encrypted.then(|| Arc::new(Encryption { certificate, end_point: None }));
        Self { ends: Some(ends), tls }
    }

    /// Returns this link with the encryption that a handshake has established.
    pub fn encrypted(&self, handshaken: &TlsConnection) -> Self {
        let TlsConnection { peer, end_point, .. } = handshaken;
        let tls =
            Encryption { certificate: peer.clone().map(Arc::new), end_point: end_point.clone() };
        Self { tls: Some(Arc::new(tls)), ..self.clone() }
    }

    /// Returns true if the connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Returns the hash of the server's certificate (`tls-server-end-point`), to which a client
    /// can bind its proof on this connection; `None` if binding is impossible.
    pub fn end_point(&self) -> Option<&[u8]> {
        self.tls.as_ref()?.end_point.as_deref()
    }

    /// Returns the identity in the client's certificate; `None` if the client has no certificate.
    pub fn certificate(&self) -> Option<&Identity> {
        self.tls.as_ref()?.certificate.as_deref()
    }

    /// Returns the address and port of the client.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.ends?.peer
    }

    /// Returns the client's IP address.
    pub fn address(&self) -> Option<IpAddr> {
        self.peer().map(|peer| peer.ip().to_canonical())
    }

    /// Returns true if the client runs on this machine: both ends are loopback addresses. Returns
    /// false if an address is unknown.
    pub fn is_of_this_machine(&self) -> bool {
        let Some(Ends { local, peer }) = self.ends else { return true };
        [local, peer].iter().all(|end| end.is_some_and(|end| end.ip().to_canonical().is_loopback()))
    }

    /// Returns a link between two addresses.
    #[cfg(test)]
    pub fn between(local: &str, peer: &str) -> Self {
        let [local, peer] = [local, peer].map(|end| end.parse().ok());
        Self { ends: Some(Ends { local, peer }), tls: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_needs_two_loopback_ends() {
        let is = |local, peer| Link::between(local, peer).is_of_this_machine();
        assert!(is("127.0.0.1:1", "127.0.0.9:2"));
        assert!(is("[::1]:1", "[::1]:2"));
        assert!(is("[::ffff:127.0.0.1]:1", "[::ffff:127.0.0.1]:2"));
        assert!(!is("10.0.0.1:1", "127.0.0.1:2"));
        assert!(!is("127.0.0.1:1", "10.0.0.1:2"));
        assert!(!is("[::ffff:10.0.0.1]:1", "127.0.0.1:2"));
        assert!(!is("127.0.0.1:1", "unknown"));
        assert!(Link::in_process().is_of_this_machine());
    }
}
