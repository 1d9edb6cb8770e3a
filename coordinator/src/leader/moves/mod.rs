//! Takes moves of slices from stage to stage.
//!
//! The stage of a move is in the StateContext, and the heartbeats of the source and the target
//! report their progress. The leader itself remembers only when it first saw a stage and which
//! comparisons are running. So a new leader continues where the old one stopped, one heartbeat
//! later.
//!
//! - `start` → `pending`: source and target are alive, and neither they nor the cluster have too
//!   many moves. Moves begin in the order of their ids; a move that must wait lets later ones
//!   pass.
//! - `pending` → `catchup`: the target reports that it has copied the files.
//! - `catchup` → `done`: the target reports that the slice can be read there, and the target and
//!   a copy that the topology names have the same checksum at the same epoch. The driver collects
//!   the two checksums and reports them ([`Moves::finish_check`]).
//! - `done` → removed: no scan reads an epoch from before the move any more (or no running scan
//!   began before it), and a copy that the topology names is readable, so that the old copy is
//!   not needed.
//!
//! A move is undone when its target is silent for long, makes no progress, or has another
//! checksum. A dead source is replaced by another copy. Without another copy the move waits for
//! the source, until the node counts as lost.

pub mod admission;
pub mod repair;
pub mod settings;

use std::collections::{BTreeMap, BTreeSet};

use proto::Result;
use proto::model::ids::{IndexId, MoveId, NodeId, SliceId};
use proto::model::index::IndexInfo;
use proto::model::moves::{MovePhase, MoveProgress, MoveStage, SliceMove};
use proto::model::topology::TopologyProvider;
use proto::rpc::api::SliceProgress;
use proto::rpc::command::{AdvanceMove, Command, EndMove};

use crate::leader::copies::check::{Checksum, CopyCheck};
use crate::leader::epochs::horizon::LEASE_AGE_MS_MAX;
use crate::leader::epochs::leases::is_leased_before;
use crate::leader::moves::admission::{admitted_moves, copy_source};
use crate::leader::moves::settings::MoveSettings;
use crate::leader::nodes::heartbeats::Heartbeats;
use crate::leader::plan::Plan;
use crate::state::StateContext;

/// The longest interval between two checks of the unfinished moves, in ms.
const LOOK_EVERY_MS: u64 = 500;
/// The delay before a failed comparison of copies is repeated, in ms.
const CHECK_AGAIN_MS: u64 = 1_000;
/// The shortest time, in ms, for which the source stays readable after the move. In this time a
/// scan that began just before has reported its lease, and the routers have received the new
/// topology.
const DONE_MS_MIN: u64 = 5_000;
/// The pause of repairs after a move was undone, in ms, because a repair might plan the same
/// move, which may fail again.
const REPAIR_AFTER_UNDONE_MS: u64 = 30_000;

/// The leader's memory of all moves.
#[derive(Debug, Default)]
pub(in crate::leader) struct Moves {
    pub settings: MoveSettings,
    /// Repairs are not planned before this time, in ms.
    pub repair_not_before_ms: u64,
    tracked: BTreeMap<MoveId, TrackedMove>,
}

/// The leader's memory of one move.
#[derive(Debug)]
struct TrackedMove {
    stage: MoveStage,
    /// The time at which this leader first saw the move in its stage, in ms.
    since_ms: u64,
    /// A catalog that contains the move in this stage.
    catalog_cas: u64,
    check: CheckState,
    /// The target's phase and copied bytes when it first reported an error without progress, and
    /// the time of that report.
    stuck: Option<(MovePhase, u64, u64)>,
}

/// The progress of the comparison of the source and the target.
#[derive(Debug, PartialEq)]
enum CheckState {
    Not,
    UnderWay(CopyCheck),
    Again { at_ms: u64 },
    Same,
    Different(String),
}

/// The next action on a move.
enum NextStep {
    Wait,
    To(MoveStage),
    Compare(CopyCheck),
    Forget,
    Undo(String),
}

