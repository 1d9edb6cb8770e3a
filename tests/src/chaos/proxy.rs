//! A small TCP proxy between two members that can cut, hold or slow its traffic.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The maximum number of bytes that one read returns.
const PIECE_BYTES: usize = 16 << 10;

/// The behaviour of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Normal traffic.
    Open,
    /// Existing and new connections are closed.
    Cut,
    /// Connections stay open, and no bytes pass in the held directions.
    Held {
        /// True to hold the bytes to the listener.
        there: bool,
        /// True to hold the bytes to the caller.
        back: bool,
    },
    /// Each piece is delayed by this time, and pieces are small.
    Slow(Duration),
}

/// A proxy, which listens until it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    link: watch::Sender<Link>,
}

impl Proxy {
    /// Starts a proxy in front of an address.
    pub async fn start(to: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (link, state) = watch::channel(Link::Open);
        // The task ends with the proxy.
        tokio::spawn(accept(listener, to, state));
        Ok(Self { address, link })
    }

    /// The address of the proxy.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the behaviour of the link from now on.
    pub fn set(&self, link: Link) {
        self.link.send_replace(link);
    }
}

async fn accept(listener: TcpListener, to: SocketAddr, mut link: watch::Receiver<Link>) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            changed = link.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return,
            },
        };
        let Ok((from, _)) = accepted else { continue };
        if *link.borrow() != Link::Cut {
            tokio::spawn(carry(from, to, link.clone()));
        }
    }
}

/// Forwards both directions of a connection until one of them ends or the link is cut.
async fn carry(from: TcpStream, to: SocketAddr, mut link: watch::Receiver<Link>) {
    let mut cut = link.clone();
    let both = async {
        // A connection is not even opened while bytes to the listener are held.
        let open = |link: &Link| !matches!(link, Link::Held { there: true, .. });
        link.wait_for(open).await.ok()?;
        let there = TcpStream::connect(to).await.ok()?;
        there.set_nodelay(true).ok()?;
        from.set_nodelay(true).ok()?;
        let ((from_read, from_write), (there_read, there_write)) =
            (from.into_split(), there.into_split());
        tokio::select! {
            ended = pump(from_read, there_write, link.clone(), true) => ended.ok(),
            ended = pump(there_read, from_write, link.clone(), false) => ended.ok(),
        }
    };
    tokio::select! {
        _ended = both => {}
        // The channel also closes when the proxy is dropped.
        _cut = cut.wait_for(|link| *link == Link::Cut) => {}
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut link: watch::Receiver<Link>,
    is_there: bool,
) -> io::Result<()> {
    let open = |link: &Link| match link {
        Link::Held { there, back } => !if is_there { *there } else { *back },
        _ => true,
    };
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = from.read(&mut piece).await?;
        if read == 0 {
            return Ok(());
        }
        let state = *link.wait_for(open).await.map_err(io::Error::other)?;
        if let Link::Slow(delay) = state {
            tokio::time::sleep(delay).await;
        }
        to.write_all(&piece[..read]).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.into_split();
                    tokio::io::copy(&mut read, &mut write).await
                });
            }
        });
        address
    }

    async fn answered(stream: &mut TcpStream, within: Duration) -> io::Result<bool> {
        stream.write_all(b"x").await?;
        let mut byte = [0];
        match tokio::time::timeout(within, stream.read(&mut byte)).await {
            Ok(Ok(0)) => Err(io::ErrorKind::ConnectionReset.into()),
            Ok(read) => read.map(|_| true),
            Err(_) => Ok(false),
        }
    }

    #[tokio::test]
    async fn a_link_is_held_slowed_and_cut() {
        let proxy = Proxy::start(echo().await).await.expect("a proxy");
        let mut stream = TcpStream::connect(proxy.address()).await.expect("a connection");
        let (long, short) = (Duration::from_secs(10), Duration::from_millis(100));
        assert!(answered(&mut stream, long).await.expect("open"));
        for (there, back) in [(true, false), (false, true), (true, true)] {
            proxy.set(Link::Held { there, back });
            assert!(!answered(&mut stream, short).await.expect("it stays open"));
            proxy.set(Link::Open);
            let mut byte = [0];
            stream.read_exact(&mut byte).await.expect("the held byte arrives");
        }
        proxy.set(Link::Slow(short * 2));
        assert!(!answered(&mut stream, short).await.expect("the byte is late"));
        proxy.set(Link::Cut);
        let mut rest = Vec::new();
        let _closed = stream.read_to_end(&mut rest).await;
        let again = TcpStream::connect(proxy.address()).await;
        assert!(match again {
            Ok(mut again) => answered(&mut again, long).await.is_err(),
            Err(_) => true,
        });
    }
}
