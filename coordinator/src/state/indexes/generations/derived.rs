//! The places of a generation whose slices derive from those of the serving one.

use proto::model::ids::{BucketId, NodeId};
use proto::model::index::{IndexInfo, IndexSpec};
use proto::model::range_split::DerivedSlice;

use crate::state::context::StateContext;

/// Returns the placement of a generation that derives from the serving one: each slice is placed
/// with its parent slice, so that the nodes can build it from their own data. `None` if the
/// generation does not derive, or if one of these nodes may not receive slices.
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
