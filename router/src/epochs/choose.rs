//! Chooses the epoch that a scan reads, and leases it.
//!
//! A scan may require that its epoch covers given positions of the source (`at_plus`), or the
//! source's present end (`request_plus`). The coordinator then names the oldest and the newest
//! epoch that cover the positions, and the scan reads an epoch in this range. An epoch with a
//! higher number need not cover the positions: a rollback may have undone the covering epochs
//! since the answer. If all covering epochs are too old to be read, the coordinator is queried
//! again.

use std::sync::Arc;
use std::time::Duration;

use proto::model::bucket::SourceKind;
use proto::model::catalog::Catalog;
use proto::model::cut::{Cut, Position};
use proto::model::ids::{BucketId, Epoch, SliceNo, VbucketId};
use proto::model::index::IndexInfo;
use proto::model::topology::TopologyProvider;
use proto::plant::{self, Plant};
use proto::rpc::api::CoveringEpochs;
use proto::rpc::scan::Consistency;
use proto::{Error, ErrorCode, Result};
use tokio::time::{Instant, timeout_at};

use super::applied_epochs::{AppliedEpochs, oldest_for_scans};
use super::bucket_source::BucketSource;
use super::leases::EpochLease;
use super::reachable::{UnreachableSlices, find_unreachable};
use crate::context::RouterContext;

/// The longest time that a scan waits for an epoch that is at least as new as the last one its
/// session has read.
const FLOOR_WAIT: Duration = Duration::from_secs(1);

/// The longest time that a scan waits for a slice that is rebuilt from the documents; enough for a
/// small slice.
const REBUILD_WAIT: Duration = Duration::from_secs(2);

/// Returns the number of the catalog whose generations must be retained for a reader of an index.
/// Returns zero, which retains all generations, if the index's generation was replaced meanwhile.
pub(crate) fn catalog_to_keep(catalog: &Catalog, index: &IndexInfo) -> u64 {
    let shown = catalog.indexes.get(&index.id);
    let serves = shown.is_some_and(|shown| shown.generation == index.generation);
    if serves { catalog.cas } else { 0 }
}

/// The choice of the epoch for one scan of an index, until a deadline.
pub(crate) struct EpochChooser<'a> {
    context: &'a RouterContext,
    index: &'a Arc<IndexInfo>,
    source: BucketSource<'a>,
    deadline: Instant,
    /// The number of the catalog whose generations the lease retains.
    catalog_cas: u64,
    /// The time until which the scan waits for slices that are being rebuilt from the documents.
    rebuilt_until: Instant,
}

impl<'a> EpochChooser<'a> {
    /// Creates a chooser. `catalog` is the catalog from which the generation of the index was
    /// chosen, or a newer one.
    pub fn new(
        context: &'a RouterContext,
        index: &'a Arc<IndexInfo>,
        catalog: &Catalog,
        deadline: Instant,
    ) -> Self {
        let source = BucketSource::new(context, index.bucket);
        let catalog_cas = catalog_to_keep(catalog, index);
        let rebuilt_until = Instant::now() + REBUILD_WAIT;
        Self { context, index, source, deadline, catalog_cas, rebuilt_until }
    }

    /// Chooses the epoch by the required consistency, and leases it: the newest epoch that all
    /// slices have applied, or one that covers given positions. The latter may still have to be
    /// published and applied.
    pub async fn choose(&self, consistency: &Consistency) -> Result<EpochLease> {
        let present = Consistency::Any;
        let consistency = match consistency {
            Consistency::RequestPlus | Consistency::AtPlus(_) if self.is_static() => &present,
            _ => consistency,
        };
        let floor = match consistency {
            Consistency::Any => Some(Epoch(0)),
            Consistency::AtLeast(floor) if !plant::is(Plant::FloorIgnored) => Some(*floor),
            Consistency::AtLeast(_) => Some(Epoch(0)),
            _ => None,
        };
        if let (Some(floor), Some(newest)) = (floor, self.context.view(self.index).epoch)
            && newest >= floor
        {
            return Ok(self.context.leases.lease_epoch(
                self.index.bucket,
                newest,
                self.catalog_cas,
            ));
        }
        let choice = async {
            match consistency {
                Consistency::Epoch(epoch) => self.check_not_undone(*epoch),
                Consistency::Any => self.newest_at_or_above(Epoch(0)).await,
                Consistency::AtLeast(floor) => self.newest_soon(*floor).await,
                Consistency::AtPlus(positions) => self.epoch_at_positions(positions).await,
                Consistency::RequestPlus => self.epoch_of_source_end().await,
            }
        };
        let epoch = timeout_at(self.deadline, choice).await.map_err(|_| {
            Error::unavailable(format!(
                "index \"{}\": no epoch became readable within the time-out",
                self.index.spec.name
            ))
            .with_hint("SHOW NODES and SHOW SLICES show which node is missing")
        })??;
        Ok(self.context.leases.lease_epoch(self.index.bucket, epoch, self.catalog_cas))
    }

