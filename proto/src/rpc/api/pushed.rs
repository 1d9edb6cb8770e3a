//! Transactions of pushed buckets: requests and replies ([`crate::model::pushed_commit`]).

use serde::{Deserialize, Serialize};

use super::writes::PushMutation;
use crate::model::assignment::VbucketSet;
use crate::model::ids::{BucketId, ProducerTransactionId, VbucketId};
use crate::model::pushed_commit::PushedCommit;

/// The time in milliseconds without further mutations after which a producer's transaction is
/// rolled back; equal to that of gRPC clients of embedded buckets.
pub const PRODUCER_KEPT_MS: u64 = 300_000;

/// A request with mutations of one producer's transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionPush {
    /// The bucket, which must be made FROM PUSH.
    pub bucket: BucketId,
    /// The transaction, which begins with its first mutation.
    pub transaction: ProducerTransactionId,
    /// The user of the transaction, for display; at most
    /// [`OWNER_BYTES_MAX`](super::OWNER_BYTES_MAX) bytes.
    pub owner: String,
    /// The mutations. Their positions are counted in the transaction: from 1 in each vbucket,
    /// without gaps, on branch 0.
    pub mutations: Vec<PushMutation>,
}

/// The result of a [`TransactionPush`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionPushed {
    /// For each vbucket in the request, the number of mutations that its owner has stored. With
    /// several projectors, a missing vbucket was refused by its projector (`NotOwner`).
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
    /// The step to execute: check the parts, or commit them.
    pub step: PushedStep,
}

/// The steps of a commit that the owners of its vbuckets carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PushedStep {
    /// Check whether the parts can be committed, without a change.
    Check,
    /// Commit the parts.
    Commit,
    /// Record that all parts of the commit are durable, so that its documents can be read.
    Complete,
}

/// A query about a producer's commit, of which the calling projector has a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushedLook {
    /// The bucket of the commit.
    pub bucket: BucketId,
    /// The commit with all of its parts.
    pub commit: PushedCommit,
    /// The vbuckets that, according to the caller, the called projector owns.
    pub wanted: VbucketSet,
}
