//! An open transaction at the projector of its bucket, and the calls of the transaction.
//!
//! A projector rolls back a transaction that gets no calls for some time, so this process renews
//! the transaction until its session ends it (`kept`). If a transaction is dropped without a
//! commit, a call rolls it back, so that the projector need not wait for that time.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use proto::env::Env;
use proto::lock::lock;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::ids::{BucketId, Epoch, TransactionId, TransactionPlace};
use proto::model::node::Role;
use proto::rpc::api::{
    CheckedWrites, Decision, OWNER_BYTES_MAX, ProjectorApi, TransactionCommit, TransactionStatus,
    TransactionWrite, WriteReply,
};
use proto::rpc::scan::UncommittedView;
use proto::{Error, ErrorCode, Result};
use tokio::time::{Instant, timeout, timeout_at};

use super::keep_alive::TransactionKeeper;
use super::source_calls::{NOT_HOME_PAUSE, SourceCalls};
use crate::access::BucketTransaction;

/// The number of bits of a transaction's id. A client whose only numbers are floating-point
/// numbers can show 53 bits exactly.
const ID_BITS: u32 = 53;

/// The time for which a commit is retried: long enough for a projector to restart, or for another
/// copy to take over.
const COMMIT_WAIT: Duration = Duration::from_secs(15);

/// The time limit of the last attempt of a commit, which may last beyond [`COMMIT_WAIT`].
const ANSWER_WAIT: Duration = Duration::from_secs(2);

/// The time limit for a projector's list of transactions.
const LIST_WAIT: Duration = Duration::from_secs(2);

/// Returns the open transactions, each with its projector. The transactions of projectors that do
/// not answer are missing.
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

/// Returns true if the outcome of a commit is open after an error, so that the step must be
/// repeated.
fn leaves_outcome_open(error: &Error) -> bool {
    use ErrorCode::{Cancelled, Interrupted, NotOwner, Unavailable};
    matches!(error.code, Unavailable | Cancelled | NotOwner | Interrupted)
}

/// Returns the error of a commit without an answer within the time limit.
fn no_answer_error() -> Error {
    Error::new(ErrorCode::Cancelled, "the projector does not answer")
}

/// Adds the reason of the first retry (`first`) to the error of a repeated commit. Only a refusal
/// proves that nothing was committed.
fn with_retry_reason(error: Error, first: Option<Error>) -> Error {
    use ErrorCode::{Cancelled, InDoubt, Interrupted};
    let was_lost =
        first.as_ref().is_some_and(|first| matches!(first.code, Interrupted | Cancelled));
    match first {
        Some(first) if was_lost && !error.code.refuses_commit() && error.code != InDoubt => {
            in_doubt(Error { message: format!("{}; {}", first.message, error.message), ..first })
        }
        Some(first) => Error { message: format!("{}; {}", first.message, error.message), ..error },
        None => error,
    }
}

/// Returns the error of a commit whose outcome is unknown.
fn in_doubt(error: Error) -> Error {
    let message = format!("{}; the transaction may have been committed", error.message);
    Error::new(ErrorCode::InDoubt, message).with_hint("look at the data before you write again")
}

