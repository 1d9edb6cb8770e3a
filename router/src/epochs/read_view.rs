//! Read views: the facts about the cluster that a new scan of an index needs, computed once after
//! each change of the cluster.
//!
//! A view contains the newest epoch that all slices can answer, and the node to query for each
//! slice at that epoch. A view is valid for one catalog and one state of the indexers' reports.
//! The first scan after a change of either computes a new view. So a view is never used after a
//! drop, a move, a rollback in the catalog, or a report of a node, and most scans need no search
//! over nodes and slices.

use std::collections::BTreeSet;
use std::sync::Arc;

use arc_swap::ArcSwap;
use dashmap::DashMap;
use proto::model::catalog::Catalog;
use proto::model::ids::{Epoch, LocalIndexId, NodeId, SliceNo};
use proto::model::index::IndexInfo;
use proto::model::topology::TopologyProvider;

use super::applied_epochs::{AppliedEpochs, oldest_for_scans};
use crate::busy::RequestCounts;

/// The slices that a scan reads from one node (a *shard*), and that node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeSlices {
    /// The slices, ascending.
    pub slices: Vec<SliceNo>,
    /// The node to query first; `None` if no node is known.
    pub node: Option<NodeId>,
    /// True if each of the slices is on another node that has not failed.
    pub has_others: bool,
    /// True if the node counts as slow and is queried nevertheless, to find out whether it is
    /// still slow.
    pub is_probe: bool,
}

/// Nodes that are not queried for a slice if another node has the slice too.
#[derive(Clone, Copy, Default)]
pub(crate) struct AvoidedNodes<'a> {
    /// Nodes that have just failed.
    pub failed: &'a [NodeId],
    /// Slow nodes. A slow node is still preferred to a node that has not applied the epoch.
    pub slow: &'a [NodeId],
    /// The requests in flight to each node. A busy node is avoided if the next copy has applied
    /// the epoch. `None` ignores the load.
    pub busy: Option<&'a RequestCounts>,
}

/// The facts about the cluster that a new scan of an index needs.
#[derive(Debug)]
pub(crate) struct ReadView {
    index: Arc<IndexInfo>,
    catalog: Arc<Catalog>,
    reports: u64,
    /// The newest epoch that is readable now in all slices; `None` if a scan must wait for one.
    pub epoch: Option<Epoch>,
    /// All slices, grouped by the node to query at the view's epoch.
    pub shards: Vec<NodeSlices>,
    /// The nodes that have a copy of any slice, by the topology.
    pub copies: BTreeSet<NodeId>,
}

/// The read views of all indexes that scans have read.
#[derive(Clone, Default)]
pub(crate) struct ReadViews(Arc<DashMap<LocalIndexId, Arc<ReadView>>>);

impl ReadViews {
    /// Returns the current view of an index, and computes it if it is outdated.
    pub fn view(
        &self,
        index: &Arc<IndexInfo>,
        applied: &AppliedEpochs,
        catalog: &ArcSwap<Catalog>,
    ) -> Arc<ReadView> {
        // Reports that come from here on make the view older than they are.
        let (reports, catalog) = (applied.reports(), catalog.load());
        let is_present = |view: &ReadView| {
            view.reports == reports
                && Arc::ptr_eq(&view.catalog, &catalog)
                && Arc::ptr_eq(&view.index, index)
        };
        if let Some(view) = self.0.get(&index.local_id()).filter(|view| is_present(view)) {
            return Arc::clone(&view);
        }
        let view = Arc::new(ReadView::new(index, applied, &catalog, reports));
        // A view of an older topology, which a token continues with, is replaced by the next view of the present
        // topology.
        if catalog.local_index(index.local_id()).is_some() {
            self.0.insert(index.local_id(), Arc::clone(&view));
        }
        view
    }

    /// Removes the views of indexes that are not in the catalog.
    pub fn take_catalog(&self, catalog: &Catalog) {
        self.0.retain(|id, _| catalog.local_index(*id).is_some());
    }
}

impl ReadView {
    fn new(
        index: &Arc<IndexInfo>,
        applied: &AppliedEpochs,
        catalog: &Arc<Catalog>,
        reports: u64,
    ) -> Self {
        let from = oldest_for_scans(catalog, index.bucket);
        let newest = applied.newest_readable(index);
        let epoch = newest.filter(|newest| from.is_some_and(|from| from <= *newest));
        let slices: Vec<SliceNo> = (0..index.topology.slices()).map(SliceNo).collect();
        let shards = epoch
            .map(|epoch| group_by_node(applied, index, epoch, &slices, AvoidedNodes::default()));
        Self {
            index: Arc::clone(index),
            catalog: Arc::clone(catalog),
            reports,
            epoch,
            shards: shards.unwrap_or_default(),
            copies: slices
                .iter()
                .flat_map(|slice| index.topology.replicas(*slice))
                .copied()
                .collect(),
        }
    }
}

