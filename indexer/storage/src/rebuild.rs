//! Rebuilds: some slices of an index are built from the source beside those of it that are here, which go on and answer.
//!
//! A rebuild is an index of its own that nobody reads and no manifest names. Epochs are applied to it as to any build
//! ([`super::builds`]), and of the backfill it takes its own slices. When an applied epoch covers the backfill's cut,
//! its slices become part of the index at that epoch as slices that have arrived ([`super::arrival`]), with that epoch
//! as their floor: fragments change hands, and no row is written twice. Where nothing of the index is here, they are
//! the first of it.
//!
//! An index has one rebuild at a time. A crash before its end leaves files that no manifest names, and the slices are
//! as absent as they were.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use proto::Result;
use proto::model::ids::{BucketId, Epoch, Generation, IndexId, SliceNo};
use proto::model::index::IndexInfo;

use super::arrival::{Arrived, ArrivedSlice, Between, Entries, NotInstalled};
use super::builds::Joined;
use super::files::Files;
use super::manifest::{FileId, Grouping};
use super::slot::{Slot, lock};
use super::state::State;
use super::store::{FragmentStore, Inner};
use super::table::Table;
use super::versions::Protected;

impl State {
    /// The rebuilds.
    pub fn rebuilds(&self) -> Vec<Arc<Slot>> {
        let rebuilds = self.rebuilds.read().unwrap_or_else(PoisonError::into_inner);
        rebuilds.values().cloned().collect()
    }

    /// The rebuild of an index.
    pub fn rebuild(&self, index: IndexId, generation: Generation) -> Option<Arc<Slot>> {
        let rebuilds = self.rebuilds.read().unwrap_or_else(PoisonError::into_inner);
        rebuilds.get(&index).filter(|slot| slot.info.generation == generation).cloned()
    }

    fn take_rebuild(&self, index: IndexId) -> Option<Arc<Slot>> {
        self.rebuilds.write().unwrap_or_else(PoisonError::into_inner).remove(&index)
    }
}

impl FragmentStore {
    /// Begins (or begins anew) to build slices of an index that are not here, beside those that are: from now on the
    /// epochs are applied to them, and they are shown at the end of the build ([`super::SliceStore::finish_build`]).
    pub async fn begin_rebuild(
        &self,
        info: Arc<IndexInfo>,
        slices: &[SliceNo],
        grouping: Grouping,
    ) -> Result<()> {
        self.drop_rebuild(info.id).await?;
        let slot = Arc::new(Slot::begin(info, slices, grouping));
        let rebuilds = &self.inner.state.rebuilds;
        rebuilds.write().unwrap_or_else(PoisonError::into_inner).insert(slot.info.id, slot);
        Ok(())
    }

    /// Gives up the rebuild of an index, if there is one.
    pub async fn drop_rebuild(&self, index: IndexId) -> Result<()> {
        let Some(slot) = self.inner.state.take_rebuild(index) else { return Ok(()) };
        self.on_slot(slot, |slot, files| slot.drop_with(files, || Ok(()))).await
    }

    /// The indexes of which slices are being built anew, with their buckets.
    pub fn rebuilds(&self) -> Vec<(IndexId, BucketId)> {
        let rebuilds = self.inner.state.rebuilds();
        rebuilds.iter().map(|slot| (slot.info.id, slot.info.bucket)).collect()
    }

    /// The slices of an index that are being built anew.
    pub fn rebuilt_slices(&self, index: IndexId, generation: Generation) -> Vec<SliceNo> {
        let rebuild = self.inner.state.rebuild(index, generation);
        rebuild.map(|slot| slot.slices()).unwrap_or_default()
    }
}

impl Inner {
    /// Shows the slices of a rebuild from an epoch on, which must be the newest one applied. After an error the
    /// rebuild is over too, and its slices are as absent as before.
    pub async fn finish_rebuild(self: &Arc<Self>, slot: Arc<Slot>, epoch: Epoch) -> Result<()> {
        self.end_backfill(&slot).await?;
        let (inner, at) = (Arc::clone(self), self.behind(slot.info.bucket, epoch).await);
        let work = move || {
            // Whoever asked may be gone by now, and its successor may apply epochs.
            let alone = inner.state.alone(slot.info.bucket);
            let _alone = lock(&alone);
            let shown = inner.show_rebuilt(&slot, at);
            inner.state.take_rebuild(slot.info.id);
            if shown.is_err() {
                slot.drop_with(&inner.files, || Ok(()))?;
            }
            shown
        };
        self.env.blocking(work).await
    }

    fn show_rebuilt(&self, slot: &Slot, at: Between) -> Result<()> {
        self.check_newest(slot.info.bucket, at)?;
        let arrived = slot.arrive(at.epoch, &self.files, self.gathered_bytes_max())?;
        let tables = arrived.tables.clone();
        self.take_in(arrived, at).map_err(|error| match error {
            NotInstalled::For(error) => {
                self.files.retire(tables.into_iter().collect());
                error
            }
            // The manifest on disk may name the files: they stay, and the next start sorts that out.
            NotInstalled::Unsure(error) => error,
        })
    }
}

impl Slot {
    /// Ends a rebuild: what it has made is the caller's.
    fn arrive(&self, epoch: Epoch, files: &Files, bytes_max: usize) -> Result<Arrived> {
        self.flush(files)?;
        let mut structure = lock(&self.structure);
        let joined = self.join_backfill(&mut structure, epoch, files, bytes_max)?;
        let Joined { manifest, new } = joined;
        structure.dropped = true;
        structure.manifest.slices.clear();
        let mut tables: BTreeMap<FileId, Arc<Table>> = std::mem::take(&mut structure.tables);
        tables.extend(new.into_iter().map(|new| (new.file, new.table)));
        self.visible.store(Arc::default());
        let slices = manifest.slices.into_iter().map(|(slice, lists)| {
            let reach = Protected { horizon: epoch, points: Vec::new() };
            let entries = manifest.entries.get(&slice).copied().unwrap_or_default();
            (slice, ArrivedSlice { lists, reach, entries: Entries::Counted(entries) })
        });
        Ok(Arrived { slices: slices.collect(), tables, info: manifest.info })
    }
}

#[cfg(test)]
#[path = "rebuild_tests.rs"]
mod tests;
