//! The interface of a projector.

use async_trait::async_trait;
use bytes::Bytes;

use super::copies::{CopyAnswer, CopyRequest};
use super::hand_over::{HandOverPiece, HandOverRequest};
use super::places::{KnownPlace, Places};
use super::pushed::{PushedCommitRequest, PushedLook, TransactionPush, TransactionPushed};
use super::streams::ResultStream;
use super::transactions::{
    Decision, Documents, DocumentsRequest, FoundCommits, TransactionCommit, TransactionFate,
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

/// The time in milliseconds without calls after which a transaction is rolled back, because its
/// session's process must have ended.
pub const TRANSACTION_KEPT_MS: u64 = 30_000;

/// Returns the error of a source that does not support transactions.
fn no_transactions() -> Error {
    Error::new(ErrorCode::Unsupported, "this bucket takes no transactions")
        .with_hint("only embedded buckets do; push mutations on their own")
}

/// Returns the error of a source without a producer.
fn no_producers_transactions() -> Error {
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

    /// Returns documents by id; `None` for a missing one. All are read as of one moment, so either
    /// all writes of a [`Self::write`] request are visible or none. `OverLimit` if the documents
    /// together are too long for one answer, which never happens for a single document.
    async fn get(&self, bucket: BucketId, ids: Vec<String>) -> Result<Vec<Option<Bytes>>>;

    /// Returns a bounded number of documents of a bucket, from all ranges of its ids.
    async fn sample(&self, _bucket: BucketId) -> Result<Vec<Bytes>> {
        Ok(Vec::new())
    }

    /// Writes documents in a transaction: all writes of the request or none. `DuplicateId` if an
    /// inserted document exists in the transaction's view, and `Conflict` if the transaction is not
    /// open at the requested place on this projector.
    async fn write_in(&self, _request: TransactionWrite) -> Result<TransactionWritten> {
        Err(no_transactions())
    }

    /// Rolls a transaction back to an earlier place. Returns the place from which it continues: a
    /// new one, so that a delayed write is refused. `Conflict` if the transaction is not open on
    /// this projector. A session that rolls back to before its first write begins another
    /// transaction instead.
    async fn back_to(
        &self,
        _bucket: BucketId,
        _transaction: TransactionId,
        _to: TransactionPlace,
    ) -> Result<TransactionPlace> {
        Err(no_transactions())
    }

    /// Commits a transaction: all of its changes become durable, or none. The error is `Conflict`
    /// if another writer has changed one of its documents after its snapshot, and `DuplicateId` if
    /// a document that it inserts exists and it has no snapshot; then it is rolled back. The call
    /// can be repeated: the answer for a committed transaction is returned again, `Conflict` means
    /// that it was not committed, and `InDoubt` that the outcome is no longer known.
    async fn commit(&self, _request: TransactionCommit) -> Result<WriteReply> {
        Err(no_transactions())
    }

    /// Prepares the commit of a transaction over several buckets, in a bucket that does not decide.
    /// Returns the number of documents that it locks. From then on the transaction has the number
    /// `joint`, like in the deciding bucket, and is ended by [`Self::decide`]. The call can be
    /// repeated like [`Self::commit`].
    async fn prepare(&self, _joint: TransactionId, _request: TransactionCommit) -> Result<u64> {
        Err(no_transactions())
    }

    /// Ends a prepared transaction by a commit or a rollback; a rollback of a transaction that is
    /// still open is no error. The call can be repeated. `Conflict` if the transaction should be
    /// committed and is not prepared on this projector.
    async fn decide(
        &self,
        _bucket: BucketId,
        _transaction: TransactionId,
        _decision: Decision,
    ) -> Result<WriteReply> {
        Err(no_transactions())
    }

    /// Returns the fate of a transaction in a bucket. After the answer [`TransactionFate::Unknown`]
    /// the bucket will not commit it any more.
    async fn fate(
        &self,
        _bucket: BucketId,
        _transaction: TransactionId,
    ) -> Result<TransactionFate> {
        Err(no_transactions())
    }

    /// Rolls a transaction back; no error if it is not open. For a pushed bucket this call is for
    /// operators: `_transaction` is then the producer's number of a transaction that was partly
    /// committed, and the epochs no longer wait for its missing parts.
    async fn abort(&self, _bucket: BucketId, _transaction: TransactionId) -> Result<()> {
        Err(no_transactions())
    }

    /// Keeps transactions open, which would be rolled back after [`TRANSACTION_KEPT_MS`] without
    /// calls. Returns the ids that are not open.
    async fn keep_open(
        &self,
        _bucket: BucketId,
        _transactions: Vec<TransactionId>,
    ) -> Result<Vec<TransactionId>> {
        Err(no_transactions())
    }

    /// Returns the open transactions of all buckets, by bucket and number.
    async fn transactions(&self) -> Result<Vec<TransactionStatus>> {
        Ok(Vec::new())
    }

    /// Searches the commit of a transaction in each bucket that this projector leads, among the
    /// remembered commits.
    async fn committed(&self, _transaction: TransactionId) -> Result<FoundCommits> {
        Ok(FoundCommits::default())
    }

    /// Returns documents by id, as seen by a transaction. `SnapshotTooOld` if the documents of its
    /// snapshot are no longer retained.
    async fn get_in(&self, _request: DocumentsRequest) -> Result<Documents> {
        Err(no_transactions())
    }

    /// Stores mutations that the producer has numbered, in a bucket made FROM PUSH. They are
    /// durable when the call returns. `NotOwner` if another projector owns one of the vbuckets:
    /// then none is stored. `OutOfOrder` at a gap, an older seqno or an unknown branch: then the
    /// mutations before it are stored. A producer that has lost a part of its history passes the
    /// beginning of its new branch.
    async fn push(&self, request: PushRequest) -> Result<PushReply>;

    /// Stores mutations of a producer's open transaction, in a bucket made FROM PUSH: all mutations
    /// of the request or none. Mutations that are stored already are skipped, so the call can be
    /// repeated. `NotOwner` if another projector owns one of the vbuckets. `OutOfOrder` at a gap:
    /// the projector lacks earlier mutations.
    async fn push_in(&self, _request: TransactionPush) -> Result<TransactionPushed> {
        Err(no_producers_transactions())
    }

    /// Commits the parts of a producer's transaction in the requested vbuckets: all of them or
    /// none. They are durable when the call returns. `NotOwner` as in [`Self::push`].
    /// `NoTransaction` if the projector lacks mutations of a part, which the producer then pushes
    /// again. `OutOfOrder` if a part does not follow the end of its vbucket. The call can be
    /// repeated: a vbucket that has its part is skipped.
    async fn commit_pushed(&self, _request: PushedCommitRequest) -> Result<PushReply> {
        Err(no_producers_transactions())
    }

    /// Returns the state of the parts of a producer's commit in those of the requested vbuckets
    /// that the projector owns. The caller has committed another part, so from now on the projector
    /// accepts mutations that complete the commit above the usual limit.
    async fn look_at_pushed(&self, _request: PushedLook) -> Result<Vec<(VbucketId, PartState)>> {
        Err(no_producers_transactions())
    }

    /// Rolls a producer's transaction back; no error if it is not open. `TransactionState` if a
    /// part of it was committed.
    async fn abort_pushed(
        &self,
        _bucket: BucketId,
        _transaction: ProducerTransactionId,
    ) -> Result<()> {
        Err(no_producers_transactions())
    }

    /// Returns the end of a bucket's durable history, and the fingerprint of that history.
    async fn place(&self, bucket: BucketId) -> Result<SourcePlace>;

    /// Returns the end of a bucket's durable history: a participant-closed cut.
    async fn positions(&self, bucket: BucketId) -> Result<Cut> {
        Ok(self.place(bucket).await?.durable)
    }

    /// Compares the ends of several buckets' durable histories with the places that the leading
    /// coordinator has, and returns those that differ. All ends are read after the call has
    /// arrived, so they include every write that was acknowledged before.
    async fn places(&self, known: Vec<KnownPlace>) -> Result<Places> {
        let mut places = Places::default();
        for known in known {
            let place = self.place(known.bucket).await;
            places.add(known, place.map(|place| place.without_joint_commits(known.bucket)));
        }
        Ok(places)
    }

    /// Returns the failover logs of a bucket and the end of its durable history, as of one moment.
    async fn history(&self, bucket: BucketId) -> Result<SourceHistory>;

    /// Streams a bucket from the node's watermarks: first from the change log (catch-up), then from the shared head of
    /// the stream. A slow consumer slows no other consumer: it falls back to the change log. The stream begins with
    /// `Begin`. It ends with `HistoryPurged` if the next mutations were purged.
    async fn subscribe(&self, request: SubscribeRequest) -> Result<ResultStream<StreamMessage>>;

    /// Streams a consistent snapshot of a bucket as key-versions of one index, for one node.
    async fn backfill(&self, request: BackfillRequest) -> Result<ResultStream<BackfillMessage>>;

    /// Returns the piece of a vbucket that the target of its hand-over requests. `HistoryPurged` if
    /// the requested mutations were purged.
    async fn hand_over(&self, request: HandOverRequest) -> Result<HandOverPiece>;

    /// Answers a follower's request to the leading copy of an embedded bucket.
    async fn copy(&self, request: CopyRequest) -> Result<CopyAnswer>;
}
