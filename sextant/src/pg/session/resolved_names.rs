//! A cache of the objects that the names of a prepared statement mean, valid while its index or
//! bucket is unchanged.

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
    /// True if a sample of the statement's index was requested.
    is_sampled: AtomicBool,
}

/// Resolved names, and the index or bucket in which they were resolved.
struct Resolution {
    relation: Option<Relation>,
    resolved: Arc<ResolvedSelect>,
}

impl ResolvedNames {
    /// Returns the resolved names; `None` if the catalog has another version of the index or
    /// bucket. `index` returns the generation of an index that the session reads, and `bucket` the
    /// version of a data set.
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

    /// True at the first call: later executions of a prepared statement need no sample.
    pub(in crate::pg) fn samples_now(&self) -> bool {
        !self.is_sampled.swap(true, Ordering::Relaxed)
    }
}
