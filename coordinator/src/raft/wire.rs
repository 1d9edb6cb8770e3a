//! Raft's messages in our own types, which go over the network and to the disk.
//!
//! The `raft` crate defines its messages as protobuf-2 types, which stay inside this directory. A
//! message from the network is decoded as [`RaftMessage`] with a bounded, checked decoder and
//! converted field by field. Only the message kinds that our Raft configuration uses have a
//! representation, so a peer cannot send any other kind.

use bytes::Bytes;
use proto::model::ids::NodeId;
use proto::rpc::api::PEER_MESSAGE_BYTES_MAX;
use proto::{Error, ErrorCode, Result};
use raft::eraftpb::{self, EntryType, MessageType};
use serde::{Deserialize, Serialize};

use super::members::{MemberChange, Members};

/// The version of the encoding: its first byte.
const WIRE_VERSION: u8 = 1;

/// The bytes of a call in addition to one large message: the frame of the call, and the small
/// messages in it.
const CALL_BYTES: usize = 2 << 20;

/// The size limit of a message, in bytes. The largest message is a snapshot, and
/// `state/capacity/table.rs` keeps the state below this limit. A larger message would not fit in a
/// call and never arrive.
pub const MESSAGE_BYTES_MAX: usize = PEER_MESSAGE_BYTES_MAX - CALL_BYTES;

/// The kind of a message. Kinds that this configuration of Raft never sends are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MessageKind {
    /// Entries for the log.
    Append,
    /// The acknowledgement or refusal of entries.
    AppendResponse,
    /// A candidate requests a vote.
    RequestVote,
    /// The answer to a request for a vote.
    RequestVoteResponse,
    /// A snapshot for a member that lags too far for entries.
    Snapshot,
    /// The leader is alive.
    Heartbeat,
    /// The follower is alive.
    HeartbeatResponse,
    /// A pre-vote: a member asks whether it could win an election, before it increases its term.
    RequestPreVote,
    /// The answer to a pre-vote request.
    RequestPreVoteResponse,
    /// The leader hands leadership over: the receiver becomes a candidate at once.
    TimeoutNow,
}

const KINDS: [(MessageKind, MessageType); 10] = [
    (MessageKind::Append, MessageType::MsgAppend),
    (MessageKind::AppendResponse, MessageType::MsgAppendResponse),
    (MessageKind::RequestVote, MessageType::MsgRequestVote),
    (MessageKind::RequestVoteResponse, MessageType::MsgRequestVoteResponse),
    (MessageKind::Snapshot, MessageType::MsgSnapshot),
    (MessageKind::Heartbeat, MessageType::MsgHeartbeat),
    (MessageKind::HeartbeatResponse, MessageType::MsgHeartbeatResponse),
    (MessageKind::RequestPreVote, MessageType::MsgRequestPreVote),
    (MessageKind::RequestPreVoteResponse, MessageType::MsgRequestPreVoteResponse),
    (MessageKind::TimeoutNow, MessageType::MsgTimeoutNow),
];

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    /// A command of the state machine.
    Command,
    /// A change of the members. The context contains the change (`ChangeContext`). The data is
    /// empty, because the crate would decode it as protobuf.
    Members,
}

/// The context of a change of the members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChangeContext {
    /// The context of the proposer.
    pub proposer: Bytes,
    /// The change of the members.
    pub change: MemberChange,
}

impl ChangeContext {
    pub fn encode(&self) -> Result<Bytes> {
        let bytes = postcard::to_allocvec(self);
        bytes.map(Bytes::from).map_err(|error| {
            Error::internal(format!("encode a change of the coordinators: {error}"))
        })
    }

    pub fn decode(bytes: &[u8]) -> Result<Self> {
        postcard::from_bytes(bytes).map_err(|error| {
            Error::new(ErrorCode::Corrupt, format!("a change of the coordinators: {error}"))
        })
    }
}

/// One entry of the log, in its encoded form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// The index of the entry, from 1.
    pub index: u64,
    /// The term in which it was proposed.
    pub term: u64,
    /// The command; empty in the entry with which a leader opens its term.
    pub data: Bytes,
    /// The context of the proposal (member and number), by which the proposer recognizes the
    /// outcome.
    pub context: Bytes,
    /// The kind of the entry.
    pub kind: EntryKind,
}

/// A snapshot of the state machine, its position in the log and its members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSnapshot {
    /// The last entry that the state contains.
    pub index: u64,
    /// The term of that entry.
    pub term: u64,
    /// The members that vote.
    pub voters: Vec<u64>,
    /// The members that receive the log and do not vote yet.
    pub learners: Vec<u64>,
    /// The members that the crate does not know (`SnapshotHead`), and the state. The crate passes
    /// the bytes on unread.
    pub data: Bytes,
}

