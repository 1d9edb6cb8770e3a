//! Decides whether a projector may begin to serve an embedded bucket, for the first time or after
//! a start.
//!
//! A restarted projector may have less than before: its directory may be an older copy, or a lost
//! disk. No other process has the documents, and a rollback to the remaining documents would
//! remove good entries from all indexes. So the projector asks before it serves the bucket, with
//! its history:
//!
//! - If the history has everything that the last epoch covers, it is adopted, with the branches
//!   that the projector begins with this answer. The projector names these branches in the
//!   question and stores them after the answer. The answer contains the bucket's copies
//!   ([`proto::model::copies`]). Only the leader of the bucket is answered.
//! - Any other history changes nothing. The answer lists the missing mutations, and names the
//!   last epoch. The projector reports the loss to no other process.
//! - If an operator has accepted the loss in such an answer, a rollback to the surviving history
//!   begins ([`proto::model::rollback`]). The acceptance names the epoch of that answer. A closed
//!   source reports no positions, and the rollback ends with a newer epoch: so an acceptance
//!   counts for one loss only, even if it is delivered again later.
//!
//! The question is a command, so its answer comes from the newest state, whichever member leads.
//! A projector that restarts during the rollback asks again. It then needs the history that it
//! had when the loss was accepted, whose end is the failover timestamp of the rollback from the
//! beginning. During `--skip-epochs` it needs nothing: everything is built again from the
//! documents that it has.

use std::sync::Arc;

use proto::model::cut::Cut;
use proto::model::history::{FailoverLogs, MissingEnd, SourceHistory};
use proto::model::ids::{BucketId, NodeId};
use proto::model::rollback::RollbackStage;
use proto::rpc::command::{OpenSource, Outcome};
use proto::{Error, ErrorCode, Result};

use crate::state::bucket_view::BucketView;
use crate::state::consequence::Consequence;
use crate::state::context::StateContext;
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, Effect, nothing};

/// The number of vbuckets that an error lists; further ones are only counted.
const LISTED_MAX: usize = 8;

impl Apply for OpenSource {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let bucket = self.bucket;
        let Some(known) = state.bucket(bucket) else {
            return Err(Error::new(ErrorCode::Unknown, format!("there is no bucket {bucket}")));
        };
        if !known.info.source.is_only_copy() {
            return nothing();
        }
        known.check(&self.history)?;
        known.check_owner(self.projector, &self.history)?;
        let history = known.completed(&self.history);
        let needed = match state.skips_to(bucket).0 {
            0 => known.needed_cut().clone(),
            _ => Cut::zero(known.info.vbuckets),
        };
        let missing = history.missing_ends(&needed, known.logs);
        let epoch = known.epochs.last().epoch;
        if missing.is_empty() {
            let adopted = known.adopts(&history);
            return Ok(opened_answer(state, bucket, adopted));
        }
        if self.accepted != Some(epoch) {
            return Ok((
                Outcome::Lacks { epoch, error: known.lacking_error(&missing) },
                Vec::new(),
            ));
        }
        let (logs, failover) = (Some(history.logs), Some(Arc::new(history.durable)));
        let begun = Consequence::RollbackBegun { bucket, logs, failover };
        Ok(opened_answer(state, bucket, Some(begun)))
    }
}

/// Returns the answer that lets a projector serve: the copies that it leads, with a new revision.
/// Changes that an earlier process of the projector has in flight name an older revision, so they
/// are rejected.
fn opened_answer(
    state: &mut StateContext,
    bucket: BucketId,
    consequence: Option<Consequence>,
) -> (Outcome, Vec<Effect>) {
    let mut effects: Vec<Effect> =
        consequence.iter().flat_map(|consequence| state.carry_out(consequence)).collect();
    effects.push(Effect::CatalogChanged);
    let Some(copies) = state.copies.get_mut(bucket) else { return (Outcome::Done, effects) };
    copies.begin_to_serve();
    (Outcome::Opened(copies.clone()), effects)
}

