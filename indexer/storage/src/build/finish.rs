//! End of a build: joins the backfill with the epochs since the build began, and makes the index
//! visible. The documents of the backfill are in separate fragments by then (see
//! [`crate::build::corrections`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use proto::lock::lock;
use proto::model::cut::EpochMark;
use proto::model::ids::{Epoch, SliceNo};
use proto::{Error, Result};

use crate::build::backfill::{end_backfill, gathered_bytes_max};
use crate::build::corrections::{Corrections, write_corrections};
use crate::edit::arrival::log_readable_slices;
use crate::files::data_files::{DataFiles, NewFragment};
use crate::files::new_files::UnnamedFragments;
use crate::index::backfill::Backfill;
use crate::index::fragment_lists::FragmentLists;
use crate::index::local_index::LocalIndex;
use crate::maintain::flush::flush;
use crate::manifest::edit::ListPosition;
use crate::manifest::index_manifest::IndexManifest;
use crate::manifest::lists::{EpochRange, SliceLists};
use crate::node::context::EngineContext;
use crate::node::name_bucket::ensure_bucket_mark;
use crate::read::slice_fragments::{UnopenedPolicy, slice_fragments};
use crate::retention::RetainedEpochs;

/// The result of a build before it is saved: a backfill joined with the epochs since the build
/// began. No manifest on disk names it yet.
pub struct JoinedBuild {
    /// The manifest to be written, which makes the slices readable from the build's last epoch on.
    pub manifest: IndexManifest,
    /// Fragments of the backfill and of its corrections.
    pub new: Vec<NewFragment>,
}

/// Joins a backfill with the epochs since the build began, and makes the index visible.
pub async fn finish_build(
    context: &Arc<EngineContext>,
    index: Arc<LocalIndex>,
    mark: &EpochMark,
) -> Result<()> {
    end_backfill(context, &index).await?;
    ensure_bucket_mark(context, mark).await?;
    let epoch = mark.epoch;
    let task = Arc::clone(context);
    let bytes_max = gathered_bytes_max(context);
    context.env.blocking(move || make_readable(&index, epoch, &task.files, bytes_max)).await
}

/// Joins the backfill with the epochs, writes the manifest and makes the index readable.
fn make_readable(
    index: &LocalIndex,
    epoch: Epoch,
    files: &DataFiles,
    bytes_max: usize,
) -> Result<()> {
    flush(index, files)?;
    let mut fragment_lists = lock(&index.fragment_lists);
    let joined = join_backfill(index, &mut fragment_lists, epoch, files, bytes_max)?;
    let JoinedBuild { manifest, new } = joined;
    let mut writer = index.writer();
    files.write_manifest(&manifest)?;
    writer.entries = manifest.entries.iter().map(|(slice, n)| (*slice, *n as i64)).collect();
    fragment_lists.manifest = manifest;
    fragment_lists.tables.extend(new.into_iter().map(|new| (new.file, new.table)));
    index.is_backfilling.store(false, Ordering::Relaxed);
    writer.is_building = false;
    writer.applied = epoch;
    index.publish(&fragment_lists, &mut writer, |version| {
        version.set_readable_epochs(RetainedEpochs { horizon: epoch, points: Vec::new() })
    })?;
    log_readable_slices(index.info.local_id(), fragment_lists.manifest.slices.keys());
    Ok(())
}

/// Joins the backfill with the epochs applied since the build began. The memory of the index must
/// have been flushed. Tombstones are written whenever `bytes_max` bytes of them have gathered.
pub fn join_backfill(
    index: &LocalIndex,
    fragment_lists: &mut FragmentLists,
    epoch: Epoch,
    files: &DataFiles,
    bytes_max: usize,
) -> Result<JoinedBuild> {
    let grouping = fragment_lists.manifest.grouping();
    let Some(backfill) = &fragment_lists.backfill else {
        return Err(Error::internal(format!("index {} is not being built", index.info.local_id())));
    };
    let shape = (grouping, index.info.spec.compression);
    let gathering = Corrections::new(files, shape, epoch, bytes_max, &index.backfill_bytes);
    let (tombstones, had) = write_all_corrections(fragment_lists, backfill, gathering)?;
    files.sync_names()?;
    let mut manifest = fragment_lists.manifest.clone();
    for new in backfill.forward.iter().rev().chain(backfill.back.iter().rev()) {
        add_fragment(&mut manifest, new, ListPosition::Oldest)?;
    }
    for new in tombstones.iter() {
        add_fragment(&mut manifest, new, ListPosition::Newest)?;
    }
    let mut entries = index.writer().entries.clone();
    for (slice, more) in &backfill.entries {
        *entries.entry(*slice).or_default() += *more as i64;
    }
    for (slice, had) in had {
        *entries.entry(slice).or_default() -= had as i64;
    }
    let entries = entries.into_iter().map(|(slice, n)| (slice, n.max(0) as u64));
    manifest.entries = entries.collect();
    manifest.set_readable_epochs(RetainedEpochs { horizon: epoch, points: Vec::new() });
    manifest.flushed = epoch;
    // No step can fail between here and the write of the manifest, which the caller begins next.
    let written = fragment_lists.backfill.take().map(Backfill::into_written).unwrap_or_default();
    let new = written.into_iter().chain(tombstones.into_fragments()).collect();
    Ok(JoinedBuild { manifest, new })
}

/// Writes the tombstones for outdated backfilled entries (see [`crate::build::corrections`]).
/// Returns their fragments and, by slice, the number of backfilled entries of the documents that
/// epochs have changed since.
fn write_all_corrections<'a>(
    lists: &FragmentLists,
    backfill: &Backfill,
    mut gathering: Corrections<'a>,
) -> Result<(UnnamedFragments<'a>, BTreeMap<SliceNo, u64>)> {
    let mut had = BTreeMap::new();
    for (slice, fragments) in
        slice_fragments(&lists.manifest, &lists.tables, UnopenedPolicy::Missing)?
    {
        had.insert(slice, write_corrections(backfill, slice, &fragments.back, &mut gathering)?);
    }
    Ok((gathering.finish()?, had))
}

/// Adds a new fragment to the lists of all slices that it has rows of.
fn add_fragment(
    manifest: &mut IndexManifest,
    new: &NewFragment,
    place: ListPosition,
) -> Result<()> {
    let NewFragment { file, columns, table } = new;
    let groups = manifest.grouping().groups();
    let slices: Vec<SliceNo> = table.index.sections().iter().map(|section| section.slice).collect();
    for slice in &slices {
        // The topology may have grown a slice since the build began; rows of a slice without lists
        // would be lost.
        let lists = || SliceLists::new(groups);
        manifest.slices.entry(*slice).or_insert_with(lists);
    }
    manifest.add(*file, &slices, *columns, EpochRange::from_stats(&table.stats), place)
}

#[cfg(test)]
#[path = "finish_tests.rs"]
mod tests;
