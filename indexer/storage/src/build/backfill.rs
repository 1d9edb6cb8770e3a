//! Takes in the documents of a backfill, and writes them when enough have gathered. However many builds there
//! are, what they gather before it is written takes a quarter of the memory budget.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use proto::model::ids::SliceNo;
use proto::{Error, Result};

use crate::build::corrections::{Part, write_part};
use crate::files::data_files::Files;
use crate::index::backfill::Bulk;
use crate::index::local_index::Slot;
use crate::lock::lock;
use crate::node::context::Inner;
use crate::rows::row_sorter::RowSorter;

/// However large the budget is, no more is sorted at once: to sort more holds the stream up, and gains nothing.
const GATHERED_BYTES_MAX: usize = 1 << 30;

/// Begins a backfill, forgetting what an earlier one has left; `only` where it brings other slices too.
pub fn begin_backfill(index: &Slot, only: Option<BTreeSet<SliceNo>>, files: &Files) -> Result<()> {
    let mut structure = lock(&index.structure);
    if let Some(old) = structure.bulk.replace(Bulk::of(only)) {
        files.discard(old.into_written());
    }
    index.backfilling.store(true, Ordering::Relaxed);
    Ok(())
}

/// Takes in documents of a backfill; writes them when enough have gathered.
pub async fn take_documents(context: &Arc<Inner>, slot: Arc<Slot>, documents: Bytes) -> Result<()> {
    let bytes_max = gathered_bytes_max(context);
    let work = {
        let slot = Arc::clone(&slot);
        move || -> Result<Option<(RowSorter, RowSorter)>> {
            let mut structure = lock(&slot.structure);
            let Some(bulk) = &mut structure.bulk else {
                let message = format!("index {} is not being built", slot.info.id);
                return Err(Error::internal(message));
            };
            bulk.add(slot.info.id, slot.info.generation, &documents)?;
            let gathered = bulk.gathered_bytes();
            slot.bulk_bytes.store(gathered as u64, Ordering::Relaxed);
            Ok((gathered >= bytes_max).then(|| bulk.take_gathered()))
        }
    };
    match context.env.blocking(work).await? {
        Some(gathered) => write_gathered(context, &slot, gathered).await,
        None => Ok(()),
    }
}

/// What one backfill may gather: all that go on share a quarter of the budget.
pub fn gathered_bytes_max(context: &Inner) -> usize {
    let slots = context.state.slots();
    let builds = slots.iter().filter(|slot| slot.backfilling.load(Ordering::Relaxed)).count();
    (context.options.memory_bytes as usize / 4 / builds.max(1)).min(GATHERED_BYTES_MAX)
}

/// Writes gathered documents, the two parts side by side.
async fn write_gathered(
    context: &Arc<Inner>,
    slot: &Arc<Slot>,
    (forward, back): (RowSorter, RowSorter),
) -> Result<()> {
    let grouping = lock(&slot.structure).manifest.grouping();
    let write = |rows: RowSorter, part: Part| {
        let inner = Arc::clone(context);
        context.env.blocking(move || write_part(&inner.files, rows, part, grouping))
    };
    let (forward, back) = tokio::join!(write(forward, Part::Forward), write(back, Part::Back));
    let (forward, back) = (forward?, back?);
    slot.bulk_bytes.store(0, Ordering::Relaxed);
    match &mut lock(&slot.structure).bulk {
        Some(bulk) => {
            bulk.forward.extend(forward);
            bulk.back.extend(back);
        }
        // The build was given up meanwhile.
        None => context.files.discard(forward.into_iter().chain(back).collect()),
    }
    Ok(())
}

/// Writes what has gathered last; what the epochs have said so far is durable then.
pub async fn end_backfill(context: &Arc<Inner>, slot: &Arc<Slot>) -> Result<()> {
    let gathered = lock(&slot.structure).bulk.as_mut().map(Bulk::take_gathered);
    match gathered {
        Some(gathered) => write_gathered(context, slot, gathered).await?,
        None => {
            let message = format!("index {} has no backfill to end", slot.info.id);
            return Err(Error::internal(message));
        }
    }
    // The slices must not be readable after a crash that the bucket's epochs did not survive.
    context.log.sync().await
}
