//! Requests and replies for transactions over the documents of an embedded bucket.
//!
//! A session draws a random number, which identifies its transaction. The leading projector of
//! the bucket keeps the transaction's changes in memory until it ends. Its commit is in the
//! bucket's log, so that the outcome can be queried again. If the projector restarts or the
//! leader changes, the transaction is lost, and the next call of its session fails (`Conflict`).
//!
//! The first write begins the transaction at the projector. The *place* of a transaction is the
//! number of its changes and rollbacks so far. Each call contains the caller's last place, so
//! that no change is applied twice or left out.
//!
//! A transaction with reads has a *snapshot*: all of them read one epoch. The commit of such a
//! transaction is refused if any document that it changes was changed by another writer after the
//! snapshot: the first committer wins (snapshot isolation). A transaction without a snapshot
//! contains only writes, and replaces the present documents.
//!
//! A transaction that has changed documents of several buckets has the same number in each of
//! them, and commits in two phases ([`crate::model::joint`]).

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::checked::CheckedWrites;
use super::writes::WriteReply;
use crate::model::ids::{BucketId, Epoch, TransactionId, TransactionPlace};
use crate::rpc::scan::UncommittedView;

/// Maximum length of [`TransactionWrite::owner`] in bytes.
pub const OWNER_BYTES_MAX: usize = 200;

/// A request to write documents in a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionWrite {
    /// The bucket to write to.
    pub bucket: BucketId,
    /// The transaction. With place zero, the call begins it.
    pub transaction: TransactionId,
    /// The transaction's place before the call, as the caller knows it.
    pub after: TransactionPlace,
    /// The user of the transaction, for display; at most [`OWNER_BYTES_MAX`] bytes.
    pub owner: String,
    /// The epoch that the transaction reads; `None` if it has not read anything yet.
    pub snapshot: Option<Epoch>,
    /// The writes, in order.
    pub writes: CheckedWrites,
}

/// The result of a write in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionWritten {
    /// The number of documents created, replaced or removed.
    pub affected: u64,
    /// The transaction's place after the write.
    pub place: TransactionPlace,
    /// The number of the bucket's commits when the transaction began.
    pub behind: u64,
}

/// A request to commit a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionCommit {
    /// The bucket of the transaction.
    pub bucket: BucketId,
    /// The id of the transaction.
    pub transaction: TransactionId,
    /// The transaction's place, as the caller knows it.
    pub place: TransactionPlace,
    /// The epoch that the transaction has read; `None` if it has only written.
    pub snapshot: Option<Epoch>,
    /// [`TransactionWritten::behind`], the bucket's number of commits at the beginning. A
    /// projector that no longer has the transaction finds its outcome with this number.
    pub behind: u64,
    /// All buckets whose documents the transaction has changed, ascending; empty if only this
    /// one.
    pub participants: Vec<BucketId>,
}

/// The outcome of a transaction that a bucket has prepared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    /// The deciding bucket has committed the transaction.
    Commit {
        /// All buckets that the transaction has changed.
        participants: Vec<BucketId>,
    },
    /// The deciding bucket has not committed the transaction and never will.
    RollBack,
}

/// The state or the outcome of a transaction in a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransactionState {
    /// The transaction is open, or its commit is in progress.
    Open,
    /// The transaction is prepared.
    Prepared,
    /// The transaction is committed.
    Committed {
        /// The changes of the transaction in this bucket.
        reply: WriteReply,
        /// All buckets that the transaction has changed; empty if it has changed only this one.
        participants: Vec<BucketId>,
        /// True if an open commit remains: the transaction has changed documents of the bucket,
        /// and no epoch of the bucket covers the commit yet.
        is_open: bool,
    },
    /// The bucket does not know the transaction, and will never commit it.
    Unknown,
}

/// The commits of one transaction that a projector's buckets remember.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundCommits {
    /// The result of the commit in each bucket.
    pub commits: Vec<WriteReply>,
    /// The buckets in which the projector has looked: those that it leads and serves. The answer
    /// says nothing about other buckets.
    pub looked_at: Vec<BucketId>,
}

/// The status of an open transaction, for display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionStatus {
    /// The id of the transaction.
    pub transaction: TransactionId,
    /// The bucket of the transaction.
    pub bucket: BucketId,
    /// The user of the transaction.
    pub owner: String,
    /// Time since the transaction's first write, in milliseconds.
    pub age_ms: u64,
    /// The number of the transaction's changes.
    pub changes: u64,
    /// Bytes of the transaction's changes.
    pub bytes: u64,
    /// The epoch that the transaction reads; `None` if it has not read anything yet.
    pub snapshot: Option<Epoch>,
    /// True while the transaction's commit is in progress.
    pub is_committing: bool,
}

/// A request for documents by id, as a transaction sees them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentsRequest {
    /// The bucket to read.
    pub bucket: BucketId,
    /// The ids of the documents.
    pub ids: Vec<String>,
    /// The epoch to read; `None` for the present documents.
    pub snapshot: Option<Epoch>,
    /// The reader's transaction, whose uncommitted changes are visible too; `None` without one.
    pub own: Option<UncommittedView>,
}

/// The documents of an answer, in the order of the requested ids; `None` for a missing one.
pub type Documents = Vec<Option<Bytes>>;
