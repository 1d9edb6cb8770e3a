//! The changes of a commit group in one bucket.

use std::sync::Arc;

use proto::model::cut::Position;
use proto::model::history::Branches;

use super::bucket::Bucket;
use documents::document_store::BucketChanges;
use documents::mutation::Mutation;
use documents::ownership::Ownership;

/// The changes of a commit group in one bucket.
pub(super) struct PendingChanges {
    pub(super) bucket: Arc<Bucket>,
    pub(super) next: Vec<Position>,
    pub(super) branches: Vec<Branches>,
    pub(super) ownership: Arc<Ownership>,
    pub(super) changes: BucketChanges,
}

impl PendingChanges {
    pub(super) fn new(bucket: Arc<Bucket>) -> Self {
        Self {
            next: bucket.durable().iter().map(|(_, position)| position).collect(),
            branches: bucket.branches(),
            ownership: bucket.ownership(),
            changes: BucketChanges::default(),
            bucket,
        }
    }

    pub(super) fn add(&mut self, mutation: Mutation) {
        self.changes.last.insert(Arc::clone(&mutation.id), self.changes.mutations.len());
        self.changes.mutations.push(Arc::new(mutation));
    }
}
