//! The messages of a hand-over.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::writes::PushMutation;
use crate::model::assignment::HandOver;
use crate::model::cut::Position;
use crate::model::history::Branches;
use crate::model::ids::{BucketId, Seqno};
use crate::model::pushed_commit::PushedCommit;

/// A request of a hand-over's target to the owner of the vbucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOverRequest {
    /// The bucket of the vbucket.
    pub bucket: BucketId,
    /// The hand-over.
    pub transfer: HandOver,
    /// The end of the log that the target has. If this is not a place in the vbucket's history, the call fails with
    /// `OutOfOrder` and the target begins again.
    pub after: Position,
    /// The vbucket's end when its documents were last read; its beginning if none were. `OutOfOrder` as above.
    pub seen: Position,
    /// The kind of piece that the target needs.
    pub wanted: HandOverRequestKind,
    /// True to release the vbucket: the owner accepts no more mutations of it unless the hand-over is cancelled. A repeated
    /// request changes nothing.
    pub release: bool,
}

/// The next piece that the target of a hand-over needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HandOverRequestKind {
    /// The mutations after `after`. `HistoryPurged` if the log begins later; the target then requests documents first.
    Mutations,
    /// Documents after an id, or the first documents.
    Documents(Option<String>),
}

/// A piece of a vbucket: of its log, or of its documents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOverPiece {
    /// The vbucket's branches.
    pub branches: Branches,
    /// Branches that were begun and are empty by now: a late duplicate of their beginning has no effect.
    pub given_up: Branches,
    /// The producer's commits with a part in the vbucket that no epoch has.
    pub pushed: Vec<PushedCommit>,
    /// The mutations after `after`, at most a few megabytes.
    pub mutations: Vec<PushMutation>,
    /// The documents, if the target requested them.
    pub documents: Option<HandOverDocuments>,
    /// The vbucket's end, or its end when the documents were read.
    pub end: Position,
    /// True if the vbucket is released, so that this end is final.
    pub released: bool,
}

/// Documents of a vbucket at one moment, at most a few megabytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOverDocuments {
    /// The documents, ordered by id.
    pub documents: Vec<HandedDocument>,
    /// The id after which more documents may follow; `None` after the last ones.
    pub next: Option<String>,
    /// The purge point shortly before the documents were read: later changes are in the log after it.
    pub purged: Seqno,
}

/// A document that is handed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedDocument {
    /// The id of the document.
    pub id: String,
    /// The seqno of its last change.
    pub seqno: Seqno,
    /// The document, as it was written.
    pub document: Bytes,
}
