//! The epochs that each indexer has applied, and the slices that it can read. The indexers report
//! both to the router directly, so that scans continue when no coordinator answers. The reports of
//! a disconnected node are ignored until it is connected again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use dashmap::DashMap;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, Epoch, LocalIndexId, NodeId, SliceId, SliceNo};
use proto::model::index::IndexInfo;
use proto::model::topology::TopologyProvider;
use proto::plant::{self, Plant};
use proto::rpc::scan::AppliedReport;
use tokio::sync::watch;

/// Returns the oldest epoch of a bucket that a new scan may read. Returns `None` after a rollback,
/// until this oldest epoch is known.
pub fn oldest_for_scans(catalog: &Catalog, bucket: BucketId) -> Option<Epoch> {
    if plant::is(Plant::SurvivorsUnshown) {
        return Some(Epoch(0));
    }
    catalog.buckets.get(&bucket).map_or(Some(Epoch(0)), |bucket| bucket.readable_from())
}

/// For each index, the epoch below which no scan reads.
pub type EpochFloors = BTreeMap<LocalIndexId, Epoch>;

/// The applied epochs and readable slices of all connected indexers.
#[derive(Clone)]
pub struct AppliedEpochs {
    nodes: Arc<DashMap<NodeId, NodeApplied>>,
    /// The oldest epochs to be read according to an earlier process, as long as its stored catalog
    /// is in use ([`crate::offline`]).
    floors: Arc<ArcSwap<EpochFloors>>,
    changed: watch::Sender<u64>,
}

/// The last report of a node.
#[derive(Default)]
struct NodeApplied {
    applied: BTreeMap<BucketId, Epoch>,
    readable: BTreeMap<SliceId, Epoch>,
    rebuilt: BTreeSet<SliceId>,
}

impl Default for AppliedEpochs {
    fn default() -> Self {
        Self { nodes: Arc::default(), floors: Arc::default(), changed: watch::Sender::new(0) }
    }
}

impl AppliedEpochs {
    /// Records the report of a node.
    pub fn report(&self, report: AppliedReport) {
        let mut node = self.nodes.entry(report.node).or_default();
        node.applied.extend(report.applied);
        if let Some(readable) = report.readable {
            node.readable = readable.into_iter().collect();
            node.rebuilt = report.rebuilt.into_iter().collect();
        }
        drop(node);
        self.changed.send_modify(|count| *count += 1);
    }

    /// Removes the report of a node that cannot be reached.
    pub fn remove_report(&self, node: NodeId) {
        self.nodes.remove(&node);
        self.changed.send_modify(|count| *count += 1);
    }

    /// Returns the newest epoch of each bucket that any node has applied. An applied epoch is
    /// always a published one.
    pub fn newest_published(&self) -> BTreeMap<BucketId, Epoch> {
        let mut newest = BTreeMap::new();
        for node in self.nodes.iter() {
            for (bucket, epoch) in &node.applied {
                let known: &mut Epoch = newest.entry(*bucket).or_default();
                *known = (*epoch).max(*known);
            }
        }
        newest
    }

    /// Sets the epoch of each index below which no scan reads. In an index that is not in
    /// `floors`, scans read any epoch that the nodes can answer.
    pub fn set_floors(&self, floors: EpochFloors) {
        self.floors.store(Arc::new(floors));
        self.changed.send_modify(|count| *count += 1);
    }

    /// Returns the number of changes so far, of reports and of floors.
    pub fn reports(&self) -> u64 {
        *self.changed.borrow()
    }

    /// Returns a receiver that is notified of each change of the reports or floors.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Returns the newest epoch that can be read now in every slice of an index: some copy of each
    /// slice has applied it, and its oldest readable epoch is not above it. `None` if there is no
    /// such epoch, or if the stored floor of the index is above it.
    pub fn newest_readable(&self, index: &IndexInfo) -> Option<Epoch> {
        let shown = self.floors.load().get(&index.local_id()).copied().unwrap_or_default();
        let copies: Vec<Vec<(Epoch, Epoch)>> = self.readable_copies(index);
        let newest =
            |copies: &Vec<(Epoch, Epoch)>| copies.iter().map(|(_, applied)| *applied).max();
        let common = copies.iter().map(newest).collect::<Option<Vec<_>>>()?.into_iter().min()?;
        let answers = |copies: &Vec<(Epoch, Epoch)>| {
            copies.iter().any(|(floor, applied)| *floor <= common && common <= *applied)
        };
        (shown <= common && copies.iter().all(answers)).then_some(common)
    }

