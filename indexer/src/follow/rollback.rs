//! What a follower does when the source has lost a piece of its history.
//!
//! The catalog says which epochs rollbacks have taken back. A node that stands in such a range, whether it was
//! there or was down at the time, goes back to the epoch below it before it opens a stream again, and the
//! stream applies again what has survived. A slice that cannot go back so far is dropped and fetched from another
//! copy of it, which could (`moves/restore.rs`); where there is none, it is built anew from the source, beside those
//! that stay ([`super::builds`]). Each index is asked for its own newest epoch, since a crash may have left one ahead
//! of its bucket.
//!
//! Nothing else needs to be known: a stream begins only at a place in the source's history, and brings only
//! what belongs to it.

use proto::Result;
use proto::model::cut::EpochMark;
use proto::model::ids::{Epoch, SliceId, SliceNo};
use proto::model::rollback::DeadEpochs;

use storage::StoredIndex;

use super::follower::Follower;
use super::policy;
use crate::context::NodeContext;

/// Refusals of an applied place, a pause apart, before it counts as one of a forgotten history: a rollback that is
/// not known yet comes well before.
const REFUSALS_MAX: u32 = 50;

impl Follower {
    /// Does something here stand in a range of dead epochs?
    pub(super) fn must_go_back(&self) -> bool {
        self.dead_range().is_some()
    }

    /// The first range of dead epochs that something here stands in.
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

    /// Leaves all dead epochs.
    pub(super) async fn go_back(&mut self) -> Result<()> {
        while let Some(dead) = self.dead_range() {
            let applied = self.applied.as_ref().map(|mark| mark.epoch).unwrap_or_default();
            let above = dead.above();
            tracing::info!(bucket = %self.bucket, %applied, %above, to = %dead.to, "going back");
            self.forget_received();
            self.drop_stale_rebuilds().await?;
            let point = dead.point.clone().filter(|_| dead.contains(applied));
            self.drop_those_that_cannot(&dead, point.as_ref()).await?;
            if let Some(point) = point {
                self.context.store.truncate(&point, dead.to).await?;
                self.applied = Some(point);
            } else if dead.contains(applied) {
                // Everything is built anew.
                self.applied = None;
            }
            self.context.slices_changed();
        }
        Ok(())
    }

    /// The source does not have the place from which a stream was asked for. What was received and not applied may be
    /// lost there; what is applied is what a rollback will be about. Where there is none, this node has been away for
    /// longer than rollbacks or branches are remembered: its slices are built anew.
    pub(super) async fn not_in_history(&mut self) -> Result<()> {
        if self.queue.is_some() {
            // What was being built lacks what comes between its snapshot and the next stream.
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
        self.build_anew().await?;
        self.applied = None;
        Ok(())
    }

    /// Drops what cannot go back to the point with its bucket; or, where the bucket need not go back, the indexes
    /// that a crash has left ahead of it.
    async fn drop_those_that_cannot(
        &self,
        dead: &DeadEpochs,
        point: Option<&EpochMark>,
    ) -> Result<()> {
        for stored in self.stored() {
            let lost = self.lost_slices(&stored, dead, point);
            if lost.is_empty() && !stored.slices.is_empty() {
                continue;
            }
            self.drop_lost(&stored, &lost, dead).await?;
        }
        Ok(())
    }

    fn lost_slices(
        &self,
        stored: &StoredIndex,
        dead: &DeadEpochs,
        point: Option<&EpochMark>,
    ) -> Vec<SliceNo> {
        let (index, generation) = (stored.info.id, stored.info.generation);
        let slices = stored.slices.iter().map(|(slice, _)| *slice);
        let stays = |slice: &SliceNo| {
            let slice = SliceId { index, generation, slice: *slice };
            policy::stays(dead, point, stored.newest, |point| {
                self.context.store.can_go_back(slice, point)
            })
        };
        slices.filter(|slice| !stays(slice)).collect()
    }

    /// Drops some slices of an index and has them fetched; or all of it, where that cannot be.
    async fn drop_lost(
        &self,
        stored: &StoredIndex,
        lost: &[SliceNo],
        dead: &DeadEpochs,
    ) -> Result<()> {
        let NodeContext { store, config, catalog, .. } = &self.context;
        let (id, generation) = (stored.info.id, stored.info.generation);
        let (name, point) = (&stored.info.spec.name, dead.above());
        let catalog = catalog.load_full();
        let index = catalog.indexes.get(&id).filter(|index| index.generation == generation);
        let was_whole = stored.floor.is_some() && !lost.is_empty();
        let Some(index) = index.filter(|_| was_whole) else {
            tracing::warn!(index = %name, %point, "an index that cannot go back is built anew");
            return store.drop_index(id).await;
        };
        tracing::warn!(index = %name, %point, slices = ?lost, "what cannot go back is fetched anew");
        if lost.len() == stored.slices.len() {
            store.drop_index(id).await?;
        } else {
            for slice in lost {
                store.drop_slice(SliceId { index: id, generation, slice: *slice }).await?;
            }
        }
        let hosted = |slice: &&SliceNo| index.topology.hosts(config.node.id, **slice);
        let wanted: Vec<SliceNo> = lost.iter().filter(hosted).copied().collect();
        self.incoming.restore(&self.context, index, &wanted);
        Ok(())
    }

    /// Is a stability timestamp of the stream's history, and does it follow on what is here? A rollback that the
    /// catalog does not tell of yet is waited for.
    pub(super) fn check_follows(&self, mark: &EpochMark) -> Result<()> {
        let applied = self.applied.as_ref().map(|applied| applied.epoch).unwrap_or_default();
        policy::check_follows(mark, self.history.as_deref(), applied)
    }
}
