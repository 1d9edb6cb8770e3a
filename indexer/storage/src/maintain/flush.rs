//! Flush: writes an index's memory into fragments, one per column group.
//!
//! The order of the steps makes a flush safe: the fragments are synced, then their names, then the
//! manifest that names them. Only then are memory and log released.

use std::collections::BTreeSet;
use std::sync::Arc;

use proto::Result;
use proto::lock::lock;
use proto::model::ids::{Epoch, SliceNo};
use proto::plant::{self, Plant};

use crate::files::data_files::{DataFiles, NewFragment};
use crate::files::group_writer::GroupWriter;
use crate::files::new_files::UnnamedFragments;
use crate::fragment::filter::FILTER_BYTES;
use crate::index::local_index::LocalIndex;
use crate::index::memtable::{BackMemtable, SORT_BYTES};
use crate::maintain::merge_runs::{merge_frozen, slices_of};
use crate::maintain::rewrite::Rewrite;
use crate::manifest::edit::ListPosition;
use crate::manifest::lists::EpochRange;
use crate::read::source::Source;
use crate::retention::RetainedEpochs;
use crate::rows::columns::{Columns, Grouping};
use crate::rows::row::RowVersion;
use crate::rows::sinks::RowSink;
use crate::tables::table::Table;

/// The memory of an index that a flush is writing, and the index's state when the flush began.
struct FrozenMemory {
    runs: Vec<Arc<Table>>,
    memtable: Arc<BackMemtable>,
    /// All changes up to this epoch are in the memory to be written or in older fragments.
    epoch: Epoch,
    retained: RetainedEpochs,
    reach: Option<RetainedEpochs>,
    entries: Vec<(SliceNo, u64)>,
    uncounted: BTreeSet<SliceNo>,
    is_building: bool,
    grouping: Grouping,
}

/// Writes the memory of an index into fragments; returns false if there was nothing to write.
pub fn flush(index: &LocalIndex, files: &DataFiles) -> Result<bool> {
    let _one_at_a_time = lock(&index.flush);
    let _compactions_give_way = files.pacer.begin_flush();
    let (floor, grouping) = {
        let fragment_lists = lock(&index.fragment_lists);
        (fragment_lists.manifest.floor, fragment_lists.manifest.grouping())
    };
    let Some(mut frozen) = freeze_memory(index, floor, grouping) else { return Ok(false) };
    let written = merge_frozen(index, &mut frozen.runs, &frozen.retained).and_then(|()| {
        let written = write(index, &frozen, files)?;
        files.sync_names()?;
        add_to_lists(index, &frozen, written, files)
    });
    let mut writer = index.writer();
    if let Err(error) = written {
        writer.restore_frozen();
        return Err(error);
    }
    tracing::debug!(epoch = %frozen.epoch, "wrote memory to a fragment");
    Ok(true)
}

/// Sets the memory of an index aside for a flush; later epochs use a new memtable and new tables.
/// Returns `None` if no flush is needed. A flush is also needed if the oldest readable epoch is
/// higher in memory than in the manifest on disk.
fn freeze_memory(
    index: &LocalIndex,
    floor_on_disk: Option<Epoch>,
    grouping: Grouping,
) -> Option<FrozenMemory> {
    let mut writer = index.writer();
    let version = index.version.load();
    let (runs, floor) = (version.runs.clone(), version.floor);
    let empty = runs.is_empty() && writer.memtable.is_empty() && writer.frozen.is_none();
    if empty && floor <= floor_on_disk {
        // A rollback can remove all rows of later epochs.
        writer.unflushed = None;
        return None;
    }
    // A failed flush has left its memtable here: this flush writes both.
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
    Some(FrozenMemory {
        runs,
        memtable,
        epoch: writer.applied,
        reach: version.readable_epochs(),
        retained: writer.retained.clone(),
        entries: writer.entries.iter().map(|(slice, n)| (*slice, (*n).max(0) as u64)).collect(),
        uncounted: writer.uncounted.clone(),
        is_building: writer.is_building,
        grouping,
    })
}

/// Writes the frozen memory into fragments.
fn write<'a>(
    index: &LocalIndex,
    frozen: &FrozenMemory,
    files: &'a DataFiles,
) -> Result<UnnamedFragments<'a>> {
    let mut written = UnnamedFragments::new(files, write_runs(index, frozen, files)?);
    written.extend(write_memtable(index, frozen, files)?);
    Ok(written)
}

