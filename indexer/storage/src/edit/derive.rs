//! Slices of a new generation that are made in place: their lists are those of the previous
//! generation, restricted to ranges of entries. No row is read or written, and the generations
//! share the fragments ([`crate::files::named_files`]).
//!
//! The slices are made between two epochs. The memory of the previous generation is flushed first,
//! because tables in memory cannot be restricted to a range; from then on its lists contain
//! everything up to the newest applied epoch. They become the lists of the new slices in the same
//! way as the lists of a moved slice ([`crate::edit::arrival`]): one manifest names all of them,
//! and from the next epoch on the node's stream feeds the slices. So no mutation is applied twice
//! or missed. The oldest epoch that can be read in the new slices is the epoch at which they were
//! made.
//!
//! A restriction of the back index keeps all documents and restricts their entries: a document
//! without an entry in the range gets an empty list of entries in the new slice. Compactions drop
//! rows outside of the ranges, in each generation separately.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto::lock::lock;
use proto::model::cut::EpochMark;
use proto::model::ids::{Epoch, LocalIndexId, SliceNo};
use proto::model::index::IndexInfo;
use proto::rpc::scan::KeyRange;
use proto::{Error, Result};

use crate::edit::arrival::{
    ArrivingSlice, ArrivingSlices, EntryCount, EpochBoundary, InstallError, add_arriving_slices,
    boundary_after,
};
use crate::file_id::FileId;
use crate::index::local_index::LocalIndex;
use crate::maintain::flush::flush;
use crate::node::context::EngineContext;
use crate::node::name_bucket::ensure_bucket_mark;
use crate::read::slice_size::share_in;
use crate::retention::RetainedEpochs;

/// The rule by which a new slice is made from a range of another generation's slice.
#[derive(Clone, Debug)]
pub struct SliceCut {
    /// The new slice.
    pub slice: SliceNo,
    /// The slice of the other generation that the entries come from.
    pub from: SliceNo,
    /// The range of the entries that the new slice gets; `None` for all entries.
    pub range: Option<KeyRange>,
}

/// A new slice whose entries were not counted yet, and the estimated number that is reported until
/// they are counted.
pub type EstimatedSlice = (SliceNo, u64);

/// Makes all of a node's slices of a generation from the slices of another generation, at the
/// epoch of `mark`. The epoch must be the newest one applied to the bucket, and no epoch may be
/// applied during the call. After an error the new generation is absent. Returns the slices whose
/// entries must be counted.
pub async fn derive_slices(
    context: &Arc<EngineContext>,
    from: Arc<LocalIndex>,
    info: Arc<IndexInfo>,
    cuts: Vec<SliceCut>,
    mark: &EpochMark,
) -> Result<Vec<EstimatedSlice>> {
    // After a crash the slices must not be readable unless the bucket's epochs have survived.
    context.log.sync().await?;
    ensure_bucket_mark(context, mark).await?;
    let at = boundary_after(context, mark.bucket, mark.epoch).await;
    let task = Arc::clone(context);
    let work = move || {
        let bucket_lock = task.state.bucket_lock(info.bucket);
        let _alone = lock(&bucket_lock);
        let id = info.local_id();
        let arriving = restrict_slices(&task, &from, info, &cuts, at)?;
        let estimated = |(slice, arrived): (&SliceNo, &ArrivingSlice)| match arrived.entries {
            EntryCount::Reported(entries) => Some((*slice, entries)),
            EntryCount::Counted(_) => None,
        };
        let estimated = arriving.slices.iter().filter_map(estimated).collect();
        let installed = add_arriving_slices(&task, arriving, at);
        // The files are named by the new manifest now, also if it is uncertain which manifest is on disk; or no
        // manifest names them.
        task.files.end_reservation(id);
        match installed {
            Ok(()) => Ok(estimated),
            Err(InstallError::Unchanged(error) | InstallError::Uncertain(error)) => Err(error),
        }
    };
    context.env.blocking(work).await
}

/// Returns the new slices with their lists, and the tables that the lists name. The files are
/// reserved for the new generation
/// ([`DataFiles::reserve`](crate::files::data_files::DataFiles::reserve)).
fn restrict_slices(
    context: &EngineContext,
    from: &LocalIndex,
    info: Arc<IndexInfo>,
    cuts: &[SliceCut],
    at: EpochBoundary,
) -> Result<ArrivingSlices> {
    flush(from, &context.files)?;
    let mut lists = lock(&from.fragment_lists);
    if lists.is_dropped || lists.manifest.floor.is_none() {
        return Err(not_derivable(from.info.local_id(), "is not whole on this node"));
    }
    lists.open_rest(&context.files)?;
    let writer = from.writer();
    let version = from.version.load();
    if writer.applied > at.epoch {
        // A large commit has entered, and its epoch has failed in another index.
        return Err(not_derivable(from.info.local_id(), "is ahead of its bucket"));
    }
    let mut slices = BTreeMap::new();
    for cut in cuts {
        let (Some(whole), Some(fragments)) =
            (lists.manifest.slices.get(&cut.from), version.slices.get(&cut.from))
        else {
            return Err(not_derivable(from.info.local_id(), "lacks a slice on this node"));
        };
        // An index has applied the epoch of its floor, so the check above refuses such a parent already. This check does not depend on
        // that.
        let floor = version.floor_of(cut.from);
        if writer.has_in_memory(cut.from, &version) || floor.is_none_or(|floor| floor > at.epoch) {
            return Err(not_derivable(
                from.info.local_id(),
                "has rows in memory, or lacks the epoch",
            ));
        }
        let entries = writer.entries.get(&cut.from).copied().unwrap_or(0).max(0) as u64;
        let is_counted = !writer.uncounted.contains(&cut.from);
        let (own, entries) = match &cut.range {
            None if is_counted => (whole.clone(), EntryCount::Counted(entries)),
            None => (whole.clone(), EntryCount::Reported(entries)),
            Some(range) => {
                let share = share_in(&fragments.forward, range);
                let share = (entries as f64 * share) as u64;
                (whole.restricted(range), EntryCount::Reported(share))
            }
        };
        let reach = RetainedEpochs { horizon: at.epoch, points: Vec::<Epoch>::new() };
        slices.insert(cut.slice, ArrivingSlice { lists: own, reach, entries });
    }
    let named: BTreeSet<FileId> = slices.values().flat_map(|slice| slice.lists.files()).collect();
    let tables = named.iter().filter_map(|file| Some((*file, Arc::clone(lists.tables.get(file)?))));
    let tables = tables.collect();
    // As soon as the lock is dropped, the other generation may drop the files. A third generation may have retired them with other tables.
    context.files.reserve(info.local_id(), named);
    Ok(ArrivingSlices { slices, tables, info })
}

/// Returns the error that no slices can be made from an index.
fn not_derivable(index: LocalIndexId, why: &str) -> Error {
    Error::unavailable(format!("index {index} {why}: no slices can be made from it"))
}

#[cfg(test)]
#[path = "derive_tests.rs"]
mod tests;