/// The head of a snapshot's data, which follows its length: the fields of [`Members`] that the
/// crate does not have.
#[derive(Serialize, Deserialize)]
struct SnapshotHead {
    founders: Vec<u64>,
    removed: Vec<u64>,
}

/// The size of the length field before the head, in bytes.
const HEAD_LEN_BYTES: usize = 4;

/// A message between members. The fields are those of the Raft paper and of the `raft` crate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct RaftMessage {
    /// The number of the sender's group ([`Members::group`]).
    pub group: u32,
    pub kind: MessageKind,
    pub from: NodeId,
    pub to: NodeId,
    pub term: u64,
    pub log_term: u64,
    pub index: u64,
    pub entries: Vec<LogEntry>,
    pub commit: u64,
    pub commit_term: u64,
    pub snapshot: Option<LogSnapshot>,
    pub request_snapshot: u64,
    pub reject: bool,
    pub reject_hint: u64,
    pub context: Bytes,
}

/// The limit of the bytes that wait in a queue of messages: enough for the longest message, and
/// as many bytes of short messages.
pub const QUEUE_BYTES_MAX: usize = 2 * PEER_MESSAGE_BYTES_MAX;

/// Returns the sender of an encoded message, without decoding the entries.
pub fn sender_of_message(bytes: &[u8]) -> Result<NodeId> {
    let bad = || Error::new(ErrorCode::InvalidParameter, "raft message: it names no sender");
    let body = bytes.strip_prefix(&[WIRE_VERSION]).ok_or_else(bad)?;
    let first_fields: (u32, MessageKind, NodeId) =
        postcard::take_from_bytes(body).map_err(|_| bad())?.0;
    Ok(first_fields.2)
}

impl RaftMessage {
    /// Returns the approximate size of the message in memory, in bytes.
    pub fn bytes(&self) -> usize {
        let entries = self.entries.iter().map(|entry| entry.data.len() + entry.context.len());
        entries.sum::<usize>() + self.snapshot.as_ref().map_or(0, |snapshot| snapshot.data.len())
    }

    /// Encodes the message.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let bytes = postcard::to_extend(self, vec![WIRE_VERSION])
            .map_err(|error| Error::internal(format!("encode a raft message: {error}")))?;
        if bytes.len() > MESSAGE_BYTES_MAX {
            let what = format!("a raft message of {} bytes does not fit in a call", bytes.len());
            return Err(Error::new(ErrorCode::OverLimit, what));
        }
        Ok(bytes)
    }

    /// Decodes a message from the network.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let bad =
            |what: String| Error::new(ErrorCode::InvalidParameter, format!("raft message: {what}"));
        if bytes.len() > MESSAGE_BYTES_MAX {
            return Err(bad(format!("{} bytes, the limit is {MESSAGE_BYTES_MAX}", bytes.len())));
        }
        match bytes.split_first() {
            Some((&WIRE_VERSION, body)) => match postcard::take_from_bytes(body) {
                Ok((message, [])) => Ok(message),
                Ok((_, rest)) => Err(bad(format!("{} bytes left over", rest.len()))),
                Err(error) => Err(bad(error.to_string())),
            },
            Some((version, _)) => Err(Error::new(
                ErrorCode::Version,
                format!(
                    "raft message of version {version}, this build reads version {WIRE_VERSION}"
                ),
            )),
            None => Err(bad("empty".into())),
        }
    }

    /// Converts the message to the `raft` crate's type.
    pub(crate) fn into_raft(self) -> eraftpb::Message {
        let msg_type = KINDS
            .iter()
            .find(|(kind, _)| *kind == self.kind)
            .map(|(_, msg_type)| *msg_type)
            .unwrap_or(MessageType::MsgHeartbeat);
        let mut message = eraftpb::Message {
            msg_type,
            from: self.from.0,
            to: self.to.0,
            term: self.term,
            log_term: self.log_term,
            index: self.index,
            commit: self.commit,
            commit_term: self.commit_term,
            request_snapshot: self.request_snapshot,
            reject: self.reject,
            reject_hint: self.reject_hint,
            context: self.context,
            ..Default::default()
        };
        message.set_entries(self.entries.into_iter().map(LogEntry::into_raft).collect());
        if let Some(snapshot) = self.snapshot {
            message.set_snapshot(snapshot.into_raft());
        }
        message
    }

    /// Converts a message of the `raft` crate. Returns an error for a kind that our configuration
    /// never sends.
    pub(crate) fn from_raft(mut message: eraftpb::Message, group: u32) -> Result<Self> {
        let kind = KINDS
            .iter()
            .find(|(_, msg_type)| *msg_type == message.msg_type)
            .map(|(kind, _)| *kind)
            .ok_or_else(|| {
                Error::internal(format!(
                    "the raft crate sent an unexpected message of type {:?}",
                    message.msg_type
                ))
            })?;
        let snapshot =
            message.has_snapshot().then(|| LogSnapshot::from_raft(message.take_snapshot()));
        Ok(Self {
            group,
            kind,
            from: NodeId(message.from),
            to: NodeId(message.to),
            term: message.term,
            log_term: message.log_term,
            index: message.index,
            entries: message
                .take_entries()
                .into_iter()
                .map(LogEntry::from_raft)
                .collect::<Result<Vec<_>>>()?,
            commit: message.commit,
            commit_term: message.commit_term,
            snapshot,
            request_snapshot: message.request_snapshot,
            reject: message.reject,
            reject_hint: message.reject_hint,
            context: message.context,
        })
    }
}

