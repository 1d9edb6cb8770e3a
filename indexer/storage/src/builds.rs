//! Builds: a backfill's documents go past the log into fragments of their own (see [`super::bulk`]);
//! when the epochs cover its snapshot, both are joined and the index is shown. However many builds there
//! are, what they gather before it is written takes a quarter of the memory budget.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use proto::model::ids::{Epoch, SliceNo};
use proto::{Error, Result};

use super::bulk::{Bulk, Corrections, Part, write_part};
use super::files::{Files, Written};
use super::flush::epochs_of;
use super::load_state::LoadState;
use super::manifest::{IndexManifest, Place, SliceLists};
use super::rows::RowSorter;
use super::slot::{Slot, Structure, lock};
use super::store::Inner;
use super::versions::Protected;
use super::visible::fragments;

/// However large the budget is, no more is sorted at once: to sort more holds the stream up, and gains nothing.
const GATHERED_BYTES_MAX: usize = 1 << 30;

impl Inner {
    /// Takes in documents of a backfill; writes them when enough have gathered.
    pub async fn backfill(self: &Arc<Self>, slot: Arc<Slot>, documents: Bytes) -> Result<()> {
        let bytes_max = self.gathered_bytes_max();
        let work = {
            let slot = Arc::clone(&slot);
            move || -> Result<Option<(RowSorter, RowSorter)>> {
                let mut structure = lock(&slot.structure);
                let Some(bulk) = &mut structure.bulk else {
                    let message = format!("index {} is not being built", slot.info.id);
                    return Err(Error::internal(message));
                };
                bulk.add(slot.info.id, slot.info.generation, &documents)?;
                let gathered = bulk.gathered_bytes();
                slot.bulk_bytes.store(gathered as u64, Ordering::Relaxed);
                Ok((gathered >= bytes_max).then(|| bulk.take_gathered()))
            }
        };
        match self.env.blocking(work).await? {
            Some(gathered) => self.write_gathered(&slot, gathered).await,
            None => Ok(()),
        }
    }

    /// What one backfill may gather: all that go on share a quarter of the budget.
    pub fn gathered_bytes_max(&self) -> usize {
        let slots = self.state.slots();
        let builds = slots.iter().filter(|slot| slot.backfilling.load(Ordering::Relaxed)).count();
        (self.options.memory_bytes as usize / 4 / builds.max(1)).min(GATHERED_BYTES_MAX)
    }

    /// Writes gathered documents, the two parts side by side.
    async fn write_gathered(
        self: &Arc<Self>,
        slot: &Arc<Slot>,
        (forward, back): (RowSorter, RowSorter),
    ) -> Result<()> {
        let grouping = lock(&slot.structure).manifest.grouping();
        let write = |rows: RowSorter, part: Part| {
            let inner = Arc::clone(self);
            self.env.blocking(move || write_part(&inner.files, rows, part, grouping))
        };
        let (forward, back) = tokio::join!(write(forward, Part::Forward), write(back, Part::Back));
        let (forward, back) = (forward?, back?);
        slot.bulk_bytes.store(0, Ordering::Relaxed);
        match &mut lock(&slot.structure).bulk {
            Some(bulk) => {
                bulk.forward.extend(forward);
                bulk.back.extend(back);
            }
            // The build was given up meanwhile.
            None => self.files.discard(forward.into_iter().chain(back).collect()),
        }
        Ok(())
    }

    /// Joins a backfill with what the epochs have said since the build began, and shows the index.
    pub async fn finish_build(self: &Arc<Self>, slot: Arc<Slot>, epoch: Epoch) -> Result<()> {
        self.end_backfill(&slot).await?;
        let inner = Arc::clone(self);
        let bytes_max = self.gathered_bytes_max();
        self.env.blocking(move || slot.finish_build(epoch, &inner.files, bytes_max)).await
    }

    /// Writes what has gathered last; what the epochs have said so far is durable then.
    pub async fn end_backfill(self: &Arc<Self>, slot: &Arc<Slot>) -> Result<()> {
        let gathered = lock(&slot.structure).bulk.as_mut().map(Bulk::take_gathered);
        match gathered {
            Some(gathered) => self.write_gathered(slot, gathered).await?,
            None => {
                let message = format!("index {} has no backfill to end", slot.info.id);
                return Err(Error::internal(message));
            }
        }
        // The slices must not be readable after a crash that the bucket's epochs did not survive.
        self.log.sync().await
    }
}