/// Returns the results of a transaction's commit in its buckets. Returns an error if no commit is
/// found while a bucket could not be searched, because it has no leader or its projector does not
/// answer.
pub(super) async fn find_commit(
    calls: &SourceCalls,
    transaction: TransactionId,
) -> Result<Vec<WriteReply>> {
    let catalog = calls.router.catalog();
    let projectors = catalog.nodes.values().filter(|node| node.role == Role::Projector);
    let asked = projectors.map(|node| {
        let source = calls.directory.projector(node);
        async move { (node.id, timeout(LIST_WAIT, source.committed(transaction)).await) }
    });
    let (mut silent, mut found, mut looked_at) = (None, Vec::new(), BTreeSet::new());
    for (node, answer) in join_all(asked).await {
        match answer {
            Ok(Ok(told)) => {
                found.extend(told.commits);
                looked_at.extend(told.looked_at);
            }
            Ok(Err(_)) | Err(_) => silent = Some(node),
        }
    }
    if !found.is_empty() {
        return Ok(found);
    }
    let mut embedded =
        catalog.buckets.values().filter(|bucket| bucket.source == SourceKind::Embedded);
    let left = embedded.find(|bucket| !looked_at.contains(&bucket.id));
    let reason = match (left, silent) {
        (None, _) => return Ok(found),
        (Some(_), Some(node)) => format!("projector {node} does not answer"),
        (Some(bucket), None) => {
            format!("no projector serves bucket {} at the moment", bucket.name)
        }
    };
    let what = format!("it is not known yet what became of transaction {transaction}: {reason}");
    Err(Error::unavailable(what)
        .with_hint("try again; SHOW NODES and SHOW COPIES tell who is away"))
}

/// A transaction at the projector of its bucket.
pub(super) struct ClusterTransaction {
    calls: SourceCalls,
    kept: Arc<TransactionKeeper>,
    env: Env,
    bucket: Arc<BucketInfo>,
    owner: String,
    id: TransactionId,
    place: Mutex<TransactionPlace>,
    /// The number of commits that the bucket had when the transaction began; zero before the
    /// projector's first answer.
    behind: AtomicU64,
    /// True once the projector may have received a call of the transaction.
    was_sent: AtomicBool,
    has_ended: AtomicBool,
    /// True once the projector has answered that it does not know the transaction.
    is_lost: Arc<AtomicBool>,
}

impl ClusterTransaction {
    /// Creates a transaction that the projector does not know yet.
    pub fn new(
        calls: SourceCalls,
        kept: Arc<TransactionKeeper>,
        env: &Env,
        bucket: Arc<BucketInfo>,
        (owner, id): (&str, Option<TransactionId>),
    ) -> Self {
        let draw = || TransactionId(env.random.next_u64() >> (u64::BITS - ID_BITS));
        let id = id.unwrap_or_else(draw);
        let mut owner = format!("{owner}, router {}", calls.router.node());
        while owner.len() > OWNER_BYTES_MAX {
            owner.pop();
        }
        let (was_sent, has_ended) = (AtomicBool::new(false), AtomicBool::new(false));
        let (env, place) = (env.clone(), Mutex::default());
        let (behind, is_lost) = (AtomicU64::new(0), Arc::default());
        Self { calls, kept, env, bucket, owner, id, place, behind, was_sent, has_ended, is_lost }
    }

    /// Returns the position after the transaction's changes so far, to which it could be rolled
    /// back.
    fn place(&self) -> TransactionPlace {
        *lock(&self.place)
    }

    /// Returns the request that commits or prepares this transaction.
    fn commit_of(&self, snapshot: Option<Epoch>, participants: &[BucketId]) -> TransactionCommit {
        TransactionCommit {
            bucket: self.bucket.id,
            transaction: self.id,
            place: self.place(),
            snapshot,
            behind: self.behind.load(Ordering::Relaxed),
            participants: participants.to_vec(),
        }
    }

    /// Repeats a step of a commit until the projector has answered. If an answer was lost, the
    /// repeated step returns the same answer.
    async fn repeat_until_answered<T, F: Future<Output = Result<T>>>(
        &self,
        step: impl Fn(Arc<dyn ProjectorApi>) -> F,
    ) -> Result<T> {
        let deadline = Instant::now() + COMMIT_WAIT;
        let mut first: Option<Error> = None;
        loop {
            let asked = async { step(self.calls.source(&self.bucket)?).await };
            let answer = timeout_at(deadline + ANSWER_WAIT, asked).await;
            let answer = answer.unwrap_or_else(|_| Err(no_answer_error()));
            let error =
                match answer.map_err(|error| self.calls.with_bucket_name(&self.bucket, error)) {
                    Err(error) if leaves_outcome_open(&error) => error,
                    Err(error) => return Err(with_retry_reason(error, first)),
                    answer => return answer,
                };
            if Instant::now() > deadline {
                return Err(in_doubt(first.unwrap_or(error)));
            }
            // The error of the first lost answer is returned at the end.
            if first.as_ref().is_some_and(|first| first.code == ErrorCode::Unavailable) {
                first = None;
            }
            first.get_or_insert(error);
            tokio::time::sleep(NOT_HOME_PAUSE).await;
        }
    }

