//! The source of a bucket, and the epoch that a transaction reads in it.
//!
//! A transaction that may write reads an epoch that covers everything acknowledged before its first read. Otherwise a transaction that
//! reads what its session has committed before, and writes it back, would conflict with that commit, at each try again. The epoch
//! belongs to the bucket: documents are read as of its cut, also while no index has applied it, and a scan waits until its slices have.

use std::sync::Arc;

use proto::client::source::source_of;
use proto::model::bucket::BucketInfo;
use proto::model::history::SourcePlace;
use proto::model::ids::{BucketId, Epoch};
use proto::rpc::api::ProjectorApi;
use proto::{Error, ErrorCode, Result};
use tokio::time::{Instant, timeout_at};

use super::applied::readable_from;
use super::leases::EpochLease;
use crate::context::RouterContext;

/// The source of a bucket.
pub(crate) struct BucketSource<'a> {
    context: &'a RouterContext,
    bucket: BucketId,
}

impl<'a> BucketSource<'a> {
    pub fn new(context: &'a RouterContext, bucket: BucketId) -> Self {
        Self { context, bucket }
    }

    /// The bucket in the router's catalog.
    pub fn bucket(&self) -> Result<Arc<BucketInfo>> {
        let bucket = self.bucket;
        let missing =
            || Error::unavailable(format!("bucket {bucket} is not in the router's catalog"));
        self.context.catalog.load().buckets.get(&bucket).cloned().ok_or_else(missing)
    }

    fn projectors(&self, bucket: &BucketInfo) -> Result<Arc<dyn ProjectorApi>> {
        let catalog = self.context.catalog.load();
        source_of(&*self.context.directory, bucket, |node| catalog.nodes.get(&node).cloned())
    }

    /// True if a bucket may go to another projector by itself.
    fn may_move(&self, bucket: &BucketInfo) -> bool {
        let catalog = self.context.catalog.load();
        let copies = catalog.copies.get(&bucket.id);
        bucket.source.can_span_projectors()
            || copies.is_some_and(|copies| copies.wanted > 1 || copies.move_to.is_some())
    }

    /// The end of the source's durable history.
    pub async fn end(&self) -> Result<SourcePlace> {
        loop {
            let bucket = self.bucket()?;
            match self.projectors(&bucket)?.place(self.bucket).await {
                // A vbucket may be between two owners, or a bucket between two leaders.
                Err(error) if error.is_retry() && self.may_move(&bucket) => {
                    tokio::time::sleep(self.context.config.retry).await;
                }
                found => return found,
            }
        }
    }

    /// Leases the newest epoch that covers the source's present end.
    pub async fn pin(&self, deadline: Instant) -> Result<EpochLease> {
        let epoch = timeout_at(deadline, self.epoch_of_now(deadline)).await.map_err(|_| {
            let what =
                format!("bucket {}: no epoch covers its end within the time-out", self.bucket);
            Error::unavailable(what).with_hint("SHOW NODES shows whether a coordinator leads")
        })??;
        Ok(self.context.leases.take(self.bucket, epoch))
    }

    async fn epoch_of_now(&self, deadline: Instant) -> Result<Epoch> {
        loop {
            let SourcePlace { durable, history, .. } = self.end().await?;
            // A member of the coordinator that lacks what a node has applied is behind.
            let known = self.context.applied.newest_published().get(&self.bucket).copied();
            let left = deadline.saturating_duration_since(Instant::now()).as_millis() as u64;
            let coordinator = self.context.directory.coordinator();
            let covering = coordinator
                .epoch_covering(
                    self.bucket,
                    durable,
                    Some(history),
                    known.unwrap_or_default(),
                    left,
                )
                .await;
            let from = readable_from(&self.context.catalog.load(), self.bucket);
            match (covering, from) {
                (Ok(covering), Some(from)) if covering.newest >= from => return Ok(covering.newest),
                // The source has lost that position meanwhile, or a rollback is on its way.
                (Err(error), _) if error.code != ErrorCode::InvalidParameter => return Err(error),
                _ => tokio::time::sleep(self.context.config.retry).await,
            }
        }
    }
}
