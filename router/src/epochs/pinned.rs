//! The epochs that a transaction reads: an epoch in each bucket, which its *moment* determines. A
//! moment is one point in time for all buckets; in each bucket, the transaction reads the epoch
//! that was the newest at that moment.
//!
//! A transaction fixes its moment with its first read. If it may write, it gets the moment from
//! the coordinator; such a moment covers all writes that were acknowledged before, in all buckets.
//! If it may read at any epoch, no call is needed: the chosen epoch and the last moment that the
//! router has received stand for its moment, and the coordinator finds the exact epochs when a
//! second bucket is read. The lease of the moment keeps the epochs of all buckets readable
//! meanwhile.
//!
//! A transaction that may write needs the newest moment. Otherwise a transaction that reads and
//! writes documents which its session has just committed would conflict with that commit, at every
//! retry. The epoch is one of the bucket, not of an index: documents are read as of its cut, also
//! before any index has applied it, and a scan waits until its slices have applied it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, Epoch};
use proto::model::moment::Moment;
use proto::rpc::api::FixedMoment;
use proto::{Error, ErrorCode, Result};
use tokio::time::{Instant, sleep, timeout_at};

use super::applied_epochs::oldest_for_scans;
use super::leases::{EpochLease, MomentLease};
use crate::context::RouterContext;

/// The epoch that a transaction reads in a bucket, with the transaction's moment. Both are leased
/// until this value is dropped.
pub struct PinnedEpoch {
    context: Arc<RouterContext>,
    lease: EpochLease,
    moment: Arc<MomentLease>,
    catalog: Arc<Catalog>,
}

impl PinnedEpoch {
    /// Returns the epoch that the transaction reads in the bucket.
    pub fn epoch(&self) -> Epoch {
        self.lease.epoch()
    }

    /// Returns the catalog from before the epoch was chosen. The generations that this catalog
    /// names are leased too.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Makes the value from an epoch that this router has chosen and leased. `catalog` is from
    /// before the choice.
    pub(crate) fn from_lease(
        context: &Arc<RouterContext>,
        lease: EpochLease,
        catalog: Arc<Catalog>,
    ) -> Self {
        let at = context.moment.load(Ordering::Relaxed);
        let moment = Moment { at, of: Some((lease.bucket(), lease.epoch())) };
        let moment = Arc::new(context.leases.lease_moment(moment, Instant::now()));
        Self { context: Arc::clone(context), lease, moment, catalog }
    }

    /// Gets a moment from the coordinator that covers all earlier acknowledged writes, and leases
    /// the epoch of a bucket at this moment.
    pub(crate) async fn at_present(
        context: &Arc<RouterContext>,
        bucket: BucketId,
        deadline: Instant,
    ) -> Result<Self> {
        let catalog = context.catalog.load_full();
        let _held = context.leases.lease_catalog(catalog.cas);
        let fixed = timeout_at(deadline, moment_of_now(context, bucket, deadline)).await;
        let fixed = fixed.map_err(|_| no_epoch_error(&catalog, bucket))?;
        let FixedMoment { at, epoch } =
            fixed.map_err(|error| bucket_dropped(&catalog, bucket, error))?;
        let moment = Arc::new(context.leases.lease_moment(Moment::at(at), Instant::now()));
        let lease = context.leases.lease_epoch(bucket, epoch, catalog.cas);
        Ok(Self { context: Arc::clone(context), lease, moment, catalog })
    }

    /// Leases the epoch of another bucket at the same moment. `SnapshotTooOld` if this epoch can
    /// no longer be read, or if the bucket was created after the moment.
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
                Ok(found) => {
                    break found.map_err(|error| bucket_dropped(&self.catalog, bucket, error))?;
                }
                Err(_) => return Err(no_epoch_error(&self.catalog, bucket)),
            }
        };
        check_readable(&self.context, bucket, epoch)?;
        let catalog = Arc::clone(&self.catalog);
        let lease = self.context.leases.lease_epoch(bucket, epoch, catalog.cas);
        let (context, moment) = (Arc::clone(&self.context), Arc::clone(&self.moment));
        Ok(Self { context, lease, moment, catalog })
    }

    /// Waits before another attempt; returns `error` if the deadline would pass.
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
/// epoch at that moment.
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
        let from = oldest_for_scans(&context.catalog.load(), bucket);
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
    let from = oldest_for_scans(&catalog, bucket);
    // A catalog without the bucket shows no rollback of it either.
    if !catalog.buckets.contains_key(&bucket) || from.is_some_and(|from| from <= epoch) {
        return Ok(());
    }
    let what =
        format!("{} was rolled back after the moment that is read", catalog.bucket_text(bucket));
    Err(Error::new(ErrorCode::SnapshotTooOld, what).with_hint("begin the transaction again"))
}

/// Returns the error that no epoch was found within the time-out.
fn no_epoch_error(catalog: &Catalog, bucket: BucketId) -> Error {
    let what =
        format!("{}: no epoch covers its end within the time-out", catalog.bucket_text(bucket));
    Error::unavailable(what).with_hint("SHOW NODES shows whether a coordinator leads")
}

/// Adds the name of a bucket to the coordinators' error that the bucket does not exist; the
/// coordinators have only its number.
fn bucket_dropped(catalog: &Catalog, bucket: BucketId, error: Error) -> Error {
    match error.code {
        ErrorCode::Unknown => {
            Error { message: format!("{} was dropped", catalog.bucket_text(bucket)), ..error }
        }
        _ => error,
    }
}
