//! The messages between the copies of a bucket. A follower sends requests to its leader, and each request contains the follower's durable
//! end.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::hand_over::HandedDocument;
use crate::model::assignment::VbucketSet;
use crate::model::commits::{NewestCommits, TransactionEvent};
use crate::model::cut::{Cut, Position};
use crate::model::history::SourceHistory;
use crate::model::ids::{BucketId, NodeId, Seqno, TransactionId, VbucketId};
use crate::model::joint::PreparedChange;
use crate::rpc::mutation::MutationKind;

/// The time for which a leader serves after an answer that its follower has confirmed, in milliseconds.
pub const COPY_LEASE_MS: u64 = 1_000;
/// The time without an answer after which a follower asks to lead, in milliseconds. Clocks whose rates differ as much as this time and
/// [`COPY_LEASE_MS`] count as broken.
pub const COPY_GRACE_MS: u64 = 1_500;

/// A follower's request to the leading copy of a bucket. `NotOwner` if the called projector does not lead in that term.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyRequest {
    /// The bucket that is copied.
    pub bucket: BucketId,
    /// The term of the leader.
    pub term: u64,
    /// The follower.
    pub node: NodeId,
    /// The request of the follower.
    pub question: CopyQuestion,
}

/// A follower's question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopyQuestion {
    /// Begins a session: the leader keeps the groups after its present end for this follower. An earlier session of the follower
    /// ends.
    Begin {
        /// The prepared transactions that the follower has, with their digests ([`crate::model::joint::Prepared::digest`]): the leader
        /// retains the changes of the others for it.
        prepared: Vec<(TransactionId, u64)>,
    },
    /// Asks for the leader's history. A projector without a part in the bucket compares it with its own copy before it removes that.
    Compare,
    /// A part of a vbucket's log. `HistoryPurged` if it begins later.
    Log {
        /// The vbucket to read.
        vbucket: VbucketId,
        /// The end of the log that the follower has. `OutOfOrder` if this is not a place in the leader's history.
        after: Position,
        /// The last seqno to read.
        to: Seqno,
    },
    /// Requests documents of some vbuckets, each piece as of its own moment.
    Documents {
        /// The vbuckets to read.
        vbuckets: VbucketSet,
        /// The id after which the documents begin; `None` for the first ones.
        behind: Option<String>,
    },
    /// Reports that all groups up to one are durable at the follower, and requests the next ones. The leader waits for a limited time if
    /// there are none.
    Next {
        /// The session. `OutOfOrder` if it has ended.
        session: u64,
        /// The number of the last group that is durable here; zero if it is none of this session.
        durable: u64,
        /// The number of the last answer that the follower has received; zero if none. The follower asks for no promotion for some time
        /// after that moment ([`COPY_GRACE_MS`]), so the leader may serve for a shorter time from the moment when it sent that answer
        /// ([`COPY_LEASE_MS`]).
        heard: u64,
        /// The number of changes received of the group after `durable`, if that is larger than a message; zero otherwise.
        held: u64,
    },
    /// Requests a part of the changes of the transactions that were prepared when the session began, without those that the follower has.
    /// It is sent before the first [`Self::Next`], and counts as a sign of life for as long as so many changes may take.
    Prepared {
        /// The session. `OutOfOrder` if it has ended.
        session: u64,
        /// The number of changes received so far.
        held: u64,
    },
    /// Reports that the follower is writing a large group, and requests nothing. It counts as a sign of life like [`Self::Next`], and
    /// before the first of these like [`Self::Prepared`].
    Busy {
        /// The session. `OutOfOrder` if it has ended.
        session: u64,
        /// See [`Self::Next`].
        heard: u64,
    },
}

/// The leader's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopyAnswer {
    /// A session has begun.
    Begun {
        /// The number of the session.
        session: u64,
        /// The leader's history up to the place at which the groups of the session begin. A follower has exactly this before it
        /// takes the first group.
        base: SourceHistory,
        /// The last purged seqno of each vbucket: the log begins after it.
        purged: Vec<Seqno>,
        /// The newest commits of transactions up to that place. Prepared transactions are sent without their changes: the follower has
        /// these, or requests them.
        commits: NewestCommits,
        /// True if the leader waits for this copy, which may be in sync at any moment: it must never have half of a statement.
        is_awaited: bool,
    },
    /// The history with everything that the leader's log has.
    Compared(SourceHistory),
    /// A part of a vbucket's log: about 4 MiB, at least one mutation.
    Log(Vec<CopiedMutation>),
    /// Documents of the requested vbuckets.
    Documents {
        /// The documents, ordered by id, at most a few megabytes.
        documents: Vec<HandedDocument>,
        /// The id after which more documents may follow; `None` after the last ones.
        next: Option<String>,
        /// The end of the history when the documents were read: they include all mutations up to it.
        seen: Cut,
    },
    /// The groups after the follower's last one; may be empty.
    Groups {
        /// The number of this answer, from one on.
        answer: u64,
        /// The number of the first group.
        first: u64,
        /// The groups, in the order of their numbers: about 4 MiB, or one group of at most twice as much.
        groups: Vec<CopiedGroup>,
    },
    /// A part of what was prepared. The numbers and changes are those of a group that has nothing else.
    Prepared(GroupPiece),
    /// A part of the next group, which is larger than a message. A follower appends the group when it has all of it.
    Piece {
        /// The number of this answer.
        answer: u64,
        /// The number of the group.
        group: u64,
        /// The part.
        piece: GroupPiece,
    },
}

/// A part of a group. The *changes* of a group are its mutations, and after them those that its steps prepare.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupPiece {
    /// The number of changes before it.
    pub from: u64,
    /// The mutations of the piece.
    pub mutations: Vec<CopiedMutation>,
    /// Changes that are prepared, about 4 MiB with the mutations.
    pub prepared: Vec<PreparedPart>,
    /// The steps of transactions with the group, in its last part; a step that prepares a transaction is sent without its changes.
    pub commits: Vec<TransactionEvent>,
    /// True if the group ends with it.
    pub is_last: bool,
}

/// Some of the changes that a transaction has prepared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedPart {
    /// The id of the transaction.
    pub transaction: TransactionId,
    /// The changes, in the order of the transaction.
    pub changes: Vec<PreparedChange>,
}

/// A group, as it is sent to a follower.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedGroup {
    /// The mutations of the group.
    pub mutations: Vec<CopiedMutation>,
    /// The steps of transactions with them.
    pub commits: Vec<TransactionEvent>,
}

/// A mutation, as it is sent to a follower.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedMutation {
    /// The vbucket of the mutation.
    pub vbucket: VbucketId,
    /// The seqno of the mutation, on the newest branch of the vbucket.
    pub seqno: Seqno,
    /// The document's id.
    pub id: String,
    /// The kind of mutation.
    pub kind: MutationKind,
    /// The document as JSON; empty for a deletion.
    pub document: Bytes,
}
