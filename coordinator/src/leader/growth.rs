//! Finds the indexes that have outgrown their slices (`slice_bytes_max`), and plans a generation with more of them. An index by ranges gets
//! one slice more where one is too large ([`super::splits`]); the rest of this page is about the others.
//!
//! The mean size of an index's slices counts, not the largest one: more slices do not divide the entries of one key. The number is doubled until the
//! mean would be at most half of the limit, so that an index that grows on is not built anew at once. Sizes are those that the nodes report; each slice counts once,
//! with its largest copy.

use std::collections::BTreeMap;

use proto::Error;
use proto::model::ids::{LocalIndexId, SliceNo};
use proto::model::index::{IndexInfo, PartitionBy, SLICES_MAX};
use proto::rpc::api::SliceProgress;
use proto::rpc::command::Command;

use super::heartbeats::{Heartbeats, SILENT_MS_MAX};
use super::lost::{avoiding, silent_indexers};
use super::plan::Plan;
use super::splits::split;
use crate::state::StateContext;

/// The time between two looks.
const LOOK_EVERY_MS: u64 = 1_000;
/// The pause behind a plan for an index: it may have been refused, for example for want of room.
const RETRY_MS: u64 = 60_000;

/// The leader's memory of indexes that grow.
#[derive(Debug, Default)]
pub(super) struct Growth {
    looked_ms: Option<u64>,
    /// The times of the plans, by the generation that serves: another one may be planned for at once.
    planned_ms: BTreeMap<LocalIndexId, u64>,
}

impl Growth {
    pub(super) fn plan(
        &mut self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        now_ms: u64,
        plan: &mut Plan,
    ) {
        if state.slice_bytes_max().next().is_none() {
            self.planned_ms.clear();
            return;
        }
        plan.look_at(now_ms + LOOK_EVERY_MS);
        if self.looked_ms.is_some_and(|looked_ms| now_ms < looked_ms + LOOK_EVERY_MS) {
            return;
        }
        self.looked_ms = Some(now_ms);
        self.planned_ms.retain(|_, planned_ms| now_ms < *planned_ms + RETRY_MS);
        for (index, bytes_max) in state.slice_bytes_max() {
            let Some(info) = state.serving(index).map(|record| &record.info) else { continue };
            let from = info.local_id();
            if self.planned_ms.contains_key(&from) || !state.can_grow(from) {
                continue;
            }
            let Some(bytes) = reported_bytes(heartbeats, info, now_ms) else { continue };
            let command = match info.spec.partition {
                PartitionBy::Range(_) => split(heartbeats, info, &bytes, bytes_max),
                _ => grow(info, &bytes, bytes_max),
            };
            if let Some(command) = command {
                let silent = silent_indexers(state, heartbeats, now_ms);
                plan.commands.push(avoiding(silent, command));
                self.planned_ms.insert(from, now_ms);
            }
        }
    }
}

/// The command that gives an index enough slices; `None` if it has enough.
fn grow(info: &IndexInfo, bytes: &BTreeMap<SliceNo, u64>, bytes_max: u64) -> Option<Command> {
    let all = bytes.values().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
    let slices = enough_slices(info.spec.slices, all, bytes_max)?;
    Some(Command::GrowIndex { from: info.local_id(), slices })
}

impl Growth {
    /// Says that a plan was refused. It is made again after a pause.
    pub(super) fn refused(command: &Command, error: &Error) {
        match command {
            Command::Avoiding { command, .. } => Self::refused(command, error),
            Command::GrowIndex { from, slices } => {
                tracing::warn!(index = %from, slices, %error, "an index has outgrown its slices and gets no more of them for now");
            }
            Command::SplitSlice { from, slice, .. } => {
                tracing::warn!(index = %from, %slice, %error, "a slice has outgrown its limit and is not split for now");
            }
            _ => {}
        }
    }
}

