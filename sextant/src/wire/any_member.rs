//! The coordinator through whichever member answers: stays with a member that works and goes to the
//! next when it does not. Commands carry request ids, so asking again is safe; they are asked again
//! for a while, since a new leader is elected within about a second.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use proto::model::cut::{Cut, EpochMark};
use proto::model::ids::{BucketId, IndexId, NodeId, TopologyNo};
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::model::topology::IndexTopology;
use proto::rpc::api::{
    CoordinatorApi, CoordinatorStatus, Directory, Heartbeat, ResultStream, SyncReport, WatchMessage,
};
use proto::rpc::command::{CommandRequest, Outcome};
use proto::{Error, Result};
use tokio::time::{Instant, sleep, timeout_at};

use super::PeerDirectory;

/// How long a command is asked again while no member can run it.
const PROPOSE_FOR: Duration = Duration::from_secs(10);
/// How long is waited between two rounds over the members.
const ROUND_PAUSE: Duration = Duration::from_millis(50);

/// The coordinator, whichever member.
pub struct AnyMember {
    directory: PeerDirectory,
    members: Vec<NodeId>,
    preferred: AtomicUsize,
}

impl AnyMember {
    /// Over these members.
    pub fn new(directory: PeerDirectory, members: Vec<NodeId>) -> Self {
        Self { directory, members, preferred: AtomicUsize::new(0) }
    }

    /// Asks the members, the preferred one first, until one answers with something final.
    async fn round<T, F, Fut>(&self, ask: F) -> Result<T>
    where
        F: Fn(Arc<dyn CoordinatorApi>) -> Fut,
        Fut: Future<Output = Result<T>>,
    {
        let first = self.preferred.load(Ordering::Relaxed);
        let mut last = Error::unavailable("the cluster has no coordinator members");
        for n in 0..self.members.len() {
            let at = (first + n) % self.members.len();
            let answer = match self.directory.coordinator_member(self.members[at]) {
                Ok(member) => ask(member).await,
                Err(error) => Err(error),
            };
            match answer {
                Err(error) if error.is_retry() => last = error,
                answer => {
                    self.preferred.store(at, Ordering::Relaxed);
                    return answer;
                }
            }
        }
        Err(last)
    }

    /// Rounds until a deadline.
    async fn rounds<T, F, Fut>(&self, deadline: Instant, ask: F) -> Result<T>
    where
        F: Fn(Arc<dyn CoordinatorApi>) -> Fut,
        Fut: Future<Output = Result<T>>,
    {
        loop {
            match self.round(&ask).await {
                Err(error) if error.is_retry() && Instant::now() < deadline => {
                    sleep(ROUND_PAUSE).await;
                }
                answer => return answer,
            }
        }
    }
}

#[async_trait]
impl CoordinatorApi for AnyMember {
    async fn propose(&self, request: CommandRequest) -> Result<Outcome> {
        let deadline = Instant::now() + PROPOSE_FOR;
        let ask = |member: Arc<dyn CoordinatorApi>| {
            let request = request.clone();
            async move { member.propose(request).await }
        };
        // Without a request id a command must not be run twice.
        match request.request {
            Some(_) => self.rounds(deadline, ask).await,
            None => self.round(ask).await,
        }
    }

    async fn sync(&self, report: SyncReport) -> Result<()> {
        self.round(|member| {
            let report = report.clone();
            async move { member.sync(report).await }
        })
        .await
    }

    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<()> {
        self.round(|member| {
            let heartbeat = heartbeat.clone();
            async move { member.heartbeat(heartbeat).await }
        })
        .await
    }

    async fn epoch_covering(
        &self,
        bucket: BucketId,
        cut: Cut,
        history: Option<u64>,
        timeout_ms: u64,
    ) -> Result<EpochMark> {
        let deadline = Instant::now() + Duration::from_millis(timeout_ms);
        let asked = self.rounds(deadline, |member| {
            let cut = cut.clone();
            let left = deadline.saturating_duration_since(Instant::now());
            async move { member.epoch_covering(bucket, cut, history, left.as_millis() as u64).await }
        });
        timeout_at(deadline, asked)
            .await
            .unwrap_or_else(|_| Err(Error::unavailable("no coordinator gave an epoch in time")))
    }

    async fn watch(&self) -> Result<ResultStream<WatchMessage>> {
        self.round(|member| async move { member.watch().await }).await
    }

    async fn status(&self) -> Result<CoordinatorStatus> {
        self.round(|member| async move { member.status().await }).await
    }

    async fn rebalance(&self, request: RebalanceRequest) -> Result<RebalancePlan> {
        self.round(|member| {
            let request = request.clone();
            async move { member.rebalance(request).await }
        })
        .await
    }

    async fn topology(&self, index: IndexId, number: TopologyNo) -> Result<Arc<IndexTopology>> {
        self.round(|member| async move { member.topology(index, number).await }).await
    }

    async fn raft(&self, _messages: Vec<Bytes>) -> Result<()> {
        Err(Error::internal("Raft's messages go to one member"))
    }
}
