//! Listening sockets, the rate at which their connections are accepted, and loopback addresses.

use std::fmt::Display;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::time::Duration;

use futures::{Stream, StreamExt};
use proto::{Error, ErrorCode, Result};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tonic::transport::server::TcpIncoming;

/// The time after which the system probes an idle connection. The system repeats the probe at
/// intervals of [`PROBE_EVERY`] and closes the connection after [`PROBES`] unanswered probes,
/// within two minutes in all.
const QUIET_MAX: Duration = Duration::from_secs(60);
const PROBE_EVERY: Duration = Duration::from_secs(10);
const PROBES: u32 = 6;

/// Listens on an address. An error contains the name of the option that has set the address.
pub async fn bind(address: &str, option: &str) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        Error::new(ErrorCode::Io, format!("listening on {address}: {error}"))
            .with_hint(format!("choose another address with {option}; port 0 picks a free port"))
    })
}

/// Returns true for a loopback address, which only processes of this machine can call. IPv4
/// addresses in the form of IPv6 are included.
pub fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Returns the address to which limits apply. For IPv6, this is the /64 network, since a
/// household or a machine has at least a /64.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let bits = address.to_bits() & (u128::MAX << 64);
            IpAddr::V6(Ipv6Addr::from_bits(bits))
        }
    }
}

/// Returns an error unless a listener has a loopback address.
pub fn check_loopback(listener: &TcpListener, option: &str) -> Result<()> {
    let address = listener.local_addr()?;
    if is_loopback(address.ip()) {
        return Ok(());
    }
    let what =
        format!("{option} {address} is not a loopback address, and --insecure checks nobody");
    Err(Error::new(ErrorCode::InvalidParameter, what).with_hint(
        "give the process a certificate: --tls-cert, --tls-key and --tls-ca; sextant cert makes one",
    ))
}

/// Returns the reason of the end of a server that should run for ever.
pub fn end_reason<E: Display>(served: std::result::Result<(), E>) -> String {
    match served {
        Ok(()) => "its listening socket was closed".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// The pause after an attempt to accept a connection has failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The minimum interval between two log lines about connections that could not be accepted.
const ACCEPT_REPORT_EVERY: Duration = Duration::from_secs(10);

/// The minimum interval between two accepted connections: a port accepts 1,000 per second.
const ACCEPT_EVERY: Duration = Duration::from_millis(1);
/// The number of connections that a port accepts without a pause after an idle time, since the
/// connection pool of a client may open many together.
const AT_ONCE_MAX: u32 = 200;

/// A stream of the connections that a listener accepts.
pub type Connections = Pin<Box<dyn Stream<Item = io::Result<TcpStream>> + Send>>;

/// Returns the accepted connections. They have TCP_NODELAY and keep-alive probes; without probes
/// the connection of a vanished client would remain open for ever. After a failure to accept, a
/// new attempt follows a pause.
pub fn connections(listener: TcpListener) -> Connections {
    let incoming = TcpIncoming::from(listener)
        .with_nodelay(Some(true))
        .with_keepalive(Some(QUIET_MAX))
        .with_keepalive_interval(Some(PROBE_EVERY))
        .with_keepalive_retries(Some(PROBES));
    Box::pin(rate_limited(with_pauses(incoming)))
}

/// Removes errors from a stream and pauses after each. The usual error is that the process has
/// too many open files until a connection ends. Without the pause, the loop would use a complete
/// processor meanwhile.
fn with_pauses<T: Send + Sync>(
    incoming: impl Stream<Item = io::Result<T>> + Send,
) -> impl Stream<Item = io::Result<T>> + Send {
    let mut reported: Option<Instant> = None;
    incoming
        .then(move |accepted| {
            let pause = accepted.is_err().then_some(ACCEPT_PAUSE);
            if let Err(error) = &accepted
                && reported.is_none_or(|at| at.elapsed() >= ACCEPT_REPORT_EVERY)
            {
                reported = Some(Instant::now());
                tracing::warn!(%error, "accepting a connection failed; trying again");
            }
            async move {
                if let Some(pause) = pause {
                    tokio::time::sleep(pause).await;
                }
                accepted
            }
        })
        .filter(|accepted| std::future::ready(accepted.is_ok()))
}

/// Limits the rate of accepted connections. Further connections wait in the system's queue, and
/// clients retry when the queue is full. A flood of connections therefore does not slow the
/// accepted connections. Connections are accepted one by one, since a burst would delay other
/// work.
///
/// The algorithm is the generic cell rate algorithm (ITU-T I.371): `due` is the time at which all
/// connections so far would have been accepted at the limit's rate, and a connection waits until
/// that time.
fn rate_limited<T: Send>(incoming: impl Stream<Item = T> + Send) -> impl Stream<Item = T> + Send {
    let mut due: Option<Instant> = None;
    incoming.then(move |accepted| {
        let now = Instant::now();
        // The clock cannot represent times before its beginning.
        let earliest = now.checked_sub(AT_ONCE_MAX * ACCEPT_EVERY).unwrap_or(now);
        let own = due.map_or(earliest, |due| due.max(earliest)) + ACCEPT_EVERY;
        due = Some(own);
        async move {
            if own > now {
                tokio::time::sleep_until(own).await;
            }
            accepted
        }
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    /// Returns the column `tm->when` of a TCP connection in the kernel's table of connections.
    /// The connection is identified by the ports of its two ends. Returns `None` if the table
    /// does not have it.
    fn timer(local: SocketAddr, remote: SocketAddr) -> Option<String> {
        let ends = [local, remote].map(|end| format!(":{:04X}", end.port()));
        let table = std::fs::read_to_string("/proc/net/tcp").expect("a table of connections");
        let found = table
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .find(|fields| fields[1].ends_with(&ends[0]) && fields[2].ends_with(&ends[1]))?;
        found[5].split(':').next().map(str::to_owned)
    }

    #[test]
    fn ipv4_loopback_in_ipv6_form() {
        let is = |text: &str| is_loopback(text.parse().expect("an address"));
        assert!(is("127.0.0.1") && is("127.9.9.9") && is("::1") && is("::ffff:127.0.0.1"));
        assert!(!is("0.0.0.0") && !is("::") && !is("10.0.0.1") && !is("::ffff:10.0.0.1"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_accepted_slowly() {
        let mut taken = std::pin::pin!(rate_limited(futures::stream::iter(0..)));
        let begun = Instant::now();
        for n in 0..AT_ONCE_MAX {
            assert_eq!((taken.next().await, begun.elapsed()), (Some(n), Duration::ZERO));
        }
        for n in 1..=1_000 {
            taken.next().await.expect("one more");
            assert_eq!(begun.elapsed(), n * ACCEPT_EVERY);
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        let later = Instant::now();
        for _ in 0..AT_ONCE_MAX {
            taken.next().await.expect("one more");
        }
        assert_eq!(later.elapsed(), Duration::ZERO, "a quiet time is not saved up further");
        taken.next().await.expect("one more");
        assert_eq!(later.elapsed(), ACCEPT_EVERY);
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

    #[tokio::test(start_paused = true)]
    async fn accept_pauses_without_descriptors() {
        let out_of_files = || io::Error::from_raw_os_error(24);
        let accepted = futures::stream::iter((0..50).map(move |n| match n {
            49 => Ok(n),
            _ => Err(out_of_files()),
        }));
        let began = Instant::now();
        let mut accepted = std::pin::pin!(with_pauses(accepted));
        assert_eq!(accepted.next().await.expect("one").expect("no error"), 49);
        assert!(began.elapsed() >= 49 * ACCEPT_PAUSE, "{:?}", began.elapsed());
    }
}
