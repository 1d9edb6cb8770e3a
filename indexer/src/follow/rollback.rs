//! Rollback on an indexer, after the source has lost a range of its history.
//!
//! The catalog lists the dead epochs. A node whose newest epoch is dead rolls back to the epoch
//! below the range before it opens a stream again, even if it was down during the rollback; the
//! stream then carries the surviving mutations. A slice that cannot roll back far enough is dropped
//! and fetched from another copy that could (`moves/restore.rs`); without such a copy it is rebuilt
//! from the source, while the other slices stay readable ([`super::builds`]). Each index is checked
//! by its own newest epoch, since a crash may have left one ahead of its bucket.
//!
//! The node needs no other information than the catalog: a stream begins only at a place in the
//! source's history, and carries only mutations of that history.

use proto::Result;
use proto::model::cut::EpochMark;
use proto::model::ids::{Epoch, SliceNo};
use proto::model::rollback::DeadEpochs;

use storage::{SliceStore, StoredIndex};

use super::follower::Follower;
use super::policy;
use crate::context::NodeContext;

/// The number of refusals in a row, with a pause after each, after which the source no longer
/// knows the history of the applied cut. A rollback that the catalog does not list yet appears
/// well before.
const REFUSALS_MAX: u32 = 50;

impl Follower {
    /// Returns true if the bucket must be rolled back: its newest epoch, or that of one of its
    /// indexes, is dead.
    pub(super) fn must_go_back(&self) -> bool {
        self.dead_range().is_some()
    }

    /// Returns the first range of dead epochs that contains the newest epoch of the bucket or of
    /// one of its indexes; `None` if none of them is dead.
    fn dead_range(&self) -> Option<DeadEpochs> {
        let catalog = self.context.catalog.load();
        let bucket = catalog.buckets.get(&self.bucket)?;
        let applied = self.applied.as_ref().map(|mark| mark.epoch).unwrap_or_default();
        let newest = || {
            let stored = self.stored().into_iter().map(|stored| stored.newest);
            stored.filter(|epoch| *epoch > Epoch(0)).chain([applied])
        };
        policy::dead_range(bucket, newest)
    }

    /// Rolls the bucket and its indexes back until none of their newest epochs is dead.
    pub(super) async fn roll_back_dead_epochs(&mut self) -> Result<()> {
        while let Some(dead) = self.dead_range() {
            let applied = self.applied.as_ref().map(|mark| mark.epoch).unwrap_or_default();
            let above = dead.below_range();
            tracing::info!(bucket = %self.bucket, %applied, %above, to = %dead.to, "going back");
            self.forget_received();
            // The source lost these transactions with the branch that they began on; the next stream carries those that are still open.
            self.transactions.drop_all();
            self.drop_stale_rebuilds().await?;
            let point = dead.point.clone().filter(|_| dead.contains(applied));
            self.drop_unrollable_slices(&dead, point.as_ref()).await?;
            if let Some(point) = point {
                self.context.store.roll_back(&point, dead.to).await?;
                self.applied = Some(point);
            } else if dead.contains(applied) {
                // Without a rollback point everything is rebuilt.
                self.applied = None;
            }
            self.context.slices_changed();
        }
        Ok(())
    }

    /// Handles a source whose history lacks the position at which a stream should begin. If there
    /// are unapplied mutations, drops them. Otherwise applied mutations were lost, and a rollback
    /// should appear in the catalog. If none appears, the node was away longer than the source
    /// remembers, and its slices are rebuilt.
    pub(super) async fn handle_lost_position(&mut self) -> Result<()> {
        if self.queue.is_some() {
            // Builds would lack the mutations between their snapshot and the next stream.
            self.forget_received();
            return Ok(());
        }
        let catalog = self.context.catalog.load_full();
        let bucket = catalog.buckets.get(&self.bucket);
        if bucket.is_none_or(|bucket| bucket.rollback.is_some()) || self.must_go_back() {
            self.refusals = 0;
            return Ok(());
        }
        self.refusals += 1;
        if self.refusals < REFUSALS_MAX {
            return Ok(());
        }
        tracing::warn!(bucket = %self.bucket, "of a forgotten history: its slices are built anew");
        self.refusals = 0;
        self.drop_all_slices().await?;
        self.applied = None;
        Ok(())
    }

    /// Drops the slices that cannot be rolled back to the epoch `point`, and fetches them again.
    /// Without `point` the bucket need not be rolled back. Then only the indexes are dropped
    /// whose newest epoch a crash left beyond that of the bucket.
    async fn drop_unrollable_slices(
        &self,
        dead: &DeadEpochs,
        point: Option<&EpochMark>,
    ) -> Result<()> {
        for stored in self.stored() {
            let lost = self.lost_slices(&stored, dead, point);
            if lost.is_empty() && !stored.slices.is_empty() {
                continue;
            }
            self.drop_and_fetch_slices(&stored, &lost, dead).await?;
        }
        Ok(())
    }

    /// Returns the slices of an index that cannot be kept in a rollback.
    fn lost_slices(
        &self,
        stored: &StoredIndex,
        dead: &DeadEpochs,
        point: Option<&EpochMark>,
    ) -> Vec<SliceNo> {
        let id = stored.id();
        let slices = stored.slices.iter().map(|(slice, _)| *slice);
        let stays = |slice: &SliceNo| {
            policy::can_keep_index(dead, point, stored.newest, |point| {
                self.context.store.can_roll_back(id.slice(*slice), point)
            })
        };
        slices.filter(|slice| !stays(slice)).collect()
    }

    /// Drops slices of an index and begins to fetch them from other nodes. Drops the whole index
    /// if they cannot be fetched.
    async fn drop_and_fetch_slices(
        &self,
        stored: &StoredIndex,
        lost: &[SliceNo],
        dead: &DeadEpochs,
    ) -> Result<()> {
        let NodeContext { store, config, catalog, .. } = &self.context;
        let id = stored.id();
        let (name, point) = (&stored.info.spec.name, dead.below_range());
        let catalog = catalog.load_full();
        let was_whole = stored.floor.is_some() && !lost.is_empty();
        let Some(index) = catalog.local_index(id).filter(|_| was_whole) else {
            tracing::warn!(index = %name, %point, "an index that cannot go back is built anew");
            return store.drop_index(id).await;
        };
        tracing::warn!(index = %name, %point, slices = ?lost, "a slice that cannot go back is fetched again");
        if lost.len() == stored.slices.len() {
            store.drop_index(id).await?;
        } else {
            for slice in lost {
                store.drop_slice(id.slice(*slice)).await?;
            }
        }
        let hosted = |slice: &&SliceNo| index.topology.hosts(config.node.id, **slice);
        let wanted: Vec<SliceNo> = lost.iter().filter(hosted).copied().collect();
        self.incoming.restore(&self.context, index, &wanted);
        Ok(())
    }

    /// Checks that an epoch belongs to the stream's history and follows the applied epoch.
    pub(super) fn check_follows(&self, mark: &EpochMark) -> Result<()> {
        let applied = self.applied.as_ref().map(|applied| applied.epoch).unwrap_or_default();
        policy::check_follows(mark, self.history.as_deref(), applied)
    }
}
