//! A flush: what an index has in memory becomes two fragments, one of entries and one of the back index;
//! they are synced, the manifest names them and is synced too, and only then memory and log let go of
//! what they held.

use std::sync::Arc;

use proto::Result;
use proto::ids::{Epoch, SliceNo};

use super::block::Version;
use super::cursor::Source;
use super::files::Files;
use super::fragment::FILTER_BYTES;
use super::manifest::{Columns, EpochRange, FileId, Place};
use super::memtable::{BackMemtable, SORT_BYTES};
use super::rewrite::Rewrite;
use super::slot::{FORWARD, Slot, Writer, lock, slices_of};
use super::table::Table;
use super::versions::Protected;

/// What a flush writes.
struct Frozen {
    runs: Vec<Arc<Table>>,
    memtable: Arc<BackMemtable>,
    /// All that was applied up to this epoch is among it, or in fragments already.
    epoch: Epoch,
    protected: Protected,
    floor: Option<Epoch>,
    entries: Vec<(SliceNo, u64)>,
    building: bool,
}

/// A new fragment, if it has rows.
type Written = Option<(FileId, Arc<Table>)>;

impl Slot {
    /// Writes what is in memory; true if there was something.
    pub fn flush(&self, files: &Files) -> Result<bool> {
        let _one_at_a_time = lock(&self.flush);
        let Some(mut frozen) = self.freeze() else { return Ok(false) };
        let written = self.merge_frozen(&mut frozen.runs, &frozen.protected).and_then(|()| {
            let (forward, back) = self.write(&frozen, files)?;
            files.sync_names()?;
            self.install(&frozen, forward, back, files)
        });
        let mut writer = lock(&self.writer);
        if let Err(error) = written {
            writer.thaw();
            return Err(error);
        }
        Ok(true)
    }

    /// Sets aside what is in memory now; what comes goes to a new memtable and new runs.
    fn freeze(&self) -> Option<Frozen> {
        let mut writer = lock(&self.writer);
        let runs = self.visible.load().runs.clone();
        let empty = runs.is_empty() && writer.memtable.is_empty() && writer.frozen.is_none();
        if empty && !std::mem::take(&mut writer.floor_raised) {
            // Going back to an epoch may have left nothing of what came with later ones.
            writer.unflushed = None;
            return None;
        }
        // A flush that failed has left its own: they are written together with it the next time.
        let memtable = match writer.frozen.take() {
            Some(left) if writer.memtable.is_empty() => left,
            Some(left) => {
                let mut both = BackMemtable::default();
                both.append(&left, Epoch(u64::MAX));
                both.append(&writer.memtable, Epoch(u64::MAX));
                Arc::new(both)
            }
            None => Arc::new(std::mem::take(&mut writer.memtable)),
        };
        writer.memtable = BackMemtable::default();
        writer.frozen = Some(Arc::clone(&memtable));
        writer.frozen_runs = runs.len();
        writer.frozen_unflushed = writer.unflushed.take();
        Some(Frozen {
            runs,
            memtable,
            epoch: writer.applied,
            floor: self.visible.load().floor,
            protected: Protected { horizon: writer.horizon, points: Vec::new() },
            entries: writer.entries.iter().map(|(slice, n)| (*slice, (*n).max(0) as u64)).collect(),
            building: writer.building,
        })
    }

    fn write(&self, frozen: &Frozen, files: &Files) -> Result<(Written, Written)> {
        let forward = self.write_runs(frozen, files)?;
        match self.write_memtable(frozen, files) {
            Ok(back) => Ok((forward, back)),
            Err(error) => {
                files.retire(forward.into_iter().collect());
                Err(error)
            }
        }
    }

    fn write_runs(&self, frozen: &Frozen, files: &Files) -> Result<Written> {
        if frozen.runs.is_empty() {
            return Ok(None);
        }
        let rewrite = Rewrite { protected: frozen.protected.clone(), back: false };
        files.write(FORWARD, None, |out| {
            slices_of(&frozen.runs).into_iter().try_for_each(|slice| {
                let sources = frozen.runs.iter().map(|run| Source::whole(run, slice)).collect();
                rewrite.slice(slice, sources, false, out)
            })
        })
    }

    fn write_memtable(&self, frozen: &Frozen, files: &Files) -> Result<Written> {
        if frozen.memtable.is_empty() {
            return Ok(None);
        }
        let rows = frozen.memtable.states();
        let _sorting = self.hold(rows * (SORT_BYTES + FILTER_BYTES));
        files.write(Columns::BACK, Some(rows), |out| {
            let mut newer: Option<(SliceNo, &[u8], Epoch)> = None;
            for state in frozen.memtable.sorted() {
                let same = newer.filter(|newer| (newer.0, newer.1) == (state.slice, state.id));
                if same.is_none_or(|newer| frozen.protected.needs(state.epoch, Some(newer.2))) {
                    out.push(&Version {
                        slice: state.slice,
                        key: state.id,
                        id: &[],
                        value: state.state,
                        epoch: state.epoch,
                        tombstone: state.state.is_empty(),
                    })?;
                }
                newer = Some((state.slice, state.id, state.epoch));
            }
            Ok(())
        })
    }

    /// Adds the fragments to the lists of their slices, and lets memory go.
    fn install(
        &self,
        frozen: &Frozen,
        forward: Written,
        back: Written,
        files: &Files,
    ) -> Result<()> {
        let mut structure = lock(&self.structure);
        let mut manifest = structure.manifest.clone();
        for (written, columns) in [(&forward, FORWARD), (&back, Columns::BACK)] {
            if let Some((file, table)) = written {
                // Rows of a slice that is not here any more, sent before it went, show nowhere.
                let here = |slice: &SliceNo| manifest.slices.contains_key(slice);
                let slices = table.index.sections().iter().map(|section| section.slice);
                let slices: Vec<SliceNo> = slices.filter(here).collect();
                manifest.add(*file, &slices, columns, epochs_of(table), Place::Newest)?;
            }
        }
        manifest.flushed = frozen.epoch;
        let here = |slice: &SliceNo| manifest.slices.contains_key(slice);
        let entries = frozen.entries.iter().filter(|(slice, _)| here(slice)).copied();
        manifest.entries.extend(entries);
        manifest.floor =
            manifest.floor.max(frozen.floor).map(|floor| floor.max(frozen.protected.horizon));
        if structure.dropped {
            files.retire(forward.into_iter().chain(back).collect());
            return Ok(());
        }
        if !frozen.building {
            files.write_manifest(&manifest)?;
        }
        structure.manifest = manifest;
        structure.tables.extend(forward.into_iter().chain(back));
        let mut writer = lock(&self.writer);
        let frozen_runs = writer.frozen_runs;
        self.publish(&structure, &mut writer, |visible| {
            visible.runs.drain(..frozen_runs);
            visible.floor = visible.floor.map(|floor| floor.max(frozen.protected.horizon));
        })?;
        writer.frozen = None;
        writer.frozen_runs = 0;
        writer.frozen_unflushed = None;
        Ok(())
    }
}

impl Writer {
    /// After a flush that failed: what it was to write stays in memory, frozen, for the next one.
    fn thaw(&mut self) {
        self.frozen_runs = 0;
        self.unflushed = match (self.frozen_unflushed.take(), self.unflushed) {
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.min(other.1))),
            (one, other) => one.or(other),
        };
    }
}

/// The epochs of a table's rows.
pub fn epochs_of(table: &Table) -> EpochRange {
    EpochRange { from: table.stats.oldest, to: table.stats.newest }
}