    /// Returns true for an index of a data set's version, which never changes. All of its entries
    /// are in one epoch, and its generation is not used before its slices have applied that epoch.
    fn is_static(&self) -> bool {
        let catalog = self.context.catalog.load();
        catalog.buckets.get(&self.index.bucket).is_some_and(|b| b.source == SourceKind::Files)
    }

    /// Waits for an epoch at or above `floor` that can be read in all slices; returns the newest.
    async fn newest_at_or_above(&self, floor: Epoch) -> Result<Epoch> {
        let newest = |applied: &AppliedEpochs, from: Epoch| {
            applied.newest_readable(self.index).filter(|epoch| *epoch >= from.max(floor))
        };
        self.wait_applied(newest).await
    }

    /// Waits a short time for an epoch at or above the floor, the last epoch of the session. If
    /// there is none, the copies with that epoch may be lost, and the result is an error. If a
    /// rollback has removed the floor, waits for the first epoch after the rollback, which has a
    /// greater number.
    async fn newest_soon(&self, floor: Epoch) -> Result<Epoch> {
        loop {
            let soon = Instant::now() + FLOOR_WAIT;
            if let Ok(found) = timeout_at(soon, self.newest_at_or_above(floor)).await {
                return found;
            }
            // If no epoch is readable at all, the scan waits for one, like any other scan.
            let from = oldest_for_scans(&self.context.catalog.load(), self.index.bucket);
            let newest = self.context.applied.newest_readable(self.index);
            if from.is_some_and(|from| newest.is_some_and(|newest| newest >= from)) {
                break;
            }
        }
        let index = &self.index.spec.name;
        Err(Error::unavailable(format!(
            "index \"{index}\": this session has seen or written epoch {floor}, and no copy of some slice has come to it"
        ))
        .with_hint("try again, or SET consistency = 'stale' to read an older state; SHOW SLICES shows which copies are behind"))
    }

    /// Returns `epoch` unchanged; an error if a rollback has undone it.
    fn check_not_undone(&self, epoch: Epoch) -> Result<Epoch> {
        let catalog = self.context.catalog.load();
        let bucket: &BucketId = &self.index.bucket;
        if catalog.buckets.get(bucket).is_some_and(|bucket| bucket.is_dead(epoch)) {
            let what = format!("a rollback has removed epoch {epoch}");
            return Err(Error::new(ErrorCode::SnapshotTooOld, what)
                .with_hint("start the scan or the transaction again"));
        }
        Ok(epoch)
    }

    /// Waits until `choose` finds an epoch. `choose` gets the applied epochs and the oldest epoch
    /// that a new scan may read: after a rollback a scan must see all surviving mutations, so no
    /// older epoch may be chosen.
    async fn wait_applied<T>(
        &self,
        choose: impl Fn(&AppliedEpochs, Epoch) -> Option<T>,
    ) -> Result<T> {
        let mut changes = self.context.applied.changes();
        let mut catalogs = self.context.catalog_changed.subscribe();
        let mut silent = self.context.silent.subscribe();
        let slices: Vec<SliceNo> = (0..self.index.topology.slices()).map(SliceNo).collect();
        let stopped = |_| Error::unavailable("the router is stopping");
        loop {
            let from = oldest_for_scans(&self.context.catalog.load(), self.index.bucket);
            if let Some(chosen) = from.and_then(|from| choose(&self.context.applied, from)) {
                return Ok(chosen);
            }
            let waits = match find_unreachable(self.context, self.index, &slices) {
                Some(UnreachableSlices { is_rebuilt: true, .. })
                    if Instant::now() < self.rebuilt_until =>
                {
                    true
                }
                Some(UnreachableSlices { error, .. }) => return Err(error),
                None => false,
            };
            tokio::select! {
                biased;
                changed = changes.changed() => changed.map_err(stopped)?,
                changed = catalogs.changed() => changed.map_err(stopped)?,
                changed = silent.changed() => changed.map_err(stopped)?,
                () = tokio::time::sleep_until(self.rebuilt_until), if waits => {}
            }
        }
    }

