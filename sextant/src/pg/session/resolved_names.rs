//! A cache of the objects that the names in a prepared statement mean. The cache is valid while
//! the index or bucket of the statement is unchanged.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use proto::lock::lock;
use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, IndexId};
use proto::model::index::IndexInfo;

use crate::sql::plan::{Relation, ResolvedSelect};

/// The resolved names of one statement; empty at first.
#[derive(Default)]
pub(in crate::pg) struct ResolvedNames {
    resolution: Mutex<Option<Resolution>>,
    /// True if a sample of the statement's index was already requested.
    is_sampled: AtomicBool,
}

/// Resolved names, with the index or bucket to which they belong.
struct Resolution {
    relation: Option<Relation>,
    resolved: Arc<ResolvedSelect>,
}

impl ResolvedNames {
    /// Returns the stored resolved names; `None` if the index or bucket has changed since.
    /// `index` returns the generation of an index that the session reads, and `bucket` the
    /// version of a data set that it reads.
    pub(super) fn still_valid(
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

    /// Stores the resolved names of the statement.
    pub(super) fn store(&self, relation: Option<Relation>, resolved: &Arc<ResolvedSelect>) {
        *lock(&self.resolution) = Some(Resolution { relation, resolved: Arc::clone(resolved) });
    }

    /// Returns true at the first call, and false later: only the first execution of a prepared
    /// statement needs a sample.
    pub(in crate::pg) fn take_first_use(&self) -> bool {
        !self.is_sampled.swap(true, Ordering::Relaxed)
    }
}
