//! Edits of an index's lists: splits, clones and drops of slices, and the drop of the index. No row is
//! written.
//!
//! What a slice has in memory is flushed before it is split or cloned, since runs know slices by their
//! numbers alone.

use std::collections::btree_map::Entry;
use std::sync::Arc;

use proto::ids::{Epoch, SliceNo};
use proto::{Error, Result};

use super::Rows;
use super::bulk::Bulk;
use super::compact::Extent;
use super::cursor::Source;
use super::files::Files;
use super::manifest::IndexManifest;
use super::merge::Visible as VisibleRows;
use super::slot::{Fragments, Slot, Structure, Visible, fragments, lock};

/// A slice that is written to all the time is flushed so often before an edit of its list is refused.
const FLUSHES_MAX: usize = 16;

impl Slot {
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
pub fn recount(manifest: &mut IndexManifest, structure: &Structure) -> Result<()> {
    let slices = &manifest.slices;
    manifest.entries.retain(|slice, _| slices.contains_key(slice));
    for (slice, Fragments { forward, .. }) in
        fragments(manifest, &structure.tables)?.iter().map(|(slice, f)| (*slice, &**f))
    {
        if let Entry::Vacant(unknown) = manifest.entries.entry(slice) {
            unknown.insert(count(forward.clone())?);
        }
    }
    Ok(())
}

/// Counts the entries that some sources show at their newest epoch.
pub fn count(sources: Vec<Source>) -> Result<u64> {
    let mut rows = VisibleRows::new(sources, Epoch(u64::MAX), false, false)?;
    let mut entries = 0;
    while rows.next()? {
        entries += 1;
    }
    Ok(entries)
}
