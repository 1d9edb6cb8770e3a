//! The messages with which a vbucket is handed over from one projector to another.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::writes::PushMutation;
use crate::model::assignment::HandOver;
use crate::model::cut::Position;
use crate::model::history::Branches;
use crate::model::ids::{BucketId, Seqno};
use crate::model::pushed_commit::PushedCommit;

/// A request of a hand-over's target to the present owner of the vbucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOverRequest {
    /// The bucket of the vbucket.
    pub bucket: BucketId,
    /// The hand-over that the request belongs to.
    pub transfer: HandOver,
    /// The target's position in the vbucket's log. Refused with `OutOfOrder` if the position is
    /// not in the vbucket's history; the target then starts again.
    pub after: Position,
    /// The end of the vbucket when its documents were last read; zero if none were read. Refused
    /// with `OutOfOrder` like `after`.
    pub seen: Position,
    /// The kind of data that the target needs next.
    pub wanted: HandOverRequestKind,
    /// True to release the vbucket: the owner then refuses mutations of it until the hand-over is
    /// cancelled. Repeating the request has no further effect.
    pub release: bool,
}

/// The kind of data that the target of a hand-over needs next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HandOverRequestKind {
    /// The mutations after the target's position. Refused with `HistoryPurged` if the log begins
    /// later; the target then requests documents first.
    Mutations,
    /// The documents after this id; `None` for the first documents.
    Documents(Option<String>),
}

/// The owner's answer in a hand-over: some mutations of a vbucket, or some of its documents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOverPiece {
    /// The vbucket's branches of history.
    pub branches: Branches,
    /// Earlier branches without remaining mutations. The target needs them so that a late
    /// duplicate of a request that began such a branch has no effect.
    pub given_up: Branches,
    /// The producer's open commits with a part in the vbucket.
    pub pushed: Vec<PushedCommit>,
    /// The mutations after the target's position, at most a few megabytes.
    pub mutations: Vec<PushMutation>,
    /// The documents, if the target requested them.
    pub documents: Option<HandOverDocuments>,
    /// The vbucket's end now, or when the documents were read.
    pub end: Position,
    /// True if the vbucket is released. The end is then final.
    pub released: bool,
}

/// Documents of a vbucket at one moment, at most a few megabytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOverDocuments {
    /// The documents, ordered by id.
    pub documents: Vec<HandedDocument>,
    /// The id after which further documents may follow; `None` after the last ones.
    pub next: Option<String>,
    /// The purge point shortly before the documents were read. The log contains all changes after
    /// it.
    pub purged: Seqno,
}

/// A document, as sent in a hand-over or to a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedDocument {
    /// The id of the document.
    pub id: String,
    /// The seqno of the document's last change.
    pub seqno: Seqno,
    /// The text of the document.
    pub document: Bytes,
}
