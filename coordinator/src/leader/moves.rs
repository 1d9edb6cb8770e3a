//! The leader takes moves from stage to stage.
//!
//! What it needs to know of a move is in the StateContext (its stage) and in the heartbeats of its ends
//! (how far they are); what it remembers by itself is only when it saw something first and which checks
//! are under way. So a new leader goes on where the old one was, a heartbeat later.
//!
//! - `start` → `pending`: both ends live, and neither they nor the cluster have too much to do. In the
//!   order of their numbers; one that must wait lets those behind it pass.
//! - `pending` → `catchup`: the target says that it has a copy.
//! - `catchup` → `done`: the target says that it shows the slice, and it and a copy that the topology names
//!   gave one checksum at one epoch. The service asks for the two and says what came out
//!   ([`Moves::checked`]).
//! - `done` → forgotten: no scan can ask for an epoch from before, or none does; and a copy that the
//!   topology names can be read, so that the old one is not missed.
//!
//! A move is undone when its target is silent for long, makes no headway, or gives another checksum. A
//! source that dies is replaced by another copy; if there is none, the move waits for it.

use std::collections::{BTreeMap, BTreeSet};

use proto::Result;
use proto::model::ids::{BucketId, Epoch, IndexId, MoveId, NodeId, SliceId};
use proto::model::index::IndexInfo;
use proto::model::moves::{MovePhase, MoveProgress, MoveStage, SliceMove};
use proto::model::topology::TopologyProvider;
use proto::rpc::api::SliceProgress;
use proto::rpc::command::Command;

use super::admission::{admitted, source_of};
use super::check::{Check, Checksum};
use super::heartbeats::Heartbeats;
use super::horizon::{LEASE_AGE_MS_MAX, LEASE_MS};
use super::move_settings::MoveSettings;
use super::plan::Plan;
use crate::state::StateContext;

/// While moves are under way the leader looks at them at least this often.
const LOOK_EVERY_MS: u64 = 500;
/// A check that failed is tried again after this.
const CHECK_AGAIN_MS: u64 = 1_000;
/// A source can be read for so long in any case: a scan that just began has told of its lease, and
/// the routers know the new topology.
const DONE_MS_MIN: u64 = 5_000;
/// After a move was undone nothing is repaired for so long: what failed may fail again.
const REPAIR_AFTER_UNDONE_MS: u64 = 30_000;

/// What the leader remembers of all moves.
#[derive(Debug, Default)]
pub(super) struct Moves {
    pub settings: MoveSettings,
    /// No repairs are planned before.
    pub repair_not_before_ms: u64,
    seen: BTreeMap<MoveId, Seen>,
}

/// What the leader remembers of a move.
#[derive(Debug)]
struct Seen {
    stage: MoveStage,
    /// Since when it has been in this stage, as far as this leader knows.
    since_ms: u64,
    check: Checked,
    /// How far the target was when it began to have trouble, and when that was.
    stuck: Option<(MovePhase, u64, u64)>,
}

/// How far the comparison of the two ends is.
#[derive(Debug, PartialEq)]
enum Checked {
    Not,
    UnderWay(Check),
    Again { at_ms: u64 },
    Same,
    Different(String),
}

/// What to do about a move now.
enum Step {
    Wait,
    To(MoveStage),
    Check(Check),
    Forget,
    Undo(String),
}

