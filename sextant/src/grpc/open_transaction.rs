//! A transaction that a gRPC client has begun, while it is open and after its end.
//!
//! The calls of a transaction may arrive over any connection and at the same time, and may be
//! cancelled at any point. They are executed one after another. After a write that was cut off or
//! whose answer was lost, the transaction is *in doubt*: the next call first undoes this write.
//! If the write was the first one of the transaction, the transaction ends instead, since the
//! write could still arrive after a rollback.
//!
//! A transaction begins in one bucket and may read and write others.
//!
//! Transactions over gRPC work like those of SQL ([`crate::pg`], `transact`), but without
//! savepoints. Only the process in which a transaction began knows it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::lock::lock;
use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, Epoch, TransactionId};
use proto::model::index::IndexInfo;
use proto::rpc::api::{CheckedWrites, WriteReply};
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use crate::access::{Access, BucketTransaction, TransactionView};
use crate::principal::Principal;
use crate::sql::transactions::buckets::TransactionBuckets;
use crate::sql::transactions::commit::commit_all;

/// A transaction that a gRPC client has begun. It may have ended.
pub(super) struct OpenTransaction {
    number: TransactionId,
    principal: Principal,
    /// The owner of the transaction, as text for people.
    owner: String,
    bucket: Arc<BucketInfo>,
    idle_max: Duration,
    used_at: Mutex<Instant>,
    state: tokio::sync::Mutex<TransactionState>,
}

/// The state of a transaction: open, committed, or ended otherwise.
enum TransactionState {
    Open(OpenState),
    Committed(Vec<WriteReply>),
    /// The transaction was rolled back, or its outcome is unknown. The error says which.
    Ended(Error),
}

/// An open transaction: the buckets that it reads and changes, and its writes.
struct OpenState {
    buckets: TransactionBuckets,
    /// The number of documents that the transaction has written.
    written: u64,
    /// The bucket of a write whose outcome is unknown.
    in_doubt: Option<BucketId>,
}

/// The result of a write in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WriteResult {
    /// The number of documents that the write has created, replaced or removed.
    pub(super) affected: u64,
    /// The position after all writes of the transaction so far.
    pub(super) place: u64,
}

impl OpenTransaction {
    /// Returns a new transaction of a principal.
    pub(super) fn new(
        (principal, owner): (Principal, String),
        changes: Arc<dyn BucketTransaction>,
        bucket: Arc<BucketInfo>,
        idle_max: Duration,
    ) -> Self {
        let number = changes.id();
        let buckets = TransactionBuckets::begun(bucket.id, changes);
        let open = OpenState { buckets, written: 0, in_doubt: None };
        let (used_at, state) = (Mutex::new(Instant::now()), TransactionState::Open(open).into());
        Self { number, principal, owner, bucket, idle_max, used_at, state }
    }

    /// Returns the number of the transaction.
    pub(super) fn number(&self) -> TransactionId {
        self.number
    }

    /// Returns the owner as text for people.
    pub(super) fn owner(&self) -> &str {
        &self.owner
    }

    /// Returns true if a principal may use the transaction.
    pub(super) fn belongs_to(&self, principal: &Principal) -> bool {
        self.principal.is_same(principal)
    }

    /// Restarts the idle time-out, because the client has made a call.
    pub(super) fn touch(&self) {
        *lock(&self.used_at) = Instant::now();
    }

    /// Leases an epoch for the transaction to read, unless it has one. Returns the epoch.
    pub(super) async fn pin(&self, access: &Access) -> Result<Epoch> {
        let mut state = self.lock_state().await;
        let epoch = state.require_open(self.number)?.buckets.pin(access, self.bucket.id).await?;
        self.touch();
        Ok(epoch)
    }

    /// Returns the generation of an index that the transaction reads. It stays the same when a
    /// new generation begins to serve.
    pub(super) async fn generation_to_read(
        &self,
        shown: &Arc<IndexInfo>,
        now: &Catalog,
    ) -> Result<Arc<IndexInfo>> {
        self.lock_state().await.require_open(self.number)?.buckets.generation_to_read(shown, now)
    }

    /// Returns what the transaction sees of a bucket: its epoch and its changes so far.
    pub(super) async fn view(&self, access: &Access, bucket: BucketId) -> Result<TransactionView> {
        let mut state = self.lock_state().await;
        let viewed = async {
            let open = state.require_open(self.number)?;
            open.undo_doubtful_write().await?;
            open.buckets.view(bucket)?;
            open.buckets.pin(access, bucket).await?;
            open.buckets.view(bucket)
        };
        let viewed = viewed.await;
        state.end_with(&viewed);
        self.touch();
        viewed
    }

    /// Writes documents in the bucket in which the transaction began, all of them or none.
    pub(super) async fn write(&self, writes: CheckedWrites) -> Result<WriteResult> {
        let begun = || Err(Error::internal("a transaction has no changes in its first bucket"));
        self.write_to(self.bucket.id, begun, writes).await
    }

    /// Writes documents in a bucket, all of them or none. `begin` begins the transaction in that
    /// bucket under its number, if it has no changes there yet.
    pub(super) async fn write_to(
        &self,
        bucket: BucketId,
        begin: impl FnOnce() -> Result<Arc<dyn BucketTransaction>>,
        writes: CheckedWrites,
    ) -> Result<WriteResult> {
        let mut state = self.lock_state().await;
        let open = state.require_open(self.number)?;
        open.buckets.changes_or_begin(bucket, begin)?;
        let written = open.write(bucket, writes).await;
        state.end_with(&written);
        self.touch();
        written
    }

