//! One open transaction: its changes in their order, and the newest one of each document.
//!
//! Changes are added at the end and removed from the end, by a rollback to a savepoint. Each links
//! to the previous change of its document, so that a removal restores that one, and a reader at an
//! earlier place finds its state.
//!
//! A reader must report the removal of changes that it has sent. It remembers the number of
//! rollbacks, and reads the earliest target of the later ones ([`Transaction::back_since`]). A
//! rollback is dropped from the list when a later one has an earlier or equal target, so the list
//! is never longer than the remaining changes.

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

/// The time for which a transaction is young: longer than most transactions of one message, and too short to be
/// noticed.
pub const YOUNG: Duration = Duration::from_millis(1);

/// One open transaction: its changes, its snapshot, and its state.
pub struct Transaction {
    /// The number of the transaction in its bucket, since a session may reuse an id.
    pub(super) number: u64,
    /// The version of the bucket's transactions at its last change.
    pub(super) version: u64,
    /// The snapshot of the transaction, after its first read.
    pub(super) snapshot: Option<Snapshot>,
    /// The user of the transaction, for display.
    pub(super) owner: String,
    /// The producer of the transaction, in a pushed bucket.
    pub(super) producer: Option<Producer>,
    /// The number of commits of the bucket when the transaction began.
    pub(super) behind: u64,
    pub(super) since: Instant,
    pub(super) asked_at: Instant,
    /// True while the commit is in progress.
    pub(super) is_committing: bool,
    /// True once a stream may have sent the transaction to an indexer.
    pub(super) is_told: bool,
    /// True if the commit in progress may be large: the streams then keep its changes beyond its
    /// end.
    pub(super) is_large: bool,
    pub(super) held: TransactionReservation,
    history: History,
    /// For each id, the index of its newest change.
    newest: BTreeMap<Arc<str>, usize>,
}

/// The changes of a transaction and its rollbacks to savepoints, in the form that streams need.
#[derive(Clone, Default)]
pub struct History {
    place: u64,
    /// The changes. A commit and the streams read them without the lock of all transactions, from
    /// shared memory.
    changes: Arc<Vec<Change>>,
    /// Number of rollbacks to savepoints.
    backs: u64,
    /// The number and the target place of rollbacks, both ascending.
    goals: Vec<(u64, u64)>,
}

#[derive(Clone)]
pub(super) struct Change {
    /// The mutation; its seqno is the place of the change.
    mutation: Arc<Mutation>,
    /// True if the first change of the document was an INSERT.
    was_inserted: bool,
    /// The index of the previous change of the document.
    before: Option<usize>,
}

/// The changes of a transaction that is being committed.
pub struct Changes(Arc<Vec<Change>>);

/// The last change of a document in a transaction.
#[derive(Clone, Debug)]
pub struct LastChange {
    /// The last change.
    pub mutation: Arc<Mutation>,
    /// True if the first change was an INSERT: the document was absent.
    pub was_inserted: bool,
}

impl LastChange {
    /// The approximate size, in bytes.
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

    /// Returns true if the transaction has just begun. It may end before a stream needs its
    /// changes.
    pub fn is_young(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) < YOUNG
    }

    /// Returns the place: the number of changes and rollbacks so far.
    pub fn place(&self) -> TransactionPlace {
        TransactionPlace(self.history.place)
    }

    /// The number of changes that were not rolled back.
    pub fn changes(&self) -> u64 {
        self.history.changes.len() as u64
    }

    /// Returns the bytes of the change that a write makes.
    pub fn bytes_of(write: &CheckedWrite) -> usize {
        let document = write.document().map_or(0, Bytes::len);
        CHANGE_OVERHEAD_BYTES + write.id().len() + document
    }

    /// Adds the change of a write, whose bytes were reserved before.
    pub fn add(&mut self, write: &CheckedWrite, vbuckets: u16) {
        let (kind, document) = match write.document() {
            Some(document) => (MutationKind::Upsert, document.clone()),
            None => (MutationKind::Deletion, Bytes::new()),
        };
        let of = (vbucket_of(write.id(), vbuckets), Arc::clone(write.id()));
        self.push((of, kind, document), matches!(write.kind(), WriteKind::Insert(_)));
    }

    /// Returns the bytes of a producer's mutation.
    pub fn bytes_of_mutation(mutation: &Mutation) -> usize {
        bytes_of(mutation)
    }

    /// Adds a mutation of a producer, whose bytes were reserved before.
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

    /// Removes the changes after a place, and advances to a new place, so that an earlier call that
    /// arrives late is refused.
    pub fn back_to(&mut self, to: TransactionPlace) {
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

    #[cfg(test)]
    pub(super) fn goals(&self) -> usize {
        self.history.goals.len()
    }

    /// The newest change of a document.
    pub fn newest(&self, id: &str) -> Option<&Arc<Mutation>> {
        let at = self.newest.get(id)?;
        self.history.changes.get(*at).map(|change| &change.mutation)
    }

    /// Returns the state of a document at a place: its last change up to the place; `None` if there
    /// is none.
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

    /// The changes and rollbacks so far.
    pub(super) fn history(&self) -> &History {
        &self.history
    }

    /// All changes, for a commit.
    pub fn all(&self) -> Changes {
        Changes(Arc::clone(&self.history.changes))
    }
}

impl History {
    /// Returns the place: the number of changes and rollbacks so far.
    pub(super) fn place(&self) -> TransactionPlace {
        TransactionPlace(self.place)
    }

    /// The number of rollbacks to savepoints.
    pub(super) fn backs(&self) -> u64 {
        self.backs
    }

    /// Returns the earliest target place of the rollbacks after the first `backs`; `None` if there
    /// were none.
    pub(super) fn back_since(&self, backs: u64) -> Option<TransactionPlace> {
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
    pub fn collapsed(&self) -> Vec<LastChange> {
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
