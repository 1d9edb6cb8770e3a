//! Changes of an index as a whole: builds, splits, clones, drops, going back to an epoch.
//!
//! A split or a clone is an edit of the lists. What the slice has in memory is flushed before, since
//! runs know slices by their numbers alone.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use proto::cut::EpochMark;
use proto::ids::{Epoch, SliceNo};
use proto::{Error, ErrorCode, Result};

use super::Rows;
use super::bulk::{Bulk, Part, write_part};
use super::compact::Extent;
use super::cursor::Source;
use super::epoch::Record;
use super::files::Files;
use super::flush::epochs_of;
use super::manifest::{Columns, DeadEpochs, FileId, IndexManifest, Place, SliceLists};
use super::memtable::BackMemtable;
use super::merge::Visible as VisibleRows;
use super::rows::RowSorter;
use super::slot::{FORWARD, Fragments, Slot, Structure, Visible, fragments, lock, merge_tables};
use super::store::Inner;
use super::table::Table;
use super::versions::Protected;

/// A slice that is written to all the time is flushed so often before an edit of its list is refused.
const FLUSHES_MAX: usize = 16;

impl Slot {
    /// Begins a backfill, forgetting what an earlier one has left.
    pub fn begin_backfill(&self, files: &Files) -> Result<()> {
        let mut structure = lock(&self.structure);
        if let Some(old) = structure.bulk.replace(Bulk::default()) {
            files.retire(old.into_tables());
        }
        Ok(())
    }

    /// Removes the index from the disk.
    pub fn drop_all(&self, files: &Files) -> Result<()> {
        let mut structure = lock(&self.structure);
        structure.dropped = true;
        files.remove_manifest(self.info.id, self.info.generation)?;
        structure.manifest.slices.clear();
        let mut tables = structure.take_unnamed();
        tables.extend(structure.bulk.take().map(Bulk::into_tables).unwrap_or_default());
        files.retire(tables);
        let writer = lock(&self.writer);
        self.visible.store(Arc::default());
        drop((writer, structure));
        files.collect();
        Ok(())
    }

    /// Merges each list down to one fragment.
    pub fn compact_everything(&self, files: &Files) -> Result<()> {
        let mut done = Default::default();
        while self.compact(files, Extent::Everything(&mut done))? {}
        Ok(())
    }

    /// Edits the lists of one slice, of which nothing may be in memory.
    pub fn edit(
        &self,
        files: &Files,
        slice: SliceNo,
        edit: impl Fn(&mut IndexManifest) -> Result<()>,
    ) -> Result<()> {
        for _ in 0..FLUSHES_MAX {
            self.flush(files)?;
            let mut structure = lock(&self.structure);
            let mut manifest = structure.manifest.clone();
            edit(&mut manifest)?;
            recount(&mut manifest, &structure)?;
            let mut writer = lock(&self.writer);
            if writer.has(slice, &self.visible.load()) {
                continue;
            }
            files.write_manifest(&manifest)?;
            writer
                .entries
                .retain(|other, _| *other != slice && manifest.slices.contains_key(other));
            for (slice, entries) in &manifest.entries {
                writer.entries.entry(*slice).or_insert(*entries as i64);
            }
            structure.manifest = manifest;
            self.publish(&structure, &mut writer, |_| {})?;
            files.retire(structure.take_unnamed());
            drop((writer, structure));
            files.collect();
            return Ok(());
        }
        Err(Error::unavailable(format!("slice {slice} of index {} is busy", self.info.id)))
    }

    /// May the index go back to an epoch?
    fn check_truncate(&self, epoch: Epoch) -> Result<()> {
        let visible = self.visible.load();
        match visible.slices.keys().filter_map(|slice| visible.floor_of(*slice)).max() {
            Some(floor) if floor > epoch => Err(Error::new(
                ErrorCode::SnapshotTooOld,
                format!("index {} answers from epoch {floor} on, not {epoch}", self.info.id),
            )),
            _ => Ok(()),
        }
    }

