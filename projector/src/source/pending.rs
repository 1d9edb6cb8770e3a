//! The changes of a group of requests, collected before they are logged together.

use std::sync::Arc;

use proto::model::commits::{NewestCommits, TransactionEvent};
use proto::model::cut::Position;
use proto::model::history::Branches;

use super::groups::ahead::{LastMutations, Positions};
use super::view::bucket::Bucket;
use super::view::large_commits::LargeCommit;
use documents::document_store::Batch;
use documents::mutation::Mutation;
use documents::ownership::Ownership;

/// The changes of a group of requests before they are logged, and the positions of the bucket
/// after them.
pub(super) struct PendingChanges {
    pub(super) bucket: Arc<Bucket>,
    pub(super) next: Vec<Position>,
    pub(super) branches: Vec<Branches>,
    pub(super) commits: NewestCommits,
    pub(super) ownership: Arc<Ownership>,
    pub(super) changes: Batch,
    /// The large commits of transactions in the group.
    pub(super) large: Vec<Arc<LargeCommit>>,
    newest: LastMutations,
}

impl PendingChanges {
    /// Creates an empty group that follows all numbered groups, which end at the positions
    /// `behind`.
    pub(super) fn new(bucket: Arc<Bucket>, behind: Positions) -> Self {
        let Positions { next, branches, commits } = behind;
        let (changes, newest, large) = (Batch::default(), LastMutations::default(), Vec::new());
        let ownership = bucket.ownership();
        Self { next, branches, commits, ownership, changes, large, newest, bucket }
    }

    pub(super) fn add(&mut self, mutation: Mutation) {
        self.changes.mutations.push(Arc::new(mutation));
    }

    /// Adds a step of a transaction, such as its commit. The mutations of a commit must have been
    /// added before.
    pub(super) fn add_transaction_step(&mut self, event: TransactionEvent) {
        self.commits.apply_event(&event);
        self.changes.commits.push(event);
    }

    /// Adds a step for each commit that is not open any more, which removes the commit from the
    /// bucket's record.
    pub(super) fn drop_ended_commits(&mut self) {
        if self.commits.open().len() > 0 && !self.changes.is_empty() {
            for settled in self.bucket.settled() {
                let id = settled.id();
                // A producer's transaction may have been committed again, at other positions.
                if self.commits.find_open(id) == Some(&settled) {
                    self.add_transaction_step(TransactionEvent::Settled(id));
                }
            }
        }
        // Readers do not see those of the groups before yet. The log has a record before the steps of its group, and to take such a step
        // again changes nothing: in a pushed bucket they are all of producers.
        if let Some(record) = &mut self.changes.record {
            record.commits = self.commits.clone();
        }
    }

    /// Returns the group's last mutation of an id.
    pub(super) fn newest(&mut self, id: &str) -> Option<&Mutation> {
        self.newest.of(&self.changes.mutations, id)
    }
}
