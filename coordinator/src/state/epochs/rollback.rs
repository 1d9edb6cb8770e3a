//! Rollbacks: the response to a source that has lost part of its history (the stages are in
//! [`proto::model::rollback`]).
//!
//! The documents that an embedded source has lost exist nowhere else. So a step begins no rollback of an embedded bucket: its projector
//! asks before it serves (`open_source`), and only an answer with an accepted loss begins one. A pushed bucket's producer has its data.
//!
//! A bucket has the failover logs that its source reported last. A step compares them with the current history of the
//! source. If the last epoch's cut is still a position in that history, the new branches are adopted and nothing else
//! happens. Otherwise a rollback begins. A second loss before the last stage restarts the rollback. A second loss in
//! the last stage is a rollback of its own, which treats the epochs of the first one like all others.
//!
//! The beginning of a rollback undoes the bucket's moves that are not `done`, and no move begins until the rollback
//! has ended. So a copied slice never has dead epochs.
//!
//! `--skip-epochs` begins a rollback of each bucket too (`skip`). This rollback returns to zero, though the source has lost nothing, and
//! its dead epochs reach far above the last one.

use std::sync::Arc;

use proto::model::cut::{Cut, EpochMark};
use proto::model::history::SourceHistory;
use proto::model::ids::{BucketId, Epoch, LocalIndexId};
use proto::model::moves::{MoveStage, SliceMove};
use proto::model::rollback::{DEAD_MAX, DeadEpochs, Rollback, RollbackStage, RollbackStep};
use proto::rpc::command::Outcome;
use proto::{Error, Result};

use crate::state::buckets::record::BucketState;
use crate::state::context::StateContext;
use crate::state::effect::{Change, Effect, catalog_changed, nothing};

impl StateContext {
    pub(in crate::state) fn rollback(&mut self, bucket: BucketId, step: &RollbackStep) -> Change {
        let Some(known) = self.buckets.get_mut(&bucket) else { return nothing() };
        let stage = known.info.rollback.as_ref().map(|rollback| rollback.stage);
        match (step, stage) {
            (RollbackStep::Compare(history), None | Some(RollbackStage::Rollback)) => {
                known.check(history)?;
                if known.take_over(history) {
                    return Ok((Outcome::Done, vec![Effect::HistoryChanged(bucket)]));
                }
                if known.logs == history.logs && history.has(&known.epochs.last().cut) {
                    return nothing();
                }
                self.compared(bucket, history)
            }
            (RollbackStep::Compare(history), Some(_)) if known.logs != history.logs => {
                known.check(history)?;
                self.compared(bucket, history)
            }
            (RollbackStep::Prepare(history), Some(RollbackStage::Started)) => {
                known.check(history)?;
                let is_skipped = self.skips.epochs.contains_key(&bucket);
                if known.info.source.is_only_copy() && !is_skipped && known.logs != history.logs {
                    // An answer of an earlier process of the projector.
                    return nothing();
                }
                known.prepare(history, self.skips.epochs.get(&bucket).copied());
                catalog_changed()
            }
            (RollbackStep::Restart, Some(RollbackStage::Prepare)) => {
                known.restart();
                catalog_changed()
            }
            (RollbackStep::Rollback, Some(RollbackStage::Restart)) => {
                let skips_to = self.skips.epochs.get(&bucket).copied();
                let mark = known.roll_back(skips_to, self.steady_ms)?;
                self.skips.epochs.remove(&bucket);
                self.note_published(bucket);
                Ok((Outcome::Done, vec![Effect::CatalogChanged, Effect::EpochPublished(mark)]))
            }
            (RollbackStep::End { resumed }, Some(RollbackStage::Rollback)) => {
                let info = Arc::make_mut(&mut known.info);
                if info.rollback.as_ref().and_then(|rollback| rollback.resumes) != Some(*resumed) {
                    return nothing();
                }
                info.rollback = None;
                catalog_changed()
            }
            // The state has changed since the leader looked.
            _ => nothing(),
        }
    }

    /// A source has less than it had, as the leader has compared.
    fn compared(&mut self, bucket: BucketId, history: &SourceHistory) -> Change {
        let known = self.buckets.get(&bucket);
        match known.is_some_and(|known| known.info.source.is_only_copy()) {
            true => nothing(),
            false => self.start_rollback(bucket, history),
        }
    }

