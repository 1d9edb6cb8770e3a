//! Groups that are larger than a message: a large commit of a transaction is one group.
//!
//! The leader sends such a group in *pieces*. The follower sends the number of changes that it has,
//! so the leader keeps no state and a lost answer is requested again. The follower appends the
//! group when it is complete, because a copy in sync is always at the end of a group. If the
//! session fails, the pieces are dropped.
//!
//! The pieces are in memory until then. Only commits are so large, and their bytes count against
//! the limit of the leader's open transactions until they are acknowledged; and a follower refuses
//! a group that is larger than one of its steps (`Config::copy_step_bytes_max`). A copy that
//! refuses a group for that reason lags, is given up, and joins again, piece by piece from the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::commits::TransactionEvent;
use proto::model::ids::TransactionId;
use proto::model::joint::{Prepared, PreparedChange};
use proto::rpc::api::{CopiedGroup, CopiedMutation, GroupPiece, PreparedPart};
use proto::{Error, ErrorCode, Result};

use crate::source::Mutation;
use documents::document_store::Batch;

/// Bytes of a change in a message, without its id and document.
const CHANGE_OVERHEAD_BYTES: usize = 32;

fn bytes_of(id: &str, document: &[u8]) -> usize {
    CHANGE_OVERHEAD_BYTES + id.len() + document.len()
}

fn prepared_bytes(change: &PreparedChange) -> usize {
    bytes_of(&change.id, change.document.as_deref().unwrap_or_default())
}

fn prepared(event: &TransactionEvent) -> Option<&Arc<Prepared>> {
    match event {
        TransactionEvent::Prepared(prepared) => Some(prepared),
        _ => None,
    }
}

/// Returns the size of a group in a message, in bytes.
pub fn group_bytes(batch: &Batch) -> usize {
    let mutations = batch.mutations.iter().map(|m| bytes_of(&m.id, &m.document));
    let prepared = batch.commits.iter().filter_map(prepared);
    let changes = prepared.flat_map(|prepared| prepared.changes.iter().map(prepared_bytes));
    mutations.chain(changes).sum()
}

/// Converts a mutation for a message.
pub fn copied(mutation: &Mutation) -> CopiedMutation {
    CopiedMutation {
        vbucket: mutation.vbucket,
        seqno: mutation.seqno,
        id: mutation.id.to_string(),
        kind: mutation.kind,
        document: mutation.document.clone(),
    }
}

/// Returns the piece of a group after the first `from` changes: about `bytes_max` bytes, and at
/// least one change if any is left.
pub fn piece_of(batch: &Batch, from: u64, bytes_max: usize) -> Result<GroupPiece> {
    let mut room = Room { bytes: 0, bytes_max };
    let mut piece = GroupPiece { from, ..GroupPiece::default() };
    let mut skip = usize::try_from(from).unwrap_or(usize::MAX);
    let mutations = batch.mutations.get(skip..).unwrap_or_default();
    skip = skip.saturating_sub(batch.mutations.len());
    let fits = |m: &&Arc<Mutation>| room.takes(bytes_of(&m.id, &m.document));
    piece.mutations = mutations.iter().take_while(fits).map(|m| copied(m)).collect();
    let mut is_last = piece.mutations.len() == mutations.len();
    for prepared in batch.commits.iter().filter_map(prepared) {
        let left = prepared.changes.get(skip..).unwrap_or_default();
        skip = skip.saturating_sub(prepared.changes.len());
        if left.is_empty() || !is_last {
            continue;
        }
        let changes = changes_of(left, &mut room);
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

fn without_changes(event: &TransactionEvent) -> TransactionEvent {
    match prepared(event) {
        Some(prepared) => TransactionEvent::Prepared(Arc::new(prepared.without_changes())),
        None => event.clone(),
    }
}

fn changes_of(left: &[PreparedChange], room: &mut Room) -> Vec<PreparedChange> {
    left.iter().take_while(|change| room.takes(prepared_bytes(change))).cloned().collect()
}

/// The remaining bytes of a message.
struct Room {
    bytes: usize,
    bytes_max: usize,
}

impl Room {
    /// Takes the bytes for a change; returns false if the message has too few left. The first
    /// change always fits.
    fn takes(&mut self, bytes: usize) -> bool {
        let fits = self.bytes == 0 || self.bytes + bytes <= self.bytes_max;
        self.bytes += bytes;
        fits
    }
}

/// A large group whose pieces are being received.
pub struct Assembly {
    /// The number of the group.
    number: u64,
    group: CopiedGroup,
    prepared: BTreeMap<TransactionId, Vec<PreparedChange>>,
    held: u64,
    bytes: usize,
}

impl Assembly {
    /// Creates a group without pieces.
    pub fn new(number: u64) -> Self {
        let (group, prepared) = Default::default();
        Self { number, group, prepared, held: 0, bytes: 0 }
    }

    /// Returns the number of changes received so far.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// The size of the changes in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes the next piece. Returns true if the group is complete.
    pub fn add(&mut self, number: u64, piece: GroupPiece, bytes_max: usize) -> Result<bool> {
        let GroupPiece { from, mutations, prepared, commits, is_last } = piece;
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
        self.bytes += mutations.iter().map(|m| bytes_of(&m.id, &m.document)).sum::<usize>();
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

    /// The complete group.
    pub fn into_group(mut self) -> CopiedGroup {
        for event in &mut self.group.commits {
            if let TransactionEvent::Prepared(prepared) = event
                && let Some(changes) = self.prepared.remove(&prepared.transaction)
            {
                *event = TransactionEvent::Prepared(Arc::new(Prepared {
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
