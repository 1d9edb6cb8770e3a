//! Edits of an index's lists: splits, clones and drops of slices, another division of the columns, and
//! the drop of the index. No row is written.
//!
//! What a slice has in memory is flushed before it is split or cloned, since runs know slices by their
//! numbers alone.

use std::collections::btree_map::Entry;
use std::sync::Arc;

use proto::model::ids::SliceNo;
use proto::{Error, Result};

use crate::files::data_files::Files;
use crate::index::backfill::Bulk;
use crate::index::fragment_lists::Structure;
use crate::index::load_state::LoadEvent;
use crate::index::local_index::Slot;
use crate::lock::lock;
use crate::maintain::flush::flush;
use crate::manifest::index_manifest::IndexManifest;
use crate::read::count::count;
use crate::read::slice_fragments::{Unopened, fragments};
use crate::rows::columns::Grouping;

/// A slice that is written to all the time is flushed so often before an edit of its list is refused.
const FLUSHES_MAX: usize = 16;

/// Removes the index from the disk.
pub fn drop_all(index: &Slot, files: &Files) -> Result<()> {
    let remove = || files.remove_manifest(index.info.id, index.info.generation);
    drop_with(index, files, remove)
}

/// Lets go of all that is here; `remove` takes what names it off the disk.
pub fn drop_with(index: &Slot, files: &Files, remove: impl FnOnce() -> Result<()>) -> Result<()> {
    let mut structure = lock(&index.structure);
    structure.dropped = true;
    // What is in memory is not wanted any more, so nothing has to be written before the end.
    index.go_on(LoadEvent::Unload);
    index.go_on(LoadEvent::MemoryFlushed);
    remove()?;
    index.go_on(LoadEvent::ManifestSaved);
    structure.manifest.slices.clear();
    let tables = structure.take_unnamed();
    files.retire(tables);
    files.discard(structure.bulk.take().map(Bulk::into_written).unwrap_or_default());
    let writer = index.writer();
    index.visible.store(Arc::default());
    drop((writer, structure));
    files.collect();
    Ok(())
}

/// Divides the columns anew, in the lists alone: what there is stays where it is, restricted to the
/// columns that count; flushes and compactions write by the new division from now on.
pub fn regroup_index(index: &Slot, grouping: Grouping, files: &Files) -> Result<()> {
    let mut structure = lock(&index.structure);
    let grouping = grouping.possible_for(&index.info);
    if structure.dropped || structure.manifest.grouping() == grouping {
        return Ok(());
    }
    let mut manifest = structure.manifest.clone();
    manifest.regroup(grouping.groups())?;
    // The lists of an index that is being built are in memory alone.
    if manifest.floor.is_some() {
        files.write_manifest(&manifest)?;
    }
    structure.manifest = manifest;
    let mut writer = index.writer();
    index.publish(&structure, &mut writer, |_| {})
}

/// Edits the lists of one slice, of which nothing may be in memory.
pub fn edit_slice(
    index: &Slot,
    files: &Files,
    slice: SliceNo,
    edit: impl Fn(&mut IndexManifest) -> Result<()>,
) -> Result<()> {
    for _ in 0..FLUSHES_MAX {
        flush(index, files)?;
        let mut structure = lock(&index.structure);
        structure.open_rest(files)?;
        let mut manifest = structure.manifest.clone();
        edit(&mut manifest)?;
        recount(&mut manifest, &structure)?;
        let mut writer = index.writer();
        if writer.has(slice, &index.visible.load()) {
            continue;
        }
        files.write_manifest(&manifest)?;
        writer.entries.retain(|other, _| *other != slice && manifest.slices.contains_key(other));
        for (slice, entries) in &manifest.entries {
            writer.entries.entry(*slice).or_insert(*entries as i64);
        }
        structure.manifest = manifest;
        index.publish(&structure, &mut writer, |_| {})?;
        files.retire(structure.take_unnamed());
        drop((writer, structure));
        files.collect();
        return Ok(());
    }
    Err(Error::unavailable(format!("slice {slice} of index {} is busy", index.info.id)))
}

/// Counts the entries of slices that are new in a manifest.
pub fn recount(manifest: &mut IndexManifest, structure: &Structure) -> Result<()> {
    let slices = &manifest.slices;
    manifest.entries.retain(|slice, _| slices.contains_key(slice));
    manifest.arrived.retain(|slice, _| slices.contains_key(slice));
    for (slice, fragments) in fragments(manifest, &structure.tables, Unopened::Missing)? {
        if let Entry::Vacant(unknown) = manifest.entries.entry(slice) {
            unknown.insert(count(fragments.rows(false).to_vec())?);
        }
    }
    Ok(())
}
