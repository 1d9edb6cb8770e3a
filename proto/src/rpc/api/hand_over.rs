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
    /// The hand-over that the request belongs to.
    pub transfer: HandOver,
    /// The target's position in the log. `OutOfOrder` if it is not a place in the vbucket's
    /// history; the target then starts again.
    pub after: Position,
    /// The vbucket's end when its documents were last read; zero if none were read. `OutOfOrder`
    /// like `after`.
    pub seen: Position,
    /// The kind of piece that the target needs.
    pub wanted: HandOverRequestKind,
    /// True to release the vbucket: the owner then refuses mutations of it until the hand-over is
    /// cancelled. A repeated request has no further effect.
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

/// A piece of a vbucket's log, or of its documents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOverPiece {
    /// The vbucket's branches.
    pub branches: Branches,
    /// Branches that were begun and have no mutations any more, so that a late duplicate of their
    /// beginning has no effect.
    pub given_up: Branches,
    /// The producer's open commits with a part in the vbucket.
    pub pushed: Vec<PushedCommit>,
    /// The mutations after `after`, at most a few megabytes.
    pub mutations: Vec<PushMutation>,
    /// The documents, if the target requested them.
    pub documents: Option<HandOverDocuments>,
    /// The vbucket's present end, or its end when the documents were read.
    pub end: Position,
    /// True if the vbucket is released, so that `end` is final.
    pub released: bool,
}

/// Documents of a vbucket as of one moment, at most a few megabytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOverDocuments {
    /// The documents, ordered by id.
    pub documents: Vec<HandedDocument>,
    /// The id after which further documents may follow; `None` after the last ones.
    pub next: Option<String>,
    /// The purge point shortly before the documents were read; later changes are in the log after
    /// it.
    pub purged: Seqno,
}

/// A document that is handed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedDocument {
    /// The id of the document.
    pub id: String,
    /// The seqno of the document's last change.
    pub seqno: Seqno,
    /// The text of the document.
    pub document: Bytes,
}