/// A backfill, joined with what the epochs have said since: in no manifest yet.
pub struct Joined {
    /// Shows the slices from the epoch on.
    pub manifest: IndexManifest,
    /// The fragments that the backfill brought, and its corrections.
    pub new: Vec<Written>,
}

impl Slot {
    /// Begins a backfill, forgetting what an earlier one has left; `only` where it brings other slices too.
    pub fn begin_backfill(&self, only: Option<BTreeSet<SliceNo>>, files: &Files) -> Result<()> {
        let mut structure = lock(&self.structure);
        if let Some(old) = structure.bulk.replace(Bulk::of(only)) {
            files.discard(old.into_written());
        }
        self.backfilling.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn finish_build(&self, epoch: Epoch, files: &Files, bytes_max: usize) -> Result<()> {
        self.flush(files)?;
        let mut structure = lock(&self.structure);
        let joined = self.join_backfill(&mut structure, epoch, files, bytes_max)?;
        let Joined { manifest, new } = joined;
        let mut writer = self.writer();
        files.write_manifest(&manifest)?;
        writer.entries = manifest.entries.iter().map(|(slice, n)| (*slice, *n as i64)).collect();
        structure.manifest = manifest;
        structure.tables.extend(new.into_iter().map(|new| (new.file, new.table)));
        self.backfilling.store(false, Ordering::Relaxed);
        writer.building = false;
        writer.applied = epoch;
        self.publish(&structure, &mut writer, |visible| {
            visible.set_reach(Protected { horizon: epoch, points: Vec::new() })
        })
    }

    /// Joins the backfill with what the epochs have said, of which nothing may be in memory any more; gathers
    /// so many bytes of corrections at a time.
    pub fn join_backfill(
        &self,
        structure: &mut Structure,
        epoch: Epoch,
        files: &Files,
        bytes_max: usize,
    ) -> Result<Joined> {
        let grouping = structure.manifest.grouping();
        let gathering = Corrections::new(files, grouping, epoch, bytes_max, &self.bulk_bytes);
        let (tombstones, had) = structure.corrections(gathering)?;
        files.sync_names()?;
        let Some(bulk) = structure.bulk.take() else {
            return Err(Error::internal(format!("index {} is not being built", self.info.id)));
        };
        let mut manifest = structure.manifest.clone();
        for new in bulk.forward.iter().rev().chain(bulk.back.iter().rev()) {
            add(&mut manifest, new, Place::Oldest)?;
        }
        for new in &tombstones {
            add(&mut manifest, new, Place::Newest)?;
        }
        let mut entries = self.writer().entries.clone();
        for (slice, more) in &bulk.entries {
            *entries.entry(*slice).or_default() += *more as i64;
        }
        for (slice, had) in had {
            *entries.entry(slice).or_default() -= had as i64;
        }
        let entries = entries.into_iter().map(|(slice, n)| (slice, n.max(0) as u64));
        manifest.entries = entries.collect();
        manifest.set_reach(Protected { horizon: epoch, points: Vec::new() });
        manifest.flushed = epoch;
        let new = bulk.into_written().into_iter().chain(tombstones).collect();
        Ok(Joined { manifest, new })
    }
}

impl Structure {
    /// See [`super::bulk`]: the tombstones, and how many entries of the backfill they and newer states
    /// stand for, by slice.
    fn corrections(
        &self,
        mut gathering: Corrections<'_>,
    ) -> Result<(Vec<Written>, BTreeMap<SliceNo, u64>)> {
        let mut had = BTreeMap::new();
        let Some(bulk) = &self.bulk else { return Ok((Vec::new(), had)) };
        for (slice, fragments) in fragments(&self.manifest, &self.tables, LoadState::Active)? {
            had.insert(slice, bulk.corrections(slice, &fragments.back, &mut gathering)?);
        }
        Ok((gathering.finish()?, had))
    }
}

fn add(manifest: &mut IndexManifest, new: &Written, place: Place) -> Result<()> {
    let Written { file, columns, table } = new;
    let groups = manifest.grouping().groups();
    let slices: Vec<SliceNo> = table.index.sections().iter().map(|section| section.slice).collect();
    for slice in &slices {
        // An index that is built may have grown a slice since; what lies in none is not kept.
        let lists = || SliceLists::new(groups);
        manifest.slices.entry(*slice).or_insert_with(lists);
    }
    manifest.add(*file, &slices, *columns, epochs_of(table), place)
}

#[cfg(test)]
#[path = "builds_tests.rs"]
mod tests;
