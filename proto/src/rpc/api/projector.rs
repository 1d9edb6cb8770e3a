//! The interface of a projector: writes, reads, transactions, pushes and streams of a bucket.

use async_trait::async_trait;
use bytes::Bytes;

use super::copies::{CopyAnswer, CopyRequest};
use super::hand_over::{HandOverPiece, HandOverRequest};
use super::places::{KnownPlace, Places};
use super::pushed::{PushedCommitRequest, PushedStateQuery, TransactionPush, TransactionPushed};
use super::streams::ResultStream;
use super::transactions::{
    Decision, Documents, DocumentsRequest, FoundCommits, TransactionCommit, TransactionState,
    TransactionStatus, TransactionWrite, TransactionWritten,
};
use super::writes::{PushReply, PushRequest, WriteReply, WriteRequest};
use crate::error::{Error, ErrorCode, Result};
use crate::model::cut::Cut;
use crate::model::history::{SourceHistory, SourcePlace};
use crate::model::ids::{
    BucketId, ProducerTransactionId, TransactionId, TransactionPlace, VbucketId,
};
use crate::model::open_commit::PartState;
use crate::rpc::mutation::{BackfillMessage, BackfillRequest, StreamMessage, SubscribeRequest};

/// The time in milliseconds without calls after which a transaction is rolled back. The process
/// of its session has then probably ended.
pub const TRANSACTION_KEPT_MS: u64 = 30_000;

/// Returns the error of a bucket that does not support transactions.
fn no_transactions_error() -> Error {
    Error::new(ErrorCode::Unsupported, "this bucket takes no transactions")
        .with_hint("only embedded buckets do; push mutations on their own")
}

/// Returns the error of a bucket that has no producer, and so no producer's transactions.
fn no_producer_error() -> Error {
    Error::new(ErrorCode::Unsupported, "this bucket takes no transactions of a producer")
        .with_hint("only pushed buckets do")
}

