//! Slices that have *arrived* become part of an index, between two epochs: from another node ([`super::transfer`]), or
//! from a rebuild ([`super::rebuild`]).
//!
//! Their lists, which have all epochs up to the one at hand and none above, become the slices', and from the next
//! epoch on they are fed by the node's own stream. Before that, what the index has in memory is flushed, and the
//! manifest says that all epochs up to this one are in fragments: the log, replayed after a crash, never meets a slice
//! with an epoch that its files have. One manifest names all that arrive together, so after a crash all of them are
//! here or none.
//!
//! Where that manifest cannot be made durable, the one before is, before anything goes on. Where that fails too, a
//! crash may bring the slices back after all, and what the epochs have said of them since must come from the log: it
//! is kept from here on, until the disk says again what memory does ([`Inner::settle_doubts`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::ids::{BucketId, Epoch, Generation, IndexId, SliceNo};
use proto::model::index::IndexInfo;
use proto::{Error, ErrorCode, Result};

use super::files::{Files, NotReplaced};
use super::log::Lsn;
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

/// Between two epochs of a bucket.
#[derive(Clone, Copy)]
pub(super) struct Between {
    /// The one before, which must be the newest that is applied.
    pub epoch: Epoch,
    /// What the log has of the ones behind begins here or later.
    pub lsn: Lsn,
}

/// Why a slice was not installed.
pub(super) enum NotInstalled {
    /// Nothing has changed.
    For(Error),
    /// The manifest could not be made durable, and not the one before either: on disk may be either of them.
    Unsure(Error),
}

impl From<NotReplaced> for NotInstalled {
    fn from(NotReplaced { error, unsure }: NotReplaced) -> Self {
        if unsure { Self::Unsure(error) } else { Self::For(error) }
    }
}

impl From<Error> for NotInstalled {
    fn from(error: Error) -> Self {
        Self::For(error)
    }
}

impl Inner {
    /// The place behind an epoch, which is the newest that is applied as far as its caller knows.
    pub async fn behind(&self, bucket: BucketId, epoch: Epoch) -> Between {
        // Meanwhile no epoch goes into the log.
        let _order = self.order.lock().await;
        let buckets = lock(&self.state.buckets);
        let applying = buckets.get(&bucket).and_then(|progress| progress.applying);
        Between { epoch, lsn: applying.unwrap_or(Lsn::MAX).min(self.log.end()) }
    }

    /// Is an epoch still the newest that is applied?
    pub fn check_newest(&self, bucket: BucketId, at: Between) -> Result<()> {
        let applied = self.committed(bucket);
        if applied != at.epoch {
            let what = format!("epoch {applied} was applied while slices arrived at {}", at.epoch);
            return Err(Error::unavailable(what));
        }
        Ok(())
    }

    /// Shows slices that have arrived, with what is here of their index. The caller is alone with the bucket
    /// ([`State::alone`]).
    ///
    /// [`State::alone`]: super::state::State::alone
    pub fn take_in(&self, arrived: Arrived, at: Between) -> std::result::Result<(), NotInstalled> {
        self.check_newest(arrived.info.bucket, at)?;
        let generation = arrived.info.generation;
        match self.state.get(arrived.info.id).filter(|s| s.info.generation == generation) {
            Some(slot) => slot.take_in(arrived, at, &self.files),
            None => {
                let slot = Slot::of_arrived(arrived, at, &self.files)?;
                self.state.insert(slot);
                Ok(())
            }
        }
    }

    /// Makes the manifests on disk durable as memory has them where that is in doubt; what cannot be settled
    /// now stays in doubt. Blocks.
    pub fn settle_doubts(&self) {
        for (index, generation, doubt) in self.files.doubts() {
            let alone = self.state.alone(doubt.bucket);
            let _alone = lock(&alone);
            if let Err(error) = self.settle_doubt(index, generation) {
                tracing::warn!(%index, %error, "a manifest on disk is in doubt");
            }
        }
    }

    fn settle_doubt(&self, index: IndexId, generation: Generation) -> Result<()> {
        let put_back = |before| self.files.put_back_manifest(index, generation, before);
        let slot = self.state.get(index).filter(|slot| slot.info.generation == generation);
        let Some(slot) = slot else { return put_back(None) };
        let structure = lock(&slot.structure);
        let on_disk = !structure.dropped && structure.manifest.floor.is_some();
        put_back(on_disk.then_some(&structure.manifest))
    }
}

impl Slot {
    /// An index of which these are the first slices here.
    fn of_arrived(
        arrived: Arrived,
        Between { epoch, lsn }: Between,
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
        let slot = Self::whole(manifest.clone(), arrived.tables.clone())?;
        files.replace_manifest(&manifest, None, lsn)?;
        arrived.tell(&mut slot.writer());
        Ok(slot)
    }

    fn take_in(
        &self,
        arrived: Arrived,
        Between { epoch, lsn }: Between,
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
        files.replace_manifest(&manifest, Some(&structure.manifest), lsn)?;
        arrived.tell(&mut writer);
        structure.manifest = manifest;
        structure.tables.extend(arrived.tables);
        Ok(self.publish(&structure, &mut writer, |_| {})?)
    }
}

#[cfg(test)]
#[path = "arrival_tests.rs"]
mod tests;
