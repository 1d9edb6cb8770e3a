//! Slices of a new generation that are made in place, from this node's slices of an earlier
//! generation (*derived* slices).
//!
//! **When.** A generation in `backfill` derives from another one if both definitions have the
//! same entries and the new ranges are parts of the old ones ([`proto::model::range_split`]). The
//! leader begins such a generation when a slice has outgrown the limit of its index, and places
//! each new slice on the nodes of its parent slice (`coordinator/src/leader/splits.rs`). No
//! record says that a generation derives: a node compares the definition with those of the
//! generations that it has. So each node decides alone. A node that lacks a slice of the other
//! generation builds from the source as for any new generation; the result is the same.
//!
//! **How.** The stream carries the mutations of the new generation from a cut on (`IndexJoin`, or
//! the stream's `Begin`). When an applied epoch covers that cut, the node is between two epochs:
//! the other generation has all mutations up to the epoch, and the stream carries all later
//! mutations for the new generation too. Then the storage engine makes all of the new slices,
//! with one manifest (`storage/src/edit/derive.rs`). Until then nothing is applied to them.
//! Copied slices are installed by the same rule ([`Follower::install_arrived`]).
//!
//! **Floor.** The new slices can be read from that epoch on. Lower epochs are read in the other
//! generation.
//!
//! **Failures.** No state is kept between two streams: after a crash before the manifest the next
//! stream names the generation again, and the decision is repeated. After a rollback to an epoch
//! below the floor, the slices are fetched or built like any others ([`super::rollback`]); a
//! rollback before the slices are made ends the stream. If a slice of the other generation has
//! left the node meanwhile, or the engine cannot make the slices, the generation is built from
//! the source, from the same epoch on.
//!
//! Once the manifest is written, such a generation does not differ from others: switch, leases,
//! tokens, moves and the retirement of the previous generation are the same. A join of slices is
//! a build from the source.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use proto::Result;
use proto::model::cut::{Cut, EpochMark};
use proto::model::ids::LocalIndexId;
use proto::model::index::IndexInfo;
use proto::model::range_split::{DerivedSlice, SlicePart};
use proto::rpc::scan::KeyRange;
use storage::{SliceCut, SliceStore, StoredIndex};

use super::follower::{Follower, grouping};

impl Follower {
    /// Marks a generation that joins the stream to be made from another generation's slices
    /// later. Returns false if that is impossible.
    pub(super) fn derive_later(&mut self, index: &Arc<IndexInfo>) -> bool {
        let can_derive = self.derivation_of(index).is_some();
        if can_derive {
            self.derived.insert(index.local_id(), Arc::clone(index));
        }
        can_derive
    }

    /// Returns the newest generation on this node from which all of this node's slices of an
    /// index can be made, and the range of each new slice; `None` if there is no such generation.
    fn derivation_of(&self, index: &IndexInfo) -> Option<(LocalIndexId, Vec<SliceCut>)> {
        let mut older: Vec<StoredIndex> = self.stored();
        older.retain(|stored| {
            stored.info.id == index.id
                && stored.info.generation < index.generation
                && stored.floor.is_some()
        });
        let found = |stored: &StoredIndex| Some((stored.id(), self.cuts(index, stored)?));
        older.iter().rev().find_map(found)
    }

    /// Returns the ranges by which this node's slices of an index can be cut from the slices of
    /// `stored`; `None` if that is impossible.
    fn cuts(&self, index: &IndexInfo, stored: &StoredIndex) -> Option<Vec<SliceCut>> {
        let mut derived = index.spec.derived_from(&stored.info.spec)?;
        derived.retain(|cut| index.topology.hosts(self.context.config.node.id, cut.slice));
        // A stored slice is fed. One that is not fed is dropped before an epoch is applied without it ([`super::joins`]).
        let is_here = |cut: &DerivedSlice| stored.has(cut.from);
        derived.iter().all(is_here).then(|| derived.into_iter().map(cut).collect())
    }

