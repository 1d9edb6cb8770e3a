//! The coordinators, and the calls of other processes to them.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use coordinator::testing::{MessageKind, RaftMessage};
use coordinator::{Config, Coordinator};
use futures::StreamExt;
use proto::Result;
use proto::model::cut::{Cut, EpochMark};
use proto::model::ids::{BucketId, Epoch, LocalIndexId, NodeId, TopologyNo};
use proto::model::moment::Moment;
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::model::node::Role;
use proto::model::topology::IndexTopology;
use proto::rpc::api::{
    CoordinatorApi, CoordinatorStatus, CoveringEpochs, Directory, FixedMoment, Heartbeat,
    HeartbeatReply, ResultStream, SyncReply, SyncReport, WatchKind, WatchMessage,
};
use proto::rpc::command::{AppliedCommand, Proposal};

use super::counts::Kind;
use super::meter::MeteredSpawner;
use super::network::{End, Network};
use super::process::env_of;
use super::size::size;

/// Starts a coordinator on an empty disk.
pub async fn start(
    network: &Arc<Network>,
    (node, members): (NodeId, &[(NodeId, String)]),
    directory: Arc<dyn Directory>,
    seed: u64,
) -> Result<()> {
    let place = network.place(node);
    let mut env = env_of(seed, node);
    env.spawner = Arc::new(MeteredSpawner(place.meter.clone(), env.spawner));
    let config = Config::new(node, members.to_vec(), PathBuf::from("/data"));
    let service = place.meter.run(Coordinator::start(config, env, directory)).await?;
    let is_new = place.service.set(service).is_ok();
    assert!(is_new, "coordinator {node} runs already");
    Ok(())
}

/// A coordinator from the view of another process.
pub struct RemoteCoordinator {
    network: Arc<Network>,
    from: End,
    to: End,
}

impl RemoteCoordinator {
    /// Returns the client of a coordinator in another process.
    pub fn new(network: &Arc<Network>, from: End, to: NodeId) -> Self {
        let to = End { node: to, role: Role::Coordinator };
        Self { network: Arc::clone(network), from, to }
    }

    async fn call<T: serde::Serialize, F: Future<Output = Result<T>> + Send>(
        &self,
        kinds: (Kind, Kind),
        request_bytes: u64,
        run: impl FnOnce(Arc<Coordinator>) -> F + Send,
    ) -> Result<T> {
        let at_receiver = async {
            let member = self.network.coordinator(self.to.node)?;
            self.network.place(self.to.node).meter.run(run(member)).await
        };
        self.network.call((self.from, self.to), kinds, request_bytes, at_receiver).await
    }
}

const REQUEST: (Kind, Kind) = (Kind::Request, Kind::Reply);

#[async_trait]
impl CoordinatorApi for RemoteCoordinator {
    async fn propose(&self, request: Proposal) -> Result<AppliedCommand> {
        let bytes = size(&request);
        self.call(REQUEST, bytes, |member| async move { member.propose(request).await }).await
    }

    async fn sync(&self, report: SyncReport) -> Result<SyncReply> {
        let (bytes, network, to) = (size(&report), &self.network, self.to.node);
        let run = |member: Arc<Coordinator>| async move {
            if network.leads(to) {
                report
                    .buckets
                    .iter()
                    .for_each(|report| network.observer.sync(report.bucket, &report.cut));
            }
            member.sync(report).await
        };
        self.call((Kind::Sync, Kind::SyncReply), bytes, run).await
    }

    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<HeartbeatReply> {
        let bytes = size(&heartbeat);
        let run = |member: Arc<Coordinator>| async move { member.heartbeat(heartbeat).await };
        self.call((Kind::Heartbeat, Kind::HeartbeatReply), bytes, run).await
    }

    async fn epoch_covering(
        &self,
        bucket: BucketId,
        cut: Cut,
        history: Option<u64>,
        at_least: Epoch,
        timeout_ms: u64,
    ) -> Result<CoveringEpochs> {
        let bytes = size(&(bucket, &cut, history, at_least, timeout_ms));
        let run = |member: Arc<Coordinator>| async move {
            member.epoch_covering(bucket, cut, history, at_least, timeout_ms).await
        };
        self.call((Kind::Covering, Kind::CoveringReply), bytes, run).await
    }

    async fn watch(&self, wanted: WatchKind) -> Result<ResultStream<WatchMessage>> {
        let (network, from, to) = (Arc::clone(&self.network), self.from, self.to);
        network.send(from, to, Kind::Watch, size(&wanted)).await;
        let member = network.coordinator(to.node)?;
        let meter = network.place(to.node).meter.clone();
        let messages = meter.stream(member.watch(wanted).await?);
        Ok(Box::pin(messages.then(move |message| {
            let network = Arc::clone(&network);
            async move {
                if let Ok(message) = &message {
                    let (kind, bytes) = network.sizes.of(message);
                    network.send(to, from, kind, bytes).await;
                }
                message
            }
        })))
    }

    async fn status(&self) -> Result<CoordinatorStatus> {
        self.call(REQUEST, size(&()), |member| async move { member.status().await }).await
    }

    async fn rebalance(&self, request: RebalanceRequest) -> Result<RebalancePlan> {
        let bytes = size(&request);
        self.call(REQUEST, bytes, |member| async move { member.rebalance(request).await }).await
    }

    async fn topology(
        &self,
        index: LocalIndexId,
        number: TopologyNo,
    ) -> Result<Arc<IndexTopology>> {
        let bytes = size(&(index, number));
        let run = |member: Arc<Coordinator>| async move { member.topology(index, number).await };
        self.call(REQUEST, bytes, run).await
    }

    async fn moment(
        &self,
        bucket: BucketId,
        at_least: Epoch,
        timeout_ms: u64,
    ) -> Result<FixedMoment> {
        let bytes = size(&(bucket, at_least, timeout_ms));
        let run = |member: Arc<Coordinator>| async move {
            member.moment(bucket, at_least, timeout_ms).await
        };
        self.call(REQUEST, bytes, run).await
    }

    async fn epoch_at(&self, bucket: BucketId, moment: Moment) -> Result<Epoch> {
        let bytes = size(&(bucket, moment));
        let run = |member: Arc<Coordinator>| async move { member.epoch_at(bucket, moment).await };
        self.call(REQUEST, bytes, run).await
    }

    async fn epoch_mark(&self, bucket: BucketId, epoch: Epoch) -> Result<Option<EpochMark>> {
        let bytes = size(&(bucket, epoch));
        let run = |member: Arc<Coordinator>| async move { member.epoch_mark(bucket, epoch).await };
        self.call(REQUEST, bytes, run).await
    }

    async fn raft(&self, messages: Vec<Bytes>) -> Result<()> {
        let mut has_entries = false;
        for message in &messages {
            let message = RaftMessage::decode(message)?;
            has_entries |= message.kind == MessageKind::Append && !message.entries.is_empty();
            if self.network.leads(self.from.node) {
                message.entries.iter().for_each(|entry| self.network.log.add(&entry.data));
            }
        }
        let kind = if has_entries { Kind::RaftAppend } else { Kind::RaftOther };
        let bytes = size(&messages);
        let run = |member: Arc<Coordinator>| async move { member.raft(messages).await };
        self.call((kind, Kind::RaftOther), bytes, run).await
    }
}
