//! Builds: a backfill's documents go past the log into fragments of their own (see [`crate::build::bulk`]);
//! when the epochs cover its snapshot, both are joined and the index is shown. However many builds there
//! are, what they gather before it is written takes a quarter of the memory budget.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use proto::model::ids::{Epoch, SliceNo};
use proto::{Error, Result};

use crate::build::backfill::{end_backfill, gathered_bytes_max};
use crate::build::corrections::{Corrections, corrections};
use crate::files::data_files::{Files, Written};
use crate::index::fragment_lists::Structure;
use crate::index::local_index::Slot;
use crate::lock::lock;
use crate::maintain::flush::flush;
use crate::manifest::edit::Place;
use crate::manifest::index_manifest::IndexManifest;
use crate::manifest::lists::{EpochRange, SliceLists};
use crate::node::context::Inner;
use crate::read::slice_fragments::{Unopened, fragments};
use crate::retention::Protected;

/// A backfill, joined with what the epochs have said since: in no manifest yet.
pub struct Joined {
    /// Shows the slices from the epoch on.
    pub manifest: IndexManifest,
    /// The fragments that the backfill brought, and its corrections.
    pub new: Vec<Written>,
}

/// Joins a backfill with what the epochs have said since the build began, and shows the index.
pub async fn finish_build(context: &Arc<Inner>, slot: Arc<Slot>, epoch: Epoch) -> Result<()> {
    end_backfill(context, &slot).await?;
    let inner = Arc::clone(context);
    let bytes_max = gathered_bytes_max(context);
    context.env.blocking(move || show(&slot, epoch, &inner.files, bytes_max)).await
}

fn show(index: &Slot, epoch: Epoch, files: &Files, bytes_max: usize) -> Result<()> {
    flush(index, files)?;
    let mut structure = lock(&index.structure);
    let joined = join_backfill(index, &mut structure, epoch, files, bytes_max)?;
    let Joined { manifest, new } = joined;
    let mut writer = index.writer();
    files.write_manifest(&manifest)?;
    writer.entries = manifest.entries.iter().map(|(slice, n)| (*slice, *n as i64)).collect();
    structure.manifest = manifest;
    structure.tables.extend(new.into_iter().map(|new| (new.file, new.table)));
    index.backfilling.store(false, Ordering::Relaxed);
    writer.building = false;
    writer.applied = epoch;
    index.publish(&structure, &mut writer, |visible| {
        visible.set_reach(Protected { horizon: epoch, points: Vec::new() })
    })
}

/// Joins the backfill with what the epochs have said, of which nothing may be in memory any more; gathers
/// so many bytes of corrections at a time.
pub fn join_backfill(
    index: &Slot,
    structure: &mut Structure,
    epoch: Epoch,
    files: &Files,
    bytes_max: usize,
) -> Result<Joined> {
    let grouping = structure.manifest.grouping();
    let gathering = Corrections::new(files, grouping, epoch, bytes_max, &index.bulk_bytes);
    let (tombstones, had) = corrections_of(structure, gathering)?;
    files.sync_names()?;
    let Some(bulk) = structure.bulk.take() else {
        return Err(Error::internal(format!("index {} is not being built", index.info.id)));
    };
    let mut manifest = structure.manifest.clone();
    for new in bulk.forward.iter().rev().chain(bulk.back.iter().rev()) {
        add(&mut manifest, new, Place::Oldest)?;
    }
    for new in &tombstones {
        add(&mut manifest, new, Place::Newest)?;
    }
    let mut entries = index.writer().entries.clone();
    for (slice, more) in &bulk.entries {
        *entries.entry(*slice).or_default() += *more as i64;
    }
    for (slice, had) in had {
        *entries.entry(slice).or_default() -= had as i64;
    }
    let entries = entries.into_iter().map(|(slice, n)| (slice, n.max(0) as u64));
    manifest.entries = entries.collect();
    manifest.set_reach(Protected { horizon: epoch, points: Vec::new() });
    manifest.flushed = epoch;
    let new = bulk.into_written().into_iter().chain(tombstones).collect();
    Ok(Joined { manifest, new })
}

/// See [`crate::build::bulk`]: the tombstones, and how many entries of the backfill they and newer states
/// stand for, by slice.
fn corrections_of(
    lists: &Structure,
    mut gathering: Corrections<'_>,
) -> Result<(Vec<Written>, BTreeMap<SliceNo, u64>)> {
    let mut had = BTreeMap::new();
    let Some(bulk) = &lists.bulk else { return Ok((Vec::new(), had)) };
    for (slice, fragments) in fragments(&lists.manifest, &lists.tables, Unopened::Missing)? {
        had.insert(slice, corrections(bulk, slice, &fragments.back, &mut gathering)?);
    }
    Ok((gathering.finish()?, had))
}

fn add(manifest: &mut IndexManifest, new: &Written, place: Place) -> Result<()> {
    let Written { file, columns, table } = new;
    let groups = manifest.grouping().groups();
    let slices: Vec<SliceNo> = table.index.sections().iter().map(|section| section.slice).collect();
    for slice in &slices {
        // An index that is built may have grown a slice since; what lies in none is not kept.
        let lists = || SliceLists::new(groups);
        manifest.slices.entry(*slice).or_insert_with(lists);
    }
    manifest.add(*file, &slices, *columns, EpochRange::from_stats(&table.stats), place)
}

#[cfg(test)]
#[path = "finish_tests.rs"]
mod tests;
