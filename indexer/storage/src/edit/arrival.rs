//! Slices that have *arrived* become part of an index, between two epochs: from another node ([`crate::edit::transfer`]), or
//! from a rebuild ([`crate::build::rebuild`]).
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

use proto::model::ids::{BucketId, Epoch, SliceNo};
use proto::model::index::IndexInfo;
use proto::{Error, ErrorCode, Result};

use crate::file_id::FileId;
use crate::files::data_files::{Files, NotReplaced};
use crate::index::local_index::Slot;
use crate::index::writer_state::Writer;
use crate::lock::lock;
use crate::log::lsn::Lsn;
use crate::maintain::flush::flush;
use crate::manifest::index_manifest::IndexManifest;
use crate::manifest::lists::SliceLists;
use crate::node::context::Inner;
use crate::retention::Protected;
use crate::tables::table::Table;

/// Slices of an index that have arrived: from another node, or from a rebuild.
pub(crate) struct Arrived {
    /// What each of them is.
    pub slices: BTreeMap<SliceNo, ArrivedSlice>,
    /// The files that their lists name.
    pub tables: BTreeMap<FileId, Arc<Table>>,
    /// The index.
    pub info: Arc<IndexInfo>,
}

/// A slice that has arrived.
pub(crate) struct ArrivedSlice {
    /// As the epoch shows it at which it is installed.
    pub lists: SliceLists,
    /// What of it can be answered.
    pub reach: Protected,
    /// How many entries it has.
    pub entries: Entries,
}

/// How many entries a slice has that has arrived.
#[derive(Clone, Copy)]
pub(crate) enum Entries {
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
pub(crate) struct Between {
    /// The one before, which must be the newest that is applied.
    pub epoch: Epoch,
    /// What the log has of the ones behind begins here or later.
    pub lsn: Lsn,
}

/// Why a slice was not installed.
pub(crate) enum NotInstalled {
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

/// The place behind an epoch, which is the newest that is applied as far as its caller knows.
pub async fn behind(context: &Inner, bucket: BucketId, epoch: Epoch) -> Between {
    // Meanwhile no epoch goes into the log.
    let _order = context.order.lock().await;
    let buckets = lock(&context.state.buckets);
    let applying = buckets.get(&bucket).and_then(|progress| progress.applying);
    Between { epoch, lsn: applying.unwrap_or(Lsn::MAX).min(context.log.end()) }
}

/// Is an epoch still the newest that is applied?
pub fn check_newest(context: &Inner, bucket: BucketId, at: Between) -> Result<()> {
    let applied = context.committed(bucket);
    if applied != at.epoch {
        let what = format!("epoch {applied} was applied while slices arrived at {}", at.epoch);
        return Err(Error::unavailable(what));
    }
    Ok(())
}

/// Shows slices that have arrived, with what is here of their index. The caller is alone with the bucket
/// ([`State::alone`]).
///
/// [`State::alone`]: crate::node::state::State::alone
pub fn take_in(
    context: &Inner,
    arrived: Arrived,
    at: Between,
) -> std::result::Result<(), NotInstalled> {
    check_newest(context, arrived.info.bucket, at)?;
    let generation = arrived.info.generation;
    match context.state.get(arrived.info.id).filter(|s| s.info.generation == generation) {
        Some(slot) => add_arrived(&slot, arrived, at, &context.files),
        None => {
            let slot = index_of_arrived(arrived, at, &context.files)?;
            context.state.insert(slot);
            Ok(())
        }
    }
}

/// An index of which these are the first slices here.
fn index_of_arrived(
    arrived: Arrived,
    Between { epoch, lsn }: Between,
    files: &Files,
) -> std::result::Result<Slot, NotInstalled> {
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
    let slot = Slot::whole(manifest.clone(), arrived.tables.clone())?;
    files.replace_manifest(&manifest, None, lsn)?;
    arrived.tell(&mut slot.writer());
    Ok(slot)
}

fn add_arrived(
    index: &Slot,
    arrived: Arrived,
    Between { epoch, lsn }: Between,
    files: &Files,
) -> std::result::Result<(), NotInstalled> {
    flush(index, files)?;
    let mut structure = lock(&index.structure);
    let mut manifest = structure.manifest.clone();
    if structure.dropped || manifest.floor.is_none() {
        let text = format!("index {} is being built or dropped here", index.info.id);
        return Err(Error::unavailable(text).into());
    }
    if let Some(slice) = arrived.slices.keys().find(|s| manifest.slices.contains_key(s)) {
        let text = format!("slice {slice} of index {} is here", index.info.id);
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
    let mut writer = index.writer();
    files.replace_manifest(&manifest, Some(&structure.manifest), lsn)?;
    arrived.tell(&mut writer);
    structure.manifest = manifest;
    structure.tables.extend(arrived.tables);
    Ok(index.publish(&structure, &mut writer, |_| {})?)
}

#[cfg(test)]
#[path = "arrival_tests.rs"]
mod tests;
