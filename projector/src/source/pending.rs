//! The changes of a commit group.

use std::sync::Arc;

use proto::model::cut::Position;
use proto::model::history::Branches;

use super::ahead::{Newest, Positions};
use super::bucket::Bucket;
use documents::document_store::Batch;
use documents::mutation::Mutation;
use documents::ownership::Ownership;

/// The changes of a commit group.
pub(super) struct PendingChanges {
    pub(super) bucket: Arc<Bucket>,
    pub(super) next: Vec<Position>,
    pub(super) branches: Vec<Branches>,
    pub(super) ownership: Arc<Ownership>,
    pub(super) changes: Batch,
    newest: Newest,
}

impl PendingChanges {
    /// Changes behind everything that was numbered.
    pub(super) fn new(bucket: Arc<Bucket>, behind: Positions) -> Self {
        let Positions { next, branches } = behind;
        let (changes, newest) = (Batch::default(), Newest::default());
        Self { next, branches, ownership: bucket.ownership(), changes, newest, bucket }
    }

    pub(super) fn add(&mut self, mutation: Mutation) {
        self.changes.mutations.push(Arc::new(mutation));
    }

    /// The group's last mutation of an id.
    pub(super) fn newest(&mut self, id: &str) -> Option<&Mutation> {
        self.newest.of(&self.changes.mutations, id)
    }
}