/// Groups slices by the node to query for them at an epoch. A node to be avoided gets a slice only
/// if no better node has the slice.
pub(crate) fn group_by_node(
    applied: &AppliedEpochs,
    index: &IndexInfo,
    epoch: Epoch,
    slices: &[SliceNo],
    AvoidedNodes { failed, slow, busy }: AvoidedNodes<'_>,
) -> Vec<NodeSlices> {
    let mut shards: Vec<NodeSlices> = Vec::new();
    for slice in slices {
        let nodes = applied.candidates(index, *slice, epoch);
        let has_failed = |node: &&NodeId| failed.contains(node);
        let is_ready = |node: &&NodeId| {
            !has_failed(node)
                && !slow.contains(node)
                && applied.has_applied(**node, index, *slice, epoch)
        };
        let has_choice = !slow.is_empty() || busy.is_some();
        let mut ready = nodes.iter().filter(|_| has_choice).filter(is_ready);
        let ready = match (ready.next(), ready.next(), busy) {
            (Some(first), Some(second), Some(busy)) if busy.should_query_other(*first, *second) => {
                Some(second)
            }
            (first, ..) => first,
        };
        let node = ready.or_else(|| nodes.iter().find(|node| !has_failed(node)));
        let node = node.or(nodes.first()).copied();
        let is_other = |other: &NodeId| Some(*other) != node && !failed.contains(other);
        let has_others = nodes.iter().any(is_other);
        match shards.iter_mut().find(|shard| shard.node == node) {
            Some(shard) => {
                shard.slices.push(*slice);
                shard.has_others &= has_others;
            }
            None => {
                let slices = vec![*slice];
                shards.push(NodeSlices { slices, node, has_others, is_probe: false });
            }
        }
    }
    shards.sort_by_key(|shard| shard.node);
    shards
}

#[cfg(test)]
mod tests {
    use proto::model::ids::{BucketId, IndexId, SliceId};
    use proto::model::index::{IndexSpec, IndexState};
    use proto::rpc::scan::AppliedReport;

    use super::*;

    fn index() -> Arc<IndexInfo> {
        let spec = IndexSpec { slices: 2, ..IndexSpec::new("i", "b") };
        let placement = vec![vec![NodeId(1)], vec![NodeId(2), NodeId(1)]];
        let info = IndexInfo::new(IndexId(1), BucketId(1), spec, placement);
        Arc::new(IndexInfo { state: IndexState::Maintenance, ..info })
    }

    fn report(applied: &AppliedEpochs, node: u64, newest: u64, slices: &[u16]) {
        let id = |slice: &u16| {
            let (index, generation) = (index().id, index().generation);
            (SliceId { index, generation, slice: SliceNo(*slice) }, Epoch(1))
        };
        applied.report(AppliedReport {
            node: NodeId(node),
            applied: vec![(BucketId(1), Epoch(newest))],
            readable: Some(slices.iter().map(id).collect()),
            rebuilt: Vec::new(),
        });
    }

    #[test]
    fn a_view_is_valid_until_a_change() {
        let (index, applied, views) = (index(), AppliedEpochs::default(), ReadViews::default());
        let catalog =
            Catalog { indexes: [(index.id, Arc::clone(&index))].into(), ..Catalog::default() };
        let catalog = ArcSwap::from_pointee(catalog);
        report(&applied, 1, 7, &[0, 1]);
        let first = views.view(&index, &applied, &catalog);
        assert_eq!(first.epoch, Some(Epoch(7)));
        let one = NodeSlices {
            slices: vec![SliceNo(0)],
            node: Some(NodeId(1)),
            has_others: false,
            is_probe: false,
        };
        let other = NodeSlices {
            slices: vec![SliceNo(1)],
            node: Some(NodeId(1)),
            has_others: true,
            is_probe: false,
        };
        let both = NodeSlices { slices: vec![SliceNo(0), SliceNo(1)], ..one.clone() };
        assert_eq!(first.shards, [both]);
        assert!(Arc::ptr_eq(&first, &views.view(&index, &applied, &catalog)));
        report(&applied, 2, 9, &[1]);
        let second = views.view(&index, &applied, &catalog);
        assert_eq!(second.epoch, Some(Epoch(7)), "slice 0 is not further");
        assert_eq!(second.shards, [one, NodeSlices { node: Some(NodeId(2)), ..other }]);
        applied.remove_report(NodeId(1));
        assert_eq!(views.view(&index, &applied, &catalog).epoch, None);
        report(&applied, 1, 9, &[0, 1]);
        let third = views.view(&index, &applied, &catalog);
        assert_eq!(third.epoch, Some(Epoch(9)));
        let mut newer = Catalog::clone(&catalog.load());
        newer.cas += 1;
        catalog.store(Arc::new(newer));
        assert!(!Arc::ptr_eq(&third, &views.view(&index, &applied, &catalog)));
        catalog.store(Arc::default());
        views.take_catalog(&catalog.load());
        assert!(views.0.is_empty(), "a dropped index is forgotten");
    }
}
