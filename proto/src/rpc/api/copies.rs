//! The messages between the copies of a bucket. A follower asks its leader, and each question tells the follower's durable end.

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

/// The time for which a leader serves after an answer that its follower has heard, in milliseconds.
pub const COPY_LEASE_MS: u64 = 1_000;
/// The time without an answer after which a follower asks to lead, in milliseconds. Clocks of two machines that run at rates as
/// different as this and [`COPY_LEASE_MS`] are broken.
pub const COPY_GRACE_MS: u64 = 1_500;

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
        /// The prepared transactions that the follower has, with their digests ([`crate::model::joint::Prepared::digest`]): the leader
        /// keeps the changes of the other ones for it.
        prepared: Vec<(TransactionId, u64)>,
    },
    /// Asks for the leader's history. A projector without a part in the bucket compares it with its own copy before it removes that.
    Compare,
    /// A part of a vbucket's log. `HistoryPurged` if it begins later.
    Log {
        /// The vbucket.
        vbucket: VbucketId,
        /// The end of the log that the follower has. `OutOfOrder` if this is not a place in the leader's history.
        after: Position,
        /// The last seqno that the follower wants.
        to: Seqno,
    },
    /// Documents of some vbuckets, each piece as of its own moment.
    Documents {
        /// The vbuckets.
        vbuckets: VbucketSet,
        /// The id behind which they begin; `None` for the first ones.
        behind: Option<String>,
    },
    /// Everything up to a group is durable at the follower, which wants the next ones. Waits a moment if there are none.
    Next {
        /// The session. `OutOfOrder` if it has ended.
        session: u64,
        /// The number of the last group that is durable here; zero if it is none of this session.
        durable: u64,
        /// The number of the last answer that has come; zero if none has. The follower asks for no promotion for some time after
        /// that moment ([`COPY_GRACE_MS`]), so the leader may serve for a shorter time from the moment when it sent that answer
        /// ([`COPY_LEASE_MS`]).
        heard: u64,
        /// The number of changes that have come of the group behind `durable`, if that is larger than a message; zero otherwise.
        held: u64,
    },
    /// A part of the changes of the transactions that were prepared when the session began, without those that the follower has. This
    /// comes before the first [`Self::Next`], and tells that the follower is alive: for as long as so many changes may take.
    Prepared {
        /// The session. `OutOfOrder` if it has ended.
        session: u64,
        /// The number of changes that have come.
        held: u64,
    },
    /// The follower is making much durable, and wants nothing meanwhile. Like [`Self::Next`], this tells that it is alive, and before the
    /// first of these like [`Self::Prepared`].
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
        /// Its number.
        session: u64,
        /// The leader's history up to the place at which the groups of the session begin. A follower has exactly this before it
        /// takes the first group.
        base: SourceHistory,
        /// The last purged seqno of each vbucket: the log begins behind it.
        purged: Vec<Seqno>,
        /// The newest commits of transactions up to that place. Those that are prepared come without their changes: the follower has them,
        /// or asks for them.
        commits: NewestCommits,
        /// True if the leader waits for this copy, which may be in sync at any moment: it must never have half of a statement.
        is_awaited: bool,
    },
    /// The history with everything that the leader's log has.
    Compared(SourceHistory),
    /// A part of a vbucket's log: about 4 MiB, at least one mutation.
    Log(Vec<CopiedMutation>),
    /// Documents.
    Documents {
        /// The documents, ordered by id, at most a few megabytes.
        documents: Vec<HandedDocument>,
        /// The id behind which more may follow; `None` after the last ones.
        next: Option<String>,
        /// The end of the history when they were read: they include everything up to there.
        seen: Cut,
    },
    /// The groups behind the last one; perhaps none.
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

/// A part of a group. The *changes* of a group are its mutations, and behind them those that its steps prepare.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupPiece {
    /// The number of changes before it.
    pub from: u64,
    /// Mutations.
    pub mutations: Vec<CopiedMutation>,
    /// Changes that are prepared, about 4 MiB with the mutations.
    pub prepared: Vec<PreparedPart>,
    /// The steps of transactions with the group, in its last part; those that prepare a transaction come without its changes.
    pub commits: Vec<TransactionEvent>,
    /// True if the group ends with it.
    pub is_last: bool,
}

/// Some of the changes that a transaction has prepared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedPart {
    /// The transaction.
    pub transaction: TransactionId,
    /// The changes.
    pub changes: Vec<PreparedChange>,
}

/// A group on its way to a follower.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedGroup {
    /// Its mutations.
    pub mutations: Vec<CopiedMutation>,
    /// The steps of transactions with them.
    pub commits: Vec<TransactionEvent>,
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
