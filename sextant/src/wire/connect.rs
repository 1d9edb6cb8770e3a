//! Connections to other processes.

use std::sync::Arc;
use std::time::Duration;

use proto::{Error, ErrorCode, Result};
use tonic::transport::Channel;

/// What the address of a service begins with that only its own process can reach.
pub const LOCAL: &str = "local:";

/// What of a stream may be on its way to a reader that does not read: the product of a gigabyte a second and half a
/// millisecond, which keeps a fast network busy.
pub(super) const STREAM_WINDOW_BYTES: u32 = 512 << 10;
/// The most that HTTP/2 can say.
const CONNECTION_WINDOW_BYTES: u32 = (1 << 31) - 1;

/// Opens a connection to an address; the simulation has its own way.
pub type Connect = Arc<dyn Fn(&str) -> Result<Channel> + Send + Sync>;

/// Connections over TCP, made when they are first used.
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
