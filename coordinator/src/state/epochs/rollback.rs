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

use proto::Error;
use proto::model::cut::Cut;
use proto::model::history::SourceHistory;
use proto::model::ids::BucketId;
use proto::model::rollback::{DeadEpochs, Rollback, RollbackStage, RollbackStep};
use proto::rpc::command::{self, Outcome};

use crate::state::bucket_view::BucketView;
use crate::state::consequence::Consequence;
use crate::state::context::StateContext;
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, Effect, catalog_changed, nothing};

impl Apply for command::Rollback {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let bucket = self.bucket;
        let Some(known) = state.bucket(bucket) else { return nothing() };
        let (dead, rollback) = match (&self.step, known.rollback_stage()) {
            (RollbackStep::Compare(history), None | Some(RollbackStage::Rollback)) => {
                known.check(history)?;
                let has_all = history.has(&known.epochs.last().cut);
                return apply_comparison(state, (bucket, history), has_all);
            }
            (RollbackStep::Compare(history), Some(_)) if *known.logs != history.logs => {
                known.check(history)?;
                return apply_comparison(state, (bucket, history), false);
            }
            (RollbackStep::Prepare(history), Some(RollbackStage::Started)) => {
                known.check(history)?;
                let is_skipped = state.skips_to(bucket).0 > 0;
                if known.info.source.is_only_copy() && !is_skipped && *known.logs != history.logs {
                    // An answer of an earlier process of the projector.
                    return nothing();
                }
                let rollback = prepared_rollback(known, history, is_skipped);
                state.epochs.adopt(bucket, &history.logs);
                (None, rollback)
            }
            (RollbackStep::Restart, Some(RollbackStage::Prepare)) => {
                (None, restarted_rollback(known))
            }
            (RollbackStep::Rollback, Some(RollbackStage::Restart)) => {
                return roll_back(state, bucket);
            }
            (RollbackStep::End { resumed }, Some(RollbackStage::Rollback)) => {
                let resumes = known.info.rollback.as_ref().and_then(|rollback| rollback.resumes);
                if resumes != Some(*resumed) {
                    return nothing();
                }
                (None, None)
            }
            // The state has changed since the leader looked.
            _ => return nothing(),
        };
        state.carry_out(&Consequence::RollbackChanged { bucket, rollback, dead });
        catalog_changed()
    }
}

/// Applies the comparison of the state with a source's history. If the source has lost nothing,
/// its new branches are adopted. Otherwise a rollback begins.
fn apply_comparison(
    state: &mut StateContext,
    (bucket, history): (BucketId, &SourceHistory),
    has_all: bool,
) -> Change {
    let Some(known) = state.bucket(bucket) else { return nothing() };
    let is_new = *known.logs != history.logs;
    match has_all {
        true if is_new => {
            state.epochs.adopt(bucket, &history.logs);
            Ok((Outcome::Done, vec![Effect::HistoryChanged(bucket)]))
        }
        true => nothing(),
        false if known.info.source.is_only_copy() => nothing(),
        false => {
            let logs = Some(Arc::clone(&history.logs));
            state.carry_out(&Consequence::RollbackBegun { bucket, logs, failover: None });
            catalog_changed()
        }
    }
}

/// Returns the rollback in its stage `prepare`, which follows `started`; `None` if nothing was
/// lost after all, so that the rollback ends.
fn prepared_rollback(
    known: BucketView<'_>,
    history: &SourceHistory,
    is_skipped: bool,
) -> Option<Rollback> {
    let is_lost = is_skipped || !history.has(&known.epochs.last().cut);
    let point = known.epochs.rollback_point_in(history).filter(|_| !is_skipped);
    is_lost.then(|| Rollback {
        stage: RollbackStage::Prepare,
        failover: Some(Arc::new(history.durable.clone())),
        point: point.map(|mark| mark.epoch).unwrap_or_default(),
        restart: None,
        resumes: None,
    })
}

/// Returns the rollback in its stage `restart`, which follows `prepare`.
fn restarted_rollback(known: BucketView<'_>) -> Option<Rollback> {
    let rollback = known.info.rollback.as_deref()?;
    let zero = || Arc::new(Cut::zero(known.info.vbuckets));
    let restart = known.epochs.mark(rollback.point).map_or_else(zero, |mark| Arc::clone(&mark.cut));
    Some(Rollback { stage: RollbackStage::Restart, restart: Some(restart), ..rollback.clone() })
}

/// Takes a rollback from the stage `restart` to `rollback`: the epochs above the rollback point
/// become dead, and the next epoch contains the surviving mutations.
fn roll_back(state: &mut StateContext, bucket: BucketId) -> Change {
    let without = || Error::internal("a rollback without a failover timestamp");
    let known = state.bucket(bucket).ok_or_else(without)?;
    let rollback = known.info.rollback.as_deref().ok_or_else(without)?.clone();
    let survived = rollback.failover.clone().ok_or_else(without)?;
    let to = known.epochs.last().epoch.max(state.skips_to(bucket));
    let dead = DeadEpochs { point: known.epochs.mark(rollback.point).cloned(), to };
    let mark = state.epochs.roll_back(bucket, (&dead, survived), state.clock.now());
    let mark = mark.ok_or_else(without)?;
    let (stage, resumes) = (RollbackStage::Rollback, Some(mark.epoch));
    let rollback = Some(Rollback { stage, resumes, ..rollback });
    state.carry_out(&Consequence::RollbackChanged { bucket, rollback, dead: Some(dead) });
    Ok((Outcome::Done, vec![Effect::CatalogChanged, Effect::EpochPublished(mark)]))
}

#[cfg(test)]
#[path = "rollback_tests.rs"]
mod tests;
