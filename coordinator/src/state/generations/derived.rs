//! The places of a generation whose slices derive from those of the serving one.

use proto::model::ids::{BucketId, NodeId};
use proto::model::index::{IndexInfo, IndexSpec};
use proto::model::range_split::DerivedSlice;

use crate::state::context::StateContext;

impl StateContext {
    /// The places of the slices of a generation that derives from the one that serves: each slice is placed where its parent slice is, so
    /// that the nodes can make it from their own data. `None` if it does not derive, or if a node there may not receive slices.
    pub(in crate::state) fn derived_placement(
        &self,
        info: &IndexInfo,
        (spec, bucket): (&IndexSpec, BucketId),
        silent: &[NodeId],
    ) -> Option<Vec<Vec<NodeId>>> {
        let is_same = bucket == info.bucket && spec.replicas == info.spec.replicas;
        let derived = spec.derived_from(&info.spec).filter(|_| is_same)?;
        let nodes_of =
            |of: &DerivedSlice| info.topology.placement.get(usize::from(of.from.0)).cloned();
        let placement: Vec<Vec<NodeId>> = derived.iter().map(nodes_of).collect::<Option<_>>()?;
        self.hosts_receive(info, silent).then_some(placement)
    }

    /// True if each node that has a slice of an index may receive slices.
    pub(crate) fn hosts_receive(&self, info: &IndexInfo, silent: &[NodeId]) -> bool {
        let receives = |node: &NodeId| {
            !silent.contains(node) && self.receiving_indexers().any(|other| other == *node)
        };
        info.topology.placement.iter().flatten().all(receives)
    }
}
