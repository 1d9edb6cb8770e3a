//! One transaction of gRPC clients, during its run and after its end.
//!
//! The calls of a transaction may arrive over any connection and concurrently, and may be cancelled
//! at any point; they run one after another. After a write that was cut off or whose answer was
//! lost, the transaction is *in doubt*: the next call rolls the transaction back to the place
//! before that write. If the write was the first one, the transaction ends instead, since the write
//! could still arrive after a rollback.
//!
//! A transaction begins in one bucket and may read and write others.
//!
//! Transactions of gRPC are those of SQL ([`crate::pg`], `transact`) without savepoints. Only the
//! process in which a transaction began knows it.

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

/// A transaction of gRPC clients.
pub(super) struct OpenTransaction {
    number: TransactionId,
    principal: Principal,
    /// The owner of the transaction, as text for people.
    owner: String,
    bucket: Arc<BucketInfo>,
    idle_max: Duration,
    used_at: Mutex<Instant>,
    state: tokio::sync::Mutex<State>,
}

enum State {
    Open(Open),
    Committed(Vec<WriteReply>),
    /// The transaction was rolled back, or its outcome is unknown; the error tells these apart.
    Ended(Error),
}

struct Open {
    buckets: TransactionBuckets,
    /// The number of documents that the transaction has written.
    written: u64,
    /// The bucket of a write whose outcome is unknown.
    in_doubt: Option<BucketId>,
}

/// The result of a write in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WriteResult {
    /// The number of documents that were created, replaced or removed.
    pub(super) affected: u64,
    /// The place after all writes of the transaction so far.
    pub(super) place: u64,
}

impl OpenTransaction {
    /// Returns a transaction that begins.
    pub(super) fn new(
        (principal, owner): (Principal, String),
        changes: Arc<dyn BucketTransaction>,
        bucket: Arc<BucketInfo>,
        idle_max: Duration,
    ) -> Self {
        let number = changes.id();
        let buckets = TransactionBuckets::begun(bucket.id, changes);
        let open = Open { buckets, written: 0, in_doubt: None };
        let (used_at, state) = (Mutex::new(Instant::now()), State::Open(open).into());
        Self { number, principal, owner, bucket, idle_max, used_at, state }
    }

    /// The number of the transaction.
    pub(super) fn number(&self) -> TransactionId {
        self.number
    }

    /// Returns the owner as text for people.
    pub(super) fn owner(&self) -> &str {
        &self.owner
    }

    /// True if a principal may use the transaction.
    pub(super) fn belongs_to(&self, principal: &Principal) -> bool {
        self.principal.is_same(principal)
    }

    /// Restarts the idle time-out, because the client has made a call.
    pub(super) fn touch(&self) {
        *lock(&self.used_at) = Instant::now();
    }

    /// Leases the epoch that the transaction reads, unless it has one; returns the epoch.
    pub(super) async fn pin(&self, access: &Access) -> Result<Epoch> {
        let mut state = self.enter().await;
        let epoch = state.open(self.number)?.buckets.pin(access, self.bucket.id).await?;
        self.touch();
        Ok(epoch)
    }

    /// Returns the generation of an index with which the transaction continues to read.
    pub(super) async fn goes_on_in(
        &self,
        shown: &Arc<IndexInfo>,
        now: &Catalog,
    ) -> Result<Arc<IndexInfo>> {
        self.enter().await.open(self.number)?.buckets.goes_on_in(shown, now)
    }

    /// Returns the present view of the transaction in a bucket.
    pub(super) async fn view(&self, access: &Access, bucket: BucketId) -> Result<TransactionView> {
        let mut state = self.enter().await;
        let viewed = async {
            let open = state.open(self.number)?;
            open.settle().await?;
            open.buckets.view(bucket)?;
            open.buckets.pin(access, bucket).await?;
            open.buckets.view(bucket)
        };
        let viewed = viewed.await;
        state.end_with(&viewed);
        self.touch();
        viewed
    }

    /// Writes documents in the bucket in which the transaction began: all of them or none.
    pub(super) async fn write(&self, writes: CheckedWrites) -> Result<WriteResult> {
        let begun = || Err(Error::internal("a transaction has no changes in its first bucket"));
        self.write_to(self.bucket.id, begun, writes).await
    }

