//! A session that commits a transaction, and that may be lost at a stage of the commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use proto::Result;
use proto::model::bucket::BucketInfo;
use proto::model::ids::{BucketId, Epoch, TransactionId, TransactionPlace};
use proto::rpc::api::{CheckedWrites, Decision, WriteReply};
use proto::rpc::scan::UncommittedView;
use sextant::access::BucketTransaction;
use tokio::sync::Notify;

/// The number of stages that commits have reached, which the fault driver reads.
pub type CommitStages = Arc<AtomicU64>;

/// A stage of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A bucket is about to receive the request to prepare.
    Begun,
    /// A bucket has prepared.
    Prepared,
    /// The deciding bucket has committed.
    Decided,
    /// Another bucket has finished.
    Finished,
}

/// The lifetime of a session.
#[derive(Clone)]
pub struct Life {
    /// The stage at which the session is lost; `None` if it survives.
    pub ends_at: Option<Stage>,
    /// Notified when the session is lost.
    pub lost: Arc<Notify>,
    /// The stages of all sessions.
    pub stages: CommitStages,
}

impl Life {
    /// Records that a stage is reached; never returns if the session is lost at this stage.
    async fn reach(&self, stage: Stage) {
        self.stages.fetch_add(1, Ordering::Relaxed);
        if self.ends_at == Some(stage) {
            self.lost.notify_one();
            std::future::pending::<()>().await;
        }
    }
}

/// The changes of a transaction in one bucket, whose calls report the stages of the commit.
pub struct Mortal {
    /// The changes in the bucket.
    pub changes: Arc<dyn BucketTransaction>,
    /// The lifetime of the session.
    pub life: Life,
}

#[async_trait]
impl BucketTransaction for Mortal {
    fn id(&self) -> TransactionId {
        self.changes.id()
    }

    fn bucket(&self) -> &BucketInfo {
        self.changes.bucket()
    }

    fn own_changes(&self) -> Option<UncommittedView> {
        self.changes.own_changes()
    }

    async fn write(&self, snapshot: Option<Epoch>, writes: CheckedWrites) -> Result<u64> {
        self.changes.write(snapshot, writes).await
    }

    async fn rollback_to(&self, place: TransactionPlace) -> Result<()> {
        self.changes.rollback_to(place).await
    }

    async fn commit(
        &self,
        snapshot: Option<Epoch>,
        participants: &[BucketId],
    ) -> Result<WriteReply> {
        let committed = self.changes.commit(snapshot, participants).await;
        self.life.reach(Stage::Decided).await;
        committed
    }

    async fn prepare(
        &self,
        snapshot: Option<Epoch>,
        joint: TransactionId,
        participants: &[BucketId],
    ) -> Result<u64> {
        self.life.reach(Stage::Begun).await;
        let prepared = self.changes.prepare(snapshot, joint, participants).await;
        self.life.reach(Stage::Prepared).await;
        prepared
    }

    async fn decide(&self, joint: TransactionId, decision: Decision) -> Result<WriteReply> {
        let decided = self.changes.decide(joint, decision).await;
        self.life.reach(Stage::Finished).await;
        decided
    }
}