impl Moves {
    pub(in crate::leader) fn new(settings: MoveSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Records the result of a comparison of two copies. Ignores results of an older comparison.
    pub(in crate::leader) fn finish_check(
        &mut self,
        check: &CopyCheck,
        result: Result<(Checksum, Checksum)>,
        now_ms: u64,
    ) {
        let Some(tracked) = self.tracked.get_mut(&check.id) else { return };
        if tracked.check != CheckState::UnderWay(check.clone()) {
            return;
        }
        tracked.check = match result {
            Ok((source, target)) if source == target => CheckState::Same,
            Ok((source, target)) => CheckState::Different(difference(check, source, target)),
            Err(_) => CheckState::Again { at_ms: now_ms + CHECK_AGAIN_MS },
        };
    }

    pub(in crate::leader) fn plan(
        &mut self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        now_ms: u64,
        plan: &mut Plan,
    ) {
        let moves: Vec<(&IndexInfo, &SliceMove)> =
            state.indexes().flat_map(|record| moves_with_index(&record.info)).collect();
        let ids: BTreeSet<MoveId> = moves.iter().map(|(_, m)| m.id).collect();
        let mut all_tracked = std::mem::take(&mut self.tracked);
        all_tracked.retain(|id, _| ids.contains(id));
        let admitted = admitted_moves(&moves, heartbeats, &self.settings, now_ms);
        for (info, m) in &moves {
            let tracked =
                all_tracked.entry(m.id).or_insert_with(|| TrackedMove::new(state, m.stage, now_ms));
            if tracked.stage != m.stage {
                *tracked = TrackedMove::new(state, m.stage, now_ms);
            }
            let step = match m.stage {
                MoveStage::Done => self.step_done(state, heartbeats, (info, m), tracked, now_ms),
                _ => self.step_unfinished(state, heartbeats, (info, m), tracked, &admitted, now_ms),
            };
            self.take_step(info.id, m.id, step, tracked, now_ms, plan);
        }
        self.tracked = all_tracked;
        if !moves.is_empty() {
            plan.plan_again_at(now_ms + LOOK_EVERY_MS);
        }
    }

    /// Carries out a step: adds its command or comparison to the plan.
    fn take_step(
        &mut self,
        index: IndexId,
        id: MoveId,
        step: NextStep,
        tracked: &mut TrackedMove,
        now_ms: u64,
        plan: &mut Plan,
    ) {
        match step {
            NextStep::Wait => {}
            NextStep::To(stage) => {
                plan.commands.push(Command::AdvanceMove(AdvanceMove { index, id, stage }))
            }
            NextStep::Compare(check) => {
                tracked.check = CheckState::UnderWay(check.clone());
                plan.checks.push(check);
            }
            NextStep::Forget => {
                plan.commands.push(Command::EndMove(EndMove { index, id, undone: None }))
            }
            NextStep::Undo(why) => {
                self.repair_not_before_ms = now_ms + REPAIR_AFTER_UNDONE_MS;
                plan.commands.push(Command::EndMove(EndMove { index, id, undone: Some(why) }));
            }
        }
    }

    /// Returns the next step of a move that is not `done`.
    fn step_unfinished(
        &self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        (info, m): (&IndexInfo, &SliceMove),
        tracked: &mut TrackedMove,
        admitted: &BTreeSet<MoveId>,
        now_ms: u64,
    ) -> NextStep {
        let Some(target) = m.to else { return NextStep::Wait };
        let silent_ms = heartbeats.silent_ms(target, now_ms);
        if silent_ms >= self.settings.target_silent_ms {
            let s = silent_ms / 1_000;
            return NextStep::Undo(format!("target node {target} has been silent for {s} s"));
        }
        if let Some(why) = self.undo_reason_without_source(heartbeats, info, m, now_ms) {
            return NextStep::Undo(why);
        }
        let progress = heartbeats.progress_of(target, info.local_id(), m.id);
        if let Some(trouble) = progress.and_then(|p| self.undo_reason_if_stuck(p, tracked, now_ms))
            && copy_source(info, m, heartbeats, now_ms).is_some()
        {
            return NextStep::Undo(trouble);
        }
        let phase = progress.map(|progress| progress.phase);
        match m.stage {
            MoveStage::Start if admitted.contains(&m.id) => NextStep::To(MoveStage::Pending),
            MoveStage::Pending if phase >= Some(MovePhase::Copied) => {
                NextStep::To(MoveStage::Catchup)
            }
            MoveStage::Catchup => match &tracked.check {
                CheckState::Same => NextStep::To(MoveStage::Done),
                CheckState::Different(what) => NextStep::Undo(what.clone()),
                CheckState::UnderWay(_) => NextStep::Wait,
                CheckState::Again { at_ms } if now_ms < *at_ms => NextStep::Wait,
                _ if phase < Some(MovePhase::Installed) => NextStep::Wait,
                _ => possible_check(state, heartbeats, (info, m), target, now_ms)
                    .map_or(NextStep::Wait, NextStep::Compare),
            },
            _ => NextStep::Wait,
        }
    }

    /// Returns the reason to undo a move whose slice is on lost nodes only; `None` if some node
    /// with the slice may still be alive.
    fn undo_reason_without_source(
        &self,
        heartbeats: &Heartbeats,
        info: &IndexInfo,
        m: &SliceMove,
        now_ms: u64,
    ) -> Option<String> {
        let copies = info.topology.replicas(m.slice).iter();
        let silent_ms = copies.map(|node| heartbeats.silent_ms(*node, now_ms)).min()?;
        let s = silent_ms / 1_000;
        let is_gone = silent_ms >= self.settings.node_gone_ms;
        is_gone.then(|| format!("each node with the slice has been silent for {s} s"))
    }

    /// Returns the next step of a move that is `done`: the source may be dropped, or the move
    /// waits for scans.
    fn step_done(
        &self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        (info, m): (&IndexInfo, &SliceMove),
        tracked: &TrackedMove,
        now_ms: u64,
    ) -> NextStep {
        let Some(bucket) = state.bucket(info.bucket) else { return NextStep::Wait };
        let done_ms = now_ms.saturating_sub(tracked.since_ms);
        // The horizon moves only with new epochs. In an idle bucket the leases themselves tell whether a scan may
        // have begun before the move; scans that began later read the new copy, even at the same epoch. A lease may
        // be renewed again and again, but no scan lives longer than this.
        let over = bucket.epochs.last().horizon > m.epoch
            || done_ms >= LEASE_AGE_MS_MAX
            || !is_leased_before(
                state,
                heartbeats,
                (info.bucket, m.epoch),
                tracked.catalog_cas,
                now_ms,
            );
        let keep = self.settings.keep_sources;
        if keep && (done_ms < DONE_MS_MIN || !over) {
            return NextStep::Wait;
        }
        let slice = SliceId { index: info.id, generation: info.generation, slice: m.slice };
        let reads = |node: &NodeId| {
            let reported = heartbeats.indexer(*node).map(|report| &report.slices);
            let whole = |slices: &Vec<SliceProgress>| {
                slices.iter().any(|progress| progress.slice == slice && progress.trouble.is_none())
            };
            heartbeats.is_alive(*node, now_ms)
                && heartbeats.readable_range(*node, slice, info.bucket).is_some()
                && reported.is_some_and(whole)
        };
        let is_missed = !info.topology.replicas(m.slice).iter().any(reads);
        if is_missed { NextStep::Wait } else { NextStep::Forget }
    }

    /// Returns the reason to undo a move whose target reports an error and has made no progress
    /// for too long; `None` if the move may continue.
    fn undo_reason_if_stuck(
        &self,
        progress: &MoveProgress,
        tracked: &mut TrackedMove,
        now_ms: u64,
    ) -> Option<String> {
        let (phase, bytes) = (progress.phase, progress.bytes);
        let Some(trouble) = &progress.trouble else {
            tracked.stuck = None;
            return None;
        };
        let stands = |(old_phase, old_bytes, _): &(MovePhase, u64, u64)| {
            (*old_phase, *old_bytes) == (phase, bytes)
        };
        let (.., since_ms) = *tracked.stuck.get_or_insert((phase, bytes, now_ms));
        if !tracked.stuck.as_ref().is_some_and(stands) {
            tracked.stuck = Some((phase, bytes, now_ms));
            return None;
        }
        let stuck_ms = now_ms.saturating_sub(since_ms);
        let s = stuck_ms / 1_000;
        let gave_up = stuck_ms >= self.settings.stuck_ms;
        gave_up.then(|| format!("the target has made no progress for {s} s: {trouble}"))
    }
}

/// Returns the comparison of the two copies that is possible now, at the newest epoch that both
/// nodes have applied. Returns `None` if that epoch is from before the move's stage, or cannot be
/// read on both nodes.
fn possible_check(
    state: &StateContext,
    heartbeats: &Heartbeats,
    (info, m): (&IndexInfo, &SliceMove),
    target: NodeId,
    now_ms: u64,
) -> Option<CopyCheck> {
    let slice = SliceId { index: info.id, generation: info.generation, slice: m.slice };
    let horizon = state.bucket(info.bucket)?.epochs.last().horizon;
    let oldest = m.epoch.max(horizon);
    let (target_bytes, target_floor, target_applied) =
        heartbeats.readable_range(target, slice, info.bucket)?;
    let copies = info.topology.replicas(m.slice);
    let goes = copies.iter().filter(|node| Some(**node) == m.from);
    goes.chain(copies).copied().filter(|node| heartbeats.is_alive(*node, now_ms)).find_map(
        |source| {
            let (bytes, floor, applied) = heartbeats.readable_range(source, slice, info.bucket)?;
            let (epoch, bytes) = (applied.min(target_applied), bytes.max(target_bytes));
            let check = CopyCheck { index: info.id, id: m.id, slice, source, target, epoch, bytes };
            (epoch >= oldest.max(floor).max(target_floor)).then_some(check)
        },
    )
}

impl TrackedMove {
    fn new(state: &StateContext, stage: MoveStage, since_ms: u64) -> Self {
        let catalog_cas = state.catalog_cas();
        Self { stage, since_ms, catalog_cas, check: CheckState::Not, stuck: None }
    }
}

/// Iterates over the moves of an index, each with its index.
fn moves_with_index(info: &IndexInfo) -> impl Iterator<Item = (&IndexInfo, &SliceMove)> {
    info.moves.iter().map(move |m| (info, m))
}

/// Returns the text that describes two different checksums.
fn difference(check: &CopyCheck, source: Checksum, target: Checksum) -> String {
    let on = |(sum, entries): Checksum, node: NodeId| {
        format!("{sum:016x} of {entries} entries on node {node}")
    };
    let (source, target) = (on(source, check.source), on(target, check.target));
    format!("checksums differ at epoch {}: {source}, {target}", check.epoch)
}

#[cfg(test)]
mod tests;