    /// Goes back to an epoch.
    pub fn truncate(&self, epoch: Epoch, files: &Files) -> Result<()> {
        self.check_truncate(epoch)?;
        let _no_flush = lock(&self.flush);
        let mut structure = lock(&self.structure);
        let mut manifest = structure.manifest.clone();
        manifest.truncate(epoch)?;
        manifest.entries.clear();
        recount(&mut manifest, &structure)?;
        if manifest.floor.is_some() && !structure.dropped {
            files.write_manifest(&manifest)?;
        }
        structure.manifest = manifest;
        let mut writer = lock(&self.writer);
        let runs = self.visible.load().runs.clone();
        let kept = merge_tables(&runs, &Protected::default(), epoch)?;
        let mut memtable = BackMemtable::default();
        if let Some(frozen) = writer.frozen.take() {
            memtable.append(&frozen, epoch);
        }
        memtable.append(&writer.memtable, epoch);
        writer.memtable = memtable;
        writer.applied = writer.applied.min(epoch);
        writer.horizon = writer.horizon.min(epoch);
        self.publish(&structure, &mut writer, |visible| {
            visible.runs = kept.into_iter().map(Arc::new).collect()
        })?;
        let visible = self.visible.load();
        writer.entries.clear();
        for slice in visible.slices.keys() {
            let entries = count(visible.sources(*slice))?;
            writer.entries.insert(*slice, entries as i64);
        }
        files.retire(structure.take_unnamed());
        Ok(())
    }
}

impl Slot {
    /// Counts the entries that a slice shows at an epoch.
    pub fn count_at(&self, slice: SliceNo, epoch: Epoch) -> Result<u64> {
        count_at(self.visible.load().sources(slice), epoch)
    }
}

impl Visible {
    /// All that a slice's entries stand in.
    pub fn sources(&self, slice: SliceNo) -> Vec<Source> {
        let fragments = self.slices.get(&slice).map_or(&[][..], |fragments| &fragments.forward);
        let runs = self.runs.iter().map(|run| Source::whole(run, slice));
        fragments.iter().cloned().chain(runs).collect()
    }
}

/// Counts the entries of slices that are new in a manifest.
fn recount(manifest: &mut IndexManifest, structure: &Structure) -> Result<()> {
    let slices = &manifest.slices;
    manifest.entries.retain(|slice, _| slices.contains_key(slice));
    manifest.floors.retain(|slice, _| slices.contains_key(slice));
    for (slice, Fragments { forward, .. }) in
        fragments(manifest, &structure.tables)?.iter().map(|(slice, f)| (*slice, &**f))
    {
        if let Entry::Vacant(unknown) = manifest.entries.entry(slice) {
            unknown.insert(count(forward.clone())?);
        }
    }
    Ok(())
}

fn count(sources: Vec<Source>) -> Result<u64> {
    count_at(sources, Epoch(u64::MAX))
}

fn count_at(sources: Vec<Source>, epoch: Epoch) -> Result<u64> {
    let mut rows = VisibleRows::new(sources, epoch, false, false)?;
    let mut entries = 0;
    while rows.next()? {
        entries += 1;
    }
    Ok(entries)
}

impl Inner {
    /// Takes in documents of a backfill; writes them when enough have gathered.
    pub async fn backfill(self: &Arc<Self>, slot: Arc<Slot>, documents: Bytes) -> Result<()> {
        let bytes_max = (self.options.memory_bytes / 4) as usize;
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
                let full = gathered >= bytes_max || bulk.is_full();
                slot.bulk_bytes.store(gathered as u64, Ordering::Relaxed);
                Ok(full.then(|| bulk.take_gathered()))
            }
        };
        match self.env.blocking(work).await? {
            Some(gathered) => self.write_gathered(&slot, gathered).await,
            None => Ok(()),
        }
    }

    /// Writes gathered documents, the two parts side by side.
    async fn write_gathered(
        self: &Arc<Self>,
        slot: &Arc<Slot>,
        (forward, back): (RowSorter, RowSorter),
    ) -> Result<()> {
        let write = |rows: RowSorter, part: Part| {
            let inner = Arc::clone(self);
            self.env.blocking(move || write_part(&inner.files, rows, part))
        };
        let (forward, back) = tokio::join!(write(forward, Part::Forward), write(back, Part::Back));
        let (forward, back) = (forward?, back?);
        slot.bulk_bytes.store(0, Ordering::Relaxed);
        if let Some(bulk) = &mut lock(&slot.structure).bulk {
            bulk.forward.extend(forward);
            bulk.back.extend(back);
        }
        Ok(())
    }

    /// Joins a backfill with what the epochs have said since the build began, and shows the index.
    pub async fn finish_build(self: &Arc<Self>, slot: Arc<Slot>, epoch: Epoch) -> Result<()> {
        let gathered = lock(&slot.structure).bulk.as_mut().map(Bulk::take_gathered);
        match gathered {
            Some(gathered) => self.write_gathered(&slot, gathered).await?,
            None => {
                let message = format!("index {} has no backfill to end", slot.info.id);
                return Err(Error::internal(message));
            }
        }
        // The index must not be readable after a crash that the bucket's epochs did not survive.
        self.log.sync().await?;
        let inner = Arc::clone(self);
        self.env.blocking(move || slot.finish_build(epoch, &inner.files)).await
    }

    /// Goes back to an epoch: first the log says so, then each index does it, then the node's manifest
    /// says that it is done. A crash between leaves the log to be replayed, which ends it.
    pub async fn truncate(self: &Arc<Self>, mark: &EpochMark) -> Result<()> {
        let slots = self.state.of_bucket(mark.bucket);
        for slot in &slots {
            slot.check_truncate(mark.epoch)?;
        }
        let mut order = self.order.lock().await;
        let dead = DeadEpochs {
            bucket: mark.bucket,
            above: mark.epoch,
            to: self.counters(mark.bucket).staged,
        };
        let record = Record::Truncate(mark.clone(), dead.to).encode()?;
        let end = self.log.append(&record).await?;
        self.log.wait_durable(end).await?;
        // No scan may ask for what goes, from before the first index has gone back.
        if let Some(progress) = lock(&self.state.buckets).get_mut(&mark.bucket) {
            progress.staged = mark.epoch;
            progress.applied = Some(mark.clone());
            progress.logged = Some(mark.clone());
            progress.durable = progress.durable.min(mark.epoch);
            progress.ends.retain(|(epoch, _)| *epoch <= mark.epoch);
            progress.dead.push(dead);
        }
        for slot in slots {
            let (inner, epoch) = (Arc::clone(self), mark.epoch);
            self.env.blocking(move || slot.truncate(epoch, &inner.files)).await?;
        }
        order.go_back(mark, dead);
        let manifest = order.node_manifest(self.files.next());
        let inner = Arc::clone(self);
        self.env.blocking(move || inner.files.write_node_manifest(&manifest)).await
    }
}

