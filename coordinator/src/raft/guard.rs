//! Validates messages before the `raft` crate sees them. The crate panics on messages that break
//! its assumptions, and a faulty peer must not be able to stop this member.
//!
//! The sender may be a member that this member does not know yet: a new member may lead before
//! this one has applied the entry that adds it. So messages are not checked against the list of
//! members, but against the group number in the message. A message of a second leader in the same
//! term is dropped.

use proto::model::ids::NodeId;

use super::members::Members;
use super::wire::{ChangeContext, EntryKind, LogEntry, LogSnapshot, MessageKind, RaftMessage};

/// The state of the receiving member when a message arrives.
pub(super) struct Receiver<'a> {
    pub member: NodeId,
    pub members: &'a Members,
    /// The end of the receiver's log.
    pub last_index: u64,
    pub term: u64,
    /// The leader of the receiver's term; 0 if unknown.
    pub leader: u64,
}

/// True if the crate can handle the message.
pub(super) fn is_valid(message: &RaftMessage, receiver: &Receiver<'_>) -> bool {
    let from = message.from;
    let addressed = message.to == receiver.member
        && from != receiver.member
        && from.0 != 0
        && message.term > 0
        && (message.kind != MessageKind::Append || (message.index == 0) == (message.log_term == 0))
        && !receiver.members.is_removed(from);
    let mut index = message.index;
    let entries_in_order = message.entries.iter().all(|entry| {
        index = index.saturating_add(1);
        entry.index == index && (1..=message.term).contains(&entry.term) && is_readable(entry)
    });
    let acknowledges_nothing =
        message.kind == MessageKind::AppendResponse && message.index > receiver.last_index;
    let is_second_leader = is_sent_by_leader(message.kind)
        && message.term == receiver.term
        && ![0, from.0].contains(&receiver.leader);
    addressed
        && is_from_group(message, receiver)
        && entries_in_order
        && snapshot_fits(message, receiver)
        && !acknowledges_nothing
        && !is_second_leader
}

/// Returns true if only a leader sends this kind of message.
fn is_sent_by_leader(kind: MessageKind) -> bool {
    use MessageKind::{Append, Heartbeat, Snapshot, TimeoutNow};
    matches!(kind, Append | Heartbeat | Snapshot | TimeoutNow)
}

/// Returns true if an entry can be decoded.
fn is_readable(entry: &LogEntry) -> bool {
    match entry.kind {
        EntryKind::Command => true,
        EntryKind::Members => {
            entry.data.is_empty() && ChangeContext::decode(&entry.context).is_ok()
        }
    }
}

/// Returns true if a message may be from this member's group. A member that joins learns its
/// group from a snapshot. Until then it does not know the first members, so it grants no vote and
/// accepts no entries from the beginning of the log. Acknowledgements of a joining member are
/// accepted without a group.
fn is_from_group(message: &RaftMessage, receiver: &Receiver<'_>) -> bool {
    use MessageKind::{Append, AppendResponse, Heartbeat, HeartbeatResponse, Snapshot};
    if receiver.members.is_unknown() {
        let is_start = message.kind == Append && message.index == 0;
        return message.group != 0
            && matches!(message.kind, Append | Heartbeat | Snapshot)
            && !is_start;
    }
    let is_of_joining =
        message.group == 0 && matches!(message.kind, AppendResponse | HeartbeatResponse);
    message.group == receiver.members.group() || is_of_joining
}

/// Returns true if only a snapshot message has a snapshot, and its members fit this member and
/// its group.
fn snapshot_fits(message: &RaftMessage, receiver: &Receiver<'_>) -> bool {
    let fits = |snapshot: &LogSnapshot| {
        snapshot.index > 0
            && snapshot.members().is_ok_and(|members| {
                // A member without a log that votes has lost its votes with its directory.
                let joins = !receiver.members.is_unknown() || members.is_learner(receiver.member);
                let names_it = members.contains(receiver.member) && joins;
                members.is_sound() && names_it && members.group() == message.group
            })
    };
    match (&message.snapshot, message.kind) {
        (Some(snapshot), MessageKind::Snapshot) => fits(snapshot),
        (None, MessageKind::Snapshot) | (Some(_), _) => false,
        (None, _) => true,
    }
}
