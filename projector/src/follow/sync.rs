//! Reports the durable positions of the buckets (SYNC).

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use proto::model::ids::{BucketId, LocalIndexId};
use proto::model::left_out::LeftOut;
use proto::rpc::api::{SyncReply, SyncReport};

use super::retry::{new_retry, report};
use crate::projector::Projector;
use crate::source::registry::source_of_kind;

/// All positions are reported this often even if nothing changed, because a new leading coordinator knows none of
/// them.
const SYNC_ALL: Duration = Duration::from_millis(500);

/// The pause between two SYNCs: well under the tick of promotions.
const SYNC_PAUSE: Duration = Duration::from_millis(2);

/// Sends SYNC for each bucket that has changed, and regularly for all, once a catalog has shown which buckets they are. Runs until
/// cancelled; safe to cancel at any await.
pub async fn sync_positions(projector: Arc<Projector>) -> Infallible {
    let mut catalog = projector.catalog.subscribe();
    // The channel lives as long as the projector.
    let _shown = catalog.wait_for(Option::is_some).await.is_ok();
    let mut retry = new_retry();
    let mut all_at = tokio::time::Instant::now();
    let mut due: BTreeSet<BucketId> = BTreeSet::new();
    loop {
        tokio::select! {
            biased;
            () = projector.changed_buckets.wait() => {}
            () = tokio::time::sleep_until(all_at) => {
                all_at = tokio::time::Instant::now() + SYNC_ALL;
                due.extend(projector.bucket_ids());
            }
        }
        due.append(&mut projector.changed_buckets.take());
        let buckets: Vec<_> = due
            .iter()
            .filter_map(|id| projector.find(*id))
            .filter(|bucket| bucket.check_open().is_ok())
            .map(|bucket| (bucket.info.id, bucket.history()))
            .filter(|(_, history)| !history.kept.is_empty())
            .map(|(id, history)| (id, history.kept, history.durable))
            .collect();
        if buckets.is_empty() {
            due.clear();
            continue;
        }
        let left_out = left_out(&projector);
        let report_of = SyncReport { projector: projector.config.node.id, buckets, left_out };
        match projector.directory.coordinator().sync(report_of).await {
            Ok(reply) => {
                confirm(&projector, &reply);
                due.clear();
                retry.reset();
                tokio::time::sleep(SYNC_PAUSE).await;
            }
            Err(error) => {
                report("SYNC", &error);
                retry.pause().await;
                // A failed report is repeated without waiting for a change.
                all_at = tokio::time::Instant::now();
            }
        }
    }
}

/// The documents that indexes of the catalog have left out.
fn left_out(projector: &Projector) -> Vec<(LocalIndexId, LeftOut)> {
    let counters = &projector.streams.left_out;
    if let Some(catalog) = projector.catalog.borrow().as_ref() {
        let known: BTreeSet<_> = catalog.indexes.values().map(|index| index.local_id()).collect();
        counters.retain(|index| known.contains(&index));
    }
    counters.all()
}

/// Tells each source the epoch that is durable on all copies.
fn confirm(projector: &Projector, reply: &SyncReply) {
    for (id, epoch) in &reply.durable {
        let Some(bucket) = projector.find(*id) else { continue };
        if let Some(mark) = bucket.newest_epoch_until(*epoch) {
            source_of_kind(bucket.info.source).confirm(&bucket.info, &mark.cut);
        }
    }
}
