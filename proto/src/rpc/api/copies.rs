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

/// The time in milliseconds for which a leader may serve after it has sent an answer that its
/// follower confirms.
pub const COPY_LEASE_MS: u64 = 1_000;
/// The time in milliseconds without an answer after which a follower requests leadership. It is
/// assumed that clock rates differ by less than the ratio of this time to [`COPY_LEASE_MS`].
pub const COPY_GRACE_MS: u64 = 1_500;

/// A request of a follower to the leading copy of a bucket. `NotOwner` if the called projector does
/// not lead in that term.
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

/// The kinds of a follower's requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopyQuestion {
    /// Begins a session: the leader keeps the groups after its present end for this follower. An earlier session of the follower
    /// ends.
    Begin {
        /// The prepared transactions that the follower has, with their digests
        /// ([`crate::model::joint::Prepared::digest`]): the leader retains the changes of other
        /// prepared transactions for the follower.
        prepared: Vec<(TransactionId, u64)>,
    },
    /// Requests the leader's history. A projector without a role in the bucket compares the history
    /// with its copy before it removes the copy.
    Compare,
    /// Requests a range of a vbucket's log. `HistoryPurged` if the log begins later.
    Log {
        /// The vbucket to read.
        vbucket: VbucketId,
        /// The follower's position in the vbucket. `OutOfOrder` if it is not a place in the
        /// leader's history.
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
        /// The number of the session. `OutOfOrder` if it has ended.
        session: u64,
        /// The number of the last group that is durable at the follower; zero if none of the
        /// session's groups is.
        durable: u64,
        /// The number of the last answer that the follower has received; zero if none. The follower
        /// does not request leadership for [`COPY_GRACE_MS`] after it has received that answer, so
        /// the leader may serve for [`COPY_LEASE_MS`], a shorter time, from when it sent the
        /// answer.
        heard: u64,
        /// If the group after `durable` is larger than a message, the number of its changes that
        /// the follower has received; zero otherwise.
        held: u64,
    },
    /// Requests a piece of the changes of transactions that were prepared when the session began,
    /// except those that the follower has. The request is sent before the first [`Self::Next`], and
    /// counts as a sign of life for as long as the transfer may take.
    Prepared {
        /// The number of the session. `OutOfOrder` if it has ended.
        session: u64,
        /// The number of changes received so far.
        held: u64,
    },
    /// Reports that the follower is writing a large group, without a request for groups. The report
    /// counts as a sign of life.
    Busy {
        /// The number of the session. `OutOfOrder` if it has ended.
        session: u64,
        /// The number of the last answer received, see [`Self::Next`].
        heard: u64,
    },
}

/// The answers of a leader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopyAnswer {
    /// A session has begun.
    Begun {
        /// The number of the session.
        session: u64,
        /// The leader's history up to the place at which the groups of the session begin. The
        /// follower must have exactly this history before it receives the first group.
        base: SourceHistory,
        /// The last purged seqno of each vbucket: the log begins after it.
        purged: Vec<Seqno>,
        /// The newest commits of transactions up to that place. Prepared transactions are sent
        /// without their changes, which the follower has or requests.
        commits: NewestCommits,
        /// True if the leader waits for this copy, which may then be in sync at any moment, and
        /// must never have a part of a statement.
        is_awaited: bool,
    },
    /// The history, including all groups in the leader's log.
    Compared(SourceHistory),
    /// A range of a vbucket's log: about 4 MiB, at least one mutation.
    Log(Vec<CopiedMutation>),
    /// Documents of the requested vbuckets.
    Documents {
        /// The documents, ordered by id, at most a few megabytes.
        documents: Vec<HandedDocument>,
        /// The id after which further documents may follow; `None` after the last ones.
        next: Option<String>,
        /// The end of the history when the documents were read; they include all mutations up to
        /// it.
        seen: Cut,
    },
    /// The groups after the follower's last one; the list may be empty.
    Groups {
        /// The number of this answer, counted from one.
        answer: u64,
        /// The number of the first group.
        first: u64,
        /// The groups, in the order of their numbers: about 4 MiB, or one group of at most twice as much.
        groups: Vec<CopiedGroup>,
    },
    /// A piece of the changes of prepared transactions, in the form of a group that has no other
    /// contents.
    Prepared(GroupPiece),
    /// A piece of the next group, which is larger than a message. A follower appends the group when
    /// it is complete.
    Piece {
        /// The number of this answer.
        answer: u64,
        /// The number of the group.
        group: u64,
        /// The piece of the group.
        piece: GroupPiece,
    },
}

/// A piece of a group. The *changes* of a group are its mutations, followed by the changes that its
/// steps prepare.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupPiece {
    /// The number of the group's changes before this piece.
    pub from: u64,
    /// The mutations of the piece.
    pub mutations: Vec<CopiedMutation>,
    /// Prepared changes; about 4 MiB together with the mutations.
    pub prepared: Vec<PreparedPart>,
    /// In the last piece, the group's steps of transactions; a step that prepares a transaction is
    /// sent without its changes.
    pub commits: Vec<TransactionEvent>,
    /// True for the last piece of the group.
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

/// A group in the form that is sent to a follower.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedGroup {
    /// The mutations of the group.
    pub mutations: Vec<CopiedMutation>,
    /// The group's steps of transactions.
    pub commits: Vec<TransactionEvent>,
}

/// A mutation in the form that is sent to a follower.
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
