//! The changes of a commit group.

use std::sync::Arc;

use proto::model::commits::{Committed, NewestCommits};
use proto::model::cut::Position;
use proto::model::history::Branches;

use super::ahead::{Newest, Positions};
use super::bucket::Bucket;
use super::large_commits::LargeCommit;
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
    newest: Newest,
}

impl PendingChanges {
    /// Changes behind everything that was numbered.
    pub(super) fn new(bucket: Arc<Bucket>, behind: Positions) -> Self {
        let Positions { next, branches, commits } = behind;
        let (changes, newest, large) = (Batch::default(), Newest::default(), Vec::new());
        let ownership = bucket.ownership();
        Self { next, branches, commits, ownership, changes, large, newest, bucket }
    }

    pub(super) fn add(&mut self, mutation: Mutation) {
        self.changes.mutations.push(Arc::new(mutation));
    }

    /// Adds the commit of a transaction whose mutations were added.
    pub(super) fn commit(&mut self, committed: Committed) {
        self.commits.add(&committed);
        self.changes.commits.push(committed);
    }

    /// The group's last mutation of an id.
    pub(super) fn newest(&mut self, id: &str) -> Option<&Mutation> {
        self.newest.of(&self.changes.mutations, id)
    }
}
