//! Random ids of buckets: a bucket under the number of another one is never shown.
//!
//! A coordinator that was restored from an older copy may give the number of a bucket again. The catalog then has a bucket
//! whose number this projector keeps for another one. The stored bucket becomes *foreign*, durably: it is not served, not
//! replaced and not removed, and calls for the number are refused by name. If the catalog has the stored bucket again, it
//! is served again.

use std::sync::Arc;

use proto::Result;
use proto::lock::lock;
use proto::model::catalog::Catalog;
use proto::model::identity::UniqueId;
use proto::model::ids::BucketId;

use crate::projector::Projector;
use crate::source::StoredId;
use crate::source::bucket::Bucket;

/// Compares the ids of the stored buckets with those of a catalog. Foreign buckets leave; a bucket of an earlier build
/// takes over the id of the catalog.
pub(super) async fn compare_ids(projector: &Arc<Projector>, catalog: &Catalog) -> Result<()> {
    let news = news_of(projector, catalog);
    if news.is_empty() {
        return Ok(());
    }
    for (bucket, id) in news.iter().filter(|(_, id)| id.is_foreign) {
        tracing::error!(
            %bucket, stored = %id.unique,
            "the catalog has another bucket under this number: the coordinator was restored from an older copy; the \
             documents of the stored bucket are kept and not shown"
        );
        projector.remove(*bucket);
    }
    let (store, stored) = (projector.store(), news.clone());
    projector.env.blocking(move || store.put_unique_ids(&stored)).await?;
    let before = {
        let mut ids = lock(&projector.unique_ids);
        news.iter().filter_map(|(bucket, id)| Some((*bucket, ids.insert(*bucket, *id)?))).collect()
    };
    show_again(projector, before, &news).await
}

/// The ids that change with a catalog.
fn news_of(projector: &Projector, catalog: &Catalog) -> Vec<(BucketId, StoredId)> {
    let here = projector.bucket_ids();
    let ids = lock(&projector.unique_ids);
    let news = |(bucket, unique): (&BucketId, &UniqueId)| {
        let known = ids.get(bucket).copied();
        let is_here = here.contains(bucket) || known.is_some_and(|known| known.is_foreign);
        let next = next_id(known, *unique).filter(|_| is_here)?;
        Some((*bucket, next))
    };
    catalog.bucket_ids.iter().filter_map(news).collect()
}

/// The new record of a stored bucket's id under a catalog with this id; `None` if nothing changes.
fn next_id(known: Option<StoredId>, unique: UniqueId) -> Option<StoredId> {
    let next = match known {
        None => StoredId { unique, is_foreign: false },
        Some(known) => StoredId { is_foreign: known.unique != unique, ..known },
    };
    (Some(next) != known).then_some(next)
}

/// Serves the buckets that were foreign and are the catalog's again.
async fn show_again(
    projector: &Arc<Projector>,
    before: Vec<(BucketId, StoredId)>,
    news: &[(BucketId, StoredId)],
) -> Result<()> {
    let is_own = |bucket: &BucketId| news.iter().any(|(id, now)| id == bucket && !now.is_foreign);
    let back: Vec<BucketId> = before
        .into_iter()
        .filter(|(bucket, was)| was.is_foreign && is_own(bucket))
        .map(|(bucket, _)| bucket)
        .collect();
    if back.is_empty() {
        return Ok(());
    }
    let store = projector.store();
    let stored = projector.env.blocking(move || store.buckets()).await?;
    for (record, ends) in stored.into_iter().filter(|(record, _)| back.contains(&record.info.id)) {
        projector.add(Bucket::new(record, &ends, projector.config.head_bytes_max));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_adopted_once_and_another_one_makes_the_bucket_foreign_until_its_own_is_back() {
        let (one, other) = (UniqueId(1), UniqueId(2));
        let own = StoredId { unique: one, is_foreign: false };
        let foreign = StoredId { is_foreign: true, ..own };
        assert_eq!(next_id(None, one), Some(own));
        assert_eq!(next_id(Some(own), one), None);
        assert_eq!(next_id(Some(own), other), Some(foreign));
        assert_eq!(next_id(Some(foreign), other), None);
        assert_eq!(next_id(Some(foreign), one), Some(own));
    }
}
