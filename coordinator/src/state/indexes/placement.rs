//! The placement of an index's slices, and changes to it.

use std::sync::Arc;

use proto::model::ids::{NodeId, SliceNo, TopologyNo};
use proto::model::index::IndexInfo;
use proto::model::moves::MoveStage;
use proto::model::topology::IndexTopology;

use crate::planner::replace_copy;

/// The nodes with a copy of each slice of an index, by slice.
pub(in crate::state) type Placement = Vec<Vec<NodeId>>;

/// Returns the placement that an index will have after all of its unfinished moves.
pub fn placement_after_moves(info: &IndexInfo) -> Vec<Vec<NodeId>> {
    let mut placement = info.topology.placement.clone();
    for m in info.moves.iter().filter(|m| m.stage < MoveStage::Done) {
        if let Some(copies) = placement.get_mut(usize::from(m.slice.0)) {
            replace_copy(copies, m.from, m.to);
        }
    }
    placement
}

/// Replaces, adds or removes a copy of a slice; the result is the next topology.
pub(in crate::state) fn change_copies(
    info: &mut IndexInfo,
    slice: SliceNo,
    from: Option<NodeId>,
    to: Option<NodeId>,
) {
    let mut placement = info.topology.placement.clone();
    if let Some(copies) = placement.get_mut(usize::from(slice.0)) {
        replace_copy(copies, from, to);
    }
    change_placement(info, placement);
}

/// Makes a placement the current topology of an index, under the next number.
pub(in crate::state) fn change_placement(info: &mut IndexInfo, placement: Vec<Vec<NodeId>>) {
    let number = TopologyNo(info.topology.number.0 + 1);
    info.topology = Arc::new(IndexTopology { number, placement });
}
