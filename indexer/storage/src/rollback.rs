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

use super::edits::{count, recount};
use super::epoch::Record;
use super::files::Files;
use super::manifest::DeadEpochs;
use super::memtable::BackMemtable;
use super::slot::{Slot, lock, merge_tables};
use super::state::State;
use super::store::Inner;
use super::versions::Protected;

impl Inner {
    /// Takes a bucket back to an epoch.
    pub async fn truncate(self: &Arc<Self>, mark: &EpochMark, dead_to: Epoch) -> Result<()> {
        let slots = self.state.of_bucket(mark.bucket);
        for slot in &slots {
            slot.check_truncate(mark.epoch)?;
        }
        let mut order = self.order.lock().await;
        let dead = DeadEpochs {
            bucket: mark.bucket,
            above: mark.epoch,
            to: self.counters(mark.bucket).staged.max(dead_to),
        };
        let record = Record::Truncate(mark.clone(), dead.to).encode()?;
        let begin = self.log.end();
        let end = self.log.append(&record).await?;
        self.state.needs_log_from(mark.bucket, begin);
        self.log.wait_durable(end).await?;
        order.go_back(mark);
        let (mut manifest, done) = (order.node_manifest(self.files.next()), order.dead.clone());
        let (inner, mark) = (Arc::clone(self), mark.clone());
        // Once begun it goes to its end, whatever becomes of who asked.
        let work = move || {
            let alone = inner.state.alone(mark.bucket);
            let _alone = lock(&alone);
            inner.state.go_back(&mark, dead);
            slots.iter().try_for_each(|slot| slot.truncate(mark.epoch, &inner.files))?;
            inner.state.needs_no_log(mark.bucket);
            lock(&done).push(dead);
            manifest.dead.push(dead);
            inner.files.write_node_manifest(&manifest)
        };
        self.env.blocking(work).await
    }
}

impl State {
    /// From here on no scan asks for what goes: before the first index has gone back.
    fn go_back(&self, mark: &EpochMark, dead: DeadEpochs) {
        if let Some(progress) = lock(&self.buckets).get_mut(&mark.bucket) {
            progress.staged = mark.epoch;
            progress.applied = Some(mark.clone());
            progress.logged = Some(mark.clone());
            progress.durable = progress.durable.min(mark.epoch);
            progress.ends.retain(|(epoch, _)| *epoch <= mark.epoch);
            progress.dead.push(dead);
        }
    }
}

impl Slot {
    /// May the index go back to an epoch?
    fn check_truncate(&self, epoch: Epoch) -> Result<()> {
        let visible = self.visible.load();
        match visible.floor {
            Some(floor) if !visible.can_go_back(epoch) => Err(Error::new(
                ErrorCode::SnapshotTooOld,
                format!("index {} answers from epoch {floor} on, not {epoch}", self.info.id),
            )),
            _ => Ok(()),
        }
    }

    /// Goes back to an epoch.
    pub fn truncate(&self, epoch: Epoch, files: &Files) -> Result<()> {
        self.check_truncate(epoch)?;
        let _no_flush = lock(&self.flush);
        let mut structure = lock(&self.structure);
        structure.open_rest(files)?;
        let mut manifest = structure.manifest.clone();
        manifest.truncate(epoch)?;
        manifest.entries.clear();
        recount(&mut manifest, &structure)?;
        if manifest.floor.is_some() && !structure.dropped {
            files.write_manifest(&manifest)?;
        }
        structure.manifest = manifest;
        let mut writer = self.writer();
        let runs = self.visible.load().runs.clone();
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
        self.publish(&structure, &mut writer, |visible| {
            visible.runs = kept.into_iter().map(Arc::new).collect();
            if let Some(mut reach) = visible.reach() {
                reach.go_back(epoch);
                visible.set_reach(reach);
            }
        })?;
        let visible = self.visible.load();
        writer.entries.clear();
        writer.uncounted.clear();
        for slice in visible.slices.keys() {
            let entries = count(visible.entries(*slice))?;
            writer.entries.insert(*slice, entries as i64);
        }
        files.retire(structure.take_unnamed());
        Ok(())
    }
}

#[cfg(test)]
#[path = "rollback_tests.rs"]
mod tests;
