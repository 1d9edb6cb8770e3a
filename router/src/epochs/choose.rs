//! Chooses the epoch that a scan reads, and leases it.

use std::sync::Arc;

use proto::client::source::source_of;
use proto::model::bucket::BucketInfo;
use proto::model::cut::{Cut, Position};
use proto::model::ids::{BucketId, Epoch, SliceNo, VbucketId};
use proto::model::index::IndexInfo;
use proto::model::topology::TopologyProvider;
use proto::rpc::api::ProjectorApi;
use proto::rpc::scan::Consistency;
use proto::{Error, ErrorCode, Result};
use tokio::time::{Instant, timeout_at};

use super::applied::{AppliedEpochs, readable_from};
use super::leases::EpochLease;
use super::reachable::check_reachable;
use crate::context::RouterContext;

/// Chooses the epoch of one scan of an index, until a deadline.
pub(crate) struct EpochChooser<'a> {
    context: &'a RouterContext,
    index: &'a IndexInfo,
    deadline: Instant,
}

impl<'a> EpochChooser<'a> {
    pub fn new(context: &'a RouterContext, index: &'a IndexInfo, deadline: Instant) -> Self {
        Self { context, index, deadline }
    }

    /// Chooses and leases the epoch: the newest that all slices have applied, or one that covers given positions,
    /// which may still have to be published and applied.
    pub async fn choose(&self, consistency: &Consistency) -> Result<EpochLease> {
        let choice = async {
            match consistency {
                Consistency::Epoch(epoch) => self.check_alive(*epoch),
                Consistency::Any => {
                    self.wait_applied(|applied| applied.newest_common(self.index)).await
                }
                Consistency::AtPlus(positions) => self.epoch_covering(positions, None).await,
                Consistency::RequestPlus => self.epoch_of_now().await,
            }
        };
        let epoch = timeout_at(self.deadline, choice).await.map_err(|_| {
            Error::unavailable(format!(
                "index \"{}\": no epoch became readable within the time-out",
                self.index.spec.name
            ))
            .with_hint("SHOW NODES and SHOW SLICES show which node is missing")
        })??;
        Ok(self.context.leases.take(self.index.bucket, epoch))
    }

    fn bucket(&self) -> Result<(Arc<BucketInfo>, Arc<dyn ProjectorApi>)> {
        let catalog = self.context.catalog.load();
        let bucket = self.index.bucket;
        let missing =
            || Error::unavailable(format!("bucket {bucket} is not in the router's catalog"));
        let info = catalog.buckets.get(&bucket).ok_or_else(missing)?;
        let directory = &*self.context.directory;
        let source = source_of(directory, info, |node| catalog.nodes.get(&node).cloned())?;
        Ok((Arc::clone(info), source))
    }

    /// Returns an epoch that was chosen before, unless a rollback has taken it back.
    fn check_alive(&self, epoch: Epoch) -> Result<Epoch> {
        let catalog = self.context.catalog.load();
        let bucket: &BucketId = &self.index.bucket;
        if catalog.buckets.get(bucket).is_some_and(|bucket| bucket.is_dead(epoch)) {
            let what = format!("a rollback has removed epoch {epoch}");
            return Err(Error::new(ErrorCode::SnapshotTooOld, what)
                .with_hint("start the scan or the transaction again"));
        }
        Ok(epoch)
    }

    /// Waits until the indexers have applied an epoch that a new scan of the index may read. After a rollback the
    /// scan must not see less than survived it, so older epochs are passed over.
    async fn wait_applied(
        &self,
        choose: impl Fn(&AppliedEpochs) -> Option<Epoch>,
    ) -> Result<Epoch> {
        let mut changes = self.context.applied.changes();
        let mut catalogs = self.context.catalog_changed.subscribe();
        let mut silent = self.context.silent.subscribe();
        let slices: Vec<SliceNo> = (0..self.index.topology.slices()).map(SliceNo).collect();
        let stopped = |_| Error::unavailable("the router is stopping");
        loop {
            let from = readable_from(&self.context.catalog.load(), self.index.bucket);
            let chosen = choose(&self.context.applied);
            if let Some(epoch) = chosen.filter(|epoch| from.is_some_and(|from| *epoch >= from)) {
                return Ok(epoch);
            }
            check_reachable(self.context, self.index, &slices)?;
            tokio::select! {
                biased;
                changed = changes.changed() => changed.map_err(stopped)?,
                changed = catalogs.changed() => changed.map_err(stopped)?,
                changed = silent.changed() => changed.map_err(stopped)?,
            }
        }
    }

    /// Returns an epoch that covers the source's present end.
    async fn epoch_of_now(&self) -> Result<Epoch> {
        loop {
            let (bucket, source) = self.bucket()?;
            let now = match source.place(self.index.bucket).await {
                Ok(now) => now,
                // A vbucket may be between two owners.
                Err(error) if error.is_retry() && bucket.source.can_span_projectors() => {
                    tokio::time::sleep(self.context.config.retry).await;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let positions: Vec<_> = now.durable.iter().collect();
            match self.epoch_covering(&positions, Some(now.history)).await {
                // The source has lost that position in the meantime.
                Err(error) if error.code == ErrorCode::InvalidParameter => {
                    tokio::time::sleep(self.context.config.retry).await;
                }
                chosen => return chosen,
            }
        }
    }

    async fn epoch_covering(
        &self,
        positions: &[(VbucketId, Position)],
        history: Option<u64>,
    ) -> Result<Epoch> {
        let (bucket, _) = self.bucket()?;
        let beyond = positions.iter().find(|(vbucket, _)| vbucket.0 >= bucket.vbuckets);
        if let Some((vbucket, _)) = beyond {
            let message = format!(
                "vbucket {vbucket} of the given position: bucket {} has {}",
                bucket.name, bucket.vbuckets
            );
            return Err(Error::new(ErrorCode::InvalidParameter, message));
        }
        let cut = Cut::zero(bucket.vbuckets).with(positions);
        let left_ms = self.deadline.saturating_duration_since(Instant::now()).as_millis() as u64;
        let coordinator = self.context.directory.coordinator();
        let mark = coordinator.epoch_covering(self.index.bucket, cut, history, left_ms).await?;
        // A slice may have been built later than that epoch, so its floor counts. All slices may already have
        // applied a newer epoch: that one needs no waiting.
        let oldest = self.wait_applied(|applied| {
            let newest = applied.newest_common(self.index).unwrap_or_default();
            Some(mark.epoch.max(applied.oldest_common(self.index)?).max(newest))
        });
        oldest.await
    }
}