    /// Returns the oldest epoch that can be read in every slice of an index, now or once it is
    /// applied. `None` while a slice has no readable copy.
    pub fn oldest_readable(&self, index: &IndexInfo) -> Option<Epoch> {
        let oldest = |copies: &Vec<(Epoch, Epoch)>| copies.iter().map(|(floor, _)| *floor).min();
        self.readable_copies(index)
            .iter()
            .map(oldest)
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .max()
    }

    /// Returns for each slice the oldest readable epoch and the newest applied epoch of each
    /// readable copy.
    fn readable_copies(&self, index: &IndexInfo) -> Vec<Vec<(Epoch, Epoch)>> {
        let copies = |slice: SliceNo| {
            let here = |node: NodeId| {
                let node = self.nodes.get(&node)?;
                let floor = *node.readable.get(&slice_id(index, slice))?;
                let applied = *node.applied.get(&index.bucket)?;
                Some((floor, applied.max(floor)))
            };
            self.known_copies(index, slice).into_iter().filter_map(here).collect()
        };
        (0..index.topology.slices()).map(SliceNo).map(copies).collect()
    }

    /// Returns true if a node is connected, so that it sends reports.
    pub fn is_connected(&self, node: NodeId) -> bool {
        self.nodes.contains_key(&node)
    }

    /// Returns true if any node rebuilds a slice from the source.
    pub fn has_rebuilds(&self) -> bool {
        self.nodes.iter().any(|node| !node.rebuilt.is_empty())
    }

    /// Returns true if a node rebuilds a slice from the source, and cannot read it yet.
    pub fn is_being_rebuilt(&self, node: NodeId, index: &IndexInfo, slice: SliceNo) -> bool {
        self.nodes.get(&node).is_some_and(|node| node.rebuilt.contains(&slice_id(index, slice)))
    }

    /// Returns the nodes that may have a slice: first those of the topology, then other nodes that
    /// report the slice because it has moved since.
    pub fn known_copies(&self, index: &IndexInfo, slice: SliceNo) -> Vec<NodeId> {
        let mut copies: Vec<NodeId> = index.topology.replicas(slice).to_vec();
        let id = slice_id(index, slice);
        let others = self.nodes.iter().filter(|node| node.readable.contains_key(&id));
        let mut others: Vec<NodeId> =
            others.map(|node| *node.key()).filter(|node| !copies.contains(node)).collect();
        others.sort();
        copies.append(&mut others);
        copies
    }

    /// Returns true if a node reports that it can read a slice at an epoch, now or once it has
    /// applied the epoch.
    pub fn is_readable(
        &self,
        node: NodeId,
        index: &IndexInfo,
        slice: SliceNo,
        epoch: Epoch,
    ) -> bool {
        let node = self.nodes.get(&node);
        let floor = node.and_then(|node| node.readable.get(&slice_id(index, slice)).copied());
        floor.is_some_and(|floor| floor <= epoch)
    }

    /// Returns true if a node reports that it has applied an epoch and can read a slice at this
    /// epoch.
    pub fn has_applied(
        &self,
        node: NodeId,
        index: &IndexInfo,
        slice: SliceNo,
        epoch: Epoch,
    ) -> bool {
        let Some(node) = self.nodes.get(&node) else { return false };
        let floor = node.readable.get(&slice_id(index, slice));
        let applied = node.applied.get(&index.bucket);
        floor.is_some_and(|floor| *floor <= epoch) && applied.is_some_and(|newest| epoch <= *newest)
    }

    /// Returns the nodes to query for a slice at an epoch, best first: nodes that have applied the
    /// epoch, then nodes that have not applied it yet, then nodes that do not report the slice,
    /// then disconnected nodes. Nodes of equal rank are in the order of the topology.
    pub fn candidates(&self, index: &IndexInfo, slice: SliceNo, epoch: Epoch) -> Vec<NodeId> {
        let mut candidates = self.known_copies(index, slice);
        candidates.sort_by_key(|node| match self.nodes.get(node) {
            Some(node) => {
                let floor = node.readable.get(&slice_id(index, slice));
                let applied = node.applied.get(&index.bucket);
                match (floor, applied) {
                    (Some(floor), Some(applied)) if *floor <= epoch && epoch <= *applied => 0,
                    (Some(floor), _) if *floor <= epoch => 1,
                    _ => 2,
                }
            }
            None => 3,
        });
        candidates
    }
}

