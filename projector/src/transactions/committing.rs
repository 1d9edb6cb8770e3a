//! The commits of sessions' transactions that are in progress.
//!
//! A commit collects the last change of each document in a [`CommitInProgress`], which is one
//! request to the writer of the bucket. During the request, the transaction accepts no call. When
//! the request is answered, the transaction ends, whatever the answer is.
//!
//! A large commit is one group of the log, and a later write waits for the group: some 0.3
//! seconds for 500,000 documents on two processors
//! (`projector/documents/examples/large_group.rs`), a tenth to number them, a quarter to build
//! the group, and the rest to write and sync it. The sorted runs that add it to the document
//! table are built at the same time. That time would be halved if the group was encoded before it
//! is numbered, and its runs got their numbers when they are read.

use std::collections::BTreeMap;
use std::sync::Arc;

use documents::mutation::Mutation;
use proto::model::ids::{BucketId, Seqno, TransactionId, TransactionPlace, VbucketId};
use proto::plant::{self, Plant};
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use super::document_lookups::DocumentLookUps;
use super::open::Transactions;
use super::snapshot::Snapshot;
use super::state::check_snapshot;
use super::transaction::LastChange;

/// A commit in progress: the changes of a transaction, and its snapshot. Dropping this value ends
/// the transaction, unless the outcome of the commit is unknown.
pub struct CommitInProgress {
    /// The id of the transaction.
    pub transaction: TransactionId,
    /// The last place of the transaction: the number of its changes and rollbacks.
    pub place: TransactionPlace,
    /// The last change of each document, in the order in which the changes were made.
    pub changes: Vec<LastChange>,
    /// The snapshot that the transaction has read, if it has read any.
    pub snapshot: Option<Snapshot>,
    /// The look-up of the documents, if it was made before the commit is numbered.
    pub looked_up: Option<DocumentLookUps>,
    /// The mutations of the changes, without seqnos, if they were created before the commit is
    /// numbered.
    pub unnumbered: Option<Vec<Arc<Mutation>>>,
    /// All buckets that the transaction has changed, if there are several; otherwise empty.
    pub participants: Vec<BucketId>,
    /// True if the group with the commit has failed, so that the outcome of the commit is
    /// unknown.
    is_in_doubt: bool,
    transactions: Arc<Transactions>,
    /// The transaction's id, and its number among the bucket's transactions.
    of: (TransactionId, u64),
}

impl CommitInProgress {
    /// Sorts the changes by vbucket, and keeps their order within each vbucket. The log groups
    /// mutations by vbucket in any case, and processing a large commit in this order makes better
    /// use of the processor's caches.
    pub fn sort(&mut self) {
        let mut by_vbucket: BTreeMap<VbucketId, Vec<LastChange>> = BTreeMap::new();
        for changed in self.changes.drain(..) {
            by_vbucket.entry(changed.mutation.vbucket).or_default().push(changed);
        }
        self.changes.extend(by_vbucket.into_values().flatten());
    }

    /// Creates the mutations of the changes, without seqnos, before the commit is numbered.
    pub fn make_mutations(&mut self) {
        let made = self.changes.iter().map(|LastChange { mutation, .. }| {
            let Mutation { vbucket, id, kind, document, .. } = &**mutation;
            let place = (*vbucket, Seqno(0));
            Arc::new(Mutation::new(place, Arc::clone(id), *kind, document.clone()))
        });
        self.unnumbered = Some(made.collect());
    }

    /// Turns the commit into a commit over several buckets.
    pub fn with_participants(mut self, participants: Vec<BucketId>) -> Self {
        self.participants = participants;
        self
    }

    /// Records that the outcome of the commit is unknown, so that the transaction does not end
    /// when the commit is dropped. Returns the error for the caller.
    pub fn keep_in_doubt(mut self, error: Error) -> Error {
        self.is_in_doubt = true;
        let what = format!("{}; transaction {} may be committed", error.message, self.transaction);
        Error::new(ErrorCode::Interrupted, what)
    }

    /// Returns the number of the transaction among the bucket's transactions. A session may reuse
    /// an id, but a number is unique in this process.
    pub fn number(&self) -> u64 {
        self.of.1
    }

    /// The approximate size of the request, in bytes.
    pub fn bytes(&self) -> usize {
        self.changes.iter().map(|changed| changed.bytes()).sum()
    }
}

impl Drop for CommitInProgress {
    fn drop(&mut self) {
        if plant::is(Plant::CommitAppliedTwice) {
            self.transactions.allow_calls_again(self.of);
        } else if !self.is_in_doubt {
            self.transactions.end(self.of);
        }
    }
}

impl Transactions {
    /// Allows further calls of a transaction whose commit was in progress (a bug that tests
    /// plant).
    fn allow_calls_again(&self, (id, number): (TransactionId, u64)) {
        let mut state = self.state();
        let open = state.open.get_mut(&id).filter(|open| open.number == number);
        open.into_iter().for_each(|open| open.is_committing = false);
    }

    /// Begins the commit of a transaction. `None` if the transaction never began and so has no
    /// changes. The error is `Unavailable` if its commit is already in progress; the caller then
    /// retries. A commit with at least `large_changes` changes may become a large commit.
    pub fn commit(
        self: &Arc<Self>,
        (id, place): (TransactionId, TransactionPlace),
        snapshot: Option<Snapshot>,
        (now, large_changes): (Instant, u64),
    ) -> Result<Option<CommitInProgress>> {
        let mut state = self.state();
        if state.open.get(&id).is_some_and(|open| open.is_committing) {
            return Err(Error::unavailable(format!("transaction {id} is being committed")));
        }
        let Some(open) = state.at_place((id, place), now)? else { return Ok(None) };
        check_snapshot(id, Some(open), snapshot.as_ref())?;
        open.is_committing = true;
        let (all, of) = (open.all(), (id, open.number));
        let snapshot = snapshot.or_else(|| open.snapshot.clone());
        open.is_large = open.changes() >= large_changes;
        if open.is_large {
            state.record_change(id);
            drop(state);
            self.wake();
        } else {
            drop(state);
        }
        let transactions = Arc::clone(self);
        let changes = all.last_changes();
        Ok(Some(CommitInProgress {
            transaction: id,
            place,
            changes,
            snapshot,
            looked_up: None,
            unnumbered: None,
            participants: Vec::new(),
            is_in_doubt: false,
            transactions,
            of,
        }))
    }
}
