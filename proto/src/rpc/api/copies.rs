//! The messages between the copies of a bucket. A follower sends requests to the leading copy,
//! and each request tells how much the follower has stored durably.

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

/// The time in milliseconds for which a leader may serve after it has sent an answer, once its
/// follower has confirmed that answer.
pub const COPY_LEASE_MS: u64 = 1_000;
/// The time in milliseconds without an answer after which a follower requests leadership. Longer
/// than [`COPY_LEASE_MS`]; the clock rates of two nodes are assumed to differ by less than the
/// ratio of the two times.
pub const COPY_GRACE_MS: u64 = 1_500;

/// A request of a follower to the leading copy of a bucket. Refused with `NotOwner` if the called
/// projector does not lead in that term.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyRequest {
    /// The bucket that is copied.
    pub bucket: BucketId,
    /// The term of the leader, as the follower knows it.
    pub term: u64,
    /// The projector of the follower.
    pub node: NodeId,
    /// The request of the follower.
    pub question: CopyRequestKind,
}

/// The kinds of a follower's requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopyRequestKind {
    /// Begins a session, and ends an earlier one of the follower. The leader keeps all groups of
    /// changes after its present end for this follower.
    Begin {
        /// The prepared transactions that the follower has, with their digests
        /// ([`crate::model::joint::PreparedTransaction::digest`]). The leader keeps the changes of all
        /// others for it.
        prepared: Vec<(TransactionId, u64)>,
    },
    /// Requests the leader's history. A projector that no longer has a role in the bucket
    /// compares its copy with this history before it removes the copy.
    Compare,
    /// Requests a range of a vbucket's log. Refused with `HistoryPurged` if the log begins later.
    Log {
        /// The vbucket to read.
        vbucket: VbucketId,
        /// The follower's position in the vbucket. Refused with `OutOfOrder` if the position is
        /// not in the leader's history.
        after: Position,
        /// The last seqno to read.
        to: Seqno,
    },
    /// Requests documents of some vbuckets. Each answer has the documents of its own moment.
    Documents {
        /// The vbuckets to read.
        vbuckets: VbucketSet,
        /// The id after which the requested documents begin; `None` for the first ones.
        behind: Option<String>,
    },
    /// Reports the groups of changes that are durable at the follower, and requests the next
    /// ones. If there are none, the leader waits for a limited time.
    Next {
        /// The number of the session. Refused with `OutOfOrder` if the session has ended.
        session: u64,
        /// The number of the last group that is durable at the follower; zero if it has none of
        /// the session's groups.
        durable: u64,
        /// The number of the last answer that the follower has received; zero if none. After that
        /// answer the follower does not request leadership for [`COPY_GRACE_MS`]. So the leader
        /// may serve for [`COPY_LEASE_MS`], a shorter time, from when it sent the answer.
        heard: u64,
        /// The number of changes that the follower has received of the group after `durable`, if
        /// that group must be sent in several messages; zero otherwise.
        held: u64,
    },
    /// Requests the next changes of transactions that were prepared when the session began,
    /// except those that the follower has. The request is sent before the first [`Self::Next`].
    /// For as long as the transfer may take, it also shows that the follower is alive.
    Prepared {
        /// The number of the session. Refused with `OutOfOrder` if the session has ended.
        session: u64,
        /// The number of changes received so far.
        held: u64,
    },
    /// Reports that the follower is alive, while it writes a large group. Requests nothing.
    Busy {
        /// The number of the session. Refused with `OutOfOrder` if the session has ended.
        session: u64,
        /// The number of the last answer received, as in [`Self::Next`].
        heard: u64,
    },
}

/// An answer of the leading copy to a follower.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopyAnswer {
    /// A session has begun.
    Begun {
        /// The number of the session.
        session: u64,
        /// The leader's history up to where the groups of the session begin. The follower must
        /// have exactly this history before it receives the first group.
        base: SourceHistory,
        /// The last purged seqno of each vbucket, after which the vbucket's log begins.
        purged: Vec<Seqno>,
        /// The newest commits of transactions up to the end of `base`. Prepared transactions are
        /// sent without their changes, which the follower has or requests.
        commits: NewestCommits,
        /// True if the leader waits for this copy at each write. The copy may then count as in
        /// sync at any moment, and must never have only a part of a statement.
        is_awaited: bool,
    },
    /// The leader's history, including all groups in its log.
    Compared(SourceHistory),
    /// A range of a vbucket's log: about 4 MiB, at least one mutation.
    Log(Vec<CopiedMutation>),
    /// Documents of the requested vbuckets.
    Documents {
        /// The documents, ordered by id, at most a few megabytes.
        documents: Vec<HandedDocument>,
        /// The id after which further documents may follow; `None` after the last ones.
        next: Option<String>,
        /// The end of the history when the documents were read. The documents include all
        /// mutations up to this cut.
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
    /// Some changes of prepared transactions, in the form of a group without mutations.
    Prepared(GroupChunk),
    /// A part of the next group, which is too large for one message. The follower appends the
    /// group to its log when it is complete.
    Piece {
        /// The number of this answer.
        answer: u64,
        /// The number of the group.
        group: u64,
        /// The changes in this part.
        piece: GroupChunk,
    },
}

/// A part of a group of changes. The *changes* of a group are its mutations, followed by the
/// changes that its transactions prepare.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupChunk {
    /// The number of the group's changes in earlier parts.
    pub from: u64,
    /// The mutations in this part.
    pub mutations: Vec<CopiedMutation>,
    /// The prepared changes in this part; about 4 MiB together with the mutations.
    pub prepared: Vec<PreparedPart>,
    /// In the last part: the group's steps of transactions. A step that prepares a transaction is
    /// sent without its changes.
    pub commits: Vec<TransactionEvent>,
    /// True for the last part of the group.
    pub is_last: bool,
}

/// Some of the changes of one prepared transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedPart {
    /// The id of the transaction.
    pub transaction: TransactionId,
    /// The changes, in the order of the transaction.
    pub changes: Vec<PreparedChange>,
}

/// A group of changes, which is written to the log in one piece, as sent to a follower.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedGroup {
    /// The mutations of the group.
    pub mutations: Vec<CopiedMutation>,
    /// The steps of transactions in the group.
    pub commits: Vec<TransactionEvent>,
}

/// A mutation, as sent to a follower.
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
