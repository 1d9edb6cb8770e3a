//! Application of an epoch to all indexes of its bucket.

use std::sync::Arc;

use proto::Result;
use proto::lock::lock;
use proto::model::cut::EpochMark;
use proto::plant::{self, Plant};

use crate::apply::delta::{BackIndexScope, EpochDelta};
use crate::apply::documents::{Document, EpochDocuments};
use crate::index::load_state::{Answer, LoadRequest};
use crate::index::local_index::LocalIndex;
use crate::log::lsn::Lsn;
use crate::node::state::{NodeState, epochs_skipped_by};
use crate::read::index_version::IndexVersion;
use crate::retention::RetainedEpochs;

/// Applies an epoch to all indexes of its bucket, then makes it visible to scans. `lsn` is the
/// beginning of the epoch's log record.
pub fn apply_epoch(
    state: &NodeState,
    (mark, documents): (&EpochMark, &[Document<'_>]),
    lsn: Lsn,
) -> Result<()> {
    let documents = EpochDocuments::by_index(documents)?;
    let bucket_lock = state.bucket_lock(mark.bucket);
    let _alone = lock(&bucket_lock);
    if state.is_dead(mark.bucket, mark.epoch) {
        // The bucket was rolled back before the epoch could be applied.
        return Ok(());
    }
    for index in state.indexes_of_bucket(mark.bucket) {
        let gap = has_gap_before(state, mark, &index);
        apply_to_index(&index, mark, &documents, gap, lsn)?;
    }
    let mut buckets = lock(&state.buckets);
    let progress = buckets.entry(mark.bucket).or_default();
    progress.dead.extend(epochs_skipped_by(mark));
    if progress.applied.as_ref().is_none_or(|applied| applied.epoch < mark.epoch) {
        progress.applied = Some(mark.clone());
    }
    // Not earlier, because after a failure the record is still needed from the log, even if the caller has stopped.
    progress.unapplied_from = None;
    Ok(())
}

/// Returns true if the bucket has epochs between its newest applied epoch and `mark` that this
/// node did not apply: the newest applied epoch is not the parent of `mark`. The index cannot
/// answer reads at the skipped epochs.
pub fn has_gap_before(state: &NodeState, mark: &EpochMark, index: &LocalIndex) -> bool {
    let buckets = lock(&state.buckets);
    let applied = buckets.get(&mark.bucket).and_then(|progress| progress.applied.as_ref());
    let before = applied.map(|mark| mark.epoch);
    // The first epoch of a bucket leaves a gap only if its applied epoch was forgotten.
    let has_before = before.is_some() || index.version.load().floor.is_some();
    before != Some(mark.parent) && has_before && !plant::is(Plant::GapIgnored)
}

/// Applies the last change of each document of an epoch to one index. If `gap` is true, the epoch
/// becomes the oldest epoch that can be read in the index.
fn apply_to_index(
    index: &LocalIndex,
    mark: &EpochMark,
    documents: &EpochDocuments<'_>,
    gap: bool,
    lsn: Lsn,
) -> Result<()> {
    if index.load_state().answer(LoadRequest::Write) == Answer::Refuse {
        // The index is being dropped.
        return Ok(());
    }
    let mut writer = index.writer();
    if mark.epoch <= writer.applied {
        // The fragments have the epoch already: a crash took the end of the log.
        return Ok(());
    }
    let version = index.version.load_full();
    let delta = EpochDelta::look_up(&index.info, &writer, &version, documents)?;
    let remembered =
        if writer.is_building { BackIndexScope::EverySlice } else { BackIndexScope::Changes };
    let staged = delta.stage(remembered, mark.epoch)?;
    // From here on nothing can fail: a retry finds all of the epoch or nothing of it.
    let run = staged.publish(&mut writer, mark.epoch);
    if mark.horizon >= writer.retained.horizon {
        writer.retained = RetainedEpochs::from_mark(mark);
    }
    let before = std::mem::replace(&mut writer.applied, mark.epoch);
    if run.is_some() || !writer.memtable.is_empty() || gap {
        writer.unflushed.get_or_insert((mark.epoch, lsn));
    }
    if run.is_some() || gap {
        let mut next = IndexVersion::clone(&version);
        next.runs.extend(run.map(Arc::new));
        if gap {
            let mut kept = RetainedEpochs::from_mark(mark);
            kept.points.retain(|point| *point <= before);
            next.restrict_readable(&RetainedEpochs { horizon: mark.epoch, ..kept });
        }
        index.version.store(Arc::new(next));
    }
    Ok(())
}

#[cfg(test)]
#[path = "apply_epoch_tests.rs"]
mod tests;
