//! What a group of writers does to one bucket.

use std::sync::Arc;

use proto::model::cut::Position;
use proto::model::history::Branches;

use super::bucket::Bucket;
use super::mutation::Mutation;
use super::ownership::Keeping;
use super::store::document_store::BucketChanges;

/// What the group does to one bucket.
pub(super) struct Pending {
    pub(super) bucket: Arc<Bucket>,
    pub(super) next: Vec<Position>,
    pub(super) branches: Vec<Branches>,
    pub(super) keeping: Arc<Keeping>,
    pub(super) changes: BucketChanges,
}

impl Pending {
    pub(super) fn new(bucket: Arc<Bucket>) -> Self {
        Self {
            next: bucket.durable().iter().map(|(_, position)| position).collect(),
            branches: bucket.branches(),
            keeping: bucket.keeping(),
            changes: BucketChanges::default(),
            bucket,
        }
    }

    pub(super) fn add(&mut self, mutation: Mutation) {
        self.changes.last.insert(Arc::clone(&mutation.id), self.changes.mutations.len());
        self.changes.mutations.push(Arc::new(mutation));
    }
}
