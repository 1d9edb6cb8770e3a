//! Requests and replies for writes of documents, and for pushes of mutations.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::checked::CheckedWrites;
use crate::model::cut::{Position, WritePosition};
use crate::model::ids::{BucketId, VbucketId};
use crate::rpc::mutation::MutationKind;

/// A request to write documents into an embedded bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteRequest {
    /// The bucket to write to, which must be embedded.
    pub bucket: BucketId,
    /// The writes in the order of execution. Of several writes of one id, the last has effect.
    pub writes: CheckedWrites,
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteReply {
    /// The number of documents created, replaced or removed.
    pub affected: u64,
    /// The positions of the writes in the bucket's history. A scan can wait until these are
    /// readable.
    pub position: WritePosition,
}

/// A request to store mutations of a pushed bucket, which the producer has numbered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushRequest {
    /// The bucket, which was created FROM PUSH.
    pub bucket: BucketId,
    /// The new branches to begin before the mutations are stored, by vbucket. A branch begins
    /// after its seqno; the present mutations of the vbucket after this seqno are removed.
    pub branches: Vec<(VbucketId, Position)>,
    /// The mutations, in the order of their seqnos within each vbucket.
    pub mutations: Vec<PushMutation>,
}

/// One mutation that a producer pushes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushMutation {
    /// The vbucket that the hash of the id determines; the projector checks this.
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
    /// The last durable position of each vbucket in the request. A vbucket is missing if its
    /// projector refused it with `NotOwner`, because the caller's catalog names an outdated
    /// owner.
    pub durable: Vec<(VbucketId, Position)>,
}