    /// Ends the renewal of the transaction, because the projector has ended it or soon will.
    fn stop_renewal(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.kept.release(self.bucket.id, self.id);
    }
}

#[async_trait]
impl BucketTransaction for ClusterTransaction {
    fn id(&self) -> TransactionId {
        self.id
    }

    fn bucket(&self) -> &BucketInfo {
        &self.bucket
    }

    fn own_changes(&self) -> Option<UncommittedView> {
        let place = self.place();
        (place.0 > 0).then_some(UncommittedView { transaction: self.id, place })
    }

    fn check(&self) -> Result<()> {
        // A first write may be in flight during the call to the projector.
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
            writes,
        };
        // The projector may have it even if the answer is lost.
        self.was_sent.store(true, Ordering::Relaxed);
        let write = |source: Arc<dyn ProjectorApi>| {
            let request = request.clone();
            async move { source.write_for_transaction(request).await }
        };
        let written = self.calls.write_to(&self.bucket, write).await?;
        *lock(&self.place) = written.place;
        // The renewal does not begin earlier, because the projector may not know the transaction
        // before.
        self.kept.keep(&self.bucket, self.id, &self.is_lost);
        self.behind.store(written.behind, Ordering::Relaxed);
        Ok(written.affected)
    }

    async fn rollback_to(&self, place: TransactionPlace) -> Result<()> {
        if !self.was_sent.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (bucket, id) = (self.bucket.id, self.id);
        let back = |source: Arc<dyn ProjectorApi>| async move {
            source.roll_back_to(bucket, id, place).await
        };
        let now = self.calls.write_to(&self.bucket, back).await?;
        *lock(&self.place) = now;
        Ok(())
    }

    async fn commit(
        &self,
        snapshot: Option<Epoch>,
        participants: &[BucketId],
    ) -> Result<WriteReply> {
        let request = self.commit_of(snapshot, participants);
        let commit = |source: Arc<dyn ProjectorApi>| {
            let request = request.clone();
            async move { source.commit(request).await }
        };
        let committed = match self.calls.check_present(&self.bucket) {
            Ok(()) => self.calls.count_write(self.repeat_until_answered(commit)).await,
            Err(error) => Err(error),
        };
        // Whatever the outcome: a commit that is refused has rolled the transaction back.
        self.stop_renewal();
        committed
    }

    async fn prepare(
        &self,
        snapshot: Option<Epoch>,
        joint: TransactionId,
        participants: &[BucketId],
    ) -> Result<u64> {
        let request = self.commit_of(snapshot, participants);
        let prepare = |source: Arc<dyn ProjectorApi>| {
            let request = request.clone();
            async move { source.prepare(joint, request).await }
        };
        let prepared = match self.calls.check_present(&self.bucket) {
            Ok(()) => self.repeat_until_answered(prepare).await,
            Err(error) => Err(error),
        };
        // A prepared transaction ends by its outcome.
        self.stop_renewal();
        prepared
    }

    async fn decide(&self, joint: TransactionId, decision: Decision) -> Result<WriteReply> {
        let bucket = self.bucket.id;
        let decide = |source: Arc<dyn ProjectorApi>| {
            let decision = decision.clone();
            async move { source.end_prepared_transaction(bucket, joint, decision).await }
        };
        self.calls.count_write(self.repeat_until_answered(decide)).await
    }
}

impl Drop for ClusterTransaction {
    fn drop(&mut self) {
        self.kept.release(self.bucket.id, self.id);
        let was_sent = self.was_sent.load(Ordering::Relaxed);
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