    /// Commits all changes, or none. Returns the result for each bucket. If the commit is
    /// repeated, it returns the same results. If the future is dropped before its end, the
    /// outcome is unknown.
    pub(super) async fn commit(&self) -> Result<Vec<WriteReply>> {
        let mut state = self.lock_state().await;
        if let TransactionState::Committed(replies) = &*state {
            return Ok(replies.clone());
        }
        let open = state.require_open(self.number)?;
        let settled = async {
            open.undo_doubtful_write().await?;
            open.buckets.pin_changed().await
        };
        if let Err(error) = settled.await {
            state.end_with::<()>(&Err(error.clone()));
            return Err(error);
        }
        let committed = commit_all(open.buckets.parts()).await;
        *state = match &committed {
            Ok(replies) => TransactionState::Committed(replies.clone()),
            Err(error) => TransactionState::Ended(error.clone()),
        };
        committed
    }

    /// Rolls back the transaction.
    pub(super) async fn abort(&self) -> Result<()> {
        let mut state = self.lock_state().await;
        if let TransactionState::Committed(_) = *state {
            return Err(committed_error(self.number));
        }
        if let TransactionState::Open(_) = *state {
            let what = format!("transaction {} was rolled back by Abort", self.number);
            *state = TransactionState::Ended(retry_error(what));
        }
        Ok(())
    }

    /// Rolls back the transaction if no call is in progress and the last one was too long ago.
    pub(super) fn end_if_idle(&self, now: Instant) {
        let Ok(mut state) = self.state.try_lock() else { return };
        let idle = now.saturating_duration_since(*lock(&self.used_at));
        if idle > self.idle_max && matches!(*state, TransactionState::Open(_)) {
            let (number, ms) = (self.number, self.idle_max.as_millis());
            let what = format!("transaction {number} was rolled back: no call came for {ms} ms");
            let hint = "begin the transaction again, with a longer idle_timeout_ms if it is needed";
            *state = TransactionState::Ended(Error::new(ErrorCode::Conflict, what).with_hint(hint));
        }
    }

    /// Returns true if the transaction has ended.
    pub(super) fn has_ended(&self) -> bool {
        // A call in progress records the end of the transaction itself.
        self.state.try_lock().is_ok_and(|state| !matches!(*state, TransactionState::Open(_)))
    }

    /// Restarts the idle time-out and waits until no other call of the transaction runs.
    async fn lock_state(&self) -> tokio::sync::MutexGuard<'_, TransactionState> {
        self.touch();
        self.state.lock().await
    }
}

impl TransactionState {
    /// Returns the open transaction, or an error if it has ended.
    fn require_open(&mut self, number: TransactionId) -> Result<&mut OpenState> {
        match self {
            Self::Open(open) => Ok(open),
            Self::Committed(_) => Err(committed_error(number)),
            Self::Ended(error) => Err(error.clone()),
        }
    }

    /// Records that the transaction has ended, if the result says that the projector has lost it.
    fn end_with<T>(&mut self, result: &Result<T>) {
        if let (Self::Open(_), Err(error)) = (&*self, result)
            && error.code == ErrorCode::Conflict
        {
            *self = Self::Ended(error.clone());
        }
    }
}

impl OpenState {
    /// Writes documents in a bucket, and records that the write is in doubt until its answer has
    /// arrived.
    async fn write(&mut self, bucket: BucketId, writes: CheckedWrites) -> Result<WriteResult> {
        self.undo_doubtful_write().await?;
        let mut affected = 0;
        let changes = self.buckets.changes_in(bucket).cloned();
        if let (Some(changes), false) = (changes, writes.is_empty()) {
            let snapshot = self.buckets.snapshot(bucket);
            self.in_doubt = Some(bucket);
            let written = changes.write(snapshot, writes).await;
            if written.as_ref().map_or_else(is_refusal, |_| true) {
                self.in_doubt = None;
            }
            affected = written?;
            self.written += affected;
        }
        Ok(WriteResult { affected, place: self.written })
    }

    /// Undoes a write whose outcome is unknown.
    async fn undo_doubtful_write(&mut self) -> Result<()> {
        let Some(changes) = self.in_doubt.and_then(|bucket| self.buckets.changes_in(bucket)) else {
            return Ok(());
        };
        let Some(own) = changes.own_changes() else {
            let (number, bucket) = (changes.id(), &changes.bucket().name);
            let what = format!(
                "transaction {number} was rolled back: it is unknown whether its first write in bucket {bucket} was carried out"
            );
            return Err(retry_error(what));
        };
        changes.rollback_to(own.place).await?;
        self.in_doubt = None;
        Ok(())
    }
}

/// Returns true if the error of a write means that nothing was written.
fn is_refusal(error: &Error) -> bool {
    error.code == ErrorCode::TooBusy || error.code.kind() == proto::ErrorKind::Caller
}

/// Returns the error for a transaction that was rolled back, with the advice to begin it again.
fn retry_error(what: String) -> Error {
    Error::new(ErrorCode::Conflict, what).with_hint("begin the transaction again")
}

/// Returns the error for a call of a committed transaction.
fn committed_error(number: TransactionId) -> Error {
    let what = format!("transaction {number} has been committed");
    Error::new(ErrorCode::TransactionState, what)
}
