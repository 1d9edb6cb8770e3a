//! Transactions of pushed buckets: requests and replies ([`crate::model::pushed_commit`]).

use serde::{Deserialize, Serialize};

use super::writes::PushMutation;
use crate::model::assignment::VbucketSet;
use crate::model::ids::{BucketId, ProducerTransactionId, VbucketId};
use crate::model::pushed_commit::PushedCommit;

/// The time after which a producer's transaction is rolled back without further mutations, in milliseconds: as for gRPC clients of embedded
/// buckets.
pub const PRODUCER_KEPT_MS: u64 = 300_000;

/// Mutations of one producer's transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionPush {
    /// The bucket, which is made FROM PUSH.
    pub bucket: BucketId,
    /// The transaction, which begins with its first mutation.
    pub transaction: ProducerTransactionId,
    /// Whose transaction it is, for people: at most [`OWNER_BYTES_MAX`](super::OWNER_BYTES_MAX).
    pub owner: String,
    /// The mutations. Their positions are those in the transaction: counted from 1 in each vbucket, without gaps, on branch 0.
    pub mutations: Vec<PushMutation>,
}

/// The result of such a push.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionPushed {
    /// For each vbucket in the request, the number of mutations that its owner has stored. If several projectors were called, a missing
    /// vbucket was not accepted (`NotOwner`).
    pub kept: Vec<(VbucketId, u64)>,
}

/// The commit of a producer's transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushedCommitRequest {
    /// The bucket of the transaction.
    pub bucket: BucketId,
    /// The commit with all of its parts.
    pub commit: PushedCommit,
    /// The vbuckets whose parts the called projector commits.
    pub wanted: VbucketSet,
    /// Whether to check or to commit.
    pub step: PushedStep,
}

/// The steps of a commit at the owners of its vbuckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PushedStep {
    /// Look if the parts can be committed, and change nothing.
    Check,
    /// Commit the parts.
    Commit,
    /// Note that all parts of the commit are durable, so that its documents can be read.
    Complete,
}

/// A question about a commit of a producer, of which the asking projector has some part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushedLook {
    /// The bucket of the commit.
    pub bucket: BucketId,
    /// The commit with all of its parts.
    pub commit: PushedCommit,
    /// The vbuckets that, to the caller's knowledge, the called projector owns.
    pub wanted: VbucketSet,
}

/// The state of a part of a producer's commit, reported by the owner of its vbucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PartState {
    /// The part is not stored, and may still be committed.
    Missing,
    /// The part is durable.
    Durable,
    /// An epoch has it.
    Shown,
    /// The part can never be committed: its vbucket has left the branch before the end of the part.
    Lost,
}
