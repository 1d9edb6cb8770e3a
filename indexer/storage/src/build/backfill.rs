//! Loading of the documents of a backfill: gathers them in memory and writes them into fragments
//! when a limit is reached. All backfills together gather at most a quarter of the memory limit.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use proto::env::Bulk;
use proto::lock::lock;
use proto::model::ids::SliceNo;
use proto::{Error, Result};

use crate::build::corrections::{BackfillRowKind, write_backfill_rows};
use crate::files::data_files::{DataFiles, NewFragment};
use crate::index::backfill::Backfill;
use crate::index::local_index::LocalIndex;
use crate::node::context::EngineContext;
use crate::rows::row_sorter::RowSorter;

/// The maximum number of bytes that are sorted at once, whatever the memory limit is: a longer
/// sort delays the stream without a benefit.
const GATHERED_BYTES_MAX: usize = 1 << 30;

/// Begins a backfill and drops the fragments of an earlier one. Loads only the slices in `only`;
/// `None` loads all slices.
pub fn begin_backfill(
    index: &LocalIndex,
    only: Option<BTreeSet<SliceNo>>,
    files: &DataFiles,
) -> Result<()> {
    let mut fragment_lists = lock(&index.fragment_lists);
    // The fragments of a backfill that begins after its index was dropped would never be deleted.
    if fragment_lists.is_dropped {
        let message = format!("index {} was dropped", index.info.local_id());
        return Err(Error::unavailable(message));
    }
    if let Some(old) = fragment_lists.backfill.replace(Backfill::for_slices(only)) {
        files.discard(old.into_written());
    }
    index.backfill_entries.store(Arc::default());
    index.is_backfilling.store(true, Ordering::Relaxed);
    Ok(())
}

/// Adds documents to a backfill, and writes all documents gathered in memory when they reach the
/// limit.
pub async fn add_backfill_documents(
    context: &Arc<EngineContext>,
    index: Arc<LocalIndex>,
    documents: Bytes,
) -> Result<()> {
    let bytes_max = gathered_bytes_max(context);
    let work = {
        let index = Arc::clone(&index);
        move || -> Result<Option<(RowSorter, RowSorter)>> {
            let mut fragment_lists = lock(&index.fragment_lists);
            let Some(backfill) = &mut fragment_lists.backfill else {
                let message = format!("index {} is not being built", index.info.local_id());
                return Err(Error::internal(message));
            };
            backfill.add(index.info.local_id(), &documents)?;
            let gathered = backfill.gathered_bytes();
            index.backfill_bytes.store(gathered as u64, Ordering::Relaxed);
            index.backfill_entries.store(Arc::new(backfill.entries.clone()));
            Ok((gathered >= bytes_max).then(|| backfill.take_gathered()))
        }
    };
    match context.env.blocking(work).await? {
        Some(gathered) => write_gathered(context, &index, gathered).await,
        None => Ok(()),
    }
}

/// Returns the number of bytes that one backfill may gather in memory. All backfills share a
/// quarter of the memory limit.
pub fn gathered_bytes_max(context: &EngineContext) -> usize {
    let indexes = context.state.indexes_and_rebuilds();
    let builds =
        indexes.iter().filter(|index| index.is_backfilling.load(Ordering::Relaxed)).count();
    (context.options.memory_bytes as usize / 4 / builds.max(1)).min(GATHERED_BYTES_MAX)
}

/// Writes the entries and the back index of the gathered documents concurrently.
async fn write_gathered(
    context: &Arc<EngineContext>,
    index: &Arc<LocalIndex>,
    (forward, back): (RowSorter, RowSorter),
) -> Result<()> {
    let grouping = lock(&index.fragment_lists).manifest.grouping();
    let shape = (grouping, index.info.spec.compression);
    let write = |rows: RowSorter, part: BackfillRowKind| {
        let mut written = WrittenFragments { context: Arc::clone(context), fragments: Vec::new() };
        context.env.bulk(Bulk::AtOnce, move || -> Result<WrittenFragments> {
            written.fragments = write_backfill_rows(&written.context.files, rows, part, shape)?;
            Ok(written)
        })
    };
    let (forward, back) =
        tokio::join!(write(forward, BackfillRowKind::Forward), write(back, BackfillRowKind::Back));
    index.backfill_bytes.store(0, Ordering::Relaxed);
    let (forward, back) = (forward?, back?);
    // `None` if the build was given up meanwhile.
    if let Some(backfill) = &mut lock(&index.fragment_lists).backfill {
        backfill.forward.extend(forward.into_fragments());
        backfill.back.extend(back.into_fragments());
    }
    Ok(())
}

/// Fragments that a backfill has written and that are not registered with the index yet. Dropping
/// this value deletes them: after a cancelled build, or if the entries or the back index could not
/// be written.
struct WrittenFragments {
    context: Arc<EngineContext>,
    fragments: Vec<NewFragment>,
}

impl WrittenFragments {
    /// Returns the fragments, which the caller owns from now on.
    fn into_fragments(mut self) -> Vec<NewFragment> {
        std::mem::take(&mut self.fragments)
    }
}

impl Drop for WrittenFragments {
    fn drop(&mut self) {
        if self.fragments.is_empty() {
            return;
        }
        self.context.files.discard(std::mem::take(&mut self.fragments));
        // A node that has nothing else to do would keep the files until its next start.
        self.context.files.delete_retired();
    }
}

/// Writes the remaining documents of a backfill. Afterwards all epochs applied so far are durable.
pub async fn end_backfill(context: &Arc<EngineContext>, index: &Arc<LocalIndex>) -> Result<()> {
    let gathered = lock(&index.fragment_lists).backfill.as_mut().map(Backfill::take_gathered);
    match gathered {
        Some(gathered) => write_gathered(context, index, gathered).await?,
        None => {
            let message = format!("index {} has no backfill in progress", index.info.local_id());
            return Err(Error::internal(message));
        }
    }
    // After a crash, the slices must not be readable unless the bucket's epochs survived.
    context.log.sync().await
}
