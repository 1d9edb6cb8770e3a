//! Edits of an index's lists: splits, clones and drops of slices, another division of the columns, and
//! the drop of the index. No row is written.
//!
//! What a slice has in memory is flushed before it is split or cloned, since runs know slices by their
//! numbers alone.

use std::collections::btree_map::Entry;
use std::sync::Arc;

use proto::model::ids::{Epoch, SliceNo};
use proto::model::index::IndexInfo;
use proto::{Error, Result};

use super::Rows;
use super::bulk::Bulk;
use super::compact::Extent;
use super::cursor::Source;
use super::files::Files;
use super::load_state::{LoadEvent, LoadState};
use super::manifest::{Grouping, IndexManifest};
use super::merge::Visible as VisibleRows;
use super::slot::{Slot, Structure, lock};
use super::visible::fragments;

/// A slice that is written to all the time is flushed so often before an edit of its list is refused.
const FLUSHES_MAX: usize = 16;

impl Slot {
    /// Removes the index from the disk.
    pub fn drop_all(&self, files: &Files) -> Result<()> {
        let remove = || files.remove_manifest(self.info.id, self.info.generation);
        self.drop_with(files, remove)
    }

    /// Lets go of all that is here; `remove` takes what names it off the disk.
    pub fn drop_with(&self, files: &Files, remove: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut structure = lock(&self.structure);
        structure.dropped = true;
        // What is in memory is not wanted any more, so nothing has to be written before the end.
        self.go_on(LoadEvent::Unload);
        self.go_on(LoadEvent::MemoryFlushed);
        remove()?;
        self.go_on(LoadEvent::ManifestSaved);
        structure.manifest.slices.clear();
        let tables = structure.take_unnamed();
        files.retire(tables);
        files.discard(structure.bulk.take().map(Bulk::into_written).unwrap_or_default());
        let writer = self.writer();
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

    /// Divides the columns anew, in the lists alone: what there is stays where it is, restricted to the
    /// columns that count; flushes and compactions write by the new division from now on.
    pub fn regroup(&self, grouping: Grouping, files: &Files) -> Result<()> {
        let mut structure = lock(&self.structure);
        let grouping = grouping_of(&self.info, grouping);
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
        let mut writer = self.writer();
        self.publish(&structure, &mut writer, |_| {})
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
            structure.open_rest(files)?;
            let mut manifest = structure.manifest.clone();
            edit(&mut manifest)?;
            recount(&mut manifest, &structure)?;
            let mut writer = self.writer();
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
}

/// The division that an index can have: without included values there is nothing to set apart.
pub fn grouping_of(info: &IndexInfo, wanted: Grouping) -> Grouping {
    if info.spec.include.is_empty() { Grouping::Together } else { wanted }
}

/// Counts the entries of slices that are new in a manifest.
pub fn recount(manifest: &mut IndexManifest, structure: &Structure) -> Result<()> {
    let slices = &manifest.slices;
    manifest.entries.retain(|slice, _| slices.contains_key(slice));
    manifest.arrived.retain(|slice, _| slices.contains_key(slice));
    for (slice, fragments) in fragments(manifest, &structure.tables, LoadState::Active)? {
        if let Entry::Vacant(unknown) = manifest.entries.entry(slice) {
            unknown.insert(count(fragments.rows(false).to_vec())?);
        }
    }
    Ok(())
}

/// Counts the entries that some sources show at their newest epoch.
pub fn count(sources: Vec<Source>) -> Result<u64> {
    count_at(sources, Epoch(u64::MAX))
}

/// Counts the entries that some sources show at an epoch.
pub fn count_at(sources: Vec<Source>, epoch: Epoch) -> Result<u64> {
    let mut rows = VisibleRows::new(sources, epoch, false, false)?;
    let mut entries = 0;
    while rows.next()? {
        entries += 1;
    }
    Ok(entries)
}
