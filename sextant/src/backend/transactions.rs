//! A transaction at the projector of its bucket.
//!
//! The projector forgets a transaction for which nobody asks, because the process of its session may be gone. So a task asks for it
//! as long as the session has it. A transaction that is dropped without a commit tells the projector, which need not wait for that time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use proto::env::{Env, Task};
use proto::lock::lock;
use proto::model::bucket::BucketInfo;
use proto::model::ids::{Epoch, TransactionId, TransactionPlace};
use proto::model::node::Role;
use proto::rpc::api::{
    CheckedWrites, OWNER_BYTES_MAX, ProjectorApi, TRANSACTION_KEPT_MS, TransactionCommit,
    TransactionStatus, TransactionWrite, WriteReply,
};
use proto::rpc::scan::OwnView;
use proto::{Error, ErrorCode, Result};
use tokio::time::timeout;

use super::source_calls::{SourceCalls, in_doubt};
use crate::sql::backend::BucketTransaction;

/// Time between two calls that keep a transaction open: two of them may be late.
const KEEP_EVERY: Duration = Duration::from_millis(TRANSACTION_KEPT_MS / 3);

/// Bits of a transaction's number: a client that has only floating-point numbers can show it.
const ID_BITS: u32 = 53;

/// Time limit for a projector's list of transactions.
const LIST_WAIT: Duration = Duration::from_secs(2);

/// The open transactions, each with its projector. A projector that does not answer is left out.
pub(super) async fn open_transactions(
    calls: &SourceCalls,
) -> Vec<(Arc<dyn ProjectorApi>, TransactionStatus)> {
    let catalog = calls.router.catalog();
    let projectors = catalog.nodes.values().filter(|node| node.role == Role::Projector);
    let asked = projectors.map(|node| calls.directory.projector(node));
    let lists = join_all(asked.map(|source| async move {
        let list = timeout(LIST_WAIT, source.transactions()).await;
        let list = list.ok().and_then(Result::ok).unwrap_or_default();
        list.into_iter().map(|status| (Arc::clone(&source), status)).collect::<Vec<_>>()
    }));
    lists.await.into_iter().flatten().collect()
}

/// A transaction at the projector of its bucket.
pub(super) struct ClusterTransaction {
    calls: SourceCalls,
    env: Env,
    bucket: Arc<BucketInfo>,
    owner: String,
    id: TransactionId,
    place: Mutex<TransactionPlace>,
    /// Asks for the transaction; `None` before the first write.
    keeper: Mutex<Option<Task>>,
    has_ended: AtomicBool,
    /// True once the projector has said that it does not know the transaction.
    is_lost: Arc<AtomicBool>,
}

impl ClusterTransaction {
    /// A transaction of which the projector knows nothing yet.
    pub fn new(calls: SourceCalls, env: &Env, bucket: Arc<BucketInfo>, owner: &str) -> Self {
        let id = TransactionId(env.random.next_u64() >> (u64::BITS - ID_BITS));
        let mut owner = format!("{owner}, router {}", calls.router.node());
        while owner.len() > OWNER_BYTES_MAX {
            owner.pop();
        }
        let (place, keeper) = (Mutex::default(), Mutex::default());
        let (env, has_ended) = (env.clone(), AtomicBool::new(false));
        Self { calls, env, bucket, owner, id, place, keeper, has_ended, is_lost: Arc::default() }
    }

    fn place(&self) -> TransactionPlace {
        *lock(&self.place)
    }

    /// Keeps the transaction open at the projector.
    fn keep(&self) {
        let mut keeper = lock(&self.keeper);
        if keeper.is_some() {
            return;
        }
        let (calls, bucket, id) = (self.calls.clone(), Arc::clone(&self.bucket), self.id);
        let is_lost = Arc::clone(&self.is_lost);
        let keep = async move {
            loop {
                tokio::time::sleep(KEEP_EVERY).await;
                let Ok(source) = calls.source(&bucket) else { continue };
                let gone = source.keep_open(bucket.id, vec![id]).await;
                if gone.is_ok_and(|gone| gone.contains(&id)) {
                    is_lost.store(true, Ordering::Relaxed);
                }
            }
        };
        *keeper = Some(self.env.spawn_request("open transaction", keep));
    }

