//! Plans the split of a slice of an index by ranges: a new generation with one slice more, whose slices the nodes make in place from
//! those that they have (`indexer/src/follow/derive.rs`).
//!
//! The largest slice above the limit is split, one at a time. The split point comes from a node that has the slice: a value that about
//! half of the entries are before ([`proto::rpc::api::SplitPoint`]). It becomes part of the definition, so all copies use the same. A slice
//! in which one value has most of the entries has no such point, and keeps growing.
//!
//! An index whose older slices have become empty, as when ascending keys are deleted from the front, keeps them. To end the splitting, the
//! number of slices is limited by the live bytes ([`slices_max`]).
//!
//! A slice that is moving to another node would be rebuilt from the source there, so no index is split while its slices move, or while one
//! of its hosts is silent or draining.

use std::collections::BTreeMap;

use proto::model::ids::SliceNo;
use proto::model::index::{IndexInfo, SLICES_MAX};
use proto::rpc::command::{Command, SplitSlice};

use crate::leader::nodes::heartbeats::Heartbeats;

/// Returns the command that splits the largest slice above a limit; `None` if there is no such
/// slice, or no node reports a split point.
pub(in crate::leader) fn split_command(
    heartbeats: &Heartbeats,
    info: &IndexInfo,
    bytes: &BTreeMap<SliceNo, u64>,
    bytes_max: u64,
) -> Option<Command> {
    let slices_max = slices_max(bytes.values().sum(), bytes_max).min(SLICES_MAX.into());
    if !info.moves.is_empty() || u64::from(info.spec.slices) >= slices_max {
        return None;
    }
    let from = info.local_id();
    let mut large: Vec<(u64, SliceNo)> = bytes
        .iter()
        .filter(|(_, bytes)| **bytes > bytes_max)
        .map(|(slice, bytes)| (*bytes, *slice))
        .collect();
    large.sort_by(|one, other| other.cmp(one));
    large.into_iter().find_map(|(_, slice)| {
        let points = heartbeats.indexers().flat_map(|(node, report)| {
            let points = report.split_points.iter();
            points.filter(move |_| info.topology.hosts(node, slice))
        });
        let mut points = points.filter(|point| point.slice == from.slice(slice));
        // A report may be of a moment ago, when the slice had other bounds.
        let point = points.find(|point| info.spec.with_split(slice, &point.at).is_some())?;
        Some(Command::SplitSlice(SplitSlice { from, slice, at: point.at.clone() }))
    })
}

/// Returns the number of slices up to which an index grows automatically. A split leaves slices
/// of about half of the limit; some are smaller.
fn slices_max(live_bytes: u64, bytes_max: u64) -> u64 {
    4 * live_bytes / bytes_max.max(1) + 8
}

#[cfg(test)]
mod tests {
    use proto::expr::{ColumnType, Expr};
    use proto::model::ids::{Epoch, Generation, IndexId};
    use proto::model::index::{
        BOUND_BYTES_MAX, IndexSpec, IndexState, KeyPart, PartitionBy, RangePartition,
    };
    use proto::model::node::Role;
    use proto::rpc::api::{Heartbeat, IndexerReport, SliceProgress, SplitPoint};
    use proto::rpc::command::{
        BuildGeneration, DrainNode, DropGeneration, GrowIndex, IndexReady, Outcome, RegisterNode,
        SetSliceBytesMax, SplitSlice,
    };
    use proto::value::path::Step;
    use proto::value::{Value, key};

    use super::*;
    use crate::leader::generations::growth::Growth;
    use crate::leader::memory::tests::{indexer_of, slice_progress};
    use crate::leader::nodes::heartbeats::SILENT_MS_MAX;
    use crate::leader::plan::Plan;
    use crate::state::StateContext;
    use crate::state::tests::{
        avoiding, create_index, done, done_decided, node, planned, refused, spec, start,
        with_bucket,
    };

    const LIMIT: u64 = 100 << 10;

    fn bound(n: i64) -> Vec<u8> {
        let mut bound = Vec::new();
        key::encode_part(&Value::int(n), false, &mut bound);
        bound
    }

