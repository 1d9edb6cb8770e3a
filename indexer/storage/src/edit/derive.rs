//! Slices of a new generation made in place: their lists are those of the previous generation,
//! restricted to ranges of entries. No row is read or written, and the generations share the
//! fragments ([`crate::files::named`]).
//!
//! The slices are made between two epochs. The memory of the previous generation is flushed first,
//! because runs know slices only by number; from then on its lists have everything up to the newest
//! applied epoch. They become the lists of the new slices like the lists of a moved slice
//! ([`crate::edit::arrival`]): one manifest names all of them, and from the next epoch on the
//! node's own stream feeds them. So no mutation is applied twice or missed. The floor of the new
//! slices is that epoch.
//!
//! A restriction of the back index keeps the documents and restricts their entries: a document
//! whose entries are all in the other half has an empty state in this slice. Compactions drop rows
//! outside of the ranges, in each generation separately.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto::lock::lock;
use proto::model::cut::EpochMark;
use proto::model::ids::{Epoch, LocalIndexId, SliceNo};
use proto::model::index::IndexInfo;
use proto::rpc::scan::KeyRange;
use proto::{Error, Result};

use crate::edit::arrival::{
    ArrivingSlice, ArrivingSlices, EntryCount, EpochBoundary, InstallError, boundary_after,
    install_arriving,
};
use crate::file_id::FileId;
use crate::index::local_index::LocalIndex;
use crate::maintain::flush::flush;
use crate::node::context::EngineContext;
use crate::node::name_bucket::name_bucket;
use crate::read::slice_size::share_in;
use crate::retention::RetainedEpochs;

/// The rule that makes a new slice from a range of another generation's slice.
#[derive(Clone, Debug)]
pub struct SliceCut {
    /// The new slice.
    pub slice: SliceNo,
    /// The slice of the other generation.
    pub from: SliceNo,
    /// The range of the entries to keep; `None` for all entries.
    pub range: Option<KeyRange>,
}

/// A new slice whose entries were not counted yet, and the estimate that is reported until the
/// count.
pub type EstimatedSlice = (SliceNo, u64);

/// Makes all of a node's slices of a generation from those of another one, at the epoch of `mark`. The epoch must be the newest one
/// applied to the bucket, and no epoch may be applied meanwhile. After an error the new generation is absent. Returns the slices that
/// are to be counted.
pub async fn derive(
    context: &Arc<EngineContext>,
    from: Arc<LocalIndex>,
    info: Arc<IndexInfo>,
    cuts: Vec<SliceCut>,
    mark: &EpochMark,
) -> Result<Vec<EstimatedSlice>> {
    // After a crash the slices must not be readable unless the bucket's epochs have survived.
    context.log.sync().await?;
    name_bucket(context, mark).await?;
    let at = boundary_after(context, mark.bucket, mark.epoch).await;
    let task = Arc::clone(context);
    let work = move || {
        let bucket_lock = task.state.bucket_lock(info.bucket);
        let _alone = lock(&bucket_lock);
        let id = info.local_id();
        let arriving = cut_out(&task, &from, info, &cuts, at)?;
        let estimated = |(slice, arrived): (&SliceNo, &ArrivingSlice)| match arrived.entries {
            EntryCount::Reported(entries) => Some((*slice, entries)),
            EntryCount::Counted(_) => None,
        };
        let estimated = arriving.slices.iter().filter_map(estimated).collect();
        let installed = install_arriving(&task, arriving, at);
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
fn cut_out(
    context: &EngineContext,
    from: &LocalIndex,
    info: Arc<IndexInfo>,
    cuts: &[SliceCut],
    at: EpochBoundary,
) -> Result<ArrivingSlices> {
    flush(from, &context.files)?;
    let mut lists = lock(&from.fragment_lists);
    if lists.is_dropped || lists.manifest.floor.is_none() {
        return Err(unfit(from.info.local_id(), "is not whole on this node"));
    }
    lists.open_rest(&context.files)?;
    let writer = from.writer();
    let version = from.version.load();
    if writer.applied > at.epoch {
        // A large commit has entered, and its epoch has failed in another index.
        return Err(unfit(from.info.local_id(), "is ahead of its bucket"));
    }
    let mut slices = BTreeMap::new();
    for cut in cuts {
        let (Some(whole), Some(fragments)) =
            (lists.manifest.slices.get(&cut.from), version.slices.get(&cut.from))
        else {
            return Err(unfit(from.info.local_id(), "lacks a slice on this node"));
        };
        // An index has applied the epoch of its floor, so the check above refuses such a parent already. This check does not depend on
        // that.
        let floor = version.floor_of(cut.from);
        if writer.has(cut.from, &version) || floor.is_none_or(|floor| floor > at.epoch) {
            return Err(unfit(from.info.local_id(), "has rows in memory, or lacks the epoch"));
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

fn unfit(index: LocalIndexId, why: &str) -> Error {
    Error::unavailable(format!("index {index} {why}: no slices can be made from it"))
}

#[cfg(test)]
#[path = "derive_tests.rs"]
mod tests;
