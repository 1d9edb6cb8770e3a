//! A service in another process, over gRPC.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use proto::grpc::PeerRequest;
use proto::grpc::peer_client::PeerClient;
use proto::model::cut::{Cut, EpochMark};
use proto::model::history::{SourceHistory, SourcePlace};
use proto::model::ids::{BucketId, Epoch, IndexId, NodeId, SliceId, TopologyNo};
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::model::topology::IndexTopology;
use proto::rpc::api::{
    CoordinatorApi, CoordinatorStatus, HandOverPiece, HandOverRequest, Heartbeat, IndexerApi,
    PEER_MESSAGE_BYTES_MAX, ProjectorApi, PushReply, PushRequest, ResultStream, SyncReport,
    WatchMessage, WriteReply, WriteRequest,
};
use proto::rpc::command::{CommandRequest, Outcome};
use proto::rpc::export::{ExportMessage, ExportRequest};
use proto::rpc::mutation::{BackfillMessage, BackfillRequest, StreamMessage, SubscribeRequest};
use proto::rpc::scan::{AppliedReport, ShardBatch, ShardScan};
use proto::{Error, Result};
use serde::de::DeserializeOwned;
use tonic::transport::Channel;

use super::{Call, Open, PROTOCOL_VERSION, decode, encode};

/// A service of any role in another process.
#[derive(Clone)]
pub struct Remote {
    node: NodeId,
    address: Arc<str>,
    client: Result<PeerClient<Channel>>,
}

impl Remote {
    /// The node at an address.
    pub fn new(node: NodeId, address: &str, channel: Result<Channel>) -> Self {
        let channel = channel.map_err(|error| error.context(format!("node {node} at {address}")));
        let client = channel.map(|channel| {
            PeerClient::new(channel)
                .max_decoding_message_size(PEER_MESSAGE_BYTES_MAX)
                .max_encoding_message_size(PEER_MESSAGE_BYTES_MAX)
        });
        Self { node, address: address.into(), client }
    }

    fn request(&self, body: Bytes) -> PeerRequest {
        PeerRequest { version: PROTOCOL_VERSION, node: self.node.0, body }
    }

    /// A lost connection, a refused one, a message too large: all but the last may pass.
    fn unreachable(&self, status: tonic::Status) -> Error {
        let message = format!("node {} at {}: {}", self.node, self.address, status.message());
        match status.code() {
            tonic::Code::OutOfRange | tonic::Code::ResourceExhausted => {
                Error::new(proto::ErrorCode::OverLimit, message)
            }
            _ => Error::unavailable(message),
        }
    }

    async fn call<T: DeserializeOwned>(&self, call: Call) -> Result<T> {
        let request = self.request(encode(&call)?);
        let reply = self.client.clone()?.call(request).await.map_err(|s| self.unreachable(s))?;
        decode::<Result<T>>(&reply.into_inner().body)?
    }

    async fn open<T: DeserializeOwned + Send + 'static>(
        &self,
        open: Open,
    ) -> Result<ResultStream<T>> {
        let request = self.request(encode(&open)?);
        let replies = self.client.clone()?.open(request).await.map_err(|s| self.unreachable(s))?;
        let mut replies = replies.into_inner();
        let node = self.clone();
        // The first reply says whether the question was accepted.
        match replies.message().await.map_err(|s| node.unreachable(s))? {
            Some(first) => decode::<Result<()>>(&first.body)??,
            None => return Err(Error::unavailable(format!("node {} closed a stream", self.node))),
        }
        Ok(Box::pin(replies.map(move |reply| {
            let reply = reply.map_err(|status| node.unreachable(status))?;
            decode::<Result<T>>(&reply.body)?
        })))
    }
}

#[async_trait]
impl CoordinatorApi for Remote {
    async fn propose(&self, request: CommandRequest) -> Result<Outcome> {
        self.call(Call::Propose(request)).await
    }

    async fn sync(&self, report: SyncReport) -> Result<()> {
        self.call(Call::Sync(report)).await
    }

    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<()> {
        self.call(Call::Heartbeat(heartbeat)).await
    }

    async fn epoch_covering(
        &self,
        bucket: BucketId,
        cut: Cut,
        history: Option<u64>,
        timeout_ms: u64,
    ) -> Result<EpochMark> {
        self.call(Call::EpochCovering(bucket, cut, history, timeout_ms)).await
    }

    async fn watch(&self) -> Result<ResultStream<WatchMessage>> {
        self.open(Open::Watch).await
    }

    async fn status(&self) -> Result<CoordinatorStatus> {
        self.call(Call::CoordinatorStatus).await
    }

    async fn rebalance(&self, request: RebalanceRequest) -> Result<RebalancePlan> {
        self.call(Call::Rebalance(request)).await
    }

    async fn topology(&self, index: IndexId, number: TopologyNo) -> Result<Arc<IndexTopology>> {
        self.call(Call::Topology(index, number)).await
    }

    async fn raft(&self, messages: Vec<Bytes>) -> Result<()> {
        self.call(Call::Raft(messages)).await
    }
}

#[async_trait]
impl ProjectorApi for Remote {
    async fn write(&self, request: WriteRequest) -> Result<WriteReply> {
        self.call(Call::Write(request)).await
    }

    async fn get(&self, bucket: BucketId, ids: Vec<String>) -> Result<Vec<Option<Bytes>>> {
        self.call(Call::Get(bucket, ids)).await
    }

    async fn push(&self, request: PushRequest) -> Result<PushReply> {
        self.call(Call::Push(request)).await
    }

    async fn place(&self, bucket: BucketId) -> Result<SourcePlace> {
        self.call(Call::Place(bucket)).await
    }

    async fn history(&self, bucket: BucketId) -> Result<SourceHistory> {
        self.call(Call::History(bucket)).await
    }

    async fn subscribe(&self, request: SubscribeRequest) -> Result<ResultStream<StreamMessage>> {
        self.open(Open::Subscribe(request)).await
    }

    async fn backfill(&self, request: BackfillRequest) -> Result<ResultStream<BackfillMessage>> {
        self.open(Open::Backfill(request)).await
    }

    async fn hand_over(&self, request: HandOverRequest) -> Result<HandOverPiece> {
        self.call(Call::HandOver(request)).await
    }
}

#[async_trait]
impl IndexerApi for Remote {
    async fn scan(&self, scan: ShardScan) -> Result<ResultStream<ShardBatch>> {
        let batches = self.open(Open::Scan(scan)).await?;
        // Blocks are read in place later on, so they are checked here.
        Ok(Box::pin(batches.map(|batch| {
            let batch = batch?;
            if let ShardBatch::Rows(block) = &batch {
                block.validate()?;
            }
            Ok(batch)
        })))
    }

    async fn watch_applied(&self) -> Result<ResultStream<AppliedReport>> {
        self.open(Open::WatchApplied).await
    }

    async fn checksum(&self, slice: SliceId, epoch: Epoch) -> Result<(u64, u64)> {
        self.call(Call::Checksum(slice, epoch)).await
    }

    async fn export(&self, request: ExportRequest) -> Result<ResultStream<ExportMessage>> {
        self.open(Open::Export(request)).await
    }
}