/// The bytes of each slice of a generation; `None` while one of them is reported by nobody.
fn reported_bytes(
    heartbeats: &Heartbeats,
    info: &IndexInfo,
    now_ms: u64,
) -> Option<BTreeMap<SliceNo, u64>> {
    let id: LocalIndexId = info.local_id();
    let mut largest: BTreeMap<SliceNo, u64> = BTreeMap::new();
    let live = heartbeats
        .nodes
        .iter()
        .filter(|(node, _)| heartbeats.silent_ms(**node, now_ms) < SILENT_MS_MAX);
    let reports = live.flat_map(|(node, last)| {
        let placed = |told: &&SliceProgress| info.topology.hosts(*node, told.slice.slice);
        last.heartbeat.slices.iter().filter(placed)
    });
    // A copy that is being restored has a part of it.
    let whole = reports.filter(|told| told.slice.local_index() == id && told.floor.is_some());
    for progress in whole {
        let bytes = largest.entry(progress.slice.slice).or_default();
        *bytes = progress.bytes.max(*bytes);
    }
    (largest.len() == usize::from(info.spec.slices)).then_some(largest)
}

/// The number of slices that an index should have instead; `None` if it has enough.
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
mod tests {
    use proto::model::ids::{Epoch, IndexId, SliceId};
    use proto::rpc::api::Heartbeat;

    use super::*;
    use crate::leader::memory::tests::heartbeat;
    use crate::state::tests::{done, serving};

    /// A node reports slices of a size.
    fn report(heartbeats: &mut Heartbeats, info: &IndexInfo, (node, bytes): (u64, u64)) {
        let told = |slice| SliceProgress {
            slice: SliceId { slice: SliceNo(slice), ..info.local_id().slice(SliceNo(0)) },
            floor: Some(Epoch(1)),
            entries: 1,
            bytes,
            built_percent: None,
            seconds_left: None,
            copied_from: None,
            trouble: None,
        };
        let slices = (0..info.spec.slices).map(told).collect();
        heartbeats.add(Heartbeat { slices, ..heartbeat(node) }, 1_000);
    }

    fn planned(growth: &mut Growth, of: (&StateContext, &Heartbeats), now_ms: u64) -> Vec<Command> {
        let mut plan = Plan::default();
        growth.plan(of.0, of.1, now_ms, &mut plan);
        plan.commands
    }

    #[test]
    fn an_index_that_has_outgrown_its_slices_gets_a_generation_with_more_of_them() {
        let mut state = serving(1);
        let info = state.serving(IndexId(1)).unwrap().info.clone();
        let mut heartbeats = Heartbeats::new(0);
        let mut growth = Growth::default();
        report(&mut heartbeats, &info, (20, 100 << 10));
        assert_eq!(
            planned(&mut growth, (&state, &heartbeats), 2_000),
            [],
            "nobody has asked for it"
        );
        done(&mut state, Command::SetSliceBytesMax { index: "i".into(), bytes: 100 << 10 });
        assert_eq!(planned(&mut growth, (&state, &heartbeats), 3_000), [], "they are not larger");
        report(&mut heartbeats, &info, (21, (100 << 10) + 1));
        let slices = 4 * info.spec.slices;
        let grow = Command::GrowIndex { from: info.local_id(), slices };
        let found = planned(&mut growth, (&state, &heartbeats), 4_000);
        assert_eq!(found, vec![grow.clone()], "a slice counts with its larger copy");
        assert_eq!(
            planned(&mut growth, (&state, &heartbeats), 5_000),
            [],
            "it may have been refused"
        );
        done(&mut state, grow);
        let next = state.catalog().next_generation(IndexId(1)).cloned().unwrap();
        assert_eq!(next.spec.slices, slices);
        let later_ms = 5_000 + RETRY_MS;
        assert_eq!(planned(&mut growth, (&state, &heartbeats), later_ms), [], "it is being built");
    }

    #[test]
    fn the_slices_are_doubled_until_each_has_at_most_half_of_the_limit() {
        assert_eq!(enough_slices(1, 100, 100), None);
        assert_eq!(enough_slices(1, 101, 100), Some(4));
        assert_eq!(enough_slices(3, 330, 100), Some(12));
        assert_eq!(enough_slices(4, 401, 1_000), None);
        assert_eq!(enough_slices(2, 1 << 40, 1 << 20), Some(SLICES_MAX));
        assert_eq!(enough_slices(SLICES_MAX, u64::MAX, 1), None);
    }
}
