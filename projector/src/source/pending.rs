//! The changes of a commit group.

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

/// The changes of a commit group.
pub(super) struct PendingChanges {
    pub(super) bucket: Arc<Bucket>,
    pub(super) next: Vec<Position>,
    pub(super) branches: Vec<Branches>,
    pub(super) commits: NewestCommits,
    pub(super) ownership: Arc<Ownership>,
    pub(super) changes: Batch,
    /// The large commits of the group.
    pub(super) large: Vec<Arc<LargeCommit>>,
    newest: LastMutations,
}

impl PendingChanges {
    /// Changes after everything that was numbered.
    pub(super) fn new(bucket: Arc<Bucket>, behind: Positions) -> Self {
        let Positions { next, branches, commits } = behind;
        let (changes, newest, large) = (Batch::default(), LastMutations::default(), Vec::new());
        let ownership = bucket.ownership();
        Self { next, branches, commits, ownership, changes, large, newest, bucket }
    }

    pub(super) fn add(&mut self, mutation: Mutation) {
        self.changes.mutations.push(Arc::new(mutation));
    }

    /// Adds a step of a transaction. The mutations of a commit were added before.
    pub(super) fn transaction(&mut self, event: TransactionEvent) {
        self.commits.add(&event);
        self.changes.commits.push(event);
    }

    /// Notes the commits that are open no longer, in addition to the changes of the group.
    pub(super) fn settle(&mut self) {
        if !self.commits.joint().is_empty() && !self.changes.is_empty() {
            self.settle_joint();
        }
        if !self.commits.pushed().is_empty() && !self.changes.is_empty() {
            for settled in self.bucket.settled_pushed() {
                // The transaction may have been committed again, at other positions.
                if self.commits.pushed().find(settled.transaction) == Some(&settled) {
                    self.transaction(TransactionEvent::PushedSettled(settled.transaction));
                }
            }
        }
        // Readers do not see those of the groups before yet. The log has a record before the steps of its group, and to take such a step
        // again changes nothing: in a pushed bucket they are all of producers.
        if let Some(record) = &mut self.changes.record {
            record.commits = self.commits.clone();
        }
    }

    fn settle_joint(&mut self) {
        for transaction in self.bucket.settled() {
            if self.commits.joint().find_open(transaction).is_some() {
                self.transaction(TransactionEvent::Settled(transaction));
            }
        }
    }

    /// The group's last mutation of an id.
    pub(super) fn newest(&mut self, id: &str) -> Option<&Mutation> {
        self.newest.of(&self.changes.mutations, id)
    }
}
