//! Tests of questions on shared streams, over real sockets.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::future::join_all;
use proto::env::{Env, Task};
use proto::grpc::peer_client::PeerClient;
use proto::grpc::peer_server::{Peer, PeerServer};
use proto::grpc::{PeerAnswer, PeerQuestion, PeerReply, PeerRequest};
use proto::lock::lock;
use proto::model::ids::{Generation, IndexId, LocalIndexId};
use proto::model::node::{NodeInfo, Role};
use proto::rpc::api::Directory;
use proto::rpc::rows::RowBlock;
use proto::rpc::scan::Output;
use proto::{Error, ErrorCode, Result};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status, Streaming};

use super::connect::tcp_connect;
use super::directory::PeerDirectory;
use super::methods::*;
use super::peers::Peers;
use super::versions::ProtocolVersions;

const NODE: NodeId = NodeId(1);

/// An indexer whose first batches have as many rows as the epoch's number. It never answers epoch
/// 0, answers epoch 99 with an error, and any other epoch when a given number of questions has
/// arrived.
#[derive(Default)]
struct Answers {
    asked: AtomicU64,
    awaited: u64,
    all_are_here: Notify,
    /// The number of unanswered questions.
    open: AtomicU64,
    epochs: Mutex<Vec<u64>>,
}

struct Open<'a>(&'a AtomicU64);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl IndexerApi for Answers {
    async fn scan(&self, _: ShardScan) -> Result<ResultStream<ShardBatch>> {
        Err(Error::unavailable("not here"))
    }
    async fn first_batch(&self, scan: ShardScan) -> Result<FirstBatch> {
        self.open.fetch_add(1, Ordering::SeqCst);
        let _open = Open(&self.open);
        lock(&self.epochs).push(scan.epoch.0);
        match scan.epoch.0 {
            0 => std::future::pending::<()>().await,
            99 => return Err(Error::new(ErrorCode::Corrupt, "the epoch is gone")),
            _ => {}
        }
        if self.asked.fetch_add(1, Ordering::SeqCst) + 1 == self.awaited {
            self.all_are_here.notify_waiters();
        } else if self.awaited > 0 {
            self.all_are_here.notified().await;
        }
        let rows =
            RowBlock { rows: scan.epoch.0 as u32, data: vec![0; 2 * scan.epoch.0 as usize].into() };
        Ok(FirstBatch { batch: ShardBatch::Rows(rows), is_whole: true })
    }
    async fn watch_applied(&self) -> Result<ResultStream<AppliedReport>> {
        Err(Error::unavailable("not here"))
    }
    async fn checksum(&self, _: SliceId, _: Epoch) -> Result<(u64, u64)> {
        Err(Error::unavailable("not here"))
    }
    async fn export(&self, _: ExportRequest) -> Result<ResultStream<ExportMessage>> {
        Err(Error::unavailable("not here"))
    }
}

fn scan(epoch: u64) -> ShardScan {
    ShardScan {
        bucket: BucketId(1),
        index: LocalIndexId { index: IndexId(1), generation: Generation(1) },
        slices: Vec::new(),
        epoch: Epoch(epoch),
        own: None,
        ranges: [].into(),
        filter: None,
        reverse: false,
        distinct_parts: None,
        resume_after: None,
        limit: None,
        output: Output::Rows { include: false },
        timeout_ms: 1_000,
    }
}

fn peers(versions: ProtocolVersions) -> Arc<Peers> {
    Peers::with_versions(Vec::new(), tcp_connect(), &Env::real(), versions)
}

/// Serves an indexer at an address.
fn serve(listener: TcpListener, answers: &Arc<Answers>, versions: ProtocolVersions) -> Task {
    let peers = peers(versions);
    peers.add_indexer(NODE, Arc::clone(answers) as Arc<dyn IndexerApi>);
    let server = tonic::transport::Server::builder()
        .add_service(super::peer_service(peers, crate::wire::PeerTrust::Insecure));
    Env::real().spawn_request("peer", async move {
        server.serve_with_incoming(TcpListenerStream::new(listener)).await.unwrap();
    })
}