    /// Returns a definition over `n`, divided by ranges of an expression.
    fn ranges(by: &str) -> IndexSpec {
        let path = |name: &str| Expr::Path(vec![Step::Field(name.into())]);
        let part = KeyPart {
            expr: path("n"),
            name: "n".into(),
            column_type: ColumnType::Text,
            descending: false,
            include_missing: false,
        };
        let ranges = RangePartition { expr: path(by), bounds: vec![bound(20)] };
        let partition = PartitionBy::Range(ranges);
        IndexSpec { primary: false, keys: vec![part], slices: 2, partition, ..spec("i") }
    }

    /// Returns a state with a serving index that is divided by ranges, with a limit.
    fn divided() -> StateContext {
        let mut state = with_bucket();
        done(&mut state, create_index(ranges("n")));
        done(&mut state, IndexReady { index: IndexId(1), generation: Generation(1) });
        state
    }

    fn divided_with_limit() -> StateContext {
        let mut state = divided();
        done(&mut state, SetSliceBytesMax { index: IndexId(1), bytes: LIMIT });
        state
    }

    fn info(state: &StateContext) -> IndexInfo {
        IndexInfo::clone(&state.serving(IndexId(1)).unwrap().info)
    }

    /// Returns heartbeats in which each node reports its slices, of these sizes, and a split point
    /// of one of them.
    fn report(info: &IndexInfo, bytes: &[u64], (slice, at): (u16, Option<i64>)) -> Heartbeats {
        let mut heartbeats = Heartbeats::new(0);
        let id = info.local_id();
        for node in info.topology.nodes() {
            let told = |slice: SliceNo| SliceProgress {
                live_bytes: Some(bytes[usize::from(slice.0)]),
                ..slice_progress(id.slice(slice), Some(Epoch(1)))
            };
            let slices = info.topology.slices_on(node).into_iter().map(told).collect();
            let point = |n| SplitPoint { slice: id.slice(SliceNo(slice)), at: bound(n) };
            let split_points = at.map(point).into_iter().collect();
            let report = IndexerReport { slices, split_points, ..IndexerReport::default() };
            heartbeats.add(Heartbeat::new(node, 0, report), 1_000);
        }
        heartbeats
    }

    fn commands(state: &StateContext, heartbeats: &Heartbeats, now_ms: u64) -> Vec<Command> {
        let mut plan = Plan::default();
        Growth::default().plan(state, heartbeats, now_ms, &mut plan);
        plan.commands
    }

    #[test]
    fn the_largest_slice_above_the_limit_is_split_where_a_node_says() {
        let state = divided_with_limit();
        let info = info(&state);
        let found = |bytes: &[u64], at| commands(&state, &report(&info, bytes, at), 2_000);
        let split = |slice, n| {
            Command::SplitSlice(SplitSlice {
                from: info.local_id(),
                slice: SliceNo(slice),
                at: bound(n),
            })
        };
        assert_eq!(found(&[LIMIT, LIMIT], (0, Some(10))), [], "they are not larger");
        assert_eq!(found(&[5, LIMIT + 1], (1, Some(30))), [split(1, 30)]);
        assert_eq!(found(&[LIMIT + 9, LIMIT + 1], (0, Some(10))), [split(0, 10)]);
        assert_eq!(found(&[5, LIMIT + 1], (1, None)), [], "one value has most of its entries");
        assert_eq!(found(&[5, LIMIT + 1], (1, Some(7))), [], "a point of another slice");
        let late = report(&info, &[LIMIT + 9, LIMIT + 1], (1, Some(30)));
        assert_eq!(commands(&state, &late, 2_000), [split(1, 30)], "the other one has no point");
        for (bytes, expected) in
            [([LIMIT + 9, LIMIT + 1], split(0, 10)), ([LIMIT + 1, LIMIT + 9], split(1, 30))]
        {
            let mut both = report(&info, &bytes, (0, Some(10)));
            let point = SplitPoint { slice: info.local_id().slice(SliceNo(1)), at: bound(30) };
            for last in both.nodes.values_mut() {
                indexer_of(&mut last.heartbeat).split_points.push(point.clone());
            }
            assert_eq!(commands(&state, &both, 2_000), [expected], "the largest one");
        }
    }

