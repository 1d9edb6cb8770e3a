//! A cluster in this process in which each service has its own gRPC port, so that messages go through TCP, as between
//! machines. The documents and entries that indexers receive one by one are counted on the way.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use proto::env::{Env, Task};
use proto::model::history::{SourceHistory, SourcePlace};
use proto::model::ids::{BucketId, NodeId};
use proto::model::node::{NodeInfo, Role};
use proto::rpc::api::{
    CoordinatorApi, CopyAnswer, CopyRequest, Directory, HandOverPiece, HandOverRequest, IndexerApi,
    ProjectorApi, PushReply, PushRequest, ResultStream, WriteReply, WriteRequest,
};
use proto::rpc::mutation::{
    BackfillMessage, BackfillRequest, KeyVersionsReader, StreamMessage, SubscribeRequest,
};
use sextant::auth::login_policy::LoginPolicy;
use sextant::grpc;
use sextant::roles::{PortOptions, Ports, Server, ServerParts, services};
use sextant::wire::{PeerDirectory, Peers, tcp_connect};
use tokio::net::TcpListener;

use super::super::Outcome;

const COORDINATOR: NodeId = NodeId(1);
const PROJECTOR: NodeId = NodeId(101);
/// The node number of the first indexer.
pub const INDEXER: u64 = 201;
const ROUTER: NodeId = NodeId(301);

/// The running services.
pub struct Loopback {
    /// The coordinator, for commands and for the progress of moves.
    pub coordinator: Arc<coordinator::Coordinator>,
    /// The router, for the catalog.
    pub router: Arc<router::Router>,
    /// The number of documents and entries that were sent to indexers one by one, in streams and
    /// builds.
    pub sent: Arc<AtomicU64>,
    dir: PathBuf,
    serving: Server,
    _indexers: BTreeMap<NodeId, Arc<indexer::Indexer>>,
    _projector: projector::Service,
    _tasks: Vec<Task>,
}

/// The services of one port, and the services that they can call.
struct Place {
    listener: TcpListener,
    info: NodeInfo,
    peers: Arc<Peers>,
}

type Members = Vec<(NodeId, String)>;

impl Place {
    async fn take(id: NodeId, role: Role, members: Option<&Members>) -> Outcome<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let peers = Peers::new(
            members.cloned().unwrap_or_else(|| vec![(id, address.clone())]),
            tcp_connect(),
            &Env::real(),
        );
        Ok(Self { listener, info: NodeInfo { id, role, address, zone: String::new() }, peers })
    }

    fn directory(&self) -> Arc<dyn Directory> {
        Arc::new(PeerDirectory(Arc::clone(&self.peers)))
    }

    /// Serves the services registered in `peers` until the task is dropped.
    fn serve(self, env: &Env) -> Task {
        let incoming = stream::unfold(self.listener, |listener| async {
            let accepted = listener.accept().await.map(|(stream, _)| stream);
            Some((accepted, listener))
        });
        let services = grpc::peer_services(self.peers, sextant::wire::PeerTrust::Insecure);
        env.spawn_request("grpc", async move {
            if let Err(error) = services.serve_with_incoming(incoming).await {
                eprintln!("serving gRPC: {error}");
            }
        })
    }
}

impl Loopback {
    /// Starts a coordinator, a projector, the indexers with their memory limits, and a router, and waits until the
    /// cluster serves.
    pub async fn start(dir: &Path, indexers: u64, memory_bytes: u64) -> Outcome<Self> {
        let env = Env::real();
        let sent = Arc::new(AtomicU64::new(0));
        let place = Place::take(COORDINATOR, Role::Coordinator, None).await?;
        let members = vec![(COORDINATOR, place.info.address.clone())];
        let coordinator = services::start_coordinator(
            COORDINATOR,
            members.clone(),
            dir.join("coordinator"),
            Default::default(),
            &env,
            place.directory(),
        )
        .await?;
        place.peers.add_coordinator(COORDINATOR, Arc::clone(&coordinator) as _);
        let mut tasks = vec![place.serve(&env)];

        let place = Place::take(PROJECTOR, Role::Projector, Some(&members)).await?;
        let (info, directory) = (place.info.clone(), place.directory());
        let projector = services::start_projector(
            projector::Config::new(info),
            dir.join("projector"),
            &env,
            directory,
        )
        .await?;
        place.peers.add_projector(PROJECTOR, projector.projector());
        tasks.push(place.serve(&env));

        let mut started = BTreeMap::new();
        for id in (INDEXER..INDEXER + indexers).map(NodeId) {
            let place = Place::take(id, Role::Indexer, Some(&members)).await?;
            let directory = Counting { inner: place.directory(), sent: Arc::clone(&sent) };
            let (info, data) = (place.info.clone(), data_dir(dir, id));
            let memory = Some(memory_bytes);
            let indexer =
                services::start_indexer(info, data, memory, &env, Arc::new(directory)).await?;
            place.peers.add_indexer(id, Arc::clone(&indexer) as _);
            tasks.push(place.serve(&env));
            started.insert(id, indexer);
        }

        let place = Place::take(ROUTER, Role::Router, Some(&members)).await?;
        let config = router::Config::new(place.info.clone());
        let router = Arc::new(router::Router::start(config, env.clone(), place.directory()));
        let parts = ServerParts {
            data: None,
            router: Arc::clone(&router),
            directory: place.directory(),
            users: Arc::default(),
            peers: Arc::clone(&place.peers),
            indexers: started.values().cloned().collect(),
            projectors: Vec::new(),
            connections: Default::default(),
            doors: LoginPolicy::trust(&env),
        };
        let serving = Server::serve(parts, &env, Ports::any().bind(&PortOptions::DEV).await?)?;
        serving.wait_ready().await?;
        let (dir, _indexers, _projector, _tasks) = (dir.to_owned(), started, projector, tasks);
        Ok(Self { coordinator, router, sent, dir, serving, _indexers, _projector, _tasks })
    }

