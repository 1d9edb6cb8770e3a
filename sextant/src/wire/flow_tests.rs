//! Tests, over real sockets, that little data is in flight to readers that have stopped.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use proto::env::Env;
use proto::model::assignment::VbucketSet;
use proto::model::ids::{Seqno, VbucketId, Vbuuid};
use proto::model::node::{NodeInfo, Role};
use proto::rpc::api::{CheckedWrites, Directory};
use proto::rpc::mutation::Frame;
use proto::{Error, Result};
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};
use tokio_stream::wrappers::TcpListenerStream;

use super::connect::{STREAM_WINDOW_BYTES, tcp_connect};
use super::directory::PeerDirectory;
use super::methods::*;
use super::peers::Peers;

/// The size of a projector's largest messages.
const MESSAGE_BYTES: usize = 4 << 20;
/// A number of streams above the usual limit of HTTP/2 servers, and above what a connection window
/// of sixteen megabytes allows.
const STOPPED: usize = 300;

/// A projector that sends endless frames and counts the bytes.
struct Flood {
    message_bytes: usize,
    sent: Arc<AtomicUsize>,
}

#[async_trait]
impl ProjectorApi for Flood {
    async fn write(&self, _: WriteRequest) -> Result<WriteReply> {
        Err(Error::unavailable("not here"))
    }
    async fn get(&self, _: BucketId, _: Vec<String>) -> Result<Vec<Option<Bytes>>> {
        Err(Error::unavailable("not here"))
    }
    async fn push(&self, _: PushRequest) -> Result<PushReply> {
        Err(Error::unavailable("not here"))
    }
    async fn hand_over(&self, _: HandOverRequest) -> Result<HandOverPiece> {
        Err(Error::unavailable("not here"))
    }
    async fn copy(&self, _: CopyRequest) -> Result<CopyAnswer> {
        Err(Error::unavailable("not here"))
    }
    async fn place(&self, _: BucketId) -> Result<SourcePlace> {
        Ok(SourcePlace { durable: Cut::zero(1), history: 0, kept: VbucketSet::all(1) })
    }
    async fn history(&self, _: BucketId) -> Result<SourceHistory> {
        Err(Error::unavailable("not here"))
    }
    async fn subscribe(&self, _: SubscribeRequest) -> Result<ResultStream<StreamMessage>> {
        let sent = Arc::clone(&self.sent);
        let message_bytes = self.message_bytes;
        let body = Bytes::from(vec![7; message_bytes]);
        Ok(Box::pin(stream::iter(0..).map(move |n: u64| {
            sent.fetch_add(message_bytes, Ordering::Relaxed);
            let (vbucket, vbuuid) = (VbucketId(0), Vbuuid(1));
            let (from, to) = (Seqno(n), Seqno(n + 1));
            Ok(StreamMessage::Frames(vec![Frame { vbucket, vbuuid, from, to, body: body.clone() }]))
        })))
    }
    async fn backfill(&self, _: BackfillRequest) -> Result<ResultStream<BackfillMessage>> {
        Err(Error::unavailable("not here"))
    }
}

/// Returns the client of a flooding projector over a socket, and the counter of the bytes sent.
async fn flood(
    message_bytes: usize,
) -> (Arc<dyn ProjectorApi>, Arc<AtomicUsize>, proto::env::Task) {
    let node = NodeId(1);
    let (flood, serving) = (
        Flood { message_bytes, sent: Arc::default() },
        Peers::new(Vec::new(), tcp_connect(), &Env::real()),
    );
    let sent = Arc::clone(&flood.sent);
    serving.add_projector(node, Arc::new(flood));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = crate::grpc::peer_services(serving, crate::wire::PeerTrust::Insecure);
    let task = Env::real().spawn_request("peer", async move {
        server.serve_with_incoming(TcpListenerStream::new(listener)).await.unwrap();
    });
    let directory = PeerDirectory(Peers::new(Vec::new(), tcp_connect(), &Env::real()));
    let info = NodeInfo { id: node, role: Role::Projector, address, zone: String::new() };
    (directory.projector(&info), sent, task)
}

fn request() -> SubscribeRequest {
    let (node, bucket, last_epoch) = (NodeId(2), BucketId(1), Epoch(0));
    SubscribeRequest { node, bucket, from: None, last_epoch }
}

/// Waits until no further bytes are sent; returns their number.
async fn settled(sent: &AtomicUsize) -> usize {
    loop {
        let before = sent.load(Ordering::Relaxed);
        sleep(Duration::from_millis(300)).await;
        if sent.load(Ordering::Relaxed) == before && before > 0 {
            return before;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_most_a_window_and_two_messages_are_in_flight_to_a_stopped_reader() {
    let (projector, sent, _task) = flood(MESSAGE_BYTES).await;
    let mut frames = projector.subscribe(request()).await.unwrap();
    let bound = STREAM_WINDOW_BYTES as usize + 2 * MESSAGE_BYTES;
    let before = timeout(Duration::from_secs(60), settled(&sent)).await.unwrap();
    assert!(before <= bound, "{before} bytes before anything was read");
    let mut read = 0;
    for _ in 0..20 {
        frames.next().await.unwrap().unwrap();
        read += MESSAGE_BYTES;
    }
    let after = timeout(Duration::from_secs(60), settled(&sent)).await.unwrap();
    assert!(after - read <= bound, "{} bytes on their way", after - read);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_streams_do_not_block_other_streams_of_their_connection() {
    let (projector, sent, _task) = flood(64 << 10).await;
    let live = async {
        let mut stopped = Vec::new();
        for _ in 0..STOPPED {
            stopped.push(projector.subscribe(request()).await.unwrap());
        }
        settled(&sent).await;
        let mut live = projector.subscribe(request()).await.unwrap();
        for _ in 0..100 {
            live.next().await.unwrap().unwrap();
        }
        projector.positions(BucketId(1)).await.unwrap();
    };
    timeout(Duration::from_secs(30), live).await.expect("the one that is read goes on");
}

#[tokio::test]
async fn a_call_whose_connection_is_lost_midway_is_told_from_one_that_never_began() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let directory = PeerDirectory(Peers::new(Vec::new(), tcp_connect(), &Env::real()));
    let info = NodeInfo { id: NodeId(1), role: Role::Projector, address, zone: String::new() };
    let projector = directory.projector(&info);
    let write = async || {
        let request = WriteRequest { bucket: BucketId(1), writes: CheckedWrites::default() };
        projector.write(request).await.expect_err("nobody answers").code
    };
    let hangs_up = async {
        let (connection, _) = listener.accept().await.unwrap();
        connection.readable().await.unwrap();
        sleep(Duration::from_millis(100)).await;
    };
    let (code, ()) = tokio::join!(write(), hangs_up);
    assert_eq!(code, proto::ErrorCode::Interrupted);
    drop(listener);
    assert_eq!(write().await, proto::ErrorCode::Unavailable, "nobody listens");
}
