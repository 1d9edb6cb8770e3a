//! Recreates the damaged bucket of a data set's version, empty. No data is lost by that: all
//! documents are in the source files, and on other projectors.

use std::collections::BTreeMap;

use documents::document_store::DamagedFiles;
use documents::ownership::Ownership;
use proto::Result;
use proto::model::history::Branches;
use proto::model::ids::BucketId;

use crate::projector::Projector;
use crate::source::BucketRecord;
use crate::source::view::bucket::Bucket;

/// Recreates a damaged bucket, empty. The damaged files remain until the version is dropped.
pub async fn recreate_empty(projector: &Projector, id: BucketId) -> Result<()> {
    let _turn = projector.catalog_turn.lock().await;
    let catalog = projector.catalog.borrow().clone();
    let info = catalog.and_then(|catalog| catalog.buckets.get(&id).cloned());
    let Some(info) = info.filter(|_| projector.damaged.get(id).is_some()) else { return Ok(()) };
    let record = BucketRecord {
        branches: vec![Branches::new(); usize::from(info.vbuckets)],
        info: (*info).clone(),
        ownership: Ownership::default(),
        given_up: BTreeMap::new(),
        commits: Default::default(),
    };
    tracing::warn!(bucket = %info.name, "a damaged version is made anew, and loaded again");
    let (store, made) = (projector.store(), record.clone());
    projector.env.blocking(move || store.recreate_empty(&made, DamagedFiles::Kept)).await?;
    let ends = vec![Default::default(); usize::from(info.vbuckets)];
    projector.add(Bucket::new(record, &ends, projector.config.head_bytes_max));
    // Order matters: the catalog and the timestamps that come again find the bucket.
    projector.damaged.record_recreated(id, DamagedFiles::Kept);
    Ok(())
}
