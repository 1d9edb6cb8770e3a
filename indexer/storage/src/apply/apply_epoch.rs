//! Applies an epoch to all indexes of its bucket, and then shows it.

use std::sync::Arc;

use proto::Result;
use proto::model::cut::EpochMark;
use proto::plant::{self, Plant};

use crate::apply::delta::Changes;
use crate::apply::documents::{Document, documents};
use crate::batch::EpochBatch;
use crate::index::load_state::{Answer, LoadRequest};
use crate::index::local_index::Slot;
use crate::lock::lock;
use crate::log::lsn::Lsn;
use crate::node::state::{State, skipped_by};
use crate::read::index_version::Visible;
use crate::retention::Protected;

/// Applies an epoch to all indexes of its bucket, then shows it.
pub fn apply_epoch(state: &State, batch: &EpochBatch, lsn: Lsn) -> Result<()> {
    let mark = &batch.mark;
    let documents = documents(batch)?;
    let alone = state.alone(mark.bucket);
    let _alone = lock(&alone);
    if state.is_dead(mark.bucket, mark.epoch) {
        // It was on its way when the bucket went back.
        return Ok(());
    }
    let before = lock(&state.buckets)
        .get(&mark.bucket)
        .and_then(|progress| progress.applied.as_ref().map(|mark| mark.epoch));
    // A copy that did not apply the parent cannot answer for the epochs it skipped.
    let gap = before.is_some_and(|before| before != mark.parent) && !plant::is(Plant::GapIgnored);
    for slot in state.of_bucket(mark.bucket) {
        apply_to_index(&slot, mark, &documents, gap, lsn)?;
    }
    let mut buckets = lock(&state.buckets);
    let progress = buckets.entry(mark.bucket).or_default();
    progress.dead.extend(skipped_by(mark));
    if progress.applied.as_ref().is_none_or(|applied| applied.epoch < mark.epoch) {
        progress.applied = Some(mark.clone());
    }
    // Only now: what failed is still needed from the log, also after its caller has gone.
    progress.applying = None;
    Ok(())
}

/// Applies the last states of an epoch's documents; `gap` raises the floor. `lsn` is where the
/// epoch's record begins in the log.
fn apply_to_index(
    index: &Slot,
    mark: &EpochMark,
    documents: &[Document<'_>],
    gap: bool,
    lsn: Lsn,
) -> Result<()> {
    if index.load_state().answer(LoadRequest::Write) == Answer::Refuse {
        // It is being dropped.
        return Ok(());
    }
    let mut writer = index.writer();
    if mark.epoch <= writer.applied {
        // A crash took the end of the log, but this index had it in fragments already.
        return Ok(());
    }
    let visible = index.visible.load_full();
    let changes = Changes::of(index, &writer, &visible, documents)?;
    let run = changes.into_run(&mut writer, mark.epoch)?;
    if mark.horizon >= writer.protected.horizon {
        writer.protected = Protected::of(mark);
    }
    let before = std::mem::replace(&mut writer.applied, mark.epoch);
    if run.is_some() || !writer.memtable.is_empty() || gap {
        writer.unflushed.get_or_insert((mark.epoch, lsn));
    }
    if run.is_some() || gap {
        let mut next = Visible::clone(&visible);
        next.runs.extend(run.map(Arc::new));
        if gap {
            let mut kept = Protected::of(mark);
            kept.points.retain(|point| *point <= before);
            next.narrow(&Protected { horizon: mark.epoch, ..kept });
        }
        index.visible.store(Arc::new(next));
    }
    Ok(())
}