    #[test]
    fn live_bytes_limit_the_slices() {
        let state = divided_with_limit();
        let mut info = info(&state);
        let heartbeats = report(&info, &[0, LIMIT + 1], (1, Some(30)));
        let bytes = [(SliceNo(0), 0), (SliceNo(1), LIMIT + 1)].into();
        for (slices, splits) in [(11, true), (12, false)] {
            std::sync::Arc::make_mut(&mut info.spec).slices = slices;
            let found = super::split_command(&heartbeats, &info, &bytes, LIMIT);
            assert_eq!(found.is_some(), splits, "{slices} slices of which one has entries");
        }
    }

    #[test]
    fn an_index_is_not_split_while_its_slices_move() {
        let mut state = divided_with_limit();
        done(&mut state, RegisterNode { node: node(22, Role::Indexer) });
        let from = info(&state).topology.placement[0][0];
        start(&mut state, &[planned(0, from.0, 22)]);
        let heartbeats = report(&info(&state), &[5, LIMIT + 1], (1, Some(30)));
        assert_eq!(commands(&state, &heartbeats, 2_000), []);
    }

    #[test]
    fn an_index_with_a_silent_or_draining_host_is_not_split() {
        let mut state = divided_with_limit();
        done(&mut state, RegisterNode { node: node(22, Role::Indexer) });
        done(&mut state, RegisterNode { node: node(23, Role::Indexer) });
        let before = info(&state);
        let host = before.topology.placement[0][0];
        let mut heartbeats = report(&before, &[5, LIMIT + 1], (1, Some(30)));
        let split = Command::SplitSlice(SplitSlice {
            from: before.local_id(),
            slice: SliceNo(1),
            at: bound(30),
        });
        assert_eq!(commands(&state, &heartbeats, 2_000).len(), 1);
        for (node, last) in &mut heartbeats.nodes {
            last.at_ms = if *node == host { 1_000 } else { 1_000 + SILENT_MS_MAX };
        }
        assert_eq!(commands(&state, &heartbeats, 2_000 + SILENT_MS_MAX), []);
        let silent = done_decided(&mut state, avoiding(&[host.0]), split.clone());
        assert_eq!(silent, Outcome::Done, "no slice is built elsewhere");
        assert_eq!(state.catalog().next_generation(IndexId(1)), None);
        done(&mut state, DrainNode { node: host, drain: true });
        let heartbeats = report(&info(&state), &[5, LIMIT + 1], (1, Some(30)));
        assert_eq!(commands(&state, &heartbeats, 2_000), []);
        assert_eq!(done(&mut state, split), Outcome::Done);
        assert_eq!(state.catalog().next_generation(IndexId(1)), None);
    }

    /// Splits the second slice; returns the number of generations.
    fn split_at(state: &mut StateContext, at: &[u8]) -> usize {
        let from = info(state).local_id();
        let split = Command::SplitSlice(SplitSlice { from, slice: SliceNo(1), at: at.into() });
        let Outcome::Generation(id) = done(state, split) else { panic!("nothing was begun") };
        let (index, generation) = (id.index, id.generation);
        done(state, IndexReady { index, generation });
        state.catalog().generations.len() + 1
    }

    #[test]
    fn a_split_leaves_one_generation() {
        let mut state = divided_with_limit();
        assert_eq!([90, 80].map(|n| split_at(&mut state, &bound(n))), [2, 3]);
        let before = info(&state);
        let from = before.local_id();
        let split = Command::SplitSlice(SplitSlice { from, slice: SliceNo(1), at: bound(30) });
        assert_eq!(done(&mut state, split), Outcome::Done);
        let spec = Box::new((*before.spec).clone());
        let alter = Command::BuildGeneration(BuildGeneration { index: before.id, spec });
        assert!(matches!(done(&mut state, alter), Outcome::Generation(_)));
    }