    /// Writes documents in a bucket: all of them or none. `begin` begins the transaction in that
    /// bucket, under its number.
    pub(super) async fn write_to(
        &self,
        bucket: BucketId,
        begin: impl FnOnce() -> Result<Arc<dyn BucketTransaction>>,
        writes: CheckedWrites,
    ) -> Result<WriteResult> {
        let mut state = self.enter().await;
        let open = state.open(self.number)?;
        open.buckets.begun_in(bucket, begin)?;
        let written = open.write(bucket, writes).await;
        state.end_with(&written);
        self.touch();
        written
    }

    /// Commits all changes, or none; returns the result for each bucket. A repeated commit has the
    /// same answer. If the future is dropped before its end, the outcome is unknown.
    pub(super) async fn commit(&self) -> Result<Vec<WriteReply>> {
        let mut state = self.enter().await;
        if let State::Committed(replies) = &*state {
            return Ok(replies.clone());
        }
        let open = state.open(self.number)?;
        let settled = async {
            open.settle().await?;
            open.buckets.pin_changed().await
        };
        if let Err(error) = settled.await {
            state.end_with::<()>(&Err(error.clone()));
            return Err(error);
        }
        let committed = commit_all(open.buckets.parts()).await;
        *state = match &committed {
            Ok(replies) => State::Committed(replies.clone()),
            Err(error) => State::Ended(error.clone()),
        };
        committed
    }

    /// Rolls the transaction back.
    pub(super) async fn abort(&self) -> Result<()> {
        let mut state = self.enter().await;
        if let State::Committed(_) = *state {
            return Err(committed(self.number));
        }
        if let State::Open(_) = *state {
            let what = format!("transaction {} was rolled back by Abort", self.number);
            *state = State::Ended(begin_again(what));
        }
        Ok(())
    }

    /// Rolls the transaction back if its client has made no call for too long and no call is in
    /// progress.
    pub(super) fn end_if_idle(&self, now: Instant) {
        let Ok(mut state) = self.state.try_lock() else { return };
        let idle = now.saturating_duration_since(*lock(&self.used_at));
        if idle > self.idle_max && matches!(*state, State::Open(_)) {
            let (number, ms) = (self.number, self.idle_max.as_millis());
            let what = format!("transaction {number} was rolled back: no call came for {ms} ms");
            let hint = "begin the transaction again, with a longer idle_timeout_ms if it is needed";
            *state = State::Ended(Error::new(ErrorCode::Conflict, what).with_hint(hint));
        }
    }

    /// True if the transaction has ended.
    pub(super) fn has_ended(&self) -> bool {
        // A call in progress records the end itself.
        self.state.try_lock().is_ok_and(|state| !matches!(*state, State::Open(_)))
    }

    async fn enter(&self) -> tokio::sync::MutexGuard<'_, State> {
        self.touch();
        self.state.lock().await
    }
}

impl State {
    fn open(&mut self, number: TransactionId) -> Result<&mut Open> {
        match self {
            Self::Open(open) => Ok(open),
            Self::Committed(_) => Err(committed(number)),
            Self::Ended(error) => Err(error.clone()),
        }
    }

    /// Ends the transaction if the result says that the projector has lost it.
    fn end_with<T>(&mut self, result: &Result<T>) {
        if let (Self::Open(_), Err(error)) = (&*self, result)
            && error.code == ErrorCode::Conflict
        {
            *self = Self::Ended(error.clone());
        }
    }
}

impl Open {
    async fn write(&mut self, bucket: BucketId, writes: CheckedWrites) -> Result<WriteResult> {
        self.settle().await?;
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

    /// Rolls back a write whose outcome is unknown.
    async fn settle(&mut self) -> Result<()> {
        let Some(changes) = self.in_doubt.and_then(|bucket| self.buckets.changes_in(bucket)) else {
            return Ok(());
        };
        let Some(own) = changes.own() else {
            let (number, bucket) = (changes.id(), &changes.bucket().name);
            let what = format!(
                "transaction {number} was rolled back: it is unknown whether its first write in bucket {bucket} was carried out"
            );
            return Err(begin_again(what));
        };
        changes.back_to(own.place).await?;
        self.in_doubt = None;
        Ok(())
    }
}

/// True if an error of a write means that nothing was written.
fn is_refusal(error: &Error) -> bool {
    error.code == ErrorCode::TooBusy || error.code.kind() == proto::ErrorKind::Caller
}

fn begin_again(what: String) -> Error {
    Error::new(ErrorCode::Conflict, what).with_hint("begin the transaction again")
}

fn committed(number: TransactionId) -> Error {
    let what = format!("transaction {number} has been committed");
    Error::new(ErrorCode::TransactionState, what)
}