impl LogEntry {
    pub(crate) fn into_raft(self) -> eraftpb::Entry {
        let entry_type = match self.kind {
            EntryKind::Command => EntryType::EntryNormal,
            EntryKind::Members => EntryType::EntryConfChange,
        };
        eraftpb::Entry {
            entry_type,
            index: self.index,
            term: self.term,
            data: self.data,
            context: self.context,
            ..Default::default()
        }
    }

    pub(crate) fn from_raft(entry: eraftpb::Entry) -> Result<Self> {
        let kind = match entry.entry_type {
            EntryType::EntryNormal => EntryKind::Command,
            EntryType::EntryConfChange => EntryKind::Members,
            other => {
                let what = format!("the raft crate made an unexpected entry of type {other:?}");
                return Err(Error::internal(what));
            }
        };
        let eraftpb::Entry { index, term, data, context, .. } = entry;
        Ok(Self { index, term, data, context, kind })
    }
}

impl LogSnapshot {
    /// Creates a snapshot of the state `state`, at the log position `index`, with these members.
    pub fn new(index: u64, term: u64, members: &Members, state: &[u8]) -> Result<Self> {
        let Members { founders, voters, learners, removed } = members.clone();
        let mut data =
            postcard::to_extend(&SnapshotHead { founders, removed }, vec![0; HEAD_LEN_BYTES])
                .map_err(|error| {
                    Error::internal(format!("encode the head of a snapshot: {error}"))
                })?;
        let len = (data.len() - HEAD_LEN_BYTES) as u32;
        data[..HEAD_LEN_BYTES].copy_from_slice(&len.to_le_bytes());
        data.extend_from_slice(state);
        Ok(Self { index, term, voters, learners, data: data.into() })
    }

    /// Splits the data into its head and the encoded state.
    fn head_and_state(&self) -> Result<(SnapshotHead, &[u8])> {
        let corrupt = || Error::new(ErrorCode::Corrupt, "a snapshot without its head");
        let (len, rest) = self.data.split_first_chunk::<HEAD_LEN_BYTES>().ok_or_else(corrupt)?;
        let len = u32::from_le_bytes(*len) as usize;
        let (head, state) = rest.split_at_checked(len).ok_or_else(corrupt)?;
        Ok((postcard::from_bytes(head).map_err(|_| corrupt())?, state))
    }

    /// The members at the snapshot.
    pub fn members(&self) -> Result<Members> {
        let (SnapshotHead { founders, removed }, _) = self.head_and_state()?;
        let (voters, learners) = (self.voters.clone(), self.learners.clone());
        Ok(Members { founders, voters, learners, removed })
    }

    /// The encoded state in the snapshot.
    pub fn state(&self) -> Result<&[u8]> {
        Ok(self.head_and_state()?.1)
    }

    pub(crate) fn into_raft(self) -> eraftpb::Snapshot {
        let mut snapshot = eraftpb::Snapshot { data: self.data, ..Default::default() };
        let metadata = snapshot.mut_metadata();
        metadata.index = self.index;
        metadata.term = self.term;
        metadata.mut_conf_state().voters = self.voters;
        metadata.mut_conf_state().learners = self.learners;
        snapshot
    }

    pub(crate) fn from_raft(mut snapshot: eraftpb::Snapshot) -> Self {
        let mut metadata = snapshot.take_metadata();
        Self {
            index: metadata.index,
            term: metadata.term,
            voters: std::mem::take(&mut metadata.mut_conf_state().voters),
            learners: std::mem::take(&mut metadata.mut_conf_state().learners),
            data: snapshot.data,
        }
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
