//! Listeners, and the connections that they accept.

use std::time::Duration;

use proto::{Error, ErrorCode, Result};
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;

/// A connection that has been quiet for so long is asked whether its other end is still there, again after
/// [`PROBE_EVERY`], and is closed after [`PROBES`] without an answer: within two minutes in all.
const QUIET_MAX: Duration = Duration::from_secs(60);
const PROBE_EVERY: Duration = Duration::from_secs(10);
const PROBES: u32 = 6;

/// Listens on an address.
pub async fn bind(address: &str, option: &str) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        Error::new(ErrorCode::Io, format!("listening on {address}: {error}"))
            .with_hint(format!("choose another one with {option}; port 0 is any free one"))
    })
}

/// The connections that a listener accepts. What is small leaves at once, and one whose other end has vanished
/// without a word comes to an end.
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

    /// The timer of a connection as the system shows it, by the ports of its two ends.
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
    async fn a_connection_that_is_quiet_is_asked_after() {
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
