//! Recovery: the driver reopens the store after a restart or a crash, determines whether the
//! interrupted step took effect, compares the store with the durable state, and applies the lost
//! epochs again, as the stream would.

use proto::lock::lock;
use proto::model::cut::EpochMark;
use proto::model::ids::{Epoch, LocalIndexId};
use storage::verify::verify;
use storage::{SliceStore, layout};
use tokio::time::timeout;

use super::compare::{Depth, Finding, Verdict};
use super::driver::{Driver, PATIENCE, failed, wrong};
use super::history::Op;
use super::shape::Edit;
use super::{BUCKET, open_whole, wait_for_work};

/// The number of turns of the runtime in which the tasks of a dropped store can end.
const TURNS: u32 = 32;

impl Driver {
    /// Reopens the store and applies the lost epochs again.
    pub(super) async fn recover(&mut self, pending: Option<&Op>) -> Verdict {
        self.recoveries += 1;
        self.close().await;
        self.verify()?;
        self.open_again().await?;
        if let Some(op) = pending {
            self.settle(op).await?;
        }
        let recovered = self.recovered()?;
        self.rebuild_model(recovered.as_ref()).await?;
        self.check(Depth::Glance)?;
        let epoch = recovered.map_or(Epoch(0), |mark| mark.epoch);
        let lost: Vec<EpochMark> =
            self.marks.iter().filter(|mark| mark.epoch > epoch).cloned().collect();
        for mark in lost {
            let (store, batch) = (self.store(), self.batch(&mark));
            match timeout(PATIENCE, store.apply(batch.clone())).await {
                Ok(applied) => applied.map_err(failed)?,
                Err(_) => self.timed_out()?,
            }
            self.model.apply(batch).await.map_err(failed)?;
        }
        self.check(Depth::Whole)
    }

    /// Drops the store and waits until its background tasks have ended.
    pub(super) async fn close(&mut self) {
        self.held.clear();
        // The blocking work of these tasks runs to its end.
        self.beside.clear();
        self.store = None;
        wait_for_work(self.turns.as_ref(), TURNS).await;
        // Work that the fault has ended fails too.
        lock(&self.beside_failed).take();
    }

    /// Checks the files, including those that a crash has left. After a failed file operation they
    /// are checked only when the store is reopened.
    fn verify(&self) -> Verdict {
        if self.is_excused() {
            return Ok(());
        }
        let report = verify(&self.env, &self.dir);
        // The directory has no version file, because no node wrote it.
        let version = layout::version_path(&self.dir);
        match report.findings.into_iter().find(|finding| finding.path != version) {
            // The machine may have crashed just now.
            Some(finding) if !self.is_excused() => {
                wrong(format!("{}: {}", finding.path.display(), finding.message))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Reopens the store; the machine crashes again meanwhile if the plan says so.
    async fn open_again(&mut self) -> Verdict {
        loop {
            if self.fs.is_crashed() {
                self.fs.restart();
                self.plan.crash_at = None;
                self.verify()?;
            }
            // An earlier fault no longer excuses errors, since the store is reopened.
            if self.is_excused() {
                self.plan.fail_at = None;
            }
            let crashes_again = self.plan.crash_at.is_none() && self.plan.recovery_crashes > 0;
            if crashes_again {
                self.plan.recovery_crashes -= 1;
                self.fs.crash_at(self.fs.operations() + self.random.u64(1..24));
            }
            let opened = open_whole(&self.env, &self.dir, self.plan.memory_bytes).await;
            if crashes_again && !self.fs.is_crashed() {
                // A fault armed for the recovery must not strike later.
                self.fs.restart();
            }
            match opened {
                Ok(store) if !self.fs.is_crashed() => {
                    self.store = Some(store);
                    return Ok(());
                }
                Err(error) if !self.is_excused() => return Err(Finding::Failed(error)),
                Ok(_) | Err(_) => self.note("a crash or a fault in the recovery".to_owned()),
            }
            for _ in 0..TURNS {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Determines whether an interrupted step took effect, and applies it to the model if it did.
    async fn settle(&mut self, op: &Op) -> Verdict {
        let applied = self.store().applied().into_iter().find(|mark| mark.bucket == BUCKET);
        match op {
            Op::FinishBuild(id) if self.is_built(*id) => self.model_finish(*id).await,
            Op::DropIndex(id) if !self.is_there(*id) => self.model_drop(*id).await,
            Op::Edit(id, edit) if self.is_edited(*id, edit) => self.model_edit(*id, edit).await,
            Op::Truncate(epoch) if applied.as_ref().is_some_and(|mark| mark.epoch == *epoch) => {
                let mark = self.mark(*epoch).expect("a kept epoch").clone();
                self.model_truncate(&mark).await
            }
            _ => Ok(()),
        }
    }

    fn is_there(&self, id: LocalIndexId) -> bool {
        self.store().indexes().iter().any(|index| index.id() == id)
    }

    fn is_built(&self, id: LocalIndexId) -> bool {
        let indexes = self.store().indexes();
        let index = indexes.iter().find(|index| index.id() == id);
        index.is_some_and(|index| index.floor.is_some())
    }

    fn is_edited(&self, id: LocalIndexId, edit: &Edit) -> bool {
        let there = |slice| self.store().progress().iter().any(|p| p.slice == id.slice(slice));
        match edit {
            Edit::Split { low, .. } => there(*low),
            Edit::Clone { to, .. } => there(*to),
            Edit::Drop { slice } => !there(*slice),
        }
    }

    /// Returns the newest epoch of the reopened store. This epoch must be on the branch, and no
    /// durable epoch may be lost.
    fn recovered(&mut self) -> Result<Option<EpochMark>, Finding> {
        let found = self.store().applied().into_iter().find(|mark| mark.bucket == BUCKET);
        let epoch = found.as_ref().map_or(Epoch(0), |mark| mark.epoch);
        self.note(format!("recovered epoch {epoch}, durable was {}", self.durable));
        if epoch < self.durable {
            wrong(format!("epoch {} was durable, recovered is {epoch}", self.durable))?;
        }
        match &found {
            Some(mark) if self.mark(epoch) != Some(mark) => {
                wrong(format!("recovered {mark:?}, which is none of {:?}", self.marks))?;
            }
            _ => {}
        }
        Ok(found)
    }

    /// Changes the model to the recovered state. Unfinished builds are restarted later.
    async fn rebuild_model(&mut self, recovered: Option<&EpochMark>) -> Verdict {
        let unfinished: Vec<LocalIndexId> =
            self.indexes.values().filter(|i| i.build.is_some()).map(|i| i.shape.id).collect();
        for id in unfinished {
            self.gone.extend(self.indexes.remove(&id));
        }
        let before = self.model.applied().pop().map_or(Epoch(0), |mark| mark.epoch);
        let epoch = recovered.map_or(Epoch(0), |mark| mark.epoch);
        let kept = self.mark(before.min(epoch)).cloned();
        self.model.lose(BUCKET, kept.as_ref());
        let newer: Vec<EpochMark> = self
            .marks
            .iter()
            .filter(|mark| before < mark.epoch && mark.epoch <= epoch)
            .cloned()
            .collect();
        for mark in newer {
            let batch = self.batch(&mark);
            self.model.apply(batch).await.map_err(failed)?;
        }
        Ok(())
    }
}
