//! Opens connections to other processes, with or without TLS.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use proto::model::ids::NodeId;
use proto::model::node::Role;
use proto::{Error, ErrorCode, Result};
use tokio::net::TcpStream;
use tonic::transport::{Channel, Endpoint, Uri};

use crate::listen::is_loopback;
use crate::tls::{ExpectedNode, OperatorTls, TlsSettings, connect};

/// The prefix of the address of a service that only its own process can call.
pub const LOCAL: &str = "local:";

/// The flow-control window of a stream, in bytes. It limits the bytes in flight to a reader that
/// has stopped. Its size is a gigabyte per second times half a millisecond, which keeps a fast
/// network busy.
pub(super) const STREAM_WINDOW_BYTES: u32 = 512 << 10;
/// The flow-control window of a connection, in bytes. It is the maximum of HTTP/2, so that only
/// the windows of the streams limit the sender.
const CONNECTION_WINDOW_BYTES: u32 = (1 << 31) - 1;
/// The time limit for establishing a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// The time limit for establishing a connection with a TLS handshake, which takes processor time
/// on both sides.
const SHAKE_WITHIN: Duration = Duration::from_secs(5);

/// The node to which a connection is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerTarget {
    /// The role of the node to call.
    pub role: Role,
    /// The number of the node to call.
    pub node: NodeId,
    /// The address of the node, `host:port`.
    pub address: String,
}

/// A function that opens a connection to a node. The simulation implements it differently.
pub type Connect = Arc<dyn Fn(&PeerTarget) -> Result<Channel> + Send + Sync>;

/// Returns the settings of a connection to an address.
fn endpoint(address: &str, within: Duration) -> Result<Endpoint> {
    let endpoint = Channel::from_shared(format!("http://{address}")).map_err(|error| {
        Error::new(ErrorCode::InvalidParameter, format!("address {address:?}: {error}"))
    })?;
    Ok(endpoint
        .tcp_nodelay(true)
        .connect_timeout(within)
        .http2_keep_alive_interval(Duration::from_secs(5))
        .keep_alive_timeout(Duration::from_secs(5))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES))
}

/// Returns a function that opens TCP connections without TLS. Each connection is established when
/// it is first used.
pub fn tcp_connect() -> Connect {
    Arc::new(|target| Ok(endpoint(&target.address, CONNECT_WITHIN)?.connect_lazy()))
}

/// Returns a function that opens connections without TLS, for processes without certificates. It
/// refuses all addresses except loopback addresses.
pub fn loopback_connect() -> Connect {
    Arc::new(|target| {
        let address: Arc<str> = target.address.as_str().into();
        let connector = tower::service_fn(move |_: Uri| {
            let address = Arc::clone(&address);
            async move { open(&address, true).await.map(TokioIo::new) }
        });
        let endpoint = endpoint(&target.address, CONNECT_WITHIN)?;
        Ok(endpoint.connect_with_connector_lazy(connector))
    })
}

/// Returns a function that opens TLS connections. Both sides authenticate with certificates, and
/// the node that answers must be the node that is called. Each connection uses the certificate
/// that the process has when the connection is opened.
pub fn tls_connect(settings: Arc<TlsSettings>) -> Connect {
    Arc::new(move |target| {
        let (settings, address) = (Arc::clone(&settings), Arc::<str>::from(&*target.address));
        let expected = ExpectedNode { role: target.role, node: target.node };
        let connector = tower::service_fn(move |_: Uri| {
            let (settings, address) = (Arc::clone(&settings), Arc::clone(&address));
            async move {
                let stream = open(&address, false).await?;
                connect(&settings, expected, stream).await.map(TokioIo::new)
            }
        });
        // The scheme stays `http`: the library below does not support TLS.
        let endpoint = endpoint(&target.address, SHAKE_WITHIN)?;
        Ok(endpoint.connect_with_connector_lazy(connector))
    })
}

/// Returns a function that opens TLS connections for the command of an operator.
pub fn operator_connect(tls: OperatorTls) -> Connect {
    Arc::new(move |target| {
        let (tls, address) = (tls.clone(), Arc::<str>::from(&*target.address));
        let expected = ExpectedNode { role: target.role, node: target.node };
        let connector = tower::service_fn(move |_: Uri| {
            let (tls, address) = (tls.clone(), Arc::clone(&address));
            async move {
                let stream = open(&address, false).await?;
                tls.connect(expected, stream).await.map(TokioIo::new)
            }
        });
        let endpoint = endpoint(&target.address, SHAKE_WITHIN)?;
        Ok(endpoint.connect_with_connector_lazy(connector))
    })
}

/// Opens a connection to one of the addresses of a host name. With `loopback_only`, other
/// addresses are refused.
async fn open(address: &str, loopback_only: bool) -> io::Result<TcpStream> {
    let addresses: Vec<SocketAddr> = tokio::net::lookup_host(address).await?.collect();
    if loopback_only && let Some(other) = addresses.iter().find(|found| !is_loopback(found.ip())) {
        return Err(io::Error::other(format!(
            "{other} is not a loopback address, and a process with --insecure calls no others"
        )));
    }
    let stream = TcpStream::connect(&*addresses).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
