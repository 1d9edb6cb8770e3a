//! Validates messages before the `raft` crate sees them. The crate panics on messages that break its assumptions, and
//! a faulty peer must not be able to stop this member.

use proto::model::ids::NodeId;

use super::wire::{MessageKind, RaftMessage};

/// True if the crate can handle the message. `last_index` is the end of this member's log.
pub(super) fn is_valid(
    message: &RaftMessage,
    member: NodeId,
    voters: &[u64],
    last_index: u64,
) -> bool {
    let addressed = message.to == member
        && message.from != member
        && voters.contains(&message.from.0)
        && message.term > 0;
    let mut index = message.index;
    let entries_in_order = message.entries.iter().all(|entry| {
        index = index.saturating_add(1);
        entry.index == index && entry.term <= message.term
    });
    let snapshot_fits = match (&message.snapshot, message.kind) {
        (Some(snapshot), MessageKind::Snapshot) => snapshot.voters == voters && snapshot.index > 0,
        (None, MessageKind::Snapshot) | (Some(_), _) => false,
        (None, _) => true,
    };
    let acknowledges_nothing =
        message.kind == MessageKind::AppendResponse && message.index > last_index;
    addressed && entries_in_order && snapshot_fits && !acknowledges_nothing
}
