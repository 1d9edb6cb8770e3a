//! Transactions over the documents of an embedded bucket: requests and replies.
//!
//! A transaction is identified by a number that its session has drawn. The leading projector of the
//! bucket keeps its changes in memory until it ends; its commit is in the bucket's log, so that the
//! outcome can be queried again. After a restart of the projector or a change of the leader, the
//! transaction is lost, and the next call of its session fails (`Conflict`). The first write begins
//! the transaction at the projector; its *place* is the number of its changes and rollbacks so far.
//! Each call contains the caller's last place, so that no change is applied twice or left out.
//!
//! A transaction with reads has a *snapshot*: all of them read one epoch. The commit of such a
//! transaction is refused if any document that it changes was changed by another writer after the
//! snapshot: the first committer wins (snapshot isolation). A transaction without a snapshot
//! contains only writes, and replaces the present documents.
//!
//! A transaction that has changed documents of several buckets has the same number in each of them,
//! and commits in two phases ([`crate::model::joint`]).

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::checked::CheckedWrites;
use super::writes::WriteReply;
use crate::model::ids::{BucketId, Epoch, TransactionId, TransactionPlace};
use crate::rpc::scan::OwnView;

/// Maximum length of [`TransactionWrite::owner`] in bytes.
pub const OWNER_BYTES_MAX: usize = 200;

/// A request with writes in a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionWrite {
    /// The bucket to write to.
    pub bucket: BucketId,
    /// The transaction, which begins if the place is zero.
    pub transaction: TransactionId,
    /// The transaction's place before the call.
    pub after: TransactionPlace,
    /// The user of the transaction, for display; at most [`OWNER_BYTES_MAX`] bytes.
    pub owner: String,
    /// The epoch that the transaction reads; `None` if it has not read yet.
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
    /// The number of commits of the bucket when the transaction began.
    pub behind: u64,
}

/// The commit of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionCommit {
    /// The bucket of the transaction.
    pub bucket: BucketId,
    /// The id of the transaction.
    pub transaction: TransactionId,
    /// The transaction's place.
    pub place: TransactionPlace,
    /// The epoch that the transaction has read; `None` if it has only written.
    pub snapshot: Option<Epoch>,
    /// [`TransactionWritten::behind`], with which a projector without the open transaction finds
    /// the outcome.
    pub behind: u64,
    /// All buckets whose documents the transaction has changed, ascending; empty if it is only this
    /// one.
    pub participants: Vec<BucketId>,
}

/// The outcome of a transaction that a bucket has prepared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    /// The deciding bucket has committed it.
    Commit {
        /// All buckets that it has changed.
        participants: Vec<BucketId>,
    },
    /// The deciding bucket has not committed it and never will.
    RollBack,
}

/// The fate of a transaction in a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransactionFate {
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
        /// True if the commit has changed documents of the bucket and no epoch of the bucket covers
        /// it yet.
        is_open: bool,
    },
    /// The transaction is unknown, and can no longer be committed in the bucket.
    Unknown,
}

/// The remembered commits of a transaction at a projector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundCommits {
    /// The result of the commit in each bucket.
    pub commits: Vec<WriteReply>,
    /// The buckets that the projector has searched: those that it leads and serves. It has no
    /// information about other buckets.
    pub looked_at: Vec<BucketId>,
}

/// The status of an open transaction at its projector.
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
    /// The epoch that the transaction reads; `None` if it has not read yet.
    pub snapshot: Option<Epoch>,
    /// True while the transaction's commit is in progress.
    pub is_committing: bool,
}

/// A request for documents by id, as seen by a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentsRequest {
    /// The bucket to read.
    pub bucket: BucketId,
    /// The ids of the documents.
    pub ids: Vec<String>,
    /// The epoch to read; `None` for the present documents.
    pub snapshot: Option<Epoch>,
    /// The reader's own transaction, whose changes are read too.
    pub own: Option<OwnView>,
}

/// The documents of a request, in the order of the ids; `None` for a missing one.
pub type Documents = Vec<Option<Bytes>>;
