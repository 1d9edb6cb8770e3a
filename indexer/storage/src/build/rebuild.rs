//! Rebuild: builds some slices of an index from the source while the index's other slices on the
//! node stay readable.
//!
//! A rebuild is a separate index object that no scan reads and no manifest names. Epochs are
//! applied to it as to any build, and it loads only its slices from the backfill. When an applied
//! epoch covers the backfill's cut, the slices are added to the readable index
//! ([`crate::edit::arrival`]), with that epoch as their oldest readable epoch. The fragments are
//! handed over, so no row is written twice. If the node has no slice of the index yet, the rebuilt
//! slices are the first.
//!
//! An index has one rebuild at a time. A crash before the end leaves files that no manifest names,
//! and the slices stay absent.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::Result;
use proto::lock::lock;
use proto::model::cut::EpochMark;
use proto::model::ids::Epoch;
use proto::plant::{self, Plant};

use crate::build::backfill::{end_backfill, gathered_bytes_max};
use crate::build::finish::{JoinedBuild, join_backfill};
use crate::edit::arrival::{
    ArrivingSlice, ArrivingSlices, EntryCount, EpochBoundary, InstallError, add_arriving_slices,
    boundary_after, check_newest,
};
use crate::edit::edits::drop_index_with;
use crate::file_id::FileId;
use crate::files::data_files::DataFiles;
use crate::index::local_index::LocalIndex;
use crate::maintain::flush::flush;
use crate::node::context::EngineContext;
use crate::node::name_bucket::ensure_bucket_mark;
use crate::retention::RetainedEpochs;
use crate::tables::table::Table;

/// Makes the slices of a rebuild visible at an epoch, which must be the newest applied one. After
/// an error the rebuild is dropped, and its slices stay absent.
pub async fn finish_rebuild(
    context: &Arc<EngineContext>,
    index: Arc<LocalIndex>,
    mark: &EpochMark,
) -> Result<()> {
    end_backfill(context, &index).await?;
    ensure_bucket_mark(context, mark).await?;
    let task = Arc::clone(context);
    let at = boundary_after(context, index.info.bucket, mark.epoch).await;
    let work = move || {
        // The caller may have stopped by now, and its successor may apply epochs.
        let bucket_lock = task.state.bucket_lock(index.info.bucket);
        let _alone = lock(&bucket_lock);
        let shown = add_rebuilt_slices(&task, &index, at);
        task.state.take_rebuild(index.info.local_id());
        if shown.is_err() {
            drop_index_with(&index, &task.files, || Ok(()))?;
        }
        shown
    };
    context.env.blocking(work).await
}

/// Joins a rebuild's backfill with the epochs, and adds its slices to the readable index.
fn add_rebuilt_slices(
    context: &EngineContext,
    index: &LocalIndex,
    at: EpochBoundary,
) -> Result<()> {
    check_newest(context, index.info.bucket, at)?;
    let arrived = end_rebuild(index, at.epoch, &context.files, gathered_bytes_max(context))?;
    let tables = arrived.tables.clone();
    add_arriving_slices(context, arrived, at).map_err(|error| match error {
        InstallError::Unchanged(error) => {
            context.files.retire(tables.into_iter().collect());
            error
        }
        // The manifest on disk may name the files. So they stay, and the next start finds out.
        InstallError::Uncertain(error) => error,
    })
}

/// Ends a rebuild and returns its slices as of `epoch`, ready to be added to the readable index.
fn end_rebuild(
    index: &LocalIndex,
    epoch: Epoch,
    files: &DataFiles,
    bytes_max: usize,
) -> Result<ArrivingSlices> {
    flush(index, files)?;
    let mut fragment_lists = lock(&index.fragment_lists);
    let joined = join_backfill(index, &mut fragment_lists, epoch, files, bytes_max)?;
    let JoinedBuild { manifest, new } = joined;
    fragment_lists.is_dropped = true;
    fragment_lists.manifest.slices.clear();
    let mut tables: BTreeMap<FileId, Arc<Table>> = std::mem::take(&mut fragment_lists.tables);
    tables.extend(new.into_iter().map(|new| (new.file, new.table)));
    {
        // A merge of runs may have read the version and not published its result yet.
        let _writer = index.writer();
        index.version.store(Arc::default());
    }
    let horizon = if plant::is(Plant::RebuiltBelowFloor) { Epoch(1) } else { epoch };
    let slices = manifest.slices.into_iter().map(|(slice, lists)| {
        let reach = RetainedEpochs { horizon, points: Vec::new() };
        let entries = manifest.entries.get(&slice).copied().unwrap_or_default();
        (slice, ArrivingSlice { lists, reach, entries: EntryCount::Counted(entries) })
    });
    Ok(ArrivingSlices { slices: slices.collect(), tables, info: manifest.info })
}

#[cfg(test)]
#[path = "rebuild_tests.rs"]
mod tests;
