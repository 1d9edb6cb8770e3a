//! Requests and replies for transactions of pushed buckets ([`crate::model::pushed_commit`]).

use serde::{Deserialize, Serialize};

use super::writes::PushMutation;
use crate::model::assignment::VbucketSet;
use crate::model::ids::{BucketId, ProducerTransactionId, VbucketId};
use crate::model::pushed_commit::PushedCommit;

/// The time in milliseconds without further mutations after which a producer's transaction is
/// rolled back. Equal to that of gRPC clients of embedded buckets.
pub const PRODUCER_KEPT_MS: u64 = 300_000;

/// A request with mutations of one producer's transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionPush {
    /// The bucket, which was created FROM PUSH.
    pub bucket: BucketId,
    /// The transaction, which begins with its first mutation.
    pub transaction: ProducerTransactionId,
    /// The user of the transaction, for display; at most
    /// [`OWNER_BYTES_MAX`](super::OWNER_BYTES_MAX) bytes.
    pub owner: String,
    /// The mutations. Their seqnos are counted in the transaction: from 1 in each vbucket,
    /// without gaps, on branch 0.
    pub mutations: Vec<PushMutation>,
}

/// The result of a [`TransactionPush`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionPushed {
    /// For each vbucket in the request, the number of the transaction's mutations that its owner
    /// has stored. A vbucket is missing if its projector refused it with `NotOwner`.
    pub kept: Vec<(VbucketId, u64)>,
}

/// A request to commit a producer's transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushedCommitRequest {
    /// The bucket of the transaction.
    pub bucket: BucketId,
    /// The commit, with its parts in all vbuckets.
    pub commit: PushedCommit,
    /// The vbuckets whose parts the called projector commits.
    pub wanted: VbucketSet,
    /// The step to execute: check the parts, or commit them.
    pub step: PushedStep,
}

/// A step of a commit, which the owners of its vbuckets carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PushedStep {
    /// Check whether the parts can be committed; changes nothing.
    Check,
    /// Commit the parts.
    Commit,
    /// Record that all parts of the commit are durable, so that its documents can be read.
    Complete,
}

/// A query about the state of a producer's commit, sent by a projector that has a part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushedStateQuery {
    /// The bucket of the commit.
    pub bucket: BucketId,
    /// The commit, with its parts in all vbuckets.
    pub commit: PushedCommit,
    /// The vbuckets of the query, which the called projector owns according to the caller.
    pub wanted: VbucketSet,
}
