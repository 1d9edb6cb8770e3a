//! A flush: what an index has in memory becomes fragments, one for each column group; they are synced, the manifest names them and is synced too, and only then memory and log let go of
//! what they held.

use std::collections::BTreeSet;
use std::sync::Arc;

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};

use crate::files::data_files::{Files, Written};
use crate::fragment::filter::FILTER_BYTES;
use crate::index::local_index::Slot;
use crate::index::memtable::{BackMemtable, SORT_BYTES};
use crate::lock::lock;
use crate::maintain::merge_runs::{merge_frozen, slices_of};
use crate::maintain::rewrite::Rewrite;
use crate::manifest::edit::Place;
use crate::manifest::lists::EpochRange;
use crate::read::source::Source;
use crate::retention::Protected;
use crate::rows::columns::{Columns, Grouping};
use crate::rows::row::Version;
use crate::rows::sinks::RowSink;
use crate::tables::table::Table;

/// What a flush writes.
struct Frozen {
    runs: Vec<Arc<Table>>,
    memtable: Arc<BackMemtable>,
    /// All that was applied up to this epoch is among it, or in fragments already.
    epoch: Epoch,
    protected: Protected,
    reach: Option<Protected>,
    entries: Vec<(SliceNo, u64)>,
    uncounted: BTreeSet<SliceNo>,
    building: bool,
    grouping: Grouping,
}

/// Writes what is in memory; true if there was something.
pub fn flush(index: &Slot, files: &Files) -> Result<bool> {
    let _one_at_a_time = lock(&index.flush);
    let _compactions_give_way = files.pacer.flushing();
    let (floor, grouping) = {
        let structure = lock(&index.structure);
        (structure.manifest.floor, structure.manifest.grouping())
    };
    let Some(mut frozen) = freeze(index, floor, grouping) else { return Ok(false) };
    let written = merge_frozen(index, &mut frozen.runs, &frozen.protected).and_then(|()| {
        let written = write(index, &frozen, files)?;
        files.sync_names()?;
        install(index, &frozen, written, files)
    });
    let mut writer = index.writer();
    if let Err(error) = written {
        writer.thaw();
        return Err(error);
    }
    Ok(true)
}

/// Sets aside what is in memory now; what comes goes to a new memtable and new runs. A floor that
/// was raised above the one on disk is reason enough for a flush.
fn freeze(index: &Slot, floor_on_disk: Option<Epoch>, grouping: Grouping) -> Option<Frozen> {
    let mut writer = index.writer();
    let visible = index.visible.load();
    let (runs, floor) = (visible.runs.clone(), visible.floor);
    let empty = runs.is_empty() && writer.memtable.is_empty() && writer.frozen.is_none();
    if empty && floor <= floor_on_disk {
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
        reach: visible.reach(),
        protected: writer.protected.clone(),
        entries: writer.entries.iter().map(|(slice, n)| (*slice, (*n).max(0) as u64)).collect(),
        uncounted: writer.uncounted.clone(),
        building: writer.building,
        grouping,
    })
}

fn write(index: &Slot, frozen: &Frozen, files: &Files) -> Result<Vec<Written>> {
    let mut written = write_runs(frozen, files)?;
    match write_memtable(index, frozen, files) {
        Ok(back) => {
            written.extend(back);
            Ok(written)
        }
        Err(error) => {
            files.discard(written);
            Err(error)
        }
    }
}

fn write_runs(frozen: &Frozen, files: &Files) -> Result<Vec<Written>> {
    if frozen.runs.is_empty() {
        return Ok(Vec::new());
    }
    let rewrite = Rewrite { protected: frozen.protected.clone(), back: false };
    files.write(frozen.grouping.forward(), None, |out| {
        slices_of(&frozen.runs).into_iter().try_for_each(|slice| {
            let sources = frozen.runs.iter().map(|run| Source::whole(run, slice)).collect();
            rewrite.slice(slice, sources, false, out)
        })
    })
}

fn write_memtable(index: &Slot, frozen: &Frozen, files: &Files) -> Result<Vec<Written>> {
    if frozen.memtable.is_empty() {
        return Ok(Vec::new());
    }
    let rows = frozen.memtable.states();
    let _sorting = index.hold(rows * (SORT_BYTES + FILTER_BYTES));
    files.write(&[Columns::BACK], Some(rows), |out| {
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
/// Where the columns were divided anew meanwhile, each of them goes to the list it belongs to now.
fn install(index: &Slot, frozen: &Frozen, written: Vec<Written>, files: &Files) -> Result<()> {
    let mut structure = lock(&index.structure);
    let mut manifest = structure.manifest.clone();
    for Written { file, columns, table } in &written {
        // Rows of a slice that is not here any more, sent before it went, show nowhere.
        let here = |slice: &SliceNo| manifest.slices.contains_key(slice);
        let slices = table.index.sections().iter().map(|section| section.slice);
        let slices: Vec<SliceNo> = slices.filter(here).collect();
        manifest.add(
            *file,
            &slices,
            *columns,
            EpochRange::from_stats(&table.stats),
            Place::Newest,
        )?;
    }
    manifest.flushed = frozen.epoch;
    let here = |slice: &SliceNo| manifest.slices.contains_key(slice);
    let entries = frozen.entries.iter().filter(|(slice, _)| here(slice)).copied();
    manifest.entries.extend(entries);
    manifest.entries.retain(|slice, _| !frozen.uncounted.contains(slice));
    frozen.reach.iter().for_each(|reach| manifest.narrow(reach));
    manifest.narrow(&frozen.protected);
    if structure.dropped {
        files.discard(written);
        return Ok(());
    }
    if !frozen.building {
        files.write_manifest(&manifest)?;
    }
    structure.manifest = manifest;
    structure.tables.extend(written.into_iter().map(|new| (new.file, new.table)));
    let mut writer = index.writer();
    let frozen_runs = writer.frozen_runs;
    index.publish(&structure, &mut writer, |visible| {
        visible.runs.drain(..frozen_runs);
        visible.narrow(&frozen.protected);
    })?;
    writer.frozen = None;
    writer.frozen_runs = 0;
    writer.frozen_unflushed = None;
    files.retire(structure.take_unnamed());
    Ok(())
}
