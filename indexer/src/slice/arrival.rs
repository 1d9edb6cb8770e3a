//! Slices that have *arrived* become part of an index, between two epochs: from another node ([`super::transfer`]), or
//! from a rebuild ([`super::rebuild`]).
//!
//! Their lists, which have all epochs up to the one at hand and none above, become the slices', and from the next
//! epoch on they are fed by the node's own stream. Before that, what the index has in memory is flushed, and the
//! manifest says that all epochs up to this one are in fragments: the log, replayed after a crash, never meets a slice
//! with an epoch that its files have. One manifest names all that arrive together, so after a crash all of them are
//! here or none.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::ids::{Epoch, SliceNo};
use proto::index::IndexInfo;
use proto::{Error, ErrorCode};

use super::files::Files;
use super::manifest::{FileId, IndexManifest, SliceLists};
use super::slot::{Slot, lock};
use super::store::Inner;
use super::table::Table;
use super::versions::Protected;
use super::writer::Writer;

/// Slices of an index that have arrived: from another node, or from a rebuild.
pub(super) struct Arrived {
    /// What each of them is.
    pub slices: BTreeMap<SliceNo, ArrivedSlice>,
    /// The files that their lists name.
    pub tables: BTreeMap<FileId, Arc<Table>>,
    /// The index.
    pub info: Arc<IndexInfo>,
}

/// A slice that has arrived.
pub(super) struct ArrivedSlice {
    /// As the epoch shows it at which it is installed.
    pub lists: SliceLists,
    /// What of it can be answered.
    pub reach: Protected,
    /// How many entries it has.
    pub entries: Entries,
}

/// How many entries a slice has that has arrived.
#[derive(Clone, Copy)]
pub(super) enum Entries {
    /// Its source said so; they are counted later, or after a crash, when it is loaded.
    Told(u64),
    /// They were counted.
    Counted(u64),
}

impl Arrived {
    /// Puts the slices into a manifest in which they are not.
    fn add_to(&self, manifest: &mut IndexManifest, epoch: Epoch) {
        manifest.flushed = manifest.flushed.max(epoch);
        for (slice, arrived) in &self.slices {
            manifest.slices.insert(*slice, arrived.lists.clone());
            manifest.arrived.insert(*slice, arrived.reach.clone());
            if let Entries::Counted(entries) = arrived.entries {
                manifest.entries.insert(*slice, entries);
            }
        }
    }

    /// What a manifest does not say.
    fn tell(&self, writer: &mut Writer) {
        for (slice, arrived) in &self.slices {
            match arrived.entries {
                Entries::Told(entries) => writer.tell(*slice, entries),
                Entries::Counted(entries) => {
                    writer.uncounted.remove(slice);
                    writer.entries.insert(*slice, entries as i64);
                }
            }
        }
    }
}

/// Why a slice was not installed.
pub(super) enum NotInstalled {
    /// Nothing has changed.
    For(Error),
    /// The manifest could not be made durable: on disk it may be the old one or the new one.
    Unsure(Error),
}

impl From<Error> for NotInstalled {
    fn from(error: Error) -> Self {
        Self::For(error)
    }
}

impl Inner {
    /// Shows slices that have arrived, with what is here of their index.
    pub fn take_in(&self, arrived: Arrived, epoch: Epoch) -> std::result::Result<(), NotInstalled> {
        let generation = arrived.info.generation;
        match self.state.get(arrived.info.id).filter(|s| s.info.generation == generation) {
            Some(slot) => slot.take_in(arrived, epoch, &self.files),
            None => {
                let slot = Slot::of_arrived(arrived, epoch, &self.files)?;
                self.state.insert(slot);
                Ok(())
            }
        }
    }
}

impl Slot {
    /// An index of which these are the first slices here.
    fn of_arrived(
        arrived: Arrived,
        epoch: Epoch,
        files: &Files,
    ) -> std::result::Result<Self, NotInstalled> {
        let mut manifest = IndexManifest {
            info: Arc::clone(&arrived.info),
            // Each slice that arrives has a floor of its own.
            floor: Some(Epoch(0)),
            points: Vec::new(),
            arrived: BTreeMap::new(),
            flushed: epoch,
            slices: BTreeMap::new(),
            entries: BTreeMap::new(),
        };
        arrived.add_to(&mut manifest, epoch);
        files.write_manifest(&manifest).map_err(NotInstalled::Unsure)?;
        let slot = Self::whole(manifest, arrived.tables.clone())?;
        arrived.tell(&mut slot.writer());
        Ok(slot)
    }

    fn take_in(
        &self,
        arrived: Arrived,
        epoch: Epoch,
        files: &Files,
    ) -> std::result::Result<(), NotInstalled> {
        self.flush(files)?;
        let mut structure = lock(&self.structure);
        let mut manifest = structure.manifest.clone();
        if structure.dropped || manifest.floor.is_none() {
            let text = format!("index {} is being built or dropped here", self.info.id);
            return Err(Error::unavailable(text).into());
        }
        if let Some(slice) = arrived.slices.keys().find(|s| manifest.slices.contains_key(s)) {
            let text = format!("slice {slice} of index {} is here", self.info.id);
            return Err(Error::new(ErrorCode::Exists, text).into());
        }
        if arrived.info.revision >= manifest.info.revision {
            manifest.info = Arc::clone(&arrived.info);
        }
        let groups = structure.manifest.grouping().groups();
        arrived.add_to(&mut manifest, epoch);
        // Its columns are divided as those of the slices that are here.
        manifest.regroup(groups)?;
        structure.open_rest(files)?;
        let mut writer = self.writer();
        files.write_manifest(&manifest).map_err(NotInstalled::Unsure)?;
        arrived.tell(&mut writer);
        structure.manifest = manifest;
        structure.tables.extend(arrived.tables);
        Ok(self.publish(&structure, &mut writer, |_| {})?)
    }
}
