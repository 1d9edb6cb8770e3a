//! Writes and pushes: requests and replies.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::checked::CheckedWrites;
use crate::model::cut::{Position, WritePosition};
use crate::model::ids::{BucketId, VbucketId};
use crate::rpc::mutation::MutationKind;

/// Documents to write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteRequest {
    /// The bucket, which is embedded.
    pub bucket: BucketId,
    /// The writes, in order; a later write of the same id wins.
    pub writes: CheckedWrites,
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteReply {
    /// The number of documents created, replaced or removed.
    pub affected: u64,
    /// The positions of the writes in the bucket's history.
    pub position: WritePosition,
}

/// Mutations of one bucket, numbered by their producer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushRequest {
    /// The bucket, which is made FROM PUSH.
    pub bucket: BucketId,
    /// Branches to begin before the mutations are taken: the vbucket continues on the branch after the seqno, and its older
    /// mutations beyond that seqno are lost.
    pub branches: Vec<(VbucketId, Position)>,
    /// The mutations, in the order of their seqnos within each vbucket.
    pub mutations: Vec<PushMutation>,
}

/// One mutation that a producer pushes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushMutation {
    /// The vbucket: the published hash of the id, verified.
    pub vbucket: VbucketId,
    /// The branch and the seqno of the mutation.
    pub position: Position,
    /// The document's id.
    pub id: String,
    /// The kind of mutation.
    pub kind: MutationKind,
    /// The document as JSON; empty for a deletion.
    pub document: Bytes,
}

/// The result of a push.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushReply {
    /// Durable positions of the vbuckets in the request. If several projectors were called, a missing vbucket was not accepted, because its
    /// owner is not the one in the caller's catalog (`NotOwner`).
    pub durable: Vec<(VbucketId, Position)>,
}
