//! The task that reports the durable positions of the buckets to the coordinators. This report is
//! named SYNC.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use proto::lock::lock;
use proto::model::ids::{BucketId, LocalIndexId, NodeId};
use proto::model::joint::PartlyLostCommit;
use proto::model::left_out::LeftOut;
use proto::rpc::api::{BucketReport, Directory, SyncReply, SyncReport};

use super::retry::{log_failure, new_retry};
use crate::projector::Projector;
use crate::source::registry::source_of_kind;

/// The interval at which all positions are reported, even without changes. A coordinator that has
/// just become the leader has none of them.
const SYNC_ALL: Duration = Duration::from_millis(500);

/// The maximum number of halved commits in a report. A commit over several buckets is halved if
/// one of the buckets has lost its mutations.
const HALVED_MAX: usize = 256;

/// The pause between two SYNC reports: well below the interval of new epochs.
const SYNC_PAUSE: Duration = Duration::from_millis(2);

/// The interface through which SYNC reads the state of a projector.
pub trait Reporter: Send + Sync + 'static {
    /// The node id of the projector.
    fn node(&self) -> NodeId;
    /// Returns the clients of the other services.
    fn directory(&self) -> &Arc<dyn Directory>;
    /// Waits until a bucket has changed since the last call of [`Self::take_changed`].
    fn wait_changed(&self) -> impl Future<Output = ()> + Send;
    /// Returns the buckets that have changed since the last call of this function.
    fn take_changed(&self) -> BTreeSet<BucketId>;
    /// The ids of all buckets.
    fn bucket_ids(&self) -> BTreeSet<BucketId>;
    /// Runs `read`, which reads several buckets, as of one moment: no change is included in one
    /// bucket and missing in another.
    fn read_at_one_moment<T>(&self, read: impl FnOnce() -> T) -> T {
        read()
    }
    /// Returns the durable positions of a bucket; `None` if there is nothing to report.
    fn bucket_report(&self, bucket: BucketId) -> Option<BucketReport>;
    /// Returns, for each index, how many documents it has left out.
    fn left_out(&self) -> Vec<(LocalIndexId, LeftOut)>;
    /// Returns the commits over several buckets of which one bucket has lost its mutations.
    fn halved_commits(&self) -> Vec<PartlyLostCommit> {
        Vec::new()
    }
    /// Applies the coordinator's answer to a report.
    fn apply_sync_reply(&self, reply: &SyncReply);
}

/// Sends SYNC for each changed bucket, and regularly for all, after the first catalog has arrived.
/// Runs until cancelled; safe to cancel at any await.
pub async fn sync_positions(projector: Arc<Projector>) -> Infallible {
    let mut catalog = projector.catalog.subscribe();
    // The channel lives as long as the projector.
    let _shown = catalog.wait_for(Option::is_some).await.is_ok();
    drop(catalog);
    report_changes(&*projector).await
}

/// Sends SYNC for each changed bucket, and regularly for all buckets.
pub async fn report_changes(projector: &impl Reporter) -> Infallible {
    let mut retry = new_retry();
    let mut all_at = tokio::time::Instant::now();
    let mut due: BTreeSet<BucketId> = BTreeSet::new();
    loop {
        tokio::select! {
            biased;
            () = projector.wait_changed() => {}
            () = tokio::time::sleep_until(all_at) => {
                all_at = tokio::time::Instant::now() + SYNC_ALL;
                due.extend(projector.bucket_ids());
            }
        }
        let buckets: Vec<_> = projector.read_at_one_moment(|| {
            due.append(&mut projector.take_changed());
            due.iter().filter_map(|id| projector.bucket_report(*id)).collect()
        });
        if buckets.is_empty() {
            due.clear();
            continue;
        }
        let (left_out, halved) = (projector.left_out(), projector.halved_commits());
        let report_of = SyncReport { projector: projector.node(), buckets, left_out, halved };
        match projector.directory().coordinator().sync(report_of).await {
            Ok(reply) => {
                projector.apply_sync_reply(&reply);
                due.clear();
                retry.reset();
                tokio::time::sleep(SYNC_PAUSE).await;
            }
            Err(error) => {
                log_failure("SYNC", &error);
                retry.pause().await;
                // A failed report is repeated without waiting for a change.
                all_at = tokio::time::Instant::now();
            }
        }
    }
}

impl Reporter for Projector {
    fn node(&self) -> NodeId {
        self.config.node.id
    }

    fn directory(&self) -> &Arc<dyn Directory> {
        &self.directory
    }

    async fn wait_changed(&self) {
        self.changed_buckets.wait().await;
    }

    fn take_changed(&self) -> BTreeSet<BucketId> {
        self.changed_buckets.take()
    }

    fn bucket_ids(&self) -> BTreeSet<BucketId> {
        Self::bucket_ids(self)
    }

    fn read_at_one_moment<T>(&self, read: impl FnOnce() -> T) -> T {
        let _showing = lock(&self.writer.showing);
        read()
    }

    fn bucket_report(&self, bucket: BucketId) -> Option<BucketReport> {
        let bucket = self.find(bucket).filter(|bucket| bucket.info.source.reports_position())?;
        bucket.check_open().ok()?;
        bucket.report()
    }

    fn left_out(&self) -> Vec<(LocalIndexId, LeftOut)> {
        let counters = &self.streams.left_out;
        if let Some(catalog) = self.catalog.borrow().as_ref() {
            let known: BTreeSet<_> =
                catalog.local_indexes().map(|index| index.local_id()).collect();
            counters.retain(|index| known.contains(&index));
        }
        counters.all()
    }

    fn halved_commits(&self) -> Vec<PartlyLostCommit> {
        let buckets = self.bucket_ids().into_iter().filter_map(|id| self.find(id));
        let mut halved: Vec<_> = buckets.flat_map(|bucket| bucket.halved_commits()).collect();
        halved.truncate(HALVED_MAX);
        halved
    }

    /// Informs the source of each bucket that all mutations up to an epoch are durable on all
    /// copies of the bucket's indexes.
    fn apply_sync_reply(&self, reply: &SyncReply) {
        for (id, epoch) in &reply.durable {
            let Some(bucket) = self.find(*id) else { continue };
            if let Some(mark) = bucket.newest_epoch_until(*epoch) {
                source_of_kind(bucket.info.source).confirm(&bucket.info, &mark.cut);
            }
        }
    }
}