    #[test]
    fn a_slice_is_not_split_if_no_declaration_has_room_for_its_split_points() {
        let mut state = divided_with_limit();
        let point = |n: u8, len: usize| {
            let mut bound = Vec::new();
            let text = char::from(b'z' - n).to_string() + &"t".repeat(len);
            key::encode_part(&Value::String(text), false, &mut bound);
            bound
        };
        let split = |state: &StateContext, at: Vec<u8>| {
            let from = info(state).local_id();
            Command::SplitSlice(SplitSlice { from, slice: SliceNo(1), at })
        };
        let long = split(&state, point(0, BOUND_BYTES_MAX));
        assert_eq!(done(&mut state, long), Outcome::Done, "no statement has such a point");
        for n in 0..16 {
            split_at(&mut state, &point(n, 4_000));
            let retired: Vec<_> = state.catalog().generations.keys().copied().collect();
            retired
                .into_iter()
                .for_each(|id| drop(done(&mut state, DropGeneration { generation: id })));
        }
        let more = split(&state, point(16, 4_000));
        assert_eq!(refused(&mut state, more), proto::ErrorCode::OverLimit);
        let short = split(&state, bound(30));
        assert!(matches!(done(&mut state, short), Outcome::Generation(_)));
    }

    #[test]
    fn split_slices_stay_on_nodes() {
        let mut state = divided_with_limit();
        let before = info(&state);
        let command = Command::SplitSlice(SplitSlice {
            from: before.local_id(),
            slice: SliceNo(1),
            at: bound(30),
        });
        let Outcome::Generation(id) = done(&mut state, command.clone()) else { panic!("begun") };
        let next = state.catalog().next_generation(IndexId(1)).cloned().unwrap();
        assert_eq!((next.local_id(), next.state), (id, IndexState::Backfill));
        let [first, second] = &before.topology.placement[..] else { panic!("two slices") };
        let expected = [first, second, second].map(Vec::clone);
        assert_eq!(next.topology.placement, expected);
        assert_eq!(next.spec.slices, 3);
        assert!(next.spec.derived_from(&before.spec).is_some());
        assert_eq!(done(&mut state, command), Outcome::Done, "one is being built");
        done(&mut state, IndexReady { index: IndexId(1), generation: id.generation });
        let again = Command::SplitSlice(SplitSlice { from: id, slice: SliceNo(2), at: bound(40) });
        assert!(matches!(done(&mut state, again), Outcome::Generation(_)), "at once");
    }

    #[test]
    fn a_late_or_impossible_split_changes_nothing() {
        let mut state = divided();
        let from = info(&state).local_id();
        let split = |slice, n| {
            Command::SplitSlice(SplitSlice { from, slice: SliceNo(slice), at: bound(n) })
        };
        assert_eq!(done(&mut state, split(1, 30)), Outcome::Done, "there is no limit any more");
        done(&mut state, SetSliceBytesMax { index: IndexId(1), bytes: LIMIT });
        assert_eq!(done(&mut state, split(1, 20)), Outcome::Done, "the bound of the slice");
        assert_eq!(done(&mut state, split(2, 30)), Outcome::Done, "no such slice");
        let grow = Command::GrowIndex(GrowIndex { from, slices: 8 });
        assert_eq!(done(&mut state, grow), Outcome::Done, "ranges have no other number");
        assert_eq!(state.catalog().next_generation(IndexId(1)), None);
    }

    #[test]
    fn a_limit_is_refused_where_slices_cannot_be_split_in_place() {
        let mut descending = ranges("n");
        descending.keys[0].descending = true;
        for spec in [ranges("w"), descending] {
            let mut state = with_bucket();
            done(&mut state, create_index(spec));
            let set =
                Command::SetSliceBytesMax(SetSliceBytesMax { index: IndexId(1), bytes: LIMIT });
            assert_eq!(refused(&mut state, set), proto::ErrorCode::WrongState);
        }
    }
}
