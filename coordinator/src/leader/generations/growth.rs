//! Finds the indexes that have outgrown their slices (`slice_bytes_max`), and plans a generation
//! with more slices. In an index divided by ranges, the slice that is too large is split instead
//! ([`crate::leader::generations::splits`]); the rest of this page is about other indexes.
//!
//! The mean size of an index's slices counts, not the largest one: more slices do not divide the
//! entries of one key. The number of slices is doubled until the mean would be at most half of
//! the limit, so that an index that keeps growing is not rebuilt at once. Sizes are the live
//! bytes that the nodes report: superseded versions, which would soon exist in a new generation
//! too, do not count. Each slice counts once, with its largest copy. Sizes count only when each
//! copy on a node that is not silent has reported its size: the copies of new slices do so once
//! their entries are counted.
//!
//! A growth that CANCEL BUILD has ended is not begun again at once: the index has to grow by
//! another quarter first, or `slice_bytes_max` is set again. A new leader does not know earlier
//! cancellations.
//!
//! The setting is not part of the definition, because nodes store definitions in their manifests.
//! The number of generations that an index may have at a time is limited. Growth and splits leave
//! one of them free for a statement.

use std::collections::BTreeMap;

use proto::Error;
use proto::model::ids::{Generation, IndexId, LocalIndexId, NodeId, SliceId, SliceNo};
use proto::model::index::{IndexInfo, IndexSpec, PartitionBy, SLICES_MAX};
use proto::rpc::command::{Command, GrowIndex, SetSliceBytesMax, SplitSlice};

use crate::leader::check_timer::CheckTimer;
use crate::leader::generations::splits::split_command;
use crate::leader::nodes::heartbeats::{Heartbeats, SILENT_MS_MAX};
use crate::leader::nodes::lost::silent_indexers;
use crate::leader::plan::Plan;
use crate::state::StateContext;

/// The interval between two checks, in ms.
const LOOK_EVERY_MS: u64 = 1_000;
/// The pause before an index is planned again, in ms: the command may have been refused, for
/// example at a size limit.
const RETRY_MS: u64 = 60_000;

/// The leader's memory of the growth that it has planned for indexes.
#[derive(Debug, Default)]
pub(in crate::leader) struct Growth {
    looks: CheckTimer<LOOK_EVERY_MS>,
    planned: BTreeMap<IndexId, GrowthPlan>,
}

/// A planned growth of an index, with the facts that it was planned from.
#[derive(Debug)]
struct GrowthPlan {
    at_ms: u64,
    /// The generation that served when the growth was planned.
    from: LocalIndexId,
    newest: Option<Generation>,
    /// The size of the index when the growth was planned, in bytes.
    bytes: u64,
    bytes_max: u64,
}

impl GrowthPlan {
    /// Returns true if the index must not grow again yet: this plan was made shortly before, or
    /// it was cancelled and the index has grown too little since. `now` is the plan that would be
    /// made now. Called only while no generation of the index is being built.
    fn blocks_growth(&self, state: &StateContext, now: &Self) -> bool {
        if (self.from, self.bytes_max) != (now.from, now.bytes_max) {
            return false;
        }
        // A newer generation was begun, has ended, and did not come to serve.
        let is_cancelled = state.newest_generation(now.from.index) > self.newest;
        match is_cancelled {
            true => 4 * u128::from(now.bytes) < 5 * u128::from(self.bytes),
            false => now.at_ms < self.at_ms + RETRY_MS,
        }
    }
}

impl Growth {
    pub(in crate::leader) fn plan(
        &mut self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        now_ms: u64,
        plan: &mut Plan,
    ) {
        if state.slice_bytes_max().next().is_none() {
            self.planned.clear();
            return;
        }
        if !self.looks.is_due_in(plan, now_ms) {
            return;
        }
        let settings: BTreeMap<IndexId, u64> = state.slice_bytes_max().collect();
        self.planned.retain(|index, _| settings.contains_key(index));
        let silent = silent_indexers(state, heartbeats, now_ms);
        for (index, bytes_max) in settings {
            let Some(info) = state.serving(index).map(|record| &record.info) else { continue };
            let from = info.local_id();
            if !state.can_grow(from) {
                continue;
            }
            let Some(of_each) = reported_bytes(heartbeats, info, now_ms) else { continue };
            let bytes = of_each.values().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
            let newest = state.newest_generation(index);
            let now = GrowthPlan { at_ms: now_ms, from, newest, bytes, bytes_max };
            if self.planned.get(&index).is_some_and(|planned| planned.blocks_growth(state, &now)) {
                continue;
            }
            let command = match info.spec.partition {
                PartitionBy::Range(_) if !state.hosts_receive(info, &silent) => None,
                PartitionBy::Range(_) => split_command(heartbeats, info, &of_each, bytes_max),
                _ => growth_command(info, bytes, bytes_max),
            };
            if let Some(command) = command {
                if !has_free_capacity(state, info, &command) {
                    tracing::warn!(index = %from, "an index has outgrown its slices; the room for more of them is kept for administrators");
                    self.planned.insert(index, now);
                    continue;
                }
                plan.commands.push(command);
                self.planned.insert(index, now);
            }
        }
    }