    /// Notes that the projector has nothing of the transaction any more, or will not.
    fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
        *lock(&self.keeper) = None;
    }
}

#[async_trait]
impl BucketTransaction for ClusterTransaction {
    fn bucket(&self) -> &BucketInfo {
        &self.bucket
    }

    fn own(&self) -> Option<OwnView> {
        let place = self.place();
        (place.0 > 0).then_some(OwnView { transaction: self.id, place })
    }

    fn check(&self) -> Result<()> {
        // A first write may be on its way while the projector is asked.
        if !self.is_lost.load(Ordering::Relaxed) || self.place().0 == 0 {
            return Ok(());
        }
        let (id, bucket) = (self.id, &self.bucket.name);
        let what = format!("transaction {id} is not open any more at the projector of {bucket}");
        Err(Error::new(ErrorCode::Conflict, what).with_hint("begin the transaction again"))
    }

    async fn write(&self, snapshot: Option<Epoch>, writes: CheckedWrites) -> Result<u64> {
        let request = TransactionWrite {
            bucket: self.bucket.id,
            transaction: self.id,
            after: self.place(),
            owner: self.owner.clone(),
            snapshot,
            writes: writes.to_writes(),
        };
        // The projector may have it even if the answer is lost.
        self.keep();
        let write = |source: Arc<dyn ProjectorApi>| {
            let request = request.clone();
            async move { source.write_in(request).await }
        };
        let written = self.calls.write_to(&self.bucket, write).await?;
        *lock(&self.place) = written.place;
        Ok(written.affected)
    }

    async fn back_to(&self, place: TransactionPlace) -> Result<()> {
        if lock(&self.keeper).is_none() {
            return Ok(());
        }
        let (bucket, id) = (self.bucket.id, self.id);
        let back =
            |source: Arc<dyn ProjectorApi>| async move { source.back_to(bucket, id, place).await };
        let now = self.calls.write_to(&self.bucket, back).await?;
        *lock(&self.place) = now;
        Ok(())
    }

    async fn commit(&self, snapshot: Option<Epoch>) -> Result<WriteReply> {
        let (bucket, transaction, place) = (self.bucket.id, self.id, self.place());
        let request = TransactionCommit { bucket, transaction, place, snapshot };
        // It is not tried again: another answer would hide the first one.
        let commit = async { self.calls.source(&self.bucket)?.commit(request).await };
        let committed = self.calls.counted(commit).await.map_err(|error| match error.code {
            ErrorCode::NotOwner => Error::new(ErrorCode::Conflict, error.message)
                .with_hint("begin the transaction again"),
            _ => in_doubt(error),
        });
        // Whatever the outcome: a commit that is refused has rolled the transaction back.
        self.end();
        committed
    }
}

impl Drop for ClusterTransaction {
    fn drop(&mut self) {
        let was_sent = lock(&self.keeper).take().is_some();
        // A process that ends runs no task any more: its sessions go with their runtime.
        let can_tell = tokio::runtime::Handle::try_current().is_ok();
        if !was_sent || !can_tell || self.has_ended.load(Ordering::Relaxed) {
            return;
        }
        let (calls, bucket, id) = (self.calls.clone(), Arc::clone(&self.bucket), self.id);
        let abort = async move {
            // A call that is lost costs the projector the memory until it forgets the transaction by itself.
            if let Ok(source) = calls.source(&bucket) {
                let _told = source.abort(bucket.id, id).await;
            }
        };
        self.env.spawn_request("rollback", abort).detach();
    }
}
