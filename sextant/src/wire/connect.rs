//! Connections to other processes.

use std::sync::Arc;
use std::time::Duration;

use proto::{Error, ErrorCode, Result};
use tonic::transport::Channel;

/// Prefix of the address of a service that only its own process can reach.
pub const LOCAL: &str = "local:";

/// Flow-control window of a stream: how much may be in flight to a reader that does not read. It is the product of a
/// gigabyte per second and half a millisecond, which keeps a fast network busy.
pub(super) const STREAM_WINDOW_BYTES: u32 = 512 << 10;
/// Flow-control window of a connection: the maximum of HTTP/2, so that only the windows of streams count.
const CONNECTION_WINDOW_BYTES: u32 = (1 << 31) - 1;

/// Opens a connection to an address; the simulation passes its own implementation.
pub type Connect = Arc<dyn Fn(&str) -> Result<Channel> + Send + Sync>;

/// Opens TCP connections; each is established at its first use.
pub fn tcp_connect() -> Connect {
    Arc::new(|address: &str| {
        let endpoint = Channel::from_shared(format!("http://{address}")).map_err(|error| {
            Error::new(ErrorCode::InvalidParameter, format!("address {address:?}: {error}"))
        })?;
        Ok(endpoint
            .tcp_nodelay(true)
            .connect_timeout(Duration::from_secs(2))
            .http2_keep_alive_interval(Duration::from_secs(5))
            .keep_alive_timeout(Duration::from_secs(5))
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .connect_lazy())
    })
}
