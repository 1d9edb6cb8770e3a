//! Arrival of slices: slices from another node ([`crate::edit::install`]) or from a rebuild
//! ([`crate::build::rebuild`]) become part of an index, between two epochs.
//!
//! The lists of the arriving slices contain all epochs up to the current one and none above it.
//! From the next epoch on, the node's stream also feeds the new slices. Before they are added, the
//! memory of the index is flushed, and the manifest says that all epochs up to this one are in
//! fragments. So a replay after a crash never applies an epoch to a slice whose files contain it.
//! One manifest names all slices that arrive together: after a crash either all of them exist or
//! none.
//!
//! If that manifest cannot be made durable, the previous manifest is made durable again before any
//! other step. If that fails too, a crash may bring the slices back, and later epochs must then be
//! replayed from the log. So the log is retained until the manifest on disk agrees with memory
//! again (`maintain/release.rs`).

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::lock::lock;
use proto::model::ids::{BucketId, Epoch, LocalIndexId, SliceNo};
use proto::model::index::IndexInfo;
use proto::{Error, ErrorCode, Result};

use crate::file_id::FileId;
use crate::files::data_files::{DataFiles, ManifestNotReplaced};
use crate::index::local_index::LocalIndex;
use crate::index::writer_state::WriterState;
use crate::log::lsn::Lsn;
use crate::maintain::flush::flush;
use crate::manifest::index_manifest::IndexManifest;
use crate::manifest::lists::SliceLists;
use crate::node::context::EngineContext;
use crate::retention::RetainedEpochs;
use crate::tables::table::Table;

/// Slices of an index that are added to it together.
pub(crate) struct ArrivingSlices {
    /// The slices that arrive, with their lists.
    pub slices: BTreeMap<SliceNo, ArrivingSlice>,
    /// The open files that the lists of the slices name.
    pub tables: BTreeMap<FileId, Arc<Table>>,
    /// The definition of the index and its slices.
    pub info: Arc<IndexInfo>,
}

/// A slice that is added to an index.
pub(crate) struct ArrivingSlice {
    /// Lists of the slice, as of the epoch of its arrival.
    pub lists: SliceLists,
    /// The epochs at which the slice can be read.
    pub reach: RetainedEpochs,
    /// Number of entries.
    pub entries: EntryCount,
}

/// Number of entries of an arriving slice, and its origin.
#[derive(Clone, Copy)]
pub(crate) enum EntryCount {
    /// A number that the slice's source reported. This node counts the entries later, or at the
    /// next load after a crash.
    Reported(u64),
    /// A number that this node has counted.
    Counted(u64),
}

impl ArrivingSlices {
    /// Adds the slices to a manifest that does not contain them.
    fn add_to_manifest(&self, manifest: &mut IndexManifest, epoch: Epoch) {
        manifest.flushed = manifest.flushed.max(epoch);
        for (slice, arrived) in &self.slices {
            manifest.slices.insert(*slice, arrived.lists.clone());
            manifest.arrived.insert(*slice, arrived.reach.clone());
            if let EntryCount::Counted(entries) = arrived.entries {
                manifest.entries.insert(*slice, entries);
            }
        }
    }

    /// Sets the entry counts in memory; a manifest does not contain counts that were only
    /// reported.
    fn set_entry_counts(&self, writer: &mut WriterState) {
        for (slice, arrived) in &self.slices {
            match arrived.entries {
                EntryCount::Reported(entries) => writer.set_reported_entries(*slice, entries),
                EntryCount::Counted(entries) => {
                    writer.uncounted.remove(slice);
                    writer.entries.insert(*slice, entries as i64);
                }
            }
        }
    }
}

/// A point between two epochs of a bucket, at which slices are added.
#[derive(Clone, Copy)]
pub(crate) struct EpochBoundary {
    /// The epoch before the point, which is the newest applied one.
    pub epoch: Epoch,
    /// An LSN at or before the log records of all epochs after the point.
    pub lsn: Lsn,
}

/// An error of adding slices to an index, with the resulting state of the disk.
pub(crate) enum InstallError {
    /// The slices were not added, and nothing has changed.
    Unchanged(Error),
    /// The slices were not added, and neither the new manifest nor the old one could be made
    /// durable: either may be on disk.
    Uncertain(Error),
}

impl From<ManifestNotReplaced> for InstallError {
    fn from(ManifestNotReplaced { error, is_uncertain }: ManifestNotReplaced) -> Self {
        if is_uncertain { Self::Uncertain(error) } else { Self::Unchanged(error) }
    }
}

impl From<Error> for InstallError {
    fn from(error: Error) -> Self {
        Self::Unchanged(error)
    }
}

