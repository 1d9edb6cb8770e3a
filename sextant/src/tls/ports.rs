//! The kinds of clients that a port accepts, and the protocols of ports.

/// The kinds of clients that a port accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// Users, with or without a certificate.
    Anyone,
    /// Nodes and operators, with a certificate.
    Nodes,
}

/// The protocol of a port. A TLS client that offers only other protocols in the handshake is
/// refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// PostgreSQL's protocol.
    Sql,
    /// HTTP/2.
    Grpc,
    /// HTTP/1.1, without HTTP/2.
    Http,
}

impl Protocol {
    pub(super) const ALL: [Self; 3] = [Self::Sql, Self::Grpc, Self::Http];

    /// Returns the names of the protocol in the TLS handshake (ALPN).
    pub(super) fn alpn(self) -> Vec<Vec<u8>> {
        let name: &[u8] = match self {
            Self::Sql => b"postgresql",
            Self::Grpc => b"h2",
            Self::Http => b"http/1.1",
        };
        vec![name.to_vec()]
    }
}