impl Moves {
    pub(super) fn new(settings: MoveSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// What came out of a check.
    pub(super) fn checked(
        &mut self,
        check: &Check,
        result: Result<(Checksum, Checksum)>,
        now_ms: u64,
    ) {
        let Some(seen) = self.seen.get_mut(&check.id) else { return };
        if seen.check != Checked::UnderWay(check.clone()) {
            return;
        }
        seen.check = match result {
            Ok((source, target)) if source == target => Checked::Same,
            Ok((source, target)) => Checked::Different(difference(check, source, target)),
            Err(_) => Checked::Again { at_ms: now_ms + CHECK_AGAIN_MS },
        };
    }

    pub(super) fn plan(
        &mut self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        now_ms: u64,
        plan: &mut Plan,
    ) {
        let moves: Vec<(&IndexInfo, &SliceMove)> =
            state.indexes().flat_map(|record| pairs(&record.info)).collect();
        let ids: BTreeSet<MoveId> = moves.iter().map(|(_, m)| m.id).collect();
        let mut all_seen = std::mem::take(&mut self.seen);
        all_seen.retain(|id, _| ids.contains(id));
        let admitted = admitted(&moves, heartbeats, &self.settings, now_ms);
        for (info, m) in &moves {
            let seen = all_seen.entry(m.id).or_insert_with(|| Seen::new(m.stage, now_ms));
            if seen.stage != m.stage {
                *seen = Seen::new(m.stage, now_ms);
            }
            let step = match m.stage {
                MoveStage::Done => self.step_done(state, heartbeats, (info, m), seen, now_ms),
                _ => self.step_unfinished(state, heartbeats, (info, m), seen, &admitted, now_ms),
            };
            self.take_step(info.id, m.id, step, seen, now_ms, plan);
        }
        self.seen = all_seen;
        if !moves.is_empty() {
            plan.look_at(now_ms + LOOK_EVERY_MS);
        }
    }

    fn take_step(
        &mut self,
        index: IndexId,
        id: MoveId,
        step: Step,
        seen: &mut Seen,
        now_ms: u64,
        plan: &mut Plan,
    ) {
        match step {
            Step::Wait => {}
            Step::To(stage) => plan.commands.push(Command::AdvanceMove { index, id, stage }),
            Step::Check(check) => {
                seen.check = Checked::UnderWay(check.clone());
                plan.checks.push(check);
            }
            Step::Forget => plan.commands.push(Command::EndMove { index, id, undone: None }),
            Step::Undo(why) => {
                self.repair_not_before_ms = now_ms + REPAIR_AFTER_UNDONE_MS;
                plan.commands.push(Command::EndMove { index, id, undone: Some(why) });
            }
        }
    }

    fn step_unfinished(
        &self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        (info, m): (&IndexInfo, &SliceMove),
        seen: &mut Seen,
        admitted: &BTreeSet<MoveId>,
        now_ms: u64,
    ) -> Step {
        let Some(target) = m.to else { return Step::Wait };
        let silent_ms = heartbeats.silent_ms(target, now_ms);
        if silent_ms >= self.settings.target_silent_ms {
            let s = silent_ms / 1_000;
            return Step::Undo(format!("node {target}, the target, has been silent for {s} s"));
        }
        let progress = heartbeats.progress_of(target, info.id, m.id);
        if let Some(trouble) = progress.and_then(|p| self.stuck(p, seen, now_ms))
            && source_of(info, m, heartbeats, now_ms).is_some()
        {
            return Step::Undo(trouble);
        }
        let phase = progress.map(|progress| progress.phase);
        match m.stage {
            MoveStage::Start if admitted.contains(&m.id) => Step::To(MoveStage::Pending),
            MoveStage::Pending if phase >= Some(MovePhase::Copied) => Step::To(MoveStage::Catchup),
            MoveStage::Catchup => match &seen.check {
                Checked::Same => Step::To(MoveStage::Done),
                Checked::Different(what) => Step::Undo(what.clone()),
                Checked::UnderWay(_) => Step::Wait,
                Checked::Again { at_ms } if now_ms < *at_ms => Step::Wait,
                _ if phase < Some(MovePhase::Installed) => Step::Wait,
                _ => check(state, heartbeats, (info, m), target, now_ms)
                    .map_or(Step::Wait, Step::Check),
            },
            _ => Step::Wait,
        }
    }

    fn step_done(
        &self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        (info, m): (&IndexInfo, &SliceMove),
        seen: &Seen,
        now_ms: u64,
    ) -> Step {
        let Some(bucket) = state.bucket(info.bucket) else { return Step::Wait };
        let done_ms = now_ms.saturating_sub(seen.since_ms);
        // The horizon moves with new epochs only; in a bucket that rests the leases themselves say whether
        // a scan may have begun before. Where one is always renewed, no scan is older than this.
        let over = bucket.epochs.last().horizon > m.epoch
            || done_ms >= LEASE_AGE_MS_MAX
            || !is_leased(heartbeats, info.bucket, m.epoch, now_ms);
        let keep = self.settings.keep_sources;
        if keep && (done_ms < DONE_MS_MIN || !over) {
            return Step::Wait;
        }
        let slice = SliceId { index: info.id, generation: info.generation, slice: m.slice };
        let reads = |node: &NodeId| {
            let said = heartbeats.nodes.get(node).map(|heard| &heard.heartbeat.slices);
            let whole = |slices: &Vec<SliceProgress>| {
                slices.iter().any(|told| told.slice == slice && told.trouble.is_none())
            };
            heartbeats.lives(*node, now_ms)
                && heartbeats.reach(*node, slice, info.bucket).is_some()
                && said.is_some_and(whole)
        };
        let is_missed = !info.topology.replicas(m.slice).iter().any(reads);
        if is_missed { Step::Wait } else { Step::Forget }
    }

    /// Why a target is given up that has had trouble, and come no further, for long.
    fn stuck(&self, progress: &MoveProgress, seen: &mut Seen, now_ms: u64) -> Option<String> {
        let (phase, bytes) = (progress.phase, progress.bytes);
        let Some(trouble) = &progress.trouble else {
            seen.stuck = None;
            return None;
        };
        let stands = |(old_phase, old_bytes, _): &(MovePhase, u64, u64)| {
            (*old_phase, *old_bytes) == (phase, bytes)
        };
        let (.., since_ms) = *seen.stuck.get_or_insert((phase, bytes, now_ms));
        if !seen.stuck.as_ref().is_some_and(stands) {
            seen.stuck = Some((phase, bytes, now_ms));
            return None;
        }
        let stuck_ms = now_ms.saturating_sub(since_ms);
        let s = stuck_ms / 1_000;
        let gave_up = stuck_ms >= self.settings.stuck_ms;
        gave_up.then(|| format!("the target has come no further for {s} s: {trouble}"))
    }
}

/// The comparison that can be made now: at the newest epoch that both ends have applied, if that is one
/// of this stage, and above their floors.
fn check(
    state: &StateContext,
    heartbeats: &Heartbeats,
    (info, m): (&IndexInfo, &SliceMove),
    target: NodeId,
    now_ms: u64,
) -> Option<Check> {
    let slice = SliceId { index: info.id, generation: info.generation, slice: m.slice };
    let horizon = state.bucket(info.bucket)?.epochs.last().horizon;
    let oldest = m.epoch.max(horizon);
    let (target_bytes, target_floor, target_applied) =
        heartbeats.reach(target, slice, info.bucket)?;
    let copies = info.topology.replicas(m.slice);
    let goes = copies.iter().filter(|node| Some(**node) == m.from);
    goes.chain(copies).copied().filter(|node| heartbeats.lives(*node, now_ms)).find_map(|source| {
        let (bytes, floor, applied) = heartbeats.reach(source, slice, info.bucket)?;
        let (epoch, bytes) = (applied.min(target_applied), bytes.max(target_bytes));
        let check = Check { index: info.id, id: m.id, slice, source, target, epoch, bytes };
        (epoch >= oldest.max(floor).max(target_floor)).then_some(check)
    })
}

/// May a scan read this epoch of a bucket, or an older one?
fn is_leased(heartbeats: &Heartbeats, bucket: BucketId, epoch: Epoch, now_ms: u64) -> bool {
    let leads_ms = heartbeats.leads_ms(now_ms);
    leads_ms < LEASE_MS || heartbeats.leases(bucket, now_ms).any(|leased| leased <= epoch)
}

impl Seen {
    fn new(stage: MoveStage, since_ms: u64) -> Self {
        Self { stage, since_ms, check: Checked::Not, stuck: None }
    }
}

fn pairs(info: &IndexInfo) -> impl Iterator<Item = (&IndexInfo, &SliceMove)> {
    info.moves.iter().map(move |m| (info, m))
}

fn difference(check: &Check, source: Checksum, target: Checksum) -> String {
    format!(
        "checksum {:016x} of {} entries on node {} and {:016x} of {} on node {} differ at epoch {}",
        source.0, source.1, check.source, target.0, target.1, check.target, check.epoch
    )
}

#[cfg(test)]
#[path = "moves_tests.rs"]
mod tests;