fn caller(address: &str, versions: ProtocolVersions) -> Arc<dyn IndexerApi> {
    let info =
        NodeInfo { id: NODE, role: Role::Indexer, address: address.into(), zone: String::new() };
    PeerDirectory(peers(versions)).indexer(&info)
}

async fn listen(address: &str) -> (TcpListener, String) {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

fn rows(first: Result<FirstBatch>) -> u64 {
    match first.expect("a batch").batch {
        ShardBatch::Rows(block) => block.rows.into(),
        other => panic!("{other:?}"),
    }
}

const SPOKEN: ProtocolVersions = ProtocolVersions::SPOKEN;

#[tokio::test]
async fn each_question_gets_its_own_answer_in_whatever_order() {
    let answers = Arc::new(Answers { awaited: 50, ..Answers::default() });
    let (listener, address) = listen("127.0.0.1:0").await;
    let _serving = serve(listener, &answers, SPOKEN);
    let indexer = caller(&address, SPOKEN);
    // All questions are handled at the same time: none is answered before the last one has arrived.
    let all = join_all((1..=50).map(|epoch| indexer.first_batch(scan(epoch)))).await;
    let found: Vec<u64> = all.into_iter().map(rows).collect();
    assert_eq!(found, (1..=50).collect::<Vec<_>>());
    let error = indexer.first_batch(scan(99)).await.expect_err("told");
    assert_eq!(error.code, ErrorCode::Corrupt);
}

#[tokio::test]
async fn a_question_whose_caller_is_gone_is_taken_back() {
    let answers = Arc::new(Answers::default());
    let (listener, address) = listen("127.0.0.1:0").await;
    let _serving = serve(listener, &answers, SPOKEN);
    let indexer = caller(&address, SPOKEN);
    let asked = indexer.first_batch(scan(0));
    tokio::time::timeout(Duration::from_millis(200), asked).await.expect_err("no answer");
    assert_eq!(*lock(&answers.epochs), [0], "it has been asked");
    for _ in 0..100 {
        if answers.open.load(Ordering::SeqCst) == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(answers.open.load(Ordering::SeqCst), 0, "its work has ended");
    assert_eq!(rows(indexer.first_batch(scan(3)).await), 3, "the others go on");
}

/// A process that serves at an address; stopping it ends its connections.
struct Process(Option<tokio::runtime::Runtime>);

impl Process {
    async fn start(
        address: &str,
        answers: &Arc<Answers>,
        versions: ProtocolVersions,
    ) -> (Self, String) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (answers, address) = (Arc::clone(answers), address.to_owned());
        let (tell, told) = tokio::sync::oneshot::channel();
        runtime.spawn(async move {
            let (listener, address) = listen(&address).await;
            tell.send(address).unwrap();
            let _serving = serve(listener, &answers, versions);
            std::future::pending::<()>().await;
        });
        (Self(Some(runtime)), told.await.unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The address is free again only when its listener is dropped as well. A runtime may not wait inside another one.
        let runtime = self.0.take().unwrap();
        std::thread::scope(|threads| {
            threads.spawn(|| runtime.shutdown_timeout(Duration::from_secs(10)));
        });
    }
}

#[tokio::test]
async fn questions_go_on_after_a_restart_in_another_version() {
    let answers = Arc::new(Answers::default());
    let (process, address) = Process::start("127.0.0.1:0", &answers, SPOKEN).await;
    let indexer = caller(&address, SPOKEN);
    let mut waits = indexer.first_batch(scan(0));
    assert!(futures::poll!(&mut waits).is_pending());
    assert_eq!(rows(indexer.first_batch(scan(1)).await), 1);
    drop(process);
    let lost = tokio::time::timeout(Duration::from_secs(5), waits).await;
    assert!(lost.is_ok_and(|answer| answer.is_err()), "it is told that the stream has ended");
    // The next process supports a newer version too.
    let newer = ProtocolVersions { newest: SPOKEN.newest + 1, ..SPOKEN };
    let (_process, _) = Process::start(&address, &answers, newer).await;
    let mut again = indexer.first_batch(scan(4)).await;
    for _ in 0..50 {
        if again.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        again = indexer.first_batch(scan(4)).await;
    }
    assert_eq!(rows(again), 4, "a stream is opened again");
    for epoch in 5..15 {
        assert_eq!(rows(indexer.first_batch(scan(epoch)).await), epoch);
    }
    let newest = caller(&address, newer);
    assert_eq!(rows(newest.first_batch(scan(2)).await), 2);
}

#[tokio::test]
async fn a_process_of_an_older_version_is_asked_in_a_common_one() {
    let answers = Arc::new(Answers::default());
    let (listener, address) = listen("127.0.0.1:0").await;
    let _serving = serve(listener, &answers, SPOKEN);
    let newer = ProtocolVersions { newest: SPOKEN.newest + 1, ..SPOKEN };
    let indexer = caller(&address, newer);
    for epoch in 1..20 {
        assert_eq!(rows(indexer.first_batch(scan(epoch)).await), epoch);
    }
}

#[tokio::test]
async fn work_goes_on_while_the_caller_reads_no_answers() {
    const QUESTIONS: u64 = 60;
    let answers = Arc::new(Answers { awaited: QUESTIONS, ..Answers::default() });
    let (listener, address) = listen("127.0.0.1:0").await;
    let _serving = serve(listener, &answers, SPOKEN);
    let channel = tonic::transport::Channel::from_shared(format!("http://{address}")).unwrap();
    let mut client = PeerClient::new(channel.connect().await.unwrap());
    let question = |number| {
        // An answer of 64 KiB: a few of them fill all buffers of the connection.
        let body = super::codec::encode(&(17u32, (scan(32 << 10),))).unwrap();
        PeerQuestion { number, node: NODE.0, version: SPOKEN.newest, body }
    };
    let questions: Vec<_> = (1..=QUESTIONS).map(question).collect();
    let asked = tokio_stream::iter(questions).chain(tokio_stream::pending());
    let mut unread = client.ask(asked).await.unwrap().into_inner();
    for _ in 0..200 {
        if lock(&answers.epochs).len() as u64 == QUESTIONS
            && answers.open.load(Ordering::SeqCst) == 0
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(lock(&answers.epochs).len() as u64, QUESTIONS);
    assert_eq!(answers.open.load(Ordering::SeqCst), 0, "all have given back what they held");
    for _ in 0..QUESTIONS {
        assert!(unread.message().await.unwrap().is_some(), "the answers wait");
    }
}

/// A process that refuses streams of questions.
struct WithoutStreams(Arc<Answers>);

#[async_trait]
impl Peer for WithoutStreams {
    type OpenStream = tokio_stream::Pending<std::result::Result<PeerReply, Status>>;
    type AskStream = tokio_stream::Pending<std::result::Result<PeerAnswer, Status>>;

    async fn call(
        &self,
        request: Request<PeerRequest>,
    ) -> std::result::Result<Response<PeerReply>, Status> {
        let body = request.into_inner().body;
        let (number, scan): (u32, ShardScan) = super::codec::decode(&body).expect("a scan");
        assert_eq!(number, 17);
        let answer = self.0.first_batch(scan).await;
        Ok(Response::new(PeerReply { body: super::codec::encode(&answer).expect("encoded") }))
    }
    async fn open(
        &self,
        _: Request<PeerRequest>,
    ) -> std::result::Result<Response<Self::OpenStream>, Status> {
        Err(Status::internal("not here"))
    }
    async fn ask(
        &self,
        _: Request<Streaming<PeerQuestion>>,
    ) -> std::result::Result<Response<Self::AskStream>, Status> {
        // As of a server that does not know the method.
        Err(Status::unimplemented(""))
    }
}

#[tokio::test]
async fn a_process_without_such_streams_is_called() {
    let answers = Arc::new(Answers::default());
    let (listener, address) = listen("127.0.0.1:0").await;
    let server = PeerServer::new(WithoutStreams(Arc::clone(&answers)));
    let server = tonic::transport::Server::builder().add_service(server);
    let _serving = Env::real().spawn_request("peer", async move {
        server.serve_with_incoming(TcpListenerStream::new(listener)).await.unwrap();
    });
    let indexer = caller(&address, SPOKEN);
    for epoch in 1..10 {
        assert_eq!(rows(indexer.first_batch(scan(epoch)).await), epoch);
    }
}
