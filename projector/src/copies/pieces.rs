//! Groups that are larger than a message: a large commit of a transaction is one group.
//!
//! The leader sends such a group in *pieces*. Each request of the follower contains the number of
//! changes that it has received. So the leader need not remember what it has sent, and a lost
//! answer is requested again. The follower appends the group when it is complete, because a copy
//! in sync is always at the end of a group. If the session fails, the pieces are dropped.
//!
//! The pieces are in memory until the group is complete. Their size is bounded twice: only
//! commits are so large, and at the leader the bytes of a commit count against the limit of open
//! transactions; and a follower refuses a group that is larger than one of its steps
//! (`Config::copy_step_bytes_max`). A copy that refuses a group is given up by the leader. It
//! then joins again, and fetches the commit from the log in small ranges.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::commits::TransactionEvent;
use proto::model::ids::TransactionId;
use proto::model::joint::{PreparedChange, PreparedTransaction};
use proto::rpc::api::{CopiedGroup, CopiedMutation, GroupChunk, PreparedPart};
use proto::{Error, ErrorCode, Result};

use crate::source::Mutation;
use documents::document_store::Batch;

/// The bytes that a change adds to a message, without its id and document.
const CHANGE_OVERHEAD_BYTES: usize = 32;

/// Returns the bytes that a change takes in a message.
fn change_bytes(id: &str, document: &[u8]) -> usize {
    CHANGE_OVERHEAD_BYTES + id.len() + document.len()
}

/// Returns the bytes that a change of a prepared transaction takes in a message.
fn prepared_bytes(change: &PreparedChange) -> usize {
    change_bytes(&change.id, change.document.as_deref().unwrap_or_default())
}

/// Returns the prepared transaction of an event; `None` if the event does not prepare one.
fn prepared_of_event(event: &TransactionEvent) -> Option<&Arc<PreparedTransaction>> {
    match event {
        TransactionEvent::Prepared(prepared) => Some(prepared),
        _ => None,
    }
}

/// Returns the size of a group in a message, in bytes.
pub fn group_bytes(batch: &Batch) -> usize {
    let mutations = batch.mutations.iter().map(|m| change_bytes(&m.id, &m.document));
    let prepared = batch.commits.iter().filter_map(prepared_of_event);
    let changes = prepared.flat_map(|prepared| prepared.changes.iter().map(prepared_bytes));
    mutations.chain(changes).sum()
}

/// Converts a mutation into the form in which it is sent to a follower.
pub fn to_copied_mutation(mutation: &Mutation) -> CopiedMutation {
    CopiedMutation {
        vbucket: mutation.vbucket,
        seqno: mutation.seqno,
        id: mutation.id.to_string(),
        kind: mutation.kind,
        document: mutation.document.clone(),
    }
}

/// Returns the piece of a group that follows its first `from` changes. The piece has about
/// `bytes_max` bytes, and at least one change if any is left.
pub fn next_piece(batch: &Batch, from: u64, bytes_max: usize) -> Result<GroupChunk> {
    let mut room = MessageBytes { bytes: 0, bytes_max };
    let mut piece = GroupChunk { from, ..GroupChunk::default() };
    let mut skip = usize::try_from(from).unwrap_or(usize::MAX);
    let mutations = batch.mutations.get(skip..).unwrap_or_default();
    skip = skip.saturating_sub(batch.mutations.len());
    let fits = |m: &&Arc<Mutation>| room.try_add(change_bytes(&m.id, &m.document));
    piece.mutations = mutations.iter().take_while(fits).map(|m| to_copied_mutation(m)).collect();
    let mut is_last = piece.mutations.len() == mutations.len();
    for prepared in batch.commits.iter().filter_map(prepared_of_event) {
        let left = prepared.changes.get(skip..).unwrap_or_default();
        skip = skip.saturating_sub(prepared.changes.len());
        if left.is_empty() || !is_last {
            continue;
        }
        let changes = changes_that_fit(left, &mut room);
        is_last = changes.len() == left.len();
        if !changes.is_empty() {
            piece.prepared.push(PreparedPart { transaction: prepared.transaction, changes });
        }
    }
    if skip > 0 {
        let what = format!("the group has {skip} changes less than the follower says");
        return Err(Error::new(ErrorCode::OutOfOrder, what));
    }
    if is_last {
        piece.commits = batch.commits.iter().map(without_changes).collect();
        piece.is_last = true;
    }
    Ok(piece)
}