/// Returns the boundary after `epoch`, which must be the newest applied epoch; [`check_newest`]
/// checks that later.
pub async fn boundary_after(
    context: &EngineContext,
    bucket: BucketId,
    epoch: Epoch,
) -> EpochBoundary {
    // This lock keeps other epochs out of the log meanwhile.
    let _order = context.order.lock().await;
    let buckets = lock(&context.state.buckets);
    let unapplied_from = buckets.get(&bucket).and_then(|progress| progress.unapplied_from);
    EpochBoundary { epoch, lsn: unapplied_from.unwrap_or(Lsn::MAX).min(context.log.end()) }
}

/// Checks that the epoch before the boundary is still the newest applied one.
pub fn check_newest(context: &EngineContext, bucket: BucketId, at: EpochBoundary) -> Result<()> {
    let applied = context.committed(bucket);
    if applied != at.epoch {
        let what = format!("epoch {applied} was applied while slices arrived at {}", at.epoch);
        return Err(Error::unavailable(what));
    }
    Ok(())
}

/// Adds slices to their index, which is created if the node has no slice of it. The caller holds
/// the bucket's lock (`NodeState::bucket_lock`).
pub fn add_arriving_slices(
    context: &EngineContext,
    arrived: ArrivingSlices,
    at: EpochBoundary,
) -> std::result::Result<(), InstallError> {
    check_newest(context, arrived.info.bucket, at)?;
    let id = arrived.info.local_id();
    let slices: Vec<SliceNo> = arrived.slices.keys().copied().collect();
    match context.state.get(id) {
        Some(index) => add_to_index(&index, arrived, at, &context.files)?,
        None => {
            let index = index_from_arriving(arrived, at, &context.files)?;
            context.state.insert(index);
        }
    }
    log_readable_slices(id, &slices);
    Ok(())
}

/// Logs that slices are readable from now on. The simulation reads these messages, and takes an
/// index for ready once all of its slices were logged.
pub fn log_readable_slices<'s>(index: LocalIndexId, slices: impl IntoIterator<Item = &'s SliceNo>) {
    for slice in slices {
        tracing::debug!(slice = %index.slice(*slice), "a slice can be read");
    }
}

/// Creates an index with its first slices on this node.
fn index_from_arriving(
    arrived: ArrivingSlices,
    EpochBoundary { epoch, lsn }: EpochBoundary,
    files: &DataFiles,
) -> std::result::Result<LocalIndex, InstallError> {
    let mut manifest = IndexManifest {
        info: Arc::clone(&arrived.info),
        // Each arriving slice has its own floor.
        floor: Some(Epoch(0)),
        points: Vec::new(),
        arrived: BTreeMap::new(),
        flushed: epoch,
        slices: BTreeMap::new(),
        entries: BTreeMap::new(),
    };
    arrived.add_to_manifest(&mut manifest, epoch);
    let index = LocalIndex::from_tables(manifest.clone(), arrived.tables.clone())?;
    files.replace_manifest(&manifest, None, lsn)?;
    arrived.set_entry_counts(&mut index.writer());
    Ok(index)
}

/// Adds arriving slices to an index that is already on this node.
fn add_to_index(
    index: &LocalIndex,
    arrived: ArrivingSlices,
    EpochBoundary { epoch, lsn }: EpochBoundary,
    files: &DataFiles,
) -> std::result::Result<(), InstallError> {
    flush(index, files)?;
    let mut fragment_lists = lock(&index.fragment_lists);
    let mut manifest = fragment_lists.manifest.clone();
    if fragment_lists.is_dropped || manifest.floor.is_none() {
        let text =
            format!("index {} is being built or dropped on this node", index.info.local_id());
        return Err(Error::unavailable(text).into());
    }
    if let Some(slice) = arrived.slices.keys().find(|s| manifest.slices.contains_key(s)) {
        let text =
            format!("slice {slice} of index {} is on this node already", index.info.local_id());
        return Err(Error::new(ErrorCode::Exists, text).into());
    }
    if arrived.info.revision >= manifest.info.revision {
        manifest.info = Arc::clone(&arrived.info);
    }
    let groups = fragment_lists.manifest.grouping().groups();
    arrived.add_to_manifest(&mut manifest, epoch);
    // The slices take over the column groups of the present slices.
    manifest.regroup(groups)?;
    fragment_lists.open_rest(files)?;
    let mut writer = index.writer();
    if writer.applied > epoch {
        // A large commit has entered, and its epoch has failed in another index: the epoch is applied again, and skips this index.
        let text = format!("index {} has epoch {} already", index.info.local_id(), writer.applied);
        return Err(Error::unavailable(text).into());
    }
    files.replace_manifest(&manifest, Some(&fragment_lists.manifest), lsn)?;
    arrived.set_entry_counts(&mut writer);
    fragment_lists.manifest = manifest;
    fragment_lists.tables.extend(arrived.tables);
    Ok(index.publish(&fragment_lists, &mut writer, |_| {})?)
}

#[cfg(test)]
#[path = "arrival_tests.rs"]
mod tests;
