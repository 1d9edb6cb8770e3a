//! Keeps what the names of a prepared statement mean, as long as its index or bucket stays as it is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use proto::lock::lock;
use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, IndexId};
use proto::model::index::IndexInfo;

use crate::sql::plan::{Relation, ResolvedSelect};

/// The resolved names of one statement. A statement that is executed once begins with an empty set.
#[derive(Default)]
pub(in crate::pg) struct ResolvedNames {
    resolution: Mutex<Option<Resolution>>,
    /// True once a sample of its index was requested.
    is_sampled: AtomicBool,
}

/// Resolved names, and the relation that they were resolved against.
struct Resolution {
    relation: Option<Relation>,
    resolved: Arc<ResolvedSelect>,
}

impl ResolvedNames {
    /// The resolved names, unless a catalog shows another relation. `index` returns the generation of an index that the session reads, and
    /// `bucket` the version of a data set.
    pub(super) fn present(
        &self,
        catalog: &Catalog,
        index: impl FnOnce(IndexId) -> Option<Arc<IndexInfo>>,
        bucket: impl FnOnce(BucketId) -> Option<Arc<BucketInfo>>,
    ) -> Option<Arc<ResolvedSelect>> {
        let kept = lock(&self.resolution);
        let Resolution { relation, resolved } = kept.as_ref()?;
        let is_present = match relation {
            None => true,
            Some(Relation::Index(known)) => {
                index(known.id).is_some_and(|now| Arc::ptr_eq(&now, known))
            }
            Some(Relation::Bucket(known)) => {
                let read = bucket(catalog.user_bucket(known.id));
                read.is_some_and(|now| Arc::ptr_eq(&now, known))
            }
        };
        is_present.then(|| Arc::clone(resolved))
    }

    pub(super) fn keep(&self, relation: Option<Relation>, resolved: &Arc<ResolvedSelect>) {
        *lock(&self.resolution) = Some(Resolution { relation, resolved: Arc::clone(resolved) });
    }

    /// True for the first time: later executions of a prepared statement need no sample.
    pub(in crate::pg) fn samples_now(&self) -> bool {
        !self.is_sampled.swap(true, Ordering::Relaxed)
    }
}
