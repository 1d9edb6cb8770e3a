//! gRPC over the simulated network.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use proto::{Error, ErrorCode};
use sextant::wire::Connect;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;
use tonic::transport::{Channel, Uri};
use turmoil::net::{TcpListener, TcpStream};

/// The stream window of a service's connections, in bytes.
pub const WINDOW_BYTES: u32 = 64 << 10;

/// The port of every simulated process.
pub const PORT: u16 = 7000;

/// The time for which the HTTP/2 library remembers streams that it has reset, and their maximum
/// number. By default the library forgets them after a second of real time, which would make runs
/// differ. No run takes this time, and no connection has so many streams.
const RESETS_REMEMBERED: (Duration, usize) = (Duration::from_secs(24 * 3_600), 1 << 20);

/// Returns a function that opens connections over the simulated network at their first use. A
/// sender may be `window_bytes` ahead of the reader of a stream.
pub fn connect(window_bytes: u32) -> Connect {
    Arc::new(move |target| {
        let endpoint = Channel::from_shared(format!("http://{}", target.address))
            .map_err(|error| Error::new(ErrorCode::InvalidParameter, error.to_string()))?
            .initial_stream_window_size(window_bytes)
            .http2_reset_stream_duration(RESETS_REMEMBERED.0)
            .http2_max_concurrent_reset_streams(RESETS_REMEMBERED.1)
            .connect_timeout(Duration::from_millis(500))
            .http2_keep_alive_interval(Duration::from_secs(2))
            .keep_alive_timeout(Duration::from_secs(1))
            .keep_alive_while_idle(true);
        Ok(endpoint.connect_with_connector_lazy(tower::service_fn(|uri: Uri| async move {
            let host = uri.host().unwrap_or_default().to_owned();
            let stream = TcpStream::connect((host, uri.port_u16().unwrap_or(PORT))).await?;
            Ok::<_, io::Error>(TokioIo::new(stream))
        })))
    })
}

/// Returns the accepted connections in the form that tonic requires.
pub async fn incoming()
-> io::Result<impl futures::Stream<Item = io::Result<Accepted>> + Send + 'static> {
    let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
    Ok(futures::stream::unfold(listener, |listener| async {
        let accepted = listener.accept().await.map(|(stream, _)| Accepted(stream));
        Some((accepted, listener))
    }))
}

/// An accepted connection.
pub struct Accepted(TcpStream);

impl Connected for Accepted {
    type ConnectInfo = Option<SocketAddr>;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.0.peer_addr().ok()
    }
}

impl AsyncRead for Accepted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Accepted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
