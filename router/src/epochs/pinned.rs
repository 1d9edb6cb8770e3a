//! The reads of a transaction: an epoch in a bucket, and the moment at which it reads the other
//! buckets.
//!
//! A transaction fixes its moment with its first read. If it may write, it gets the moment from the
//! coordinator; such a moment covers all writes that were acknowledged before, in all buckets. If
//! it may read at any epoch, no call is needed: the chosen epoch and the last moment that the
//! router has received stand for its moment, and the coordinator resolves them when a second bucket
//! is read. The lease of the moment keeps the epochs of all buckets readable meanwhile.
//!
//! A transaction that may write needs the newest moment. Otherwise a transaction that reads and
//! writes documents which its session has just committed would conflict with that commit, at every
//! retry. The epoch is one of the bucket: documents are read as of its cut, also before any index
//! has applied it, and a scan waits until its slices have applied it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, Epoch};
use proto::model::moment::Moment;
use proto::rpc::api::FixedMoment;
use proto::{Error, ErrorCode, Result};
use tokio::time::{Instant, sleep, timeout_at};

use super::applied_epochs::readable_from;
use super::leases::{EpochLease, MomentLease};
use crate::context::RouterContext;

/// The epoch that a transaction reads in a bucket, with its moment. Both are readable until this
/// value is dropped.
pub struct PinnedEpoch {
    context: Arc<RouterContext>,
    lease: EpochLease,
    moment: Arc<MomentLease>,
    catalog: Arc<Catalog>,
}

impl PinnedEpoch {
    /// The epoch that the transaction reads in the bucket.
    pub fn epoch(&self) -> Epoch {
        self.lease.epoch()
    }

    /// Returns a catalog from before the epoch was chosen; the generations that serve in this
    /// catalog are kept too.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Pins an epoch that this router has chosen, with its catalog.
    pub(crate) fn of_lease(
        context: &Arc<RouterContext>,
        lease: EpochLease,
        catalog: Arc<Catalog>,
    ) -> Self {
        let at = context.moment.load(Ordering::Relaxed);
        let moment = Moment { at, of: Some((lease.bucket(), lease.epoch())) };
        let moment = Arc::new(context.leases.take_moment(moment, Instant::now()));
        Self { context: Arc::clone(context), lease, moment, catalog }
    }

    /// Gets a moment from the coordinator that covers all earlier acknowledged writes, and pins a
    /// bucket at it.
    pub(crate) async fn of_now(
        context: &Arc<RouterContext>,
        bucket: BucketId,
        deadline: Instant,
    ) -> Result<Self> {
        let catalog = context.catalog.load_full();
        let _held = context.leases.hold(catalog.cas);
        let fixed = timeout_at(deadline, moment_of_now(context, bucket, deadline)).await;
        let fixed = fixed.map_err(|_| no_epoch(&catalog, bucket))?;
        let FixedMoment { at, epoch } = fixed.map_err(|error| gone(&catalog, bucket, error))?;
        let moment = Arc::new(context.leases.take_moment(Moment::at(at), Instant::now()));
        let lease = context.leases.take(bucket, epoch, catalog.cas);
        Ok(Self { context: Arc::clone(context), lease, moment, catalog })
    }

    /// Pins another bucket at the same moment. `SnapshotTooOld` if the bucket's epoch in force at
    /// the moment is not readable any more, or the bucket is younger than the moment.
    pub async fn pin_at(&self, bucket: BucketId, timeout_ms: u64) -> Result<Self> {
        let deadline = Instant::now() + Duration::from_millis(timeout_ms);
        let moment = self.moment.moment();
        let epoch = loop {
            let coordinator = self.context.directory.coordinator();
            match timeout_at(deadline, coordinator.epoch_at(bucket, moment)).await {
                // A moment that a member no longer retains will not be in a later answer either.
                Ok(Err(error)) if error.is_retry() && error.code != ErrorCode::SnapshotTooOld => {
                    self.pause(deadline, error).await?;
                }
                Ok(found) => break found.map_err(|error| gone(&self.catalog, bucket, error))?,
                Err(_) => return Err(no_epoch(&self.catalog, bucket)),
            }
        };
        check_readable(&self.context, bucket, epoch)?;
        let catalog = Arc::clone(&self.catalog);
        let lease = self.context.leases.take(bucket, epoch, catalog.cas);
        let (context, moment) = (Arc::clone(&self.context), Arc::clone(&self.moment));
        Ok(Self { context, lease, moment, catalog })
    }

    async fn pause(&self, deadline: Instant, error: Error) -> Result<()> {
        let pause = self.context.config.retry;
        if Instant::now() + pause >= deadline {
            return Err(error);
        }
        sleep(pause).await;
        Ok(())
    }
}

/// Requests a moment from the coordinator, repeatedly, until this router may read the bucket's
/// epoch at it.
async fn moment_of_now(
    context: &RouterContext,
    bucket: BucketId,
    deadline: Instant,
) -> Result<FixedMoment> {
    loop {
        // A member of the coordinator that lacks an epoch which a node has applied lags.
        let known = context.applied.newest_published().get(&bucket).copied();
        let left = deadline.saturating_duration_since(Instant::now()).as_millis() as u64;
        let coordinator = context.directory.coordinator();
        let fixed = coordinator.moment(bucket, known.unwrap_or_default(), left).await;
        let from = readable_from(&context.catalog.load(), bucket);
        match (fixed, from) {
            (Ok(fixed), Some(from)) if fixed.epoch >= from => {
                context.moment.fetch_max(fixed.at, Ordering::Relaxed);
                return Ok(fixed);
            }
            (Err(error), _) if !error.is_retry() => return Err(error),
            // There is no leader at present, or a rollback is in progress.
            _ => sleep(context.config.retry).await,
        }
    }
}

/// Returns an error if a rollback has removed an epoch, according to this router's catalog.
fn check_readable(context: &RouterContext, bucket: BucketId, epoch: Epoch) -> Result<()> {
    let catalog = context.catalog.load();
    let from = readable_from(&catalog, bucket);
    // A catalog without the bucket shows no rollback of it either.
    if !catalog.buckets.contains_key(&bucket) || from.is_some_and(|from| from <= epoch) {
        return Ok(());
    }
    let what =
        format!("{} was rolled back after the moment that is read", catalog.bucket_text(bucket));
    Err(Error::new(ErrorCode::SnapshotTooOld, what).with_hint("begin the transaction again"))
}

fn no_epoch(catalog: &Catalog, bucket: BucketId) -> Error {
    let what =
        format!("{}: no epoch covers its end within the time-out", catalog.bucket_text(bucket));
    Error::unavailable(what).with_hint("SHOW NODES shows whether a coordinator leads")
}

/// Adds the name of a bucket to the coordinators' error that it does not exist; the coordinators
/// have only the bucket's number.
fn gone(catalog: &Catalog, bucket: BucketId, error: Error) -> Error {
    match error.code {
        ErrorCode::Unknown => {
            Error { message: format!("{} was dropped", catalog.bucket_text(bucket)), ..error }
        }
        _ => error,
    }
}