    /// Returns an epoch that covers the present end of the source.
    async fn epoch_of_source_end(&self) -> Result<Epoch> {
        loop {
            let now = self.source.end().await?;
            let positions: Vec<_> = now.durable.iter().collect();
            match self.epoch_covering(&positions, Some(now.history)).await {
                Ok(Some(epoch)) => return Ok(epoch),
                Ok(None) => {}
                // The source has lost that position in the meantime.
                Err(error) if error.code == ErrorCode::InvalidParameter => {}
                Err(error) => return Err(error),
            }
            tokio::time::sleep(self.context.config.retry).await;
        }
    }

    /// Returns an epoch that covers given positions of the source.
    async fn epoch_at_positions(&self, positions: &[(VbucketId, Position)]) -> Result<Epoch> {
        loop {
            if let Some(epoch) = self.epoch_covering(positions, None).await? {
                return Ok(epoch);
            }
            tokio::time::sleep(self.context.config.retry).await;
        }
    }

    /// Returns an epoch that covers the positions; `None` if the coordinator must be queried
    /// again. If `history` is given, the positions are of this history of the source.
    async fn epoch_covering(
        &self,
        positions: &[(VbucketId, Position)],
        history: Option<u64>,
    ) -> Result<Option<Epoch>> {
        let bucket = self.source.bucket()?;
        let beyond = positions.iter().find(|(vbucket, _)| vbucket.0 >= bucket.vbuckets);
        if let Some((vbucket, _)) = beyond {
            let message = format!(
                "vbucket {vbucket} of the given position: bucket {} has {}",
                bucket.name, bucket.vbuckets
            );
            return Err(Error::new(ErrorCode::InvalidParameter, message));
        }
        let cut = Cut::zero(bucket.vbuckets).with(positions);
        // A member of the coordinator that lacks an epoch which the slices have applied lags.
        let known = self.wait_applied(|applied, from| Some(self.readable(applied, from)?.newest));
        let known = known.await?;
        let left_ms = self.deadline.saturating_duration_since(Instant::now()).as_millis() as u64;
        let coordinator = self.context.directory.coordinator();
        let bucket = self.index.bucket;
        let covering = coordinator.epoch_covering(bucket, cut, history, known, left_ms).await?;
        let from = oldest_for_scans(&self.context.catalog.load(), bucket);
        let readable = from.and_then(|from| self.readable(&self.context.applied, from));
        Ok(readable.and_then(|readable| readable.covering(&covering)))
    }

    /// Returns the epochs at or above `from` that a new scan may read; `None` while a slice has no
    /// readable copy.
    fn readable(&self, applied: &AppliedEpochs, from: Epoch) -> Option<ReadableEpochs> {
        let oldest = applied.oldest_readable(self.index)?.max(from);
        let newest = applied.newest_readable(self.index).unwrap_or_default().max(oldest);
        Some(ReadableEpochs { oldest, newest })
    }
}

/// The epochs that a new scan of an index may read.
struct ReadableEpochs {
    /// The oldest epoch that all slices can read; a slice that was built later than others may
    /// determine it.
    oldest: Epoch,
    /// The newest epoch that can be read without a wait. If there is none, the same as `oldest`.
    newest: Epoch,
}

impl ReadableEpochs {
    /// Returns the newest readable epoch that covers the positions; `None` if all covering epochs
    /// are too old.
    fn covering(&self, covering: &CoveringEpochs) -> Option<Epoch> {
        let oldest = self.oldest.max(covering.oldest);
        (oldest <= covering.newest).then(|| self.newest.clamp(oldest, covering.newest))
    }
}

#[cfg(test)]
#[path = "choose_tests.rs"]
mod tests;
