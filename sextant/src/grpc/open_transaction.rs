//! One transaction of gRPC clients, and the record of it after its end.
//!
//! Its calls may arrive over any connection, concurrently, and may be cancelled at any point. They run one after another. A write that was
//! cut off, or whose answer was lost, leaves the transaction *in doubt*: the next call rolls it back to the place before that write, so
//! that no part of it remains. A rollback to before the first write could not exclude that write from arriving late, so the transaction
//! ends with it.
//!
//! A transaction begins in one bucket and may read and write others.
//!
//! Transactions of gRPC are those of SQL ([`crate::pg`], `transact`) without savepoints. The process that begins one
//! keeps it.

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

use crate::principal::Principal;
use crate::sql::backend::{Backend, BucketTransaction, TransactionView};
use crate::sql::transactions::buckets::TransactionBuckets;
use crate::sql::transactions::commit::commit_all;

/// A transaction of gRPC clients.
pub(super) struct OpenTransaction {
    number: TransactionId,
    principal: Principal,
    /// Whose it is, for people.
    owner: String,
    bucket: Arc<BucketInfo>,
    idle_max: Duration,
    used_at: Mutex<Instant>,
    state: tokio::sync::Mutex<State>,
}

enum State {
    Open(Open),
    Committed(Vec<WriteReply>),
    /// The transaction was rolled back, or its outcome is unknown; the error says which.
    Ended(Error),
}

struct Open {
    buckets: TransactionBuckets,
    /// The number of documents that it has written.
    written: u64,
    /// The bucket of a write whose outcome is unknown.
    in_doubt: Option<BucketId>,
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WriteResult {
    /// Documents created, replaced or removed.
    pub(super) affected: u64,
    /// The place after all writes of the transaction so far.
    pub(super) place: u64,
}

impl OpenTransaction {
    /// A transaction that begins.
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

    /// Whose it is, for people.
    pub(super) fn owner(&self) -> &str {
        &self.owner
    }

    /// True if a principal may use it.
    pub(super) fn belongs_to(&self, principal: &Principal) -> bool {
        self.principal.is_same(principal)
    }

    /// Records a sign of life of the client.
    pub(super) fn touch(&self) {
        *lock(&self.used_at) = Instant::now();
    }

    /// Leases the epoch that the transaction reads, unless it has one.
    pub(super) async fn pin(&self, backend: &dyn Backend) -> Result<Epoch> {
        let mut state = self.enter().await;
        let epoch = state.open(self.number)?.buckets.pin(backend, self.bucket.id).await?;
        self.touch();
        Ok(epoch)
    }

    /// The generation of an index in which the transaction continues.
    pub(super) async fn goes_on_in(
        &self,
        shown: &Arc<IndexInfo>,
        now: &Catalog,
    ) -> Result<Arc<IndexInfo>> {
        self.enter().await.open(self.number)?.buckets.goes_on_in(shown, now)
    }

    /// The transaction's present view of a bucket.
    pub(super) async fn view(
        &self,
        backend: &dyn Backend,
        bucket: BucketId,
    ) -> Result<TransactionView> {
        let mut state = self.enter().await;
        let viewed = async {
            let open = state.open(self.number)?;
            open.settle().await?;
            open.buckets.view(bucket)?;
            open.buckets.pin(backend, bucket).await?;
            open.buckets.view(bucket)
        };
        let viewed = viewed.await;
        state.end_with(&viewed);
        self.touch();
        viewed
    }

    /// Writes documents of the bucket in which it began: all of them or none.
    pub(super) async fn write(&self, writes: CheckedWrites) -> Result<WriteResult> {
        let begun = || Err(Error::internal("a transaction has no changes in its first bucket"));
        self.write_to(self.bucket.id, begun, writes).await
    }

    /// Writes documents of a bucket: all of them or none. `begin` begins the transaction there, under its number.
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

    /// Commits all changes, or none of them. A repeated commit has the same answer. The call must not be dropped before its end, because
    /// its outcome would be unknown.
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

    /// Rolls it back.
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

    /// Rolls the transaction back if its client was silent for too long. A call in progress counts as a sign of life.
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

    /// True if it has ended.
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

    /// Ends it if the projector has lost it.
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

    /// Takes back what a write may have left whose outcome is unknown.
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
