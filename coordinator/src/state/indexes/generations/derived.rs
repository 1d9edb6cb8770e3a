//! The placement of a generation whose slices are made from those of the serving one.

use proto::model::ids::{BucketId, NodeId};
use proto::model::index::{IndexInfo, IndexSpec};
use proto::model::range_split::DerivedSlice;

use crate::state::context::StateContext;

/// Returns the placement of a generation whose slices can be made from those of the serving one.
/// Each slice is placed with its parent slice, so that the nodes can build it from their own
/// data. Returns `None` if the slices cannot be made so, or if one of these nodes may not receive
/// slices.
pub(super) fn derived_placement(
    state: &StateContext,
    info: &IndexInfo,
    (spec, bucket): (&IndexSpec, BucketId),
    silent: &[NodeId],
) -> Option<Vec<Vec<NodeId>>> {
    let is_same = bucket == info.bucket && spec.replicas == info.spec.replicas;
    let derived = spec.derived_from(&info.spec).filter(|_| is_same)?;
    let nodes_of = |of: &DerivedSlice| info.topology.placement.get(usize::from(of.from.0)).cloned();
    let placement: Vec<Vec<NodeId>> = derived.iter().map(nodes_of).collect::<Option<_>>()?;
    state.hosts_receive(info, silent).then_some(placement)
}
