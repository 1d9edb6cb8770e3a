//! Listening sockets and their connections.

use std::fmt::Display;
use std::time::Duration;

use proto::{Error, ErrorCode, Result};
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;

/// Idle time after which the system probes a connection. It probes again each [`PROBE_EVERY`] and closes the
/// connection after [`PROBES`] unanswered probes: within two minutes in all.
const QUIET_MAX: Duration = Duration::from_secs(60);
const PROBE_EVERY: Duration = Duration::from_secs(10);
const PROBES: u32 = 6;

/// Listens on an address.
pub async fn bind(address: &str, option: &str) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        Error::new(ErrorCode::Io, format!("listening on {address}: {error}"))
            .with_hint(format!("choose another address with {option}; port 0 picks a free port"))
    })
}

/// The reason for which a server has ended that should serve as long as its process runs.
pub fn end_reason<E: Display>(served: std::result::Result<(), E>) -> String {
    match served {
        Ok(()) => "its listening socket was closed".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// Accepts connections, without delay for small packets and with keep-alive probes: otherwise a connection whose client
/// has vanished would stay for ever.
pub fn connections(listener: TcpListener) -> TcpIncoming {
    TcpIncoming::from(listener)
        .with_nodelay(Some(true))
        .with_keepalive(Some(QUIET_MAX))
        .with_keepalive_interval(Some(PROBE_EVERY))
        .with_keepalive_retries(Some(PROBES))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::SocketAddr;

    use futures::StreamExt;
    use tokio::net::TcpStream;

    use super::*;

    /// Returns the timer of a connection from the system's table, found by the ports of its two ends.
    fn timer(local: SocketAddr, remote: SocketAddr) -> Option<String> {
        let ends = [local, remote].map(|end| format!(":{:04X}", end.port()));
        let table = std::fs::read_to_string("/proc/net/tcp").expect("a table of connections");
        let found = table
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .find(|fields| fields[1].ends_with(&ends[0]) && fields[2].ends_with(&ends[1]))?;
        found[5].split(':').next().map(str::to_owned)
    }

    #[tokio::test]
    async fn an_accepted_connection_has_keep_alive_probes() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let client = TcpStream::connect(address).await.expect("a connection");
        let mut accepting = connections(listener);
        let accepted = accepting.next().await.expect("one").expect("a connection");
        let remote = client.local_addr().expect("an address");
        assert_eq!(timer(address, remote).as_deref(), Some("02"), "keepalive");
        assert_eq!(timer(remote, address).as_deref(), Some("00"), "the client's end has none");
        assert!(accepted.nodelay().expect("an option"));
    }
}