/// The interface of a projector, which stores the documents of the buckets that the catalog assigns
/// to it, and streams their key-versions. Only durable mutations are streamed.
#[async_trait]
pub trait ProjectorApi: Send + Sync + 'static {
    /// Writes documents atomically: all writes of the request or none. The writes are durable when
    /// the call returns.
    async fn write(&self, request: WriteRequest) -> Result<WriteReply>;

    /// Returns documents by id; `None` for a missing one. All are read at one moment: either all
    /// writes of a [`Self::write`] request are visible or none. Returns `OverLimit` if the
    /// documents together are too long for one answer, which never happens for a single document.
    async fn get(&self, bucket: BucketId, ids: Vec<String>) -> Result<Vec<Option<Bytes>>>;

    /// Returns a bounded number of documents of a bucket, as a sample from all ranges of its ids.
    async fn sample(&self, _bucket: BucketId) -> Result<Vec<Bytes>> {
        Ok(Vec::new())
    }

    /// Writes documents in a transaction: all writes of the request or none. Returns
    /// `DuplicateId` if an inserted document exists for the transaction, and `Conflict` if the
    /// transaction is not open at the requested place on this projector.
    async fn write_for_transaction(
        &self,
        _request: TransactionWrite,
    ) -> Result<TransactionWritten> {
        Err(no_transactions_error())
    }

    /// Rolls a transaction back to an earlier place. Returns the place from which it continues,
    /// which is a new one, so that a delayed write is refused. Returns `Conflict` if the
    /// transaction is not open on this projector. To roll back to before its first write, a
    /// session begins another transaction instead.
    async fn roll_back_to(
        &self,
        _bucket: BucketId,
        _transaction: TransactionId,
        _to: TransactionPlace,
    ) -> Result<TransactionPlace> {
        Err(no_transactions_error())
    }

    /// Commits a transaction: all of its changes become durable, or none. Returns `Conflict` if
    /// another writer has changed one of its documents after its snapshot. Returns `DuplicateId`
    /// if it has no snapshot and a document that it inserts exists. After either error the
    /// transaction is rolled back.
    ///
    /// The call can be repeated. The answer for a committed transaction is then returned again;
    /// `Conflict` means that it was not committed, and `InDoubt` that the outcome is no longer
    /// known.
    async fn commit(&self, _request: TransactionCommit) -> Result<WriteReply> {
        Err(no_transactions_error())
    }

    /// Prepares the commit of a transaction over several buckets, in a bucket that does not
    /// decide. Returns the number of documents that the transaction locks. From then on it has
    /// the number `joint`, as in the deciding bucket, and [`Self::end_prepared_transaction`] ends it. The call can
    /// be repeated like [`Self::commit`].
    async fn prepare(&self, _joint: TransactionId, _request: TransactionCommit) -> Result<u64> {
        Err(no_transactions_error())
    }

    /// Ends a prepared transaction by a commit or a rollback. Rolling back a transaction that is
    /// still open is no error. Returns `Conflict` for a commit of a transaction that is not
    /// prepared on this projector. The call can be repeated.
    async fn end_prepared_transaction(
        &self,
        _bucket: BucketId,
        _transaction: TransactionId,
        _decision: Decision,
    ) -> Result<WriteReply> {
        Err(no_transactions_error())
    }

    /// Returns the outcome or the state of a transaction in a bucket. After the answer
    /// [`TransactionState::Unknown`] the bucket will never commit the transaction.
    async fn transaction_state(
        &self,
        _bucket: BucketId,
        _transaction: TransactionId,
    ) -> Result<TransactionState> {
        Err(no_transactions_error())
    }

    /// Rolls a transaction back; no error if it is not open.
    ///
    /// In a pushed bucket, operators call this for a producer's transaction that was partly
    /// committed, with the producer's number as `_transaction`. The epochs then no longer wait
    /// for its missing parts.
    async fn abort(&self, _bucket: BucketId, _transaction: TransactionId) -> Result<()> {
        Err(no_transactions_error())
    }

    /// Extends the life of open transactions, which would otherwise be rolled back after
    /// [`TRANSACTION_KEPT_MS`] without calls. Returns the ids that are not open.
    async fn keep_open(
        &self,
        _bucket: BucketId,
        _transactions: Vec<TransactionId>,
    ) -> Result<Vec<TransactionId>> {
        Err(no_transactions_error())
    }

    /// Returns the open transactions of all buckets, by bucket and number.
    async fn transactions(&self) -> Result<Vec<TransactionStatus>> {
        Ok(Vec::new())
    }

    /// Looks for the commit of a transaction in each bucket that this projector leads, among the
    /// commits that the buckets remember.
    async fn committed(&self, _transaction: TransactionId) -> Result<FoundCommits> {
        Ok(FoundCommits::default())
    }

    /// Returns documents by id, as a transaction sees them. Returns `SnapshotTooOld` if the
    /// documents of its snapshot are no longer retained.
    async fn get_for_transaction(&self, _request: DocumentsRequest) -> Result<Documents> {
        Err(no_transactions_error())
    }

    /// Stores mutations that the producer has numbered, in a bucket created FROM PUSH. They are
    /// durable when the call returns. Returns `NotOwner`, and stores none, if another projector
    /// owns one of the vbuckets. Returns `OutOfOrder` at a gap, an older seqno or an unknown
    /// branch, and stores the mutations before it. A producer that has lost a part of its history
    /// passes the beginning of its new branch.
    async fn push(&self, request: PushRequest) -> Result<PushReply>;

    /// Stores mutations of a producer's open transaction, in a bucket created FROM PUSH: all
    /// mutations of the request or none. Mutations that are stored already are skipped, so the
    /// call can be repeated. Returns `NotOwner` if another projector owns one of the vbuckets,
    /// and `OutOfOrder` at a gap, because the projector lacks earlier mutations.
    async fn push_for_transaction(&self, _request: TransactionPush) -> Result<TransactionPushed> {
        Err(no_producer_error())
    }

    /// Commits a producer's transaction in the requested vbuckets: in all of them or none. The
    /// mutations are durable when the call returns. Returns `NotOwner` as in [`Self::push`],
    /// `NoTransaction` if the projector lacks mutations of the transaction, which the producer
    /// then pushes again, and `OutOfOrder` if the mutations do not follow the end of their
    /// vbucket. The call can be repeated: a vbucket in which the transaction is committed is
    /// skipped.
    async fn commit_pushed(&self, _request: PushedCommitRequest) -> Result<PushReply> {
        Err(no_producer_error())
    }

    /// Returns whether the parts of a producer's commit are stored, in those of the requested
    /// vbuckets that the projector owns. The caller has committed another part. So from now on
    /// the projector accepts mutations that complete the commit, even above the usual limit.
    async fn pushed_part_states(
        &self,
        _request: PushedStateQuery,
    ) -> Result<Vec<(VbucketId, PartState)>> {
        Err(no_producer_error())
    }

    /// Rolls a producer's transaction back; no error if it is not open. Returns
    /// `TransactionState` if a part of it was committed.
    async fn abort_pushed(
        &self,
        _bucket: BucketId,
        _transaction: ProducerTransactionId,
    ) -> Result<()> {
        Err(no_producer_error())
    }

    /// Returns the end of a bucket's durable history, and the fingerprint of that history.
    async fn place(&self, bucket: BucketId) -> Result<SourcePlace>;

    /// Returns the end of a bucket's durable history. No statement and no transaction has
    /// mutations on both sides of this cut.
    async fn positions(&self, bucket: BucketId) -> Result<Cut> {
        Ok(self.place(bucket).await?.durable)
    }

    /// Returns the ends of durable histories, of those buckets whose end differs from what the
    /// leading coordinator already has (`known`). All ends are read after the call has arrived,
    /// so they include every write that was acknowledged before.
    async fn places(&self, known: Vec<KnownPlace>) -> Result<Places> {
        let mut places = Places::default();
        for known in known {
            let place = self.place(known.bucket).await;
            places.add(known, place.map(|place| place.without_joint_commits(known.bucket)));
        }
        Ok(places)
    }

    /// Returns the failover logs of a bucket, and the end of its durable history at the same
    /// moment.
    async fn history(&self, bucket: BucketId) -> Result<SourceHistory>;

    /// Opens a stream of a bucket's changes from the node's watermarks on: first from the change
    /// log (catch-up), then new changes as they happen. A slow reader falls back to the change
    /// log, and slows no other reader. The stream begins with `Begin`, and ends with
    /// `HistoryPurged` if the next mutations were purged.
    async fn subscribe(&self, request: SubscribeRequest) -> Result<ResultStream<StreamMessage>>;

    /// Opens a stream with a consistent snapshot of a bucket, as key-versions of one index for
    /// one node.
    async fn backfill(&self, request: BackfillRequest) -> Result<ResultStream<BackfillMessage>>;

    /// Returns data of a vbucket to the target of its hand-over. Returns `HistoryPurged` if the
    /// requested mutations were purged.
    async fn hand_over(&self, request: HandOverRequest) -> Result<HandOverPiece>;

    /// Answers a follower's request to the leading copy of an embedded bucket.
    async fn copy(&self, request: CopyRequest) -> Result<CopyAnswer>;
}
