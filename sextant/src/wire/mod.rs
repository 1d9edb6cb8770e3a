//! The transport between services: a direct call where both ends share a process, gRPC otherwise.
//!
//! [`Peers`] is the [`proto::rpc::api::Directory`] that every service is given. A process registers the
//! services that it runs itself; all else is reached at the address that the catalog names, over one
//! HTTP/2 connection per address that reconnects by itself. On the wire a question is a `Call` or an
//! `Open` in postcard, its answer the same type that the trait returns, or an error.
//!
//! Flow: a stream's reader grants credit by reading. Of what it has not read, the transport takes one window
//! (`STREAM_WINDOW_BYTES`) and a message or two; then the sender's channel, bounded in bytes too, fills, and
//! the sender waits. The connection grants more than all its streams together ever use, so that streams nobody
//! reads hold up no other: scans of slow clients neither each other nor what an indexer says it has applied, backfills
//! that wait for memory no maintenance stream.

mod any_member;
mod remote;
mod server;

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use dashmap::DashMap;
use proto::model::cut::Cut;
use proto::model::ids::{BucketId, Epoch, IndexId, NodeId, SliceId, TopologyNo};
use proto::model::moves::RebalanceRequest;
use proto::model::node::NodeInfo;
use proto::rpc::api::{
    CoordinatorApi, Directory, HandOverRequest, Heartbeat, IndexerApi, ProjectorApi, PushRequest,
    SyncReport, WriteRequest,
};
use proto::rpc::command::CommandRequest;
use proto::rpc::export::ExportRequest;
use proto::rpc::mutation::{BackfillRequest, SubscribeRequest};
use proto::rpc::scan::ShardScan;
use proto::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tonic::transport::Channel;

use any_member::AnyMember;
use remote::Remote;
pub use server::peer_service;

/// What the address of a service begins with that only its own process can reach.
pub const LOCAL: &str = "local:";
/// Processes of another protocol version are refused.
const PROTOCOL_VERSION: u32 = 6;

/// A question with one answer.
#[derive(Debug, Serialize, Deserialize)]
enum Call {
    Propose(CommandRequest),
    Sync(SyncReport),
    Heartbeat(Heartbeat),
    EpochCovering(BucketId, Cut, Option<u64>, u64),
    CoordinatorStatus,
    Raft(Vec<Bytes>),
    Write(WriteRequest),
    Get(BucketId, Vec<String>),
    Push(PushRequest),
    Place(BucketId),
    History(BucketId),
    HandOver(HandOverRequest),
    Checksum(SliceId, Epoch),
    Rebalance(RebalanceRequest),
    Topology(IndexId, TopologyNo),
}

/// A question with a stream of answers.
#[derive(Debug, Serialize, Deserialize)]
enum Open {
    Watch,
    Subscribe(SubscribeRequest),
    Backfill(BackfillRequest),
    Scan(ShardScan),
    WatchApplied,
    Export(ExportRequest),
}

fn encode<T: Serialize>(value: &T) -> Result<Bytes> {
    let bytes = postcard::to_stdvec(value).map_err(|error| Error::internal(error.to_string()))?;
    Ok(bytes.into())
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    postcard::from_bytes(bytes).map_err(|error| {
        Error::new(ErrorCode::Corrupt, format!("a message that cannot be read: {error}"))
    })
}

/// What of a stream may be on its way to a reader that does not read: the product of a gigabyte a second and half a
/// millisecond, which keeps a fast network busy.
const STREAM_WINDOW_BYTES: u32 = 512 << 10;
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
            .connect_timeout(std::time::Duration::from_secs(2))
            .http2_keep_alive_interval(std::time::Duration::from_secs(5))
            .keep_alive_timeout(std::time::Duration::from_secs(5))
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .connect_lazy())
    })
}

