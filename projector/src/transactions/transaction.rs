//! One open transaction: its changes in their order, and the newest change of each document.
//!
//! Changes are added at the end and removed from the end, by a rollback to a savepoint. Each
//! change links to the previous change of the same document. So the removal of a change restores
//! the previous one, and a reader at an earlier place finds the document as it was there.
//!
//! A stream must report the removal of changes that it has sent. So its reader remembers how many
//! rollbacks it has seen, and finds the earliest place to which a later rollback has returned
//! ([`Transaction::earliest_rollback_since`]). A rollback is dropped from the list when a later one has
//! returned to the same or an earlier place. So the list is never longer than the remaining
//! changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::model::ids::{Seqno, TransactionPlace, VbucketId, vbucket_of};
use proto::model::joint::CHANGE_OVERHEAD_BYTES;
use proto::rpc::api::{CheckedWrite, WriteKind};
use proto::rpc::mutation::MutationKind;
use tokio::time::Instant;

use super::producer::Producer;
use super::room::TransactionReservation;
use super::snapshot::Snapshot;
use documents::mutation::Mutation;

/// The time for which a transaction is young, so that its changes are not sent to indexers:
/// longer than most transactions of one message last, and too short to be noticed.
pub const YOUNG: Duration = Duration::from_millis(1);

/// One open transaction: its changes, its snapshot, and whether it is being committed.
pub struct Transaction {
    /// The number of the transaction among the bucket's transactions. It is unique, while a
    /// session may reuse an id.
    pub(super) number: u64,
    /// The value of the bucket's change counter at the transaction's last change.
    pub(super) version: u64,
    /// The snapshot of the transaction, after its first read.
    pub(super) snapshot: Option<Snapshot>,
    /// The name of the user that runs the transaction, for display.
    pub(super) owner: String,
    /// The producer of the transaction, in a pushed bucket.
    pub(super) producer: Option<Producer>,
    /// The number of commits that the bucket had when the transaction began.
    pub(super) behind: u64,
    pub(super) since: Instant,
    pub(super) asked_at: Instant,
    /// True while the transaction is being committed.
    pub(super) is_committing: bool,
    /// True once a stream may have sent the transaction to an indexer.
    pub(super) is_told: bool,
    /// True if the commit in progress may become a large one. The streams then keep the changes
    /// after the end of the transaction.
    pub(super) is_large: bool,
    pub(super) held: TransactionReservation,
    history: History,
    /// For each id, the index of its newest change.
    newest: BTreeMap<Arc<str>, usize>,
}

/// The changes of a transaction and its rollbacks to savepoints, as streams read them.
#[derive(Clone, Default)]
pub struct History {
    place: u64,
    /// The changes. They are in shared memory, so that a commit and the streams can read them
    /// without the lock of all transactions.
    changes: Arc<Vec<Change>>,
    /// Number of rollbacks to savepoints.
    backs: u64,
    /// The remembered rollbacks: the number of each, and the place to which it has returned. Both
    /// are ascending.
    goals: Vec<(u64, u64)>,
}

/// One change of a document in a transaction.
#[derive(Clone)]
pub(super) struct Change {
    /// The mutation. Its seqno is the place of the change in the transaction.
    mutation: Arc<Mutation>,
    /// True if the transaction's first change of the document was an INSERT.
    was_inserted: bool,
    /// The index of the transaction's previous change of the same document.
    before: Option<usize>,
}

/// The changes of a transaction that is being committed.
pub struct Changes(Arc<Vec<Change>>);

/// The last change of a document in a transaction, which is the one that is committed.
#[derive(Clone, Debug)]
pub struct LastChange {
    /// The last change.
    pub mutation: Arc<Mutation>,
    /// True if the transaction's first change of the document was an INSERT, so that the document
    /// must be absent before the commit.
    pub was_inserted: bool,
}

impl LastChange {
    /// Returns the approximate size of the change in memory, in bytes.
    pub fn bytes(&self) -> usize {
        bytes_of(&self.mutation)
    }
}

fn bytes_of(change: &Mutation) -> usize {
    CHANGE_OVERHEAD_BYTES + change.id.len() + change.document.len()
}

impl Transaction {
    /// Creates a transaction without changes.
    pub fn new(
        (number, owner, behind): (u64, &str, u64),
        now: Instant,
        held: TransactionReservation,
    ) -> Self {
        Self {
            number,
            owner: owner.to_owned(),
            producer: None,
            behind,
            version: 0,
            snapshot: None,
            since: now,
            asked_at: now,
            is_committing: false,
            is_told: false,
            is_large: false,
            held,
            history: History::default(),
            newest: BTreeMap::new(),
        }
    }

