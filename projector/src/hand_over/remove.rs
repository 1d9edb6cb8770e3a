//! Removes what is here of vbuckets, a small batch at a time ([`crate::source`] says how a part is known).

use std::sync::Arc;
use std::time::Duration;

use proto::Result;
use proto::model::ids::VbucketId;

use super::removing::{Removal, is_coming};
use crate::projector::Projector;
use crate::source::bucket::Bucket;
use crate::source::writer::Writer;

/// Between two tries.
const RETRY: Duration = Duration::from_millis(200);

/// Removes what has gone elsewhere, and copies that were given up, whenever the catalog tells of some. Runs until
/// cancelled, at any await without harm: what is left is removed by the next process.
pub async fn remove_gone(projector: Arc<Projector>) {
    let mut catalogs = projector.catalog.subscribe();
    while catalogs.changed().await.is_ok() {
        while let Err(error) = remove_all_gone(&projector).await {
            tracing::debug!(%error, "removing vbuckets that have gone; trying again");
            tokio::time::sleep(RETRY).await;
        }
    }
}

async fn remove_all_gone(projector: &Projector) -> Result<()> {
    let me = projector.config.node.id;
    for bucket in projector.bucket_ids() {
        let Some(bucket) = projector.find(bucket) else { continue };
        for vbucket in (0..bucket.info.vbuckets).map(VbucketId) {
            let homes = bucket.homes();
            let is_elsewhere = homes.home(vbucket).is_some_and(|home| home != me);
            if is_elsewhere && !is_coming(&homes, vbucket, me) {
                let removal = Removal { vbucket, projector: me, comes: false };
                remove(projector, &bucket, removal).await?;
            }
        }
    }
    Ok(())
}

/// Removes what is here of a vbucket, if anything. Cancelled: it is here in part, and the rest goes later.
pub(super) async fn remove(
    projector: &Projector,
    bucket: &Arc<Bucket>,
    removal: Removal,
) -> Result<()> {
    if !bucket.has_some(removal.vbucket) {
        return Ok(());
    }
    let at = || Arc::clone(bucket);
    if !projector.alone(at(), move |writer, b| writer.begin_removal(b, removal)).await? {
        return Ok(());
    }
    let mut next: Option<String> = None;
    loop {
        let behind = next.take();
        let some = move |writer: &Writer, b: &Bucket| {
            writer.remove_documents(b, removal, behind.as_deref())
        };
        next = projector.alone(at(), some).await?;
        if next.is_none() {
            break;
        }
    }
    while !projector.alone(at(), move |writer, b| writer.remove_log(b, removal)).await? {}
    Ok(())
}