/// Who can be reached from this process, and how.
pub struct Peers {
    coordinators: Vec<(NodeId, String)>,
    any_member: OnceLock<Arc<AnyMember>>,
    local_coordinators: DashMap<NodeId, Arc<dyn CoordinatorApi>>,
    local_projectors: DashMap<NodeId, Arc<dyn ProjectorApi>>,
    local_indexers: DashMap<NodeId, Arc<dyn IndexerApi>>,
    channels: DashMap<String, Channel>,
    connect: Connect,
}

impl Peers {
    /// A directory that knows where the coordinator's members are.
    pub fn new(coordinators: Vec<(NodeId, String)>, connect: Connect) -> Arc<Self> {
        Arc::new(Self {
            coordinators,
            any_member: OnceLock::new(),
            local_coordinators: DashMap::new(),
            local_projectors: DashMap::new(),
            local_indexers: DashMap::new(),
            channels: DashMap::new(),
            connect,
        })
    }

    /// A coordinator member runs in this process.
    pub fn add_coordinator(&self, node: NodeId, service: Arc<dyn CoordinatorApi>) {
        self.local_coordinators.insert(node, service);
    }

    /// A coordinator member of this process was stopped.
    pub fn remove_coordinator(&self, node: NodeId) {
        self.local_coordinators.remove(&node);
    }

    /// A projector runs in this process.
    pub fn add_projector(&self, node: NodeId, service: Arc<dyn ProjectorApi>) {
        self.local_projectors.insert(node, service);
    }

    /// An indexer runs in this process.
    pub fn add_indexer(&self, node: NodeId, service: Arc<dyn IndexerApi>) {
        self.local_indexers.insert(node, service);
    }

    /// An indexer of this process was stopped.
    pub fn remove_indexer(&self, node: NodeId) {
        self.local_indexers.remove(&node);
    }

    fn remote(&self, node: NodeId, address: &str) -> Remote {
        let channel = match self.channels.get(address) {
            _ if address.starts_with(LOCAL) => Err(Error::unavailable("it is stopped")),
            Some(channel) => Ok(channel.clone()),
            None => (self.connect)(address).inspect(|channel| {
                self.channels.insert(address.to_owned(), channel.clone());
            }),
        };
        Remote::new(node, address, channel)
    }
}

/// The directory that services get: [`Peers`] behind a shared handle.
#[derive(Clone)]
pub struct PeerDirectory(pub Arc<Peers>);

impl Directory for PeerDirectory {
    fn coordinator(&self) -> Arc<dyn CoordinatorApi> {
        let members = || {
            let ids = self.0.coordinators.iter().map(|(id, _)| *id).collect();
            Arc::new(AnyMember::new(self.clone(), ids))
        };
        Arc::clone(self.0.any_member.get_or_init(members)) as Arc<dyn CoordinatorApi>
    }

    fn coordinator_member(&self, node: NodeId) -> Result<Arc<dyn CoordinatorApi>> {
        if let Some(local) = self.0.local_coordinators.get(&node) {
            return Ok(Arc::clone(&local));
        }
        match self.0.coordinators.iter().find(|(id, _)| *id == node) {
            Some((_, address)) => Ok(Arc::new(self.0.remote(node, address))),
            None => Err(Error::unavailable(format!("there is no coordinator member {node}"))),
        }
    }

    fn projector(&self, node: &NodeInfo) -> Arc<dyn ProjectorApi> {
        match self.0.local_projectors.get(&node.id) {
            Some(local) => Arc::clone(&local),
            None => Arc::new(self.0.remote(node.id, &node.address)),
        }
    }

    fn indexer(&self, node: &NodeInfo) -> Arc<dyn IndexerApi> {
        match self.0.local_indexers.get(&node.id) {
            Some(local) => Arc::clone(&local),
            None => Arc::new(self.0.remote(node.id, &node.address)),
        }
    }
}

#[cfg(test)]
#[path = "flow_tests.rs"]
mod tests;
