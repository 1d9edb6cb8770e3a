//! Edits of an index's lists of fragments: split, clone and drop of slices, change of column
//! groups, drop of the index. No row is written.
//!
//! The memory of a slice is flushed before its lists are split or cloned, because tables in memory
//! cannot be restricted to a range of a slice.
//!
//! The product splits slices into a new generation ([`crate::edit::derive`]); only tests split or
//! clone within one generation.

use std::collections::btree_map::Entry;
use std::sync::Arc;

use proto::lock::lock;
use proto::model::ids::SliceNo;
use proto::{Error, Result};

use crate::files::data_files::DataFiles;
use crate::index::backfill::Backfill;
use crate::index::fragment_lists::FragmentLists;
use crate::index::load_state::LoadEvent;
use crate::index::local_index::LocalIndex;
use crate::maintain::flush::flush;
use crate::manifest::index_manifest::IndexManifest;
use crate::read::count::count;
use crate::read::slice_fragments::{UnopenedPolicy, slice_fragments};
use crate::rows::columns::Grouping;

/// Maximum number of flushes before an edit. If writes have still not left the slice's memory
/// empty, the edit is refused.
const FLUSHES_MAX: usize = 16;

/// Removes an index from disk and memory.
pub fn drop_index(index: &LocalIndex, files: &DataFiles) -> Result<()> {
    let remove = || files.remove_manifest(index.info.local_id());
    drop_index_with(index, files, remove)
}

/// Drops an index from memory and deletes its files. The function `remove` removes the index's
/// manifest from disk.
pub fn drop_index_with(
    index: &LocalIndex,
    files: &DataFiles,
    remove: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let mut fragment_lists = lock(&index.fragment_lists);
    fragment_lists.is_dropped = true;
    // The content of memory is not needed any more, so nothing is written first.
    index.advance_if_possible(LoadEvent::Unload);
    index.advance_if_possible(LoadEvent::MemoryFlushed);
    remove()?;
    index.advance_if_possible(LoadEvent::ManifestSaved);
    fragment_lists.manifest.slices.clear();
    let tables = fragment_lists.take_unnamed();
    files.retire(tables);
    files.discard(fragment_lists.backfill.take().map(Backfill::into_written).unwrap_or_default());
    let writer = index.writer();
    index.version.store(Arc::default());
    drop((writer, fragment_lists));
    files.delete_retired();
    Ok(())
}

/// Changes the column groups in the lists only. No fragment is rewritten: each list reads only the
/// columns of its group. Flushes and compactions use the new groups from now on.
pub fn regroup_index(index: &LocalIndex, grouping: Grouping, files: &DataFiles) -> Result<()> {
    let mut fragment_lists = lock(&index.fragment_lists);
    let grouping = grouping.possible_for(&index.info);
    if fragment_lists.is_dropped || fragment_lists.manifest.grouping() == grouping {
        return Ok(());
    }
    let mut manifest = fragment_lists.manifest.clone();
    manifest.regroup(grouping.groups())?;
    // The lists of a build exist in memory only.
    if manifest.floor.is_some() {
        files.write_manifest(&manifest)?;
    }
    fragment_lists.manifest = manifest;
    let mut writer = index.writer();
    index.publish(&fragment_lists, &mut writer, |_| {})
}

/// Edits the lists of one slice. The slice must have no rows in memory.
pub fn edit_slice(
    index: &LocalIndex,
    files: &DataFiles,
    slice: SliceNo,
    edit: impl Fn(&mut IndexManifest) -> Result<()>,
) -> Result<()> {
    for _ in 0..FLUSHES_MAX {
        flush(index, files)?;
        let mut fragment_lists = lock(&index.fragment_lists);
        fragment_lists.open_rest(files)?;
        let mut manifest = fragment_lists.manifest.clone();
        edit(&mut manifest)?;
        recount(&mut manifest, &fragment_lists)?;
        let mut writer = index.writer();
        if writer.has_in_memory(slice, &index.version.load()) {
            continue;
        }
        files.write_manifest(&manifest)?;
        writer.entries.retain(|other, _| *other != slice && manifest.slices.contains_key(other));
        for (slice, entries) in &manifest.entries {
            writer.entries.entry(*slice).or_insert(*entries as i64);
        }
        fragment_lists.manifest = manifest;
        index.publish(&fragment_lists, &mut writer, |_| {})?;
        files.retire(fragment_lists.take_unnamed());
        drop((writer, fragment_lists));
        files.delete_retired();
        return Ok(());
    }
    Err(Error::unavailable(format!(
        "slice {slice} of index {} is written too often to be edited now; retry later",
        index.info.local_id()
    )))
}

/// Counts the entries of slices without a count.
pub fn recount(manifest: &mut IndexManifest, fragment_lists: &FragmentLists) -> Result<()> {
    let slices = &manifest.slices;
    manifest.entries.retain(|slice, _| slices.contains_key(slice));
    manifest.arrived.retain(|slice, _| slices.contains_key(slice));
    for (slice, fragments) in
        slice_fragments(manifest, &fragment_lists.tables, UnopenedPolicy::Missing)?
    {
        if let Entry::Vacant(unknown) = manifest.entries.entry(slice) {
            unknown.insert(count(fragments.rows(false).to_vec())?);
        }
    }
    Ok(())
}
