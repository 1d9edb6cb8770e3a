//! The task that removes the data of vbuckets which this projector does not need any more.

use std::sync::Arc;
use std::time::Duration;

use proto::Result;
use proto::model::ids::VbucketId;

use super::removal::{Removal, is_joining};
use crate::projector::Projector;
use crate::source::view::bucket::Bucket;

/// The pause after a failure.
const RETRY: Duration = Duration::from_millis(200);

/// Removes vbuckets that have moved to another owner, and abandoned copies of vbuckets, after
/// each change of the catalog. Runs until cancelled; safe to cancel at any await, because the
/// next process removes the remaining ones.
pub async fn remove_unneeded(projector: Arc<Projector>) -> &'static str {
    let mut catalogs = projector.catalog.subscribe();
    while catalogs.changed().await.is_ok() {
        while let Err(error) = remove_all_unneeded(&projector).await {
            tracing::debug!(%error, "removing vbuckets failed; retrying");
            tokio::time::sleep(RETRY).await;
        }
    }
    "the catalog's channel was closed"
}

async fn remove_all_unneeded(projector: &Projector) -> Result<()> {
    let me = projector.config.node.id;
    for bucket in projector.bucket_ids() {
        let Some(bucket) = projector.find(bucket) else { continue };
        // An embedded bucket is kept or removed as a whole, and the partitions of a version stay with all their
        // holders.
        if !bucket.info.source.can_hand_over() {
            continue;
        }
        for vbucket in (0..bucket.info.vbuckets).map(VbucketId) {
            let assignment = bucket.assignment();
            let is_elsewhere = assignment.owner(vbucket).is_some_and(|owner| owner != me);
            if is_elsewhere && !is_joining(&assignment, vbucket, me) {
                let removal = Removal { vbucket, projector: me, for_new_copy: false };
                remove(projector, &bucket, removal).await?;
            }
        }
    }
    Ok(())
}

/// Removes the stored data of a vbucket.
pub(super) async fn remove(
    projector: &Projector,
    bucket: &Arc<Bucket>,
    removal: Removal,
) -> Result<()> {
    if !bucket.has_data(removal.vbucket) {
        return Ok(());
    }
    let at = Arc::clone(bucket);
    projector
        .run_exclusively(at, move |writer, bucket| writer.remove_vbucket(bucket, removal))
        .await
}