impl BucketView<'_> {
    /// Returns the consequence that adopts the branches of a complete history; `None` if they are
    /// already known.
    fn adopts(&self, history: &SourceHistory) -> Option<Consequence> {
        if *self.logs == history.logs {
            return None;
        }
        let (bucket, logs) = (self.info.id, Arc::clone(&history.logs));
        Some(match self.rollback_stage() {
            None | Some(RollbackStage::Rollback) => Consequence::HistoryAdopted { bucket, logs },
            // The chosen failover timestamp may not be in this history.
            Some(_) => {
                let rollback = self.info.rollback.as_ref();
                let failover = rollback.and_then(|rollback| rollback.failover.clone());
                Consequence::RollbackBegun { bucket, logs: Some(logs), failover }
            }
        })
    }

    /// Returns the cut that a source must have: that of the last epoch or, during a rollback, the
    /// end of the history when the loss was accepted.
    fn needed_cut(&self) -> &Cut {
        let rollback = self.info.rollback.as_ref();
        let chosen = rollback.filter(|rollback| rollback.stage < RollbackStage::Rollback);
        let failover = chosen.and_then(|rollback| rollback.failover.as_deref());
        failover.unwrap_or(&self.epochs.last().cut)
    }

    /// Checks that a projector reports exactly the vbuckets that it owns.
    fn check_owner(&self, projector: NodeId, history: &SourceHistory) -> Result<()> {
        let owner = |vbucket| self.info.assignment.owner(vbucket);
        let owned = self.info.assignment.owned_by(projector);
        if let Some(vbucket) = owned.iter().find(|vbucket| !history.kept.contains(*vbucket)) {
            let what =
                format!("projector {projector} does not know yet that it owns vbucket {vbucket}");
            return Err(Error::unavailable(what));
        }
        match history.kept.iter().find(|vbucket| owner(*vbucket) != Some(projector)) {
            None => Ok(()),
            Some(vbucket) => {
                let name = &self.info.name;
                let what = format!(
                    "bucket {name:?}: projector {projector} does not own vbucket {vbucket}"
                );
                Err(Error::new(ErrorCode::NotOwner, what))
            }
        }
    }

    /// Completes the history of the vbuckets that a projector owns with the known history of the
    /// other vbuckets.
    fn completed(&self, history: &SourceHistory) -> SourceHistory {
        let branches =
            self.logs.iter().zip(history.logs.iter()).map(|((vbucket, known), (_, told))| {
                if history.kept.contains(vbucket) { told.clone() } else { known.clone() }
            });
        let logs = match self.logs.iter().next() {
            Some(_) => Arc::new(FailoverLogs::new(branches.collect())),
            // Nothing was reported before.
            None => Arc::clone(&history.logs),
        };
        let durable = self.needed_cut().with_vbuckets_of(&history.kept, &history.durable);
        SourceHistory { durable, logs, kept: history.kept.clone() }
    }

    /// Returns the error for a projector that lacks mutations of the last epoch.
    fn lacking_error(&self, missing: &[MissingEnd]) -> Error {
        let (name, epoch) = (&self.info.name, self.epochs.last().epoch);
        let mutations: u64 = missing.iter().map(|end| end.had.0 - end.has.0).sum();
        let end = |MissingEnd { vbucket, has, had }: &MissingEnd| {
            format!("vbucket {vbucket} ends at seqno {has}, not {had}")
        };
        let listed: Vec<_> = missing.iter().take(LISTED_MAX).map(end).collect();
        let others = if missing.len() > LISTED_MAX { ", and others" } else { "" };
        let what = format!(
            "bucket {name:?}: the projector lacks {mutations} mutations that epoch {epoch} covers: {}{others}",
            listed.join(", ")
        );
        Error::new(ErrorCode::Corrupt, what).with_hint(
            "put the newest copy of the projector's data directory back; or stop the projector, give up what is lost with `sextant source recover --accept-loss`, and start it",
        )
    }
}

#[cfg(test)]
#[path = "open_source_tests.rs"]
mod tests;
