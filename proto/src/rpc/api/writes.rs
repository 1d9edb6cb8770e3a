//! Writes and pushes: requests and replies.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::checked::CheckedWrites;
use crate::model::cut::{Position, WritePosition};
use crate::model::ids::{BucketId, VbucketId};
use crate::rpc::mutation::MutationKind;

/// A request to write documents into an embedded bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteRequest {
    /// The bucket to write into; an embedded one.
    pub bucket: BucketId,
    /// The writes in the order of execution; of two writes of one id, the later counts.
    pub writes: CheckedWrites,
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteReply {
    /// The number of documents created, replaced or removed.
    pub affected: u64,
    /// The positions of the writes in the bucket's history, by which a scan can wait for them.
    pub position: WritePosition,
}

/// A request to take mutations of one pushed bucket. The producer has numbered them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushRequest {
    /// The bucket, which was created FROM PUSH.
    pub bucket: BucketId,
    /// The branches to begin before the mutations are taken: the vbucket continues on a new branch
    /// after this seqno, and loses its present mutations beyond it.
    pub branches: Vec<(VbucketId, Position)>,
    /// The mutations, in the order of their seqnos within each vbucket.
    pub mutations: Vec<PushMutation>,
}

/// One mutation that a producer pushes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushMutation {
    /// The vbucket of the id by the published hash; the projector verifies it.
    pub vbucket: VbucketId,
    /// The branch and the seqno of the mutation.
    pub position: Position,
    /// The document's id.
    pub id: String,
    /// The kind of mutation.
    pub kind: MutationKind,
    /// The document as JSON; empty if the mutation is a deletion.
    pub document: Bytes,
}

/// The result of a push.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushReply {
    /// The durable position of each vbucket in the request. A vbucket is missing if its projector
    /// refused it with `NotOwner`, because the caller's catalog names an outdated owner.
    pub durable: Vec<(VbucketId, Position)>,
}