    /// Returns true if slices wait to be made from another generation.
    pub(super) fn waits_to_derive(&self) -> bool {
        !self.derived.is_empty()
    }

    /// Makes the slices of the waiting generations. A generation is made once the stream carries
    /// its mutations from the newest applied epoch on.
    pub(super) async fn make_derived(&mut self) -> Result<()> {
        // A slice that is made now would lack the corrections that a running resync applies later.
        let Some(mark) = self.applied.clone().filter(|_| self.resync.is_none()) else {
            return Ok(());
        };
        let is_ready = |(id, index): &(&LocalIndexId, &Arc<IndexInfo>)| {
            let Some(fed) = self.fed.get(id) else { return false };
            let slices = index.topology.slices_on(self.context.config.node.id);
            slices.iter().all(|slice| fed.since.get(slice).is_some_and(|s| mark.cut.reaches(s)))
        };
        let ready: Vec<Arc<IndexInfo>> =
            self.derived.iter().filter(is_ready).map(|(_, index)| Arc::clone(index)).collect();
        for index in ready {
            let id = index.local_id();
            self.derived.remove(&id);
            // A copy that is here must stay: the build that takes the place of a failed derivation begins without slices.
            if self.find_stored(&index).is_some() || self.incoming.is_restoring(id) {
                continue;
            }
            if !self.derive_slices(&index, &mark).await {
                self.build_instead(&index, Cut::clone(&mark.cut)).await?;
            }
            self.context.slices_changed();
        }
        Ok(())
    }

    /// Makes the slices of a generation from those of another one, readable from the epoch of
    /// `mark` on. Returns false if that is impossible.
    async fn derive_slices(&self, index: &Arc<IndexInfo>, mark: &EpochMark) -> bool {
        let (name, id) = (&index.spec.name, index.local_id());
        let Some((from, cuts)) = self.derivation_of(index) else {
            tracing::info!(index = %name, generation = %id, "a slice to be split has left the node");
            return false;
        };
        let made = self.context.store.derive_slices(from, Arc::clone(index), cuts, mark).await;
        let estimated = match made {
            Ok(estimated) => estimated,
            Err(error) => {
                tracing::warn!(index = %name, %error, "slices could not be split in place");
                return false;
            }
        };
        let epoch = mark.epoch;
        tracing::info!(index = %name, generation = %id, %epoch, "slices were split in place");
        self.context.slices_split.fetch_add(1, Ordering::Relaxed);
        let context = self.context.clone();
        let counting = self.context.env.spawn_request("count-slices", async move {
            for (slice, told) in estimated {
                let slice = id.slice(slice);
                if let Err(error) = context.store.count_installed(slice, epoch, told).await {
                    tracing::debug!(%slice, %error, "counting a slice that was split");
                }
            }
        });
        counting.detach();
        // The columns may have been grouped otherwise since the catalog was taken.
        if let Err(error) = self.context.store.regroup(id, grouping(index)).await {
            tracing::debug!(index = %name, %error, "grouping the columns of a new generation");
        }
        true
    }

    /// Builds a generation from the source, because its slices cannot be made from another
    /// generation. `joined` is the cut from which its mutations are applied.
    async fn build_instead(&mut self, index: &Arc<IndexInfo>, joined: Cut) -> Result<()> {
        self.context.store.begin_build(Arc::clone(index), grouping(index)).await?;
        self.spawn_build(index, joined);
        Ok(())
    }
}

/// Converts the derivation of a slice to the engine's form.
fn cut(derived: DerivedSlice) -> SliceCut {
    let DerivedSlice { slice, from, part } = derived;
    let range = |SlicePart { low, high }| KeyRange { low: low.into(), high: high.map(Into::into) };
    SliceCut { slice, from, range: part.map(range) }
}

#[cfg(test)]
#[path = "derive_tests.rs"]
mod tests;
