//! Transactions over the documents of an embedded bucket: requests and replies.
//!
//! A transaction is known by the number that its session has drawn. The leading projector of the bucket keeps its changes until it
//! ends, in memory only; that it was committed is in the bucket's log, so the question can be asked again. A projector that restarts, or another copy that takes over, does not know it, and its session learns
//! that with its next call (`Conflict`). The first write of a transaction begins it there; it has a *place*, the number of its
//! changes and rollbacks so far. Each call names the place that its caller knows, so that nothing is done twice and nothing is left out.
//!
//! A transaction that has read anything reads one epoch, its *snapshot*. The commit of such a transaction is refused if any
//! document that it changes was changed by somebody else behind the snapshot: the first committer wins (snapshot isolation). A
//! transaction without a snapshot has only written, and replaces what is there.
//!
//! A transaction that has changed documents of several buckets has the same number in each of them, and commits in two phases
//! ([`crate::model::joint`]).

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::writes::{Write, WriteReply};
use crate::model::ids::{BucketId, Epoch, TransactionId, TransactionPlace};
use crate::rpc::scan::OwnView;

/// Maximum length of a [`TransactionWrite::owner`].
pub const OWNER_BYTES_MAX: usize = 200;

/// Documents to write in a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionWrite {
    /// The bucket.
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
    pub writes: Vec<Write>,
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
    /// The bucket.
    pub bucket: BucketId,
    /// The transaction.
    pub transaction: TransactionId,
    /// The transaction's place.
    pub place: TransactionPlace,
    /// The epoch that the transaction has read, if it has read anything.
    pub snapshot: Option<Epoch>,
    /// [`TransactionWritten::behind`], by which a projector that does not have the transaction open tells what became of it.
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
    /// It is open, or its commit is on its way.
    Open,
    /// It is prepared.
    Prepared,
    /// It is committed.
    Committed {
        /// Its changes in this bucket.
        reply: WriteReply,
        /// All buckets that it has changed; empty if it is this one only.
        participants: Vec<BucketId>,
        /// True while no epoch of the bucket has it, and it has changed something there.
        is_open: bool,
    },
    /// Nothing is known of it. It is not committed here from now on.
    Unknown,
}

/// The commits of a transaction that a projector knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundCommits {
    /// What they wrote in each bucket.
    pub commits: Vec<WriteReply>,
    /// The buckets that it has looked at: it leads them, and they are served. Of other buckets it knows nothing.
    pub looked_at: Vec<BucketId>,
}

/// An open transaction, as its projector knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionStatus {
    /// The transaction.
    pub transaction: TransactionId,
    /// The bucket.
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
    /// True while its commit is on its way.
    pub is_committing: bool,
}

/// Documents to read by id, as of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentsRequest {
    /// The bucket.
    pub bucket: BucketId,
    /// The ids.
    pub ids: Vec<String>,
    /// The epoch to read; `None` for the present.
    pub snapshot: Option<Epoch>,
    /// The changes of the reader's own transaction that it sees besides.
    pub own: Option<OwnView>,
}

/// The documents of a request, in its order; `None` for a missing one.
pub type Documents = Vec<Option<Bytes>>;
