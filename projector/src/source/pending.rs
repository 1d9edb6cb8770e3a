//! The changes of a commit group in one bucket.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::cut::Position;
use proto::model::history::Branches;
use proto::rpc::mutation::MutationKind;

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
    /// The last mutation of each id among the first `indexed` ones.
    newest: BTreeMap<Arc<str>, usize>,
    indexed: usize,
}

impl PendingChanges {
    pub(super) fn new(bucket: Arc<Bucket>) -> Self {
        Self {
            next: bucket.durable().iter().map(|(_, position)| position).collect(),
            branches: bucket.branches(),
            ownership: bucket.ownership(),
            changes: BucketChanges::default(),
            newest: BTreeMap::new(),
            indexed: 0,
            bucket,
        }
    }

    pub(super) fn add(&mut self, mutation: Mutation) {
        self.changes.mutations.push(Arc::new(mutation));
    }

    /// The kind of the group's last mutation of an id. Upserts never ask, so the ids are sorted when somebody does.
    pub(super) fn newest(&mut self, id: &str) -> Option<MutationKind> {
        let mutations = &self.changes.mutations;
        for (at, mutation) in mutations.iter().enumerate().skip(self.indexed) {
            self.newest.insert(Arc::clone(&mutation.id), at);
        }
        self.indexed = mutations.len();
        self.newest.get(id).map(|at| mutations[*at].kind)
    }
}