/// Writes the rows of entries into fragments.
fn write_runs(
    index: &LocalIndex,
    frozen: &FrozenMemory,
    files: &DataFiles,
) -> Result<Vec<NewFragment>> {
    if frozen.runs.is_empty() {
        return Ok(Vec::new());
    }
    let compression = index.info.spec.compression;
    files.write(frozen.grouping.forward(), (compression, None), |out| {
        put_runs(&frozen.runs, &frozen.retained, out)
    })
}

/// Writes the rows of `runs` (tables in memory), except versions that no read can need.
pub fn put_runs(
    runs: &[Arc<Table>],
    retained: &RetainedEpochs,
    out: &mut GroupWriter,
) -> Result<()> {
    let rewrite = Rewrite { retained: retained.clone(), back: false };
    slices_of(runs).into_iter().try_for_each(|slice| {
        let sources = runs.iter().map(|run| Source::of_slice(run, slice)).collect();
        rewrite.rewrite_slice(slice, sources, false, out)
    })
}

/// Writes the frozen memtable into a fragment of the back index.
fn write_memtable(
    index: &LocalIndex,
    frozen: &FrozenMemory,
    files: &DataFiles,
) -> Result<Vec<NewFragment>> {
    if frozen.memtable.is_empty() {
        return Ok(Vec::new());
    }
    let rows = frozen.memtable.states();
    let _sorting = index.count_temporary(rows * (SORT_BYTES + FILTER_BYTES));
    files.write(&[Columns::BACK], (index.info.spec.compression, Some(rows)), |out| {
        put_states(&frozen.memtable, &frozen.retained, out)
    })
}

/// Writes the document records of a memtable, except records that no read can need.
pub fn put_states(
    memtable: &BackMemtable,
    retained: &RetainedEpochs,
    out: &mut impl RowSink,
) -> Result<()> {
    let mut newer: Option<(SliceNo, &[u8], Epoch)> = None;
    for state in memtable.sorted() {
        let same = newer.filter(|newer| (newer.0, newer.1) == (state.slice, state.id));
        if same.is_none_or(|newer| retained.is_needed(state.epoch, Some(newer.2))) {
            out.push(&RowVersion {
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
}

/// Adds the new fragments to the lists of their slices and frees the memory. If the columns were
/// regrouped meanwhile, each column is added to the list of its new group.
fn add_to_lists(
    index: &LocalIndex,
    frozen: &FrozenMemory,
    written: UnnamedFragments<'_>,
    files: &DataFiles,
) -> Result<()> {
    let mut fragment_lists = lock(&index.fragment_lists);
    let mut manifest = fragment_lists.manifest.clone();
    for NewFragment { file, columns, table } in written.iter() {
        // Rows of a slice that was dropped meanwhile are in no list.
        let here = |slice: &SliceNo| manifest.slices.contains_key(slice);
        let slices = table.index.sections().iter().map(|section| section.slice);
        let slices: Vec<SliceNo> = slices.filter(here).collect();
        manifest.add(
            *file,
            &slices,
            *columns,
            EpochRange::from_stats(&table.stats),
            ListPosition::Newest,
        )?;
    }
    manifest.flushed = frozen.epoch;
    let here = |slice: &SliceNo| manifest.slices.contains_key(slice);
    let entries = frozen.entries.iter().filter(|(slice, _)| here(slice)).copied();
    manifest.entries.extend(entries);
    manifest.entries.retain(|slice, _| !frozen.uncounted.contains(slice));
    frozen.reach.iter().for_each(|reach| manifest.restrict_readable(reach));
    manifest.restrict_readable(&frozen.retained);
    if fragment_lists.is_dropped {
        return Ok(());
    }
    let written = written.into_fragments();
    if !frozen.is_building {
        files.write_manifest(&manifest)?;
    }
    fragment_lists.manifest = manifest;
    fragment_lists.tables.extend(written.into_iter().map(|new| (new.file, new.table)));
    let mut writer = index.writer();
    let frozen_runs = match plant::is(Plant::FlushReleasesNewer) {
        true => index.version.load().runs.len(),
        false => writer.frozen_runs,
    };
    index.publish(&fragment_lists, &mut writer, |version| {
        version.runs.drain(..frozen_runs);
        version.restrict_readable(&frozen.retained);
    })?;
    writer.frozen = None;
    writer.frozen_runs = 0;
    writer.frozen_unflushed = None;
    files.retire(fragment_lists.take_unnamed());
    Ok(())
}