    /// The address of SQL.
    pub fn sql_address(&self) -> std::net::SocketAddr {
        self.serving.sql_address()
    }

    /// Returns the directory of an indexer's fragments.
    pub fn fragments(&self, node: NodeId) -> PathBuf {
        storage::layout::fragment_dir(&data_dir(&self.dir, node))
    }
}

fn data_dir(dir: &Path, indexer: NodeId) -> PathBuf {
    dir.join(format!("indexer-{indexer}"))
}

/// A projector that counts the documents and entries in its messages.
struct Counting {
    inner: Arc<dyn Directory>,
    sent: Arc<AtomicU64>,
}

struct CountingProjector {
    inner: Arc<dyn ProjectorApi>,
    sent: Arc<AtomicU64>,
}

impl Directory for Counting {
    fn coordinator(&self) -> Arc<dyn CoordinatorApi> {
        self.inner.coordinator()
    }

    fn coordinator_member(&self, node: NodeId) -> proto::Result<Arc<dyn CoordinatorApi>> {
        self.inner.coordinator_member(node)
    }

    fn projector(&self, node: &NodeInfo) -> Arc<dyn ProjectorApi> {
        let (inner, sent) = (self.inner.projector(node), Arc::clone(&self.sent));
        Arc::new(CountingProjector { inner, sent })
    }

    fn indexer(&self, node: &NodeInfo) -> Arc<dyn IndexerApi> {
        self.inner.indexer(node)
    }
}

fn count(sent: &AtomicU64, body: &Bytes) {
    sent.fetch_add(KeyVersionsReader::new(body).count() as u64, Ordering::Relaxed);
}

#[async_trait]
impl ProjectorApi for CountingProjector {
    async fn write(&self, request: WriteRequest) -> proto::Result<WriteReply> {
        self.inner.write(request).await
    }

    async fn get(&self, bucket: BucketId, ids: Vec<String>) -> proto::Result<Vec<Option<Bytes>>> {
        self.inner.get(bucket, ids).await
    }

    async fn push(&self, request: PushRequest) -> proto::Result<PushReply> {
        self.inner.push(request).await
    }

    async fn place(&self, bucket: BucketId) -> proto::Result<SourcePlace> {
        self.inner.place(bucket).await
    }

    async fn hand_over(&self, request: HandOverRequest) -> proto::Result<HandOverPiece> {
        self.inner.hand_over(request).await
    }

    async fn copy(&self, request: CopyRequest) -> proto::Result<CopyAnswer> {
        self.inner.copy(request).await
    }

    async fn history(&self, bucket: BucketId) -> proto::Result<SourceHistory> {
        self.inner.history(bucket).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequest,
    ) -> proto::Result<ResultStream<StreamMessage>> {
        let (messages, sent) = (self.inner.subscribe(request).await?, Arc::clone(&self.sent));
        Ok(Box::pin(messages.inspect(move |message| {
            if let Ok(StreamMessage::Frames(frames)) = message {
                frames.iter().for_each(|frame| count(&sent, &frame.body));
            }
        })))
    }

    async fn backfill(
        &self,
        request: BackfillRequest,
    ) -> proto::Result<ResultStream<BackfillMessage>> {
        let (messages, sent) = (self.inner.backfill(request).await?, Arc::clone(&self.sent));
        Ok(Box::pin(messages.inspect(move |message| {
            if let Ok(BackfillMessage::Documents(body)) = message {
                count(&sent, body);
            }
        })))
    }
}
