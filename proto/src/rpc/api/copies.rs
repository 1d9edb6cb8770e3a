//! The messages between the copies of a bucket. A follower asks its leader; what it asks for says what it has.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::hand_over::{HandOverPiece, HandOverWanted};
use crate::model::cut::Position;
use crate::model::history::SourceHistory;
use crate::model::ids::{BucketId, NodeId, Seqno, VbucketId};
use crate::rpc::mutation::MutationKind;

/// A follower's request to the leading copy of a bucket. `NotOwner` if the called projector does not lead in that term.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyRequest {
    /// The bucket.
    pub bucket: BucketId,
    /// The term of the leader.
    pub term: u64,
    /// The follower.
    pub node: NodeId,
    /// Its question.
    pub question: CopyQuestion,
}

/// A follower's question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopyQuestion {
    /// Begins a session: the leader keeps the groups behind its present end for this follower. An earlier session of the follower
    /// ends.
    Begin {
        /// The end of what the follower has, in all vbuckets.
        has: SourceHistory,
    },
    /// A piece of a vbucket, for a follower that is far behind.
    Piece {
        /// The vbucket.
        vbucket: VbucketId,
        /// The end of the log that the follower has. `OutOfOrder` if this is not a place in the leader's history.
        after: Position,
        /// The vbucket's end when its documents were last read; its beginning if none were.
        seen: Position,
        /// The kind of piece.
        wanted: HandOverWanted,
    },
    /// Everything up to a group is durable at the follower, which wants the next ones. Waits a moment if there are none.
    Next {
        /// The session. `OutOfOrder` if it has ended.
        session: u64,
        /// The number of the last group that is durable here; zero if it is none of this session.
        durable: u64,
    },
}

/// The leader's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopyAnswer {
    /// A session has begun.
    Begun {
        /// Its number.
        session: u64,
        /// The leader's history up to the place at which the groups of the session begin. A follower has exactly this before it
        /// takes the first group.
        base: SourceHistory,
    },
    /// The piece of a vbucket.
    Piece(HandOverPiece),
    /// The groups behind the last one; perhaps none.
    Groups {
        /// The number of the first group.
        first: u64,
        /// The groups, in the order of their numbers: about 4 MiB, or one group.
        groups: Vec<Vec<CopiedMutation>>,
    },
}

/// A mutation on its way to a follower.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedMutation {
    /// The vbucket.
    pub vbucket: VbucketId,
    /// Its seqno: on the newest branch of the vbucket.
    pub seqno: Seqno,
    /// The document's id.
    pub id: String,
    /// The kind of mutation.
    pub kind: MutationKind,
    /// The document as JSON; empty for a deletion.
    pub document: Bytes,
}