/// Returns a transaction's event without the changes that a prepared transaction has.
fn without_changes(event: &TransactionEvent) -> TransactionEvent {
    match prepared_of_event(event) {
        Some(prepared) => TransactionEvent::Prepared(Arc::new(prepared.without_changes())),
        None => event.clone(),
    }
}

/// Returns the first of the changes: as many as fit into the message.
fn changes_that_fit(left: &[PreparedChange], room: &mut MessageBytes) -> Vec<PreparedChange> {
    left.iter().take_while(|change| room.try_add(prepared_bytes(change))).cloned().collect()
}

/// The bytes that a message uses so far, and their limit.
struct MessageBytes {
    bytes: usize,
    bytes_max: usize,
}

impl MessageBytes {
    /// Counts the bytes of a change. Returns false if the message has too few bytes left for it;
    /// the first change of a message always fits.
    fn try_add(&mut self, bytes: usize) -> bool {
        let fits = self.bytes == 0 || self.bytes + bytes <= self.bytes_max;
        self.bytes += bytes;
        fits
    }
}

/// A large group whose pieces are being received.
pub struct GroupAssembly {
    /// The number of the group.
    number: u64,
    group: CopiedGroup,
    prepared: BTreeMap<TransactionId, Vec<PreparedChange>>,
    held: u64,
    bytes: usize,
}

impl GroupAssembly {
    /// Creates a group of which no piece has arrived.
    pub fn new(number: u64) -> Self {
        let (group, prepared) = Default::default();
        Self { number, group, prepared, held: 0, bytes: 0 }
    }

    /// Returns the number of changes received so far.
    pub fn received_changes(&self) -> u64 {
        self.held
    }

    /// The size of the changes in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the next piece of the group. Returns true if the group is then complete.
    pub fn add(&mut self, number: u64, piece: GroupChunk, bytes_max: usize) -> Result<bool> {
        let GroupChunk { from, mutations, prepared, commits, is_last } = piece;
        let changes = prepared.iter().map(|part| part.changes.len()).sum::<usize>();
        let has_news = is_last || mutations.len() + changes > 0;
        if number != self.number || from != self.held || !has_news {
            let (own, held) = (self.number, self.held);
            let what = format!(
                "group {own} has {held} changes here, and the leader sends group {number} from {from} on"
            );
            return Err(Error::new(ErrorCode::OutOfOrder, what));
        }
        self.held += (mutations.len() + changes) as u64;
        self.bytes += mutations.iter().map(|m| change_bytes(&m.id, &m.document)).sum::<usize>();
        self.group.mutations.extend(mutations);
        for PreparedPart { transaction, changes } in prepared {
            self.bytes += changes.iter().map(prepared_bytes).sum::<usize>();
            self.prepared.entry(transaction).or_default().extend(changes);
        }
        if self.bytes > bytes_max {
            let (number, most) = (self.number, bytes_max >> 10);
            let what = format!(
                "group {number} of the leader is larger than {most} KiB, which is the limit here"
            );
            return Err(Error::new(ErrorCode::OverLimit, what)
                .with_hint("give all projectors the same transactions_mb; the copy joins again"));
        }
        self.group.commits = commits;
        Ok(is_last)
    }

    /// Returns the complete group.
    pub fn into_group(mut self) -> CopiedGroup {
        for event in &mut self.group.commits {
            if let TransactionEvent::Prepared(prepared) = event
                && let Some(changes) = self.prepared.remove(&prepared.transaction)
            {
                *event = TransactionEvent::Prepared(Arc::new(PreparedTransaction {
                    changes,
                    ..prepared.without_changes()
                }));
            }
        }
        self.group
    }
}

#[cfg(test)]
#[path = "pieces_tests.rs"]
mod tests;