fn slice_id(index: &IndexInfo, slice: SliceNo) -> SliceId {
    SliceId { index: index.id, generation: index.generation, slice }
}

#[cfg(test)]
mod tests {
    use proto::model::ids::IndexId;
    use proto::model::index::{IndexSpec, IndexState};

    use super::*;

    /// An index of two slices on two nodes.
    fn index() -> IndexInfo {
        let spec = IndexSpec { slices: 2, ..IndexSpec::new("i", "b") };
        let placement = vec![vec![NodeId(1)], vec![NodeId(2)]];
        IndexInfo {
            state: IndexState::Maintenance,
            ..IndexInfo::new(IndexId(1), BucketId(1), spec, placement)
        }
    }

    fn tell(applied: &AppliedEpochs, node: u64, floor: u64, newest: u64) {
        let slice = slice_id(&index(), SliceNo(node as u16 - 1));
        applied.report(AppliedReport {
            node: NodeId(node),
            applied: vec![(BucketId(1), Epoch(newest))],
            readable: Some(vec![(slice, Epoch(floor))]),
            rebuilt: Vec::new(),
        });
    }

    #[test]
    fn no_epoch_is_chosen_below_the_floor_of_a_slice() {
        let (applied, index) = (AppliedEpochs::default(), index());
        tell(&applied, 1, 12, 12);
        assert_eq!(applied.oldest_readable(&index), None, "slice 1 has no copy yet");
        tell(&applied, 2, 3, 11);
        assert_eq!(applied.newest_readable(&index), None, "node 1 cannot answer 11 any more");
        assert_eq!(applied.oldest_readable(&index), Some(Epoch(12)));
        tell(&applied, 2, 3, 13);
        assert_eq!(applied.newest_readable(&index), Some(Epoch(12)));
        applied.remove_report(NodeId(1));
        assert_eq!(applied.newest_readable(&index), None);
    }

    #[test]
    fn no_epoch_below_the_stored_floor() {
        let (applied, index) = (AppliedEpochs::default(), index());
        let before = applied.reports();
        applied.set_floors([(index.local_id(), Epoch(12))].into());
        [1, 2].iter().for_each(|node| tell(&applied, *node, 3, 11));
        assert_eq!(applied.newest_readable(&index), None, "a rollback may have come to 11");
        tell(&applied, 1, 3, 15);
        assert_eq!(applied.newest_readable(&index), None);
        tell(&applied, 2, 3, 13);
        assert_eq!(applied.newest_readable(&index), Some(Epoch(13)));
        [1, 2].iter().for_each(|node| tell(&applied, *node, 3, 11));
        applied.set_floors(EpochFloors::new());
        assert_eq!(applied.newest_readable(&index), Some(Epoch(11)), "the coordinators decide");
        assert!(applied.reports() > before, "views are made anew");
    }

    #[test]
    fn a_moved_slice_is_found_by_reports() {
        let (applied, index) = (AppliedEpochs::default(), index());
        [1, 2].iter().for_each(|node| tell(&applied, *node, 3, 9));
        let tell_of_third = |slice: u16| {
            applied.report(AppliedReport {
                node: NodeId(3),
                applied: vec![(BucketId(1), Epoch(8))],
                readable: Some(vec![(slice_id(&index, SliceNo(slice)), Epoch(5))]),
                rebuilt: Vec::new(),
            });
        };
        let candidates = |slice, epoch| applied.candidates(&index, SliceNo(slice), Epoch(epoch));
        assert_eq!(candidates(0, 8), [NodeId(1)]);
        tell_of_third(0);
        assert_eq!(candidates(0, 8), [NodeId(1), NodeId(3)], "first those of the topology");
        assert_eq!(candidates(1, 8), [NodeId(2)], "that slice is not on node 3");
        applied.report(AppliedReport {
            node: NodeId(1),
            applied: vec![(BucketId(1), Epoch(9))],
            readable: Some(Vec::new()),
            rebuilt: Vec::new(),
        });
        assert_eq!(candidates(0, 8), [NodeId(3), NodeId(1)], "node 1 has given the slice up");
        assert_eq!(applied.newest_readable(&index), Some(Epoch(8)), "of the new node");
        assert_eq!(applied.oldest_readable(&index), Some(Epoch(5)));
    }
}
