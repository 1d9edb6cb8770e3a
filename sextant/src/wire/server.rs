//! The serving end: takes questions from other processes to the services of this one.

use std::sync::Arc;

use futures::{Stream, StreamExt, stream};
use proto::grpc::peer_server::{Peer, PeerServer};
use proto::grpc::{PeerReply, PeerRequest};
use proto::model::ids::NodeId;
use proto::rpc::api::PEER_MESSAGE_BYTES_MAX;
use proto::{Error, Result};
use serde::Serialize;
use tonic::{Request, Response, Status};

use super::{Call, Open, PROTOCOL_VERSION, Peers, decode, encode};

/// The gRPC service through which other processes reach the services that this one has registered.
pub fn peer_service(peers: Arc<Peers>) -> PeerServer<impl Peer> {
    PeerServer::new(Server { peers })
        .max_decoding_message_size(PEER_MESSAGE_BYTES_MAX)
        .max_encoding_message_size(PEER_MESSAGE_BYTES_MAX)
}

struct Server {
    peers: Arc<Peers>,
}

type Replies = std::pin::Pin<Box<dyn Stream<Item = std::result::Result<PeerReply, Status>> + Send>>;

fn reply<T: Serialize>(answer: Result<T>) -> std::result::Result<PeerReply, Status> {
    let body = encode(&answer).map_err(|error| Status::internal(error.message))?;
    Ok(PeerReply { body })
}

fn not_here<T>(service: Option<T>, node: NodeId) -> Result<T> {
    service.ok_or_else(|| Error::unavailable(format!("node {node} does not run in this process")))
}

fn check_version(request: &PeerRequest) -> std::result::Result<(), Status> {
    if request.version == PROTOCOL_VERSION {
        return Ok(());
    }
    Err(Status::failed_precondition(format!(
        "protocol version {}, this process speaks {PROTOCOL_VERSION}: run one version of sextant everywhere",
        request.version
    )))
}

impl Server {
    async fn answer(&self, node: NodeId, call: Call) -> std::result::Result<PeerReply, Status> {
        let coordinator =
            || not_here(self.peers.local_coordinators.get(&node).map(|s| Arc::clone(&s)), node);
        let projector =
            || not_here(self.peers.local_projectors.get(&node).map(|s| Arc::clone(&s)), node);
        let indexer =
            || not_here(self.peers.local_indexers.get(&node).map(|s| Arc::clone(&s)), node);
        macro_rules! ask {
            ($service:expr, $method:ident($($argument:expr),*)) => {
                reply(match $service {
                    Ok(service) => service.$method($($argument),*).await,
                    Err(error) => Err(error),
                })
            };
        }
        match call {
            Call::Propose(request) => ask!(coordinator(), propose(request)),
            Call::Sync(report) => ask!(coordinator(), sync(report)),
            Call::Heartbeat(heartbeat) => ask!(coordinator(), heartbeat(heartbeat)),
            Call::EpochCovering(bucket, cut, history, timeout_ms) => {
                ask!(coordinator(), epoch_covering(bucket, cut, history, timeout_ms))
            }
            Call::CoordinatorStatus => ask!(coordinator(), status()),
            Call::Raft(messages) => ask!(coordinator(), raft(messages)),
            Call::Write(request) => ask!(projector(), write(request)),
            Call::Get(bucket, ids) => ask!(projector(), get(bucket, ids)),
            Call::Push(request) => ask!(projector(), push(request)),
            Call::Place(bucket) => ask!(projector(), place(bucket)),
            Call::HandOver(request) => ask!(projector(), hand_over(request)),
            Call::History(bucket) => ask!(projector(), history(bucket)),
            Call::Checksum(slice, epoch) => ask!(indexer(), checksum(slice, epoch)),
            Call::Rebalance(request) => ask!(coordinator(), rebalance(request)),
            Call::Topology(index, number) => ask!(coordinator(), topology(index, number)),
        }
    }

    async fn begin(&self, node: NodeId, open: Open) -> Result<Replies> {
        let coordinator =
            || not_here(self.peers.local_coordinators.get(&node).map(|s| Arc::clone(&s)), node);
        let projector =
            || not_here(self.peers.local_projectors.get(&node).map(|s| Arc::clone(&s)), node);
        let indexer =
            || not_here(self.peers.local_indexers.get(&node).map(|s| Arc::clone(&s)), node);
        Ok(match open {
            Open::Watch => replies(coordinator()?.watch().await?),
            Open::Subscribe(request) => replies(projector()?.subscribe(request).await?),
            Open::Backfill(request) => replies(projector()?.backfill(request).await?),
            Open::Scan(scan) => replies(indexer()?.scan(scan).await?),
            Open::WatchApplied => replies(indexer()?.watch_applied().await?),
            Open::Export(request) => replies(indexer()?.export(request).await?),
        })
    }
}

/// A first reply that says the question was accepted, then the answers.
fn replies<T: Serialize + 'static>(
    answers: impl Stream<Item = Result<T>> + Send + 'static,
) -> Replies {
    let accepted = stream::once(async { reply(Ok(())) });
    Box::pin(accepted.chain(answers.map(reply)))
}

/// A reply with a date of its own: hyper would otherwise put in the system's, and the bytes on the wire,
/// so the simulation's course, would depend on a clock.
fn undated<T>(reply: T) -> Response<T> {
    let mut response = Response::new(reply);
    let epoch = tonic::metadata::MetadataValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT");
    response.metadata_mut().insert("date", epoch);
    response
}

#[tonic::async_trait]
impl Peer for Server {
    type OpenStream = Replies;

    async fn call(
        &self,
        request: Request<PeerRequest>,
    ) -> std::result::Result<Response<PeerReply>, Status> {
        let request = request.into_inner();
        check_version(&request)?;
        let call = match decode(&request.body) {
            Ok(call) => call,
            Err(error) => return reply::<()>(Err(error)).map(undated),
        };
        self.answer(NodeId(request.node), call).await.map(undated)
    }

    async fn open(
        &self,
        request: Request<PeerRequest>,
    ) -> std::result::Result<Response<Replies>, Status> {
        let request = request.into_inner();
        check_version(&request)?;
        let begun = match decode(&request.body) {
            Ok(open) => self.begin(NodeId(request.node), open).await,
            Err(error) => Err(error),
        };
        let replies = begun
            .unwrap_or_else(|error| Box::pin(stream::once(async move { reply::<()>(Err(error)) })));
        Ok(undated(replies))
    }
}