    /// Begins a rollback to what a source still has.
    pub(in crate::state) fn start_rollback(
        &mut self,
        bucket: BucketId,
        history: &SourceHistory,
    ) -> Change {
        let Some(known) = self.buckets.get_mut(&bucket) else { return nothing() };
        known.logs = Arc::clone(&history.logs);
        self.begin_rollback(bucket);
        catalog_changed()
    }

    /// The epoch up to which `--skip-epochs` makes all epochs dead, while its rollback of the bucket has not reached that stage.
    pub fn skips_to(&self, bucket: BucketId) -> Epoch {
        self.skips.epochs.get(&bucket).copied().unwrap_or_default()
    }

    /// Begins a rollback of a bucket and undoes its moves.
    pub(in crate::state) fn begin_rollback(&mut self, bucket: BucketId) {
        let Some(known) = self.buckets.get_mut(&bucket) else { return };
        Arc::make_mut(&mut known.info).rollback = Some(Arc::new(Rollback {
            stage: RollbackStage::Started,
            failover: None,
            point: Epoch(0),
            restart: None,
            resumes: None,
        }));
        let of_bucket = self.indexes().filter(|record| record.info.bucket == bucket);
        let indexes: Vec<LocalIndexId> = of_bucket.map(|record| record.info.local_id()).collect();
        let unfinished = |m: &SliceMove| m.stage < MoveStage::Done;
        for index in indexes {
            self.end_moves(index, Some("the bucket is being rolled back"), unfinished);
        }
    }
}

impl BucketState {
    /// Adopts new branches of a history that has lost nothing.
    pub(in crate::state) fn take_over(&mut self, history: &SourceHistory) -> bool {
        let changes = self.logs != history.logs && history.has(&self.epochs.last().cut);
        if changes {
            self.logs = Arc::clone(&history.logs);
        }
        changes
    }

    /// `started` → `prepare`; or the end of the rollback, if nothing was lost after all.
    fn prepare(&mut self, history: &SourceHistory, skips_to: Option<Epoch>) {
        self.logs = Arc::clone(&history.logs);
        let lost = skips_to.is_some() || !history.has(&self.epochs.last().cut);
        let point = self.epochs.newest_in(history).filter(|_| skips_to.is_none());
        let point = point.map(|mark| mark.epoch).unwrap_or_default();
        let rollback = Rollback {
            stage: RollbackStage::Prepare,
            failover: Some(Arc::new(history.durable.clone())),
            point,
            restart: None,
            resumes: None,
        };
        Arc::make_mut(&mut self.info).rollback = lost.then(|| Arc::new(rollback));
    }

    /// `prepare` → `restart`.
    fn restart(&mut self) {
        let zero = || Arc::new(Cut::zero(self.info.vbuckets));
        let point = self.info.rollback.as_ref().map(|rollback| rollback.point).unwrap_or_default();
        let restart = self.epochs.mark(point).map_or_else(zero, |mark| Arc::clone(&mark.cut));
        self.change(|rollback| {
            rollback.stage = RollbackStage::Restart;
            rollback.restart = Some(restart);
        });
    }

    /// `restart` → `rollback`: the epochs above the point are dead, and the next epoch shows what survived.
    fn roll_back(&mut self, skips_to: Option<Epoch>, steady_ms: u64) -> Result<EpochMark> {
        let rollback = self.info.rollback.as_ref();
        let survived =
            rollback.and_then(|rollback| Some((rollback.point, rollback.failover.clone()?)));
        let (point, failover) =
            survived.ok_or_else(|| Error::internal("a rollback without a failover timestamp"))?;
        let to = self.epochs.last().epoch.max(skips_to.unwrap_or_default());
        let dead = DeadEpochs { point: self.epochs.mark(point).cloned(), to };
        let mark = self.epochs.roll_back(&dead, failover, steady_ms);
        let info = Arc::make_mut(&mut self.info);
        let ranges = Arc::make_mut(&mut info.dead);
        // A rollback to an older point includes the ranges of earlier rollbacks above that point.
        ranges.retain(|earlier| earlier.to <= dead.above());
        ranges.push(dead);
        let surplus = ranges.len().saturating_sub(DEAD_MAX);
        ranges.drain(..surplus);
        self.change(|rollback| {
            rollback.stage = RollbackStage::Rollback;
            rollback.resumes = Some(mark.epoch);
        });
        Ok(mark)
    }

    fn change(&mut self, change: impl FnOnce(&mut Rollback)) {
        if let Some(rollback) = Arc::make_mut(&mut self.info).rollback.as_mut() {
            change(Arc::make_mut(rollback));
        }
    }
}

#[cfg(test)]
#[path = "rollback_tests.rs"]
mod tests;