    /// Records a statement that sets `slice_bytes_max` again to its present value: a cancelled
    /// growth may then begin again, although the state does not change.
    pub(in crate::leader) fn note_statement(&mut self, state: &StateContext, command: &Command) {
        let Command::SetSliceBytesMax(SetSliceBytesMax { index, bytes }) = command else { return };
        if state.slice_bytes_max().any(|now| now == (*index, *bytes)) {
            self.planned.remove(index);
        }
    }
}

/// Returns true if the state has enough free capacity for the growth, without the part that is
/// reserved for administrators.
fn has_free_capacity(state: &StateContext, info: &IndexInfo, command: &Command) -> bool {
    let slices = match command {
        Command::GrowIndex(GrowIndex { slices, .. }) => *slices,
        _ => info.spec.slices + 1,
    };
    state.fits_without_reserve(&IndexSpec { slices, ..(*info.spec).clone() })
}

/// Returns the command that gives an index enough slices; `None` if it has enough.
fn growth_command(info: &IndexInfo, bytes: u64, bytes_max: u64) -> Option<Command> {
    let slices = enough_slices(info.spec.slices, bytes, bytes_max)?;
    Some(Command::GrowIndex(GrowIndex { from: info.local_id(), slices }))
}

impl Growth {
    /// Logs that the state refused a planned growth. The plan is repeated after a pause.
    pub(in crate::leader) fn log_refusal(command: &Command, error: &Error) {
        match command {
            Command::GrowIndex(GrowIndex { from, slices }) => {
                tracing::warn!(index = %from, slices, %error, "an index has outgrown its slices and gets no more of them for now");
            }
            Command::SplitSlice(SplitSlice { from, slice, .. }) => {
                tracing::warn!(index = %from, %slice, %error, "a slice has outgrown its limit and is not split for now");
            }
            _ => {}
        }
    }
}

/// Returns the live bytes of each slice of a generation, by its largest copy. Returns `None`
/// while a copy on a node that is not silent has not reported its bytes, or while all copies of a
/// slice are on silent nodes.
fn reported_bytes(
    heartbeats: &Heartbeats,
    info: &IndexInfo,
    now_ms: u64,
) -> Option<BTreeMap<SliceNo, u64>> {
    let is_silent = |node: &NodeId| heartbeats.silent_ms(*node, now_ms) >= SILENT_MS_MAX;
    let placed = (0..).map(SliceNo).zip(&info.topology.placement);
    let largest = placed.map(|(slice, nodes)| {
        let id = info.local_id().slice(slice);
        let live = nodes.iter().filter(|node| !is_silent(node));
        let told = live.map(|node| live_bytes(heartbeats, *node, id));
        let told: Vec<u64> = told.collect::<Option<_>>()?;
        Some((slice, told.into_iter().max()?))
    });
    largest.collect()
}

/// Returns the live bytes of a copy; `None` while it is being built, restored or counted.
fn live_bytes(heartbeats: &Heartbeats, node: NodeId, slice: SliceId) -> Option<u64> {
    let told = &heartbeats.indexer(node)?.slices;
    let told = told.iter().find(|told| told.slice == slice && told.floor.is_some())?;
    told.live_bytes
}

/// Returns the number of slices that the index should have; `None` if it has enough.
fn enough_slices(now: u16, bytes: u64, slice_bytes_max: u64) -> Option<u16> {
    let all = |slices: u64| u128::from(slices) * u128::from(slice_bytes_max);
    let (now, bytes) = (u64::from(now), u128::from(bytes));
    if bytes <= all(now) || now >= u64::from(SLICES_MAX) {
        return None;
    }
    let mut slices = now;
    while slices < u64::from(SLICES_MAX) && 2 * bytes > all(slices) {
        slices *= 2;
    }
    Some(slices.min(u64::from(SLICES_MAX)) as u16)
}

#[cfg(test)]
#[path = "growth_tests.rs"]
mod tests;
