//! Going back to an epoch: of every index of a bucket, what is newer goes, in memory and in the lists.
//!
//! First the log says so, then each index does it, then the node's manifest says that it is done. A
//! crash between leaves the log to be replayed, which ends it: so this record of the log is kept, and no manifest
//! says that it is done, until every index has gone back.

use std::sync::Arc;

use proto::model::cut::EpochMark;
use proto::model::ids::Epoch;
use proto::plant::{self, Plant};
use proto::{Error, ErrorCode, Result};

use crate::edit::edits::recount;
use crate::files::data_files::Files;
use crate::index::local_index::Slot;
use crate::index::memtable::BackMemtable;
use crate::lock::lock;
use crate::log_record::Record;
use crate::maintain::merge_runs::merge_tables;
use crate::manifest::node_manifest::DeadEpochs;
use crate::node::context::Inner;
use crate::node::durability::counters;
use crate::read::count::count;
use crate::retention::Protected;

/// Takes a bucket back to an epoch.
pub async fn truncate_bucket(context: &Arc<Inner>, mark: &EpochMark, dead_to: Epoch) -> Result<()> {
    let slots = context.state.of_bucket(mark.bucket);
    for slot in &slots {
        check_truncate(slot, mark.epoch)?;
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
    context.state.needs_log_from(mark.bucket, begin);
    context.log.wait_durable(end).await?;
    order.go_back(mark);
    let (mut manifest, done) = (order.node_manifest(context.files.next()), order.dead.clone());
    let (inner, mark) = (Arc::clone(context), mark.clone());
    // Once begun it goes to its end, whatever becomes of who asked.
    let work = move || {
        let alone = inner.state.alone(mark.bucket);
        let _alone = lock(&alone);
        inner.state.go_back(&mark, dead);
        slots.iter().try_for_each(|slot| truncate_index(slot, mark.epoch, &inner.files))?;
        inner.state.needs_no_log(mark.bucket);
        lock(&done).push(dead);
        manifest.dead.push(dead);
        inner.files.write_node_manifest(&manifest)
    };
    context.env.blocking(work).await
}

/// May the index go back to an epoch?
fn check_truncate(index: &Slot, epoch: Epoch) -> Result<()> {
    let visible = index.visible.load();
    match visible.floor {
        Some(floor) if !visible.can_go_back(epoch) => Err(Error::new(
            ErrorCode::SnapshotTooOld,
            format!("index {} answers from epoch {floor} on, not {epoch}", index.info.id),
        )),
        _ => Ok(()),
    }
}

/// Goes back to an epoch.
pub fn truncate_index(index: &Slot, epoch: Epoch, files: &Files) -> Result<()> {
    check_truncate(index, epoch)?;
    let _no_flush = lock(&index.flush);
    let mut structure = lock(&index.structure);
    structure.open_rest(files)?;
    let mut manifest = structure.manifest.clone();
    manifest.truncate(epoch)?;
    manifest.entries.clear();
    recount(&mut manifest, &structure)?;
    if manifest.floor.is_some() && !structure.dropped {
        files.write_manifest(&manifest)?;
    }
    structure.manifest = manifest;
    let mut writer = index.writer();
    let runs = index.visible.load().runs.clone();
    let kept = merge_tables(&runs, &Protected::default(), epoch)?;
    let mut memtable = BackMemtable::default();
    if let Some(frozen) = writer.frozen.take() {
        memtable.append(&frozen, epoch);
    }
    // What a flush had set aside, and could not write, is among the others again.
    writer.frozen_runs = 0;
    if !plant::is(Plant::RollbackForgets) {
        memtable.append(&writer.memtable, epoch);
    }
    writer.memtable = memtable;
    writer.applied = writer.applied.min(epoch);
    writer.protected.go_back(epoch);
    index.publish(&structure, &mut writer, |visible| {
        visible.runs = kept.into_iter().map(Arc::new).collect();
        if let Some(mut reach) = visible.reach() {
            reach.go_back(epoch);
            visible.set_reach(reach);
        }
    })?;
    let visible = index.visible.load();
    writer.entries.clear();
    writer.uncounted.clear();
    for slice in visible.slices.keys() {
        let entries = count(visible.entries(*slice))?;
        writer.entries.insert(*slice, entries as i64);
    }
    files.retire(structure.take_unnamed());
    Ok(())
}

#[cfg(test)]
#[path = "rollback_tests.rs"]
mod tests;
