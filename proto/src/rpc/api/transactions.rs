//! Transactions over the documents of an embedded bucket: requests and replies.
//!
//! A transaction is known by the number that its session has drawn. The leading projector of the bucket keeps its changes until it
//! ends, in memory only; its commit is in the bucket's log, so the outcome can be asked for again. A projector that restarts, or another
//! copy that takes over, does not know it, and its session learns that with its next call (`Conflict`). The first write of a transaction
//! begins it there; it has a *place*, the number of its changes and rollbacks so far. Each call names the place that its caller knows, so
//! that no change is applied twice or left out.
//!
//! A transaction that has read anything reads one epoch, its *snapshot*. The commit of such a transaction is refused if any
//! document that it changes was changed by another writer after the snapshot: the first committer wins (snapshot isolation). A
//! transaction without a snapshot has only written, and replaces the present documents.
//!
//! A transaction that has changed documents of several buckets has the same number in each of them, and commits in two phases
//! ([`crate::model::joint`]).

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::checked::CheckedWrites;
use super::writes::WriteReply;
use crate::model::ids::{BucketId, Epoch, TransactionId, TransactionPlace};
use crate::rpc::scan::OwnView;

/// Maximum length of a [`TransactionWrite::owner`].
pub const OWNER_BYTES_MAX: usize = 200;

/// Documents to write in a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionWrite {
    /// The bucket to write to.
    pub bucket: BucketId,
    /// The transaction, which begins if the place is zero.
    pub transaction: TransactionId,
    /// The transaction's place before the call.
    pub after: TransactionPlace,
    /// Whose transaction it is, for people: at most [`OWNER_BYTES_MAX`].
    pub owner: String,
    /// The epoch that the transaction reads, if it has read anything.
    pub snapshot: Option<Epoch>,
    /// The writes, in order.
    pub writes: CheckedWrites,
}

/// The result of a write in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionWritten {
    /// The number of documents created, replaced or removed.
    pub affected: u64,
    /// The transaction's place now.
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
    /// The epoch that the transaction has read, if it has read anything.
    pub snapshot: Option<Epoch>,
    /// [`TransactionWritten::behind`], by which a projector without the open transaction finds its outcome.
    pub behind: u64,
    /// All buckets whose documents it has changed, ascending, if there are several.
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
        /// All buckets that the transaction has changed; empty if it is only this one.
        participants: Vec<BucketId>,
        /// True while no epoch of the bucket has the commit, and it has changed documents there.
        is_open: bool,
    },
    /// The transaction is unknown. From now on it cannot be committed here.
    Unknown,
}

/// The commits of a transaction that a projector knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundCommits {
    /// The result of the commit in each bucket.
    pub commits: Vec<WriteReply>,
    /// The buckets that the projector has searched: it leads them, and they are served. It has no information about
    /// other buckets.
    pub looked_at: Vec<BucketId>,
}

/// The status of an open transaction at its projector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionStatus {
    /// The id of the transaction.
    pub transaction: TransactionId,
    /// The bucket of the transaction.
    pub bucket: BucketId,
    /// Whose transaction it is.
    pub owner: String,
    /// Time since its first write, in milliseconds.
    pub age_ms: u64,
    /// The number of its changes.
    pub changes: u64,
    /// Bytes of its changes.
    pub bytes: u64,
    /// The epoch that it reads, if it has read anything.
    pub snapshot: Option<Epoch>,
    /// True while its commit is in progress.
    pub is_committing: bool,
}

/// Documents to read by id, as of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentsRequest {
    /// The bucket to read.
    pub bucket: BucketId,
    /// The ids of the documents.
    pub ids: Vec<String>,
    /// The epoch to read; `None` for the present.
    pub snapshot: Option<Epoch>,
    /// The changes of the reader's own transaction, which it sees in addition.
    pub own: Option<OwnView>,
}

/// The documents of a request, in its order; `None` for a missing one.
pub type Documents = Vec<Option<Bytes>>;
