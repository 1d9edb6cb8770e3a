//! Keeps what the names of a prepared statement mean, as long as its index or bucket stays as it is.

use std::sync::{Arc, Mutex};

use proto::lock::lock;
use proto::model::catalog::Catalog;
use proto::model::index::IndexInfo;

use crate::sql::plan::{Relation, Resolved};

/// The resolved names of one statement. A statement that is executed once begins with an empty one.
#[derive(Default)]
pub(super) struct Kept(Mutex<Option<Resolution>>);

/// Resolved names, and the relation that they were resolved against.
struct Resolution {
    relation: Option<Relation>,
    resolved: Arc<Resolved>,
}

impl Kept {
    /// The resolved names, unless a catalog shows another relation.
    /// `goes_on` tells the generation of an index that the session reads.
    pub(super) fn present(
        &self,
        catalog: &Catalog,
        goes_on: impl FnOnce(&Arc<IndexInfo>) -> Option<Arc<IndexInfo>>,
    ) -> Option<Arc<Resolved>> {
        let kept = lock(&self.0);
        let Resolution { relation, resolved } = kept.as_ref()?;
        let is_present = match relation {
            None => true,
            Some(Relation::Index(index)) => {
                let read = catalog.indexes.get(&index.id).and_then(goes_on);
                read.is_some_and(|now| Arc::ptr_eq(&now, index))
            }
            Some(Relation::Bucket(bucket)) => {
                catalog.buckets.get(&bucket.id).is_some_and(|now| Arc::ptr_eq(now, bucket))
            }
        };
        is_present.then(|| Arc::clone(resolved))
    }

    pub(super) fn keep(&self, relation: Option<Relation>, resolved: &Arc<Resolved>) {
        *lock(&self.0) = Some(Resolution { relation, resolved: Arc::clone(resolved) });
    }
}
