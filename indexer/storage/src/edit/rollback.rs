//! Rollback of a bucket to an epoch: everything newer is removed from its indexes, in memory and
//! in the lists of fragments.
//!
//! First the log records the rollback, then each index is rolled back, then the node manifest
//! records that the rollback is done. A crash in between leaves the log record, and the replay
//! finishes the rollback. So the log record is retained until every index is rolled back, and only
//! then the manifest says that the rollback is done.

use std::sync::Arc;

use proto::lock::lock;
use proto::model::cut::EpochMark;
use proto::model::ids::Epoch;
use proto::plant::{self, Plant};
use proto::{Error, ErrorCode, Result};

use crate::edit::edits::recount;
use crate::files::data_files::DataFiles;
use crate::index::local_index::LocalIndex;
use crate::index::memtable::BackMemtable;
use crate::log_record::Record;
use crate::maintain::merge_runs::merge_tables;
use crate::manifest::node_manifest::DeadEpochs;
use crate::node::context::EngineContext;
use crate::node::durability::counters;
use crate::read::count::count;
use crate::retention::RetainedEpochs;
use crate::tables::table::Table;

/// Rolls a bucket back to the epoch of `mark`. From then on, the epochs above it, at least up to
/// `dead_to`, count as undone and are never applied.
pub async fn roll_back_bucket(
    context: &Arc<EngineContext>,
    mark: &EpochMark,
    dead_to: Epoch,
) -> Result<()> {
    let indexes = context.state.indexes_of_bucket(mark.bucket);
    for index in &indexes {
        check_rollback(index, mark.epoch)?;
    }
    let mut order = context.order.lock().await;
    let dead = DeadEpochs {
        bucket: mark.bucket,
        above: mark.epoch,
        to: counters(context, mark.bucket).staged.max(dead_to),
    };
    let record = Record::Truncate(mark.clone(), dead.to).encode()?;
    let begin = context.log.end();
    let end = context.log.append(&record).await?;
    context.state.mark_unapplied_from(mark.bucket, begin);
    context.log.wait_durable(end).await?;
    order.roll_back_to(mark);
    let (mut manifest, done) = (
        order.node_manifest(context.files.next(), context.files.index_numbers()),
        order.dead.clone(),
    );
    let (task, mark) = (Arc::clone(context), mark.clone());
    // Once begun, the work runs to its end, even if the caller has stopped.
    let work = move || {
        let bucket_lock = task.state.bucket_lock(mark.bucket);
        let _alone = lock(&bucket_lock);
        task.state.roll_back_to(&mark, dead);
        indexes.iter().try_for_each(|index| roll_back_index(index, mark.epoch, &task.files))?;
        task.state.clear_unapplied(mark.bucket);
        lock(&done).push(dead);
        manifest.dead.push(dead);
        task.files.write_node_manifest(&manifest)
    };
    context.env.blocking(work).await
}

/// Checks that an index can be rolled back to an epoch.
fn check_rollback(index: &LocalIndex, epoch: Epoch) -> Result<()> {
    let version = index.version.load();
    match version.floor {
        Some(floor) if !version.can_roll_back(epoch) => Err(Error::new(
            ErrorCode::SnapshotTooOld,
            format!(
                "index {} cannot be rolled back to epoch {epoch}: its oldest epoch is {floor}",
                index.info.local_id()
            ),
        )),
        _ => Ok(()),
    }
}

/// Returns the contents of an index's memory up to an epoch: one table with the merged rows of
/// `runs` (tables in memory), and one memtable with the records of `memtables`, oldest first.
pub fn memory_up_to<'a>(
    runs: &[Arc<Table>],
    memtables: impl IntoIterator<Item = &'a BackMemtable>,
    epoch: Epoch,
) -> Result<(Option<Table>, BackMemtable)> {
    let run = merge_tables(runs, &RetainedEpochs::default(), epoch)?;
    let mut states = BackMemtable::default();
    memtables.into_iter().for_each(|memtable| states.append(memtable, epoch));
    Ok((run, states))
}

/// Rolls an index back to an epoch.
pub fn roll_back_index(index: &LocalIndex, epoch: Epoch, files: &DataFiles) -> Result<()> {
    check_rollback(index, epoch)?;
    let _no_flush = (!plant::is(Plant::RollbackBesideFlush)).then(|| lock(&index.flush));
    let mut fragment_lists = lock(&index.fragment_lists);
    fragment_lists.open_rest(files)?;
    let mut manifest = fragment_lists.manifest.clone();
    manifest.roll_back_to(epoch)?;
    manifest.entries.clear();
    recount(&mut manifest, &fragment_lists)?;
    if manifest.floor.is_some() && !fragment_lists.is_dropped {
        files.write_manifest(&manifest)?;
    }
    fragment_lists.manifest = manifest;
    let mut writer = index.writer();
    let runs = index.version.load().runs.clone();
    let frozen = writer.frozen.clone();
    let states = (!plant::is(Plant::RollbackForgets)).then_some(&writer.memtable);
    let (kept, memtable) = memory_up_to(&runs, frozen.as_deref().into_iter().chain(states), epoch)?;
    // The rows that a failed flush had set aside are in the new memtable again.
    (writer.frozen, writer.frozen_runs) = (None, 0);
    writer.memtable = memtable;
    writer.applied = writer.applied.min(epoch);
    writer.retained.roll_back_to(epoch);
    index.publish(&fragment_lists, &mut writer, |version| {
        version.runs = kept.into_iter().map(Arc::new).collect();
        if let Some(mut reach) = version.readable_epochs() {
            reach.roll_back_to(epoch);
            version.set_readable_epochs(reach);
        }
    })?;
    let version = index.version.load();
    writer.entries.clear();
    writer.uncounted.clear();
    for slice in version.slices.keys() {
        let entries = count(version.entries(*slice))?;
        writer.entries.insert(*slice, entries as i64);
    }
    files.retire(fragment_lists.take_unnamed());
    Ok(())
}

#[cfg(test)]
#[path = "rollback_tests.rs"]
mod tests;