type Written = Vec<(FileId, Arc<Table>)>;

impl Slot {
    fn finish_build(&self, epoch: Epoch, files: &Files) -> Result<()> {
        self.flush(files)?;
        let mut structure = lock(&self.structure);
        let (tombstones, had) = structure.corrections(epoch, files)?;
        files.sync_names()?;
        let Some(bulk) = structure.bulk.take() else {
            return Err(Error::internal(format!("index {} is not being built", self.info.id)));
        };
        let mut manifest = structure.manifest.clone();
        for (tables, columns) in [(&bulk.forward, FORWARD), (&bulk.back, Columns::BACK)] {
            for (file, table) in tables.iter().rev() {
                add(&mut manifest, *file, table, columns, Place::Oldest)?;
            }
        }
        for (file, table) in &tombstones {
            add(&mut manifest, *file, table, FORWARD, Place::Newest)?;
        }
        let mut writer = lock(&self.writer);
        for (slice, entries) in &bulk.entries {
            *writer.entries.entry(*slice).or_default() += *entries as i64;
        }
        for (slice, had) in had {
            *writer.entries.entry(slice).or_default() -= had as i64;
        }
        let entries = writer.entries.iter().map(|(slice, n)| (*slice, (*n).max(0) as u64));
        manifest.entries = entries.collect();
        (manifest.floor, manifest.flushed) = (Some(epoch), epoch);
        files.write_manifest(&manifest)?;
        structure.manifest = manifest;
        structure.tables.extend(bulk.into_tables().into_iter().chain(tombstones));
        writer.building = false;
        writer.applied = epoch;
        self.publish(&structure, &mut writer, |visible| visible.floor = Some(epoch))
    }
}

impl Structure {
    /// See [`super::bulk`]: the tombstones, and how many entries of the backfill they and newer states
    /// stand for, by slice.
    fn corrections(
        &self,
        epoch: Epoch,
        files: &Files,
    ) -> Result<(Written, BTreeMap<SliceNo, u64>)> {
        let mut had = BTreeMap::new();
        let mut rows = RowSorter::default();
        let Some(bulk) = &self.bulk else { return Ok((Vec::new(), had)) };
        for (slice, fragments) in fragments(&self.manifest, &self.tables)? {
            had.insert(slice, bulk.corrections(slice, &fragments.back, &mut rows)?);
        }
        if rows.is_empty() {
            return Ok((Vec::new(), had));
        }
        let written = files.write(FORWARD, None, |out| rows.write(epoch, out))?;
        Ok((written.into_iter().collect(), had))
    }
}

fn add(
    manifest: &mut IndexManifest,
    file: FileId,
    table: &Table,
    columns: Columns,
    place: Place,
) -> Result<()> {
    let slices: Vec<SliceNo> = table.index.sections().iter().map(|section| section.slice).collect();
    for slice in &slices {
        // An index that is built may have grown a slice since; what lies in none is not kept.
        let lists = || SliceLists::new(&[FORWARD, Columns::BACK]);
        manifest.slices.entry(*slice).or_insert_with(lists);
    }
    manifest.add(file, &slices, columns, epochs_of(table), place)
}
