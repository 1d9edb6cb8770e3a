//! Each bucket has a random id in addition to its number. A projector serves and removes the
//! documents of a stored bucket only if the catalog's bucket of that number has the same random
//! id.
//!
//! A coordinator that was restored from an older copy may not know the newest bucket, and may
//! give its number to another one. A stored bucket whose random id differs from the catalog's
//! becomes *foreign*; so does a bucket that the newest catalog neither has nor lists as dropped.
//! This is recorded durably: a foreign bucket is not served, replaced or removed, and calls for
//! its number are refused with an error that says so. If a later catalog has the stored bucket's
//! random id again, the bucket is served again. A stored bucket is removed only if the catalog
//! lists its id as dropped.

use std::collections::BTreeSet;
use std::sync::Arc;

use proto::Result;
use proto::lock::lock;
use proto::model::catalog::Catalog;
use proto::model::identity::UniqueId;
use proto::model::ids::BucketId;

use crate::projector::Projector;
use crate::source::StoredId;
use crate::source::view::bucket::Bucket;

/// Compares the random ids of the stored buckets with those in a catalog. Stops serving foreign
/// buckets, and serves buckets again whose ids the catalog has again. If the catalog is not the
/// newest, a bucket that it lacks is ignored, because the bucket may be new.
pub(super) async fn compare_ids(
    projector: &Arc<Projector>,
    catalog: &Catalog,
    is_newest: bool,
) -> Result<()> {
    let stored = lock(&projector.stored).clone();
    let next = |(bucket, known): (&BucketId, &Option<StoredId>)| {
        Some((*bucket, updated_stored_id(*bucket, *known, catalog, is_newest)?))
    };
    let compared: Vec<(BucketId, StoredId)> = stored.iter().filter_map(next).collect();
    let news: Vec<_> =
        compared.iter().copied().filter(|(bucket, id)| stored[bucket] != Some(*id)).collect();
    for (bucket, id) in compared.iter().filter(|(_, id)| id.is_foreign) {
        if let Some(gone) = projector.remove(*bucket) {
            // Groups that wait for other copies end.
            projector.env.blocking(move || drop(gone.gate.abandon())).await;
        }
        if news.contains(&(*bucket, *id)) {
            report_foreign(*bucket, *id, catalog);
        }
    }
    let mut here = projector.bucket_ids();
    // A damaged bucket has nothing to open.
    here.append(&mut projector.damaged.ids());
    let is_back = |(bucket, id): &&(BucketId, StoredId)| !id.is_foreign && !here.contains(bucket);
    let back = compared.iter().filter(is_back).map(|(bucket, _)| *bucket).collect();
    // Whatever fails here is repeated with the next catalog, since the ids in memory are still the old ones.
    let back = open_again(projector, back).await?;
    if !news.is_empty() {
        let (store, stored) = (projector.store(), news.clone());
        projector.env.blocking(move || store.put_unique_ids(&stored)).await?;
        lock(&projector.stored).extend(news.into_iter().map(|(bucket, id)| (bucket, Some(id))));
    }
    back.into_iter().for_each(|bucket| projector.add(bucket));
    Ok(())
}

/// Returns the stored buckets whose random ids the catalog lists as dropped, including buckets
/// that are not served.
pub(super) fn dropped_buckets(projector: &Projector, catalog: &Catalog) -> Vec<BucketId> {
    let stored = lock(&projector.stored);
    let is_dropped = |(bucket, known): &(&BucketId, &Option<StoredId>)| {
        known.is_some_and(|known| catalog.has_dropped(**bucket, known.unique))
    };
    stored.iter().filter(is_dropped).map(|(bucket, _)| *bucket).collect()
}

/// Returns the record of a stored bucket's random id, as it follows from a catalog; `None` if
/// nothing follows from the catalog.
fn updated_stored_id(
    bucket: BucketId,
    known: Option<StoredId>,
    catalog: &Catalog,
    is_newest: bool,
) -> Option<StoredId> {
    let Some(StoredId { unique, .. }) = known else {
        // There is no evidence that it is the catalog's bucket.
        let nobodys = StoredId { unique: UniqueId::default(), is_foreign: true };
        return catalog.bucket_ids.contains_key(&bucket).then_some(nobodys);
    };
    let is_foreign = match catalog.bucket_ids.get(&bucket) {
        Some(theirs) => *theirs != unique,
        None if !is_newest || catalog.has_dropped(bucket, unique) => return None,
        None => true,
    };
    Some(StoredId { unique, is_foreign })
}

/// Logs that a stored bucket has become foreign.
fn report_foreign(bucket: BucketId, id: StoredId, catalog: &Catalog) {
    let why = match catalog.bucket_ids.get(&bucket) {
        Some(_) => {
            "the catalog has another bucket under this number: the coordinator was restored from an older copy"
        }
        None => {
            "the catalog neither has the stored bucket nor names it as dropped: the coordinator was restored from an older copy, \
             or many buckets were dropped while this projector was away"
        }
    };
    tracing::error!(%bucket, stored = %id.unique, "{why}; the documents are kept and not shown");
}

/// Opens stored buckets that were foreign, and are served again.
async fn open_again(projector: &Projector, back: BTreeSet<BucketId>) -> Result<Vec<Bucket>> {
    if back.is_empty() {
        return Ok(Vec::new());
    }
    let store = projector.store();
    let stored = projector.env.blocking(move || store.buckets()).await?;
    let wanted = stored.into_iter().filter(|(record, _)| back.contains(&record.info.id));
    let head_bytes_max = projector.config.head_bytes_max;
    Ok(wanted.map(|(record, ends)| Bucket::new(record, &ends, head_bytes_max)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUCKET: BucketId = BucketId(4);

    /// A catalog that has the bucket with this id.
    fn with(id: Option<UniqueId>) -> Catalog {
        let bucket_ids = id.map(|id| (BUCKET, id)).into_iter().collect();
        Catalog { bucket_ids, ..Catalog::default() }
    }

    fn next(known: Option<StoredId>, catalog: &Catalog) -> Option<StoredId> {
        updated_stored_id(BUCKET, known, catalog, true)
    }

    #[test]
    fn a_bucket_is_foreign_until_the_catalog_has_this_very_bucket() {
        let (one, other) = (UniqueId(1), UniqueId(2));
        let own = StoredId { unique: one, is_foreign: false };
        let foreign = StoredId { is_foreign: true, ..own };
        for known in [own, foreign] {
            assert_eq!(next(Some(known), &with(Some(one))), Some(own));
            assert_eq!(next(Some(known), &with(Some(other))), Some(foreign));
            assert_eq!(next(Some(known), &with(None)), Some(foreign));
            assert_eq!(updated_stored_id(BUCKET, Some(known), &with(None), false), None);
            let dropped = Catalog { dropped_buckets: vec![(BUCKET, one)], ..with(None) };
            assert_eq!(next(Some(known), &dropped), None, "it is removed");
            let dropped = Catalog { dropped_buckets: vec![(BUCKET, other)], ..with(None) };
            assert_eq!(next(Some(known), &dropped), Some(foreign));
        }
    }

    #[test]
    fn a_bucket_without_a_stored_id_is_never_adopted() {
        let foreign = StoredId { unique: UniqueId::default(), is_foreign: true };
        assert_eq!(next(None, &with(Some(UniqueId(1)))), Some(foreign));
        assert_eq!(next(None, &Catalog::default()), None);
    }
}