    /// Returns true if the transaction has begun so recently that its changes are not sent to
    /// indexers yet. It may end before a stream needs them.
    pub fn is_young(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) < YOUNG
    }

    /// Returns the place of the transaction: the number of its changes and rollbacks so far.
    pub fn place(&self) -> TransactionPlace {
        TransactionPlace(self.history.place)
    }

    /// Returns the number of changes that were not rolled back.
    pub fn changes(&self) -> u64 {
        self.history.changes.len() as u64
    }

    /// Returns the size in memory, in bytes, of the change that a write makes.
    pub fn bytes_of(write: &CheckedWrite) -> usize {
        let document = write.document().map_or(0, Bytes::len);
        CHANGE_OVERHEAD_BYTES + write.id().len() + document
    }

    /// Adds the change of a write. The caller has reserved memory for it.
    pub fn add(&mut self, write: &CheckedWrite, vbuckets: u16) {
        let (kind, document) = match write.document() {
            Some(document) => (MutationKind::Upsert, document.clone()),
            None => (MutationKind::Deletion, Bytes::new()),
        };
        let of = (vbucket_of(write.id(), vbuckets), Arc::clone(write.id()));
        self.push((of, kind, document), matches!(write.kind(), WriteKind::Insert(_)));
    }

    /// Returns the size in memory, in bytes, of a producer's mutation.
    pub fn bytes_of_mutation(mutation: &Mutation) -> usize {
        bytes_of(mutation)
    }

    /// Adds a mutation of a producer. The caller has reserved memory for it.
    pub fn add_mutation(
        &mut self,
        vbucket: VbucketId,
        id: Arc<str>,
        kind: MutationKind,
        document: Bytes,
    ) {
        self.push(((vbucket, id), kind, document), false);
    }

    fn push(
        &mut self,
        ((vbucket, id), kind, document): ((VbucketId, Arc<str>), MutationKind, Bytes),
        is_insert: bool,
    ) {
        self.history.place += 1;
        let place = (vbucket, Seqno(self.history.place));
        let before = self.newest.insert(Arc::clone(&id), self.history.changes.len());
        let mutation = Arc::new(Mutation::new(place, id, kind, document));
        let first = before.and_then(|before| self.history.changes.get(before));
        let was_inserted = first.map_or(is_insert, |first| first.was_inserted);
        let change = Change { mutation, was_inserted, before };
        Arc::make_mut(&mut self.history.changes).push(change);
    }

    /// Removes the changes after a place, and then advances the transaction to a new place. So an
    /// earlier call that arrives late is refused.
    pub fn roll_back_to(&mut self, to: TransactionPlace) {
        let changes = Arc::make_mut(&mut self.history.changes);
        while let Some(last) = changes.pop_if(|last| last.mutation.seqno.0 > to.0) {
            let id = &last.mutation.id;
            self.held.shrink(bytes_of(&last.mutation));
            match last.before {
                Some(before) => drop(self.newest.insert(Arc::clone(id), before)),
                None => drop(self.newest.remove(id)),
            }
        }
        // No change is left between this place and `to`, so that the goals are as few as the changes.
        let goal = changes.last().map_or(0, |last| last.mutation.seqno.0);
        self.history.backs += 1;
        while self.history.goals.pop_if(|(_, known)| *known >= goal).is_some() {}
        self.history.goals.push((self.history.backs, goal));
        self.history.place += 1;
    }

    /// Returns the number of remembered rollbacks.
    #[cfg(test)]
    pub(super) fn goals(&self) -> usize {
        self.history.goals.len()
    }

    /// The newest change of a document.
    pub fn newest(&self, id: &str) -> Option<&Arc<Mutation>> {
        let at = self.newest.get(id)?;
        self.history.changes.get(*at).map(|change| &change.mutation)
    }

    /// Returns the last change of a document up to a place; `None` if the transaction has not
    /// changed it.
    pub fn change_at(&self, id: &str, place: TransactionPlace) -> Option<&Arc<Mutation>> {
        let mut at = self.newest.get(id).copied();
        while let Some(change) = at.and_then(|at| self.history.changes.get(at)) {
            if change.mutation.seqno.0 <= place.0 {
                return Some(&change.mutation);
            }
            at = change.before;
        }
        None
    }

    /// Returns the changes and rollbacks so far, as streams read them.
    pub(super) fn history(&self) -> &History {
        &self.history
    }

    /// Returns all changes that were not rolled back, for a commit.
    pub fn all(&self) -> Changes {
        Changes(Arc::clone(&self.history.changes))
    }
}

impl History {
    /// Returns the place of the transaction: the number of its changes and rollbacks so far.
    pub(super) fn place(&self) -> TransactionPlace {
        TransactionPlace(self.place)
    }

    /// The number of rollbacks to savepoints.
    pub(super) fn rollback_count(&self) -> u64 {
        self.backs
    }

    /// Returns the earliest place to which a rollback after the first `backs` rollbacks has
    /// returned; `None` if there was none.
    pub(super) fn earliest_rollback_since(&self, backs: u64) -> Option<TransactionPlace> {
        let later = self.goals.partition_point(|(number, _)| *number <= backs);
        self.goals.get(later).map(|(_, goal)| TransactionPlace(*goal))
    }

    /// The changes after a place, in their order.
    pub(super) fn after(&self, place: TransactionPlace) -> impl Iterator<Item = &Arc<Mutation>> {
        let from = self.changes.partition_point(|change| change.mutation.seqno.0 <= place.0);
        self.changes[from..].iter().map(|change| &change.mutation)
    }
}

impl Changes {
    /// All changes, in the order of their places.
    pub fn in_order(&self) -> Vec<Arc<Mutation>> {
        self.0.iter().map(|change| Arc::clone(&change.mutation)).collect()
    }

    /// The last change of each document, in the order of their places.
    pub fn last_changes(&self) -> Vec<LastChange> {
        let mut is_replaced = vec![false; self.0.len()];
        for before in self.0.iter().filter_map(|change| change.before) {
            is_replaced[before] = true;
        }
        let last = self.0.iter().zip(is_replaced).filter(|(_, is_replaced)| !is_replaced);
        let changed = |(change, _): (&Change, bool)| LastChange {
            mutation: Arc::clone(&change.mutation),
            was_inserted: change.was_inserted,
        };
        last.map(changed).collect()
    }
}
