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

/// The stream window of a service's connections.
pub const WINDOW_BYTES: u32 = 64 << 10;

/// The port of every simulated process.
pub const PORT: u16 = 7000;

/// The HTTP/2 library remembers streams that it has reset for a real time, one second by default, and answers late frames of
/// a stream that it has forgotten. No run lasts as long as this time, and no connection has as many such streams.
const RESETS_REMEMBERED: (Duration, usize) = (Duration::from_secs(24 * 3_600), 1 << 20);

/// Opens connections over the simulated network when they are first used. A sender may be `window_bytes` ahead of the
/// reader of a stream.
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

/// Accepted connections in the form that tonic needs.
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
