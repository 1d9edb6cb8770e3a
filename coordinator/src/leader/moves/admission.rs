//! Chooses the moves that may begin: in the order of their ids, as many concurrently as the limits
//! of the two nodes and of the cluster allow.

use std::collections::{BTreeMap, BTreeSet};

use proto::model::ids::{MoveId, NodeId};
use proto::model::index::IndexInfo;
use proto::model::moves::{MoveStage, SliceMove};
use proto::model::topology::TopologyProvider;

use crate::leader::moves::settings::MoveSettings;
use crate::leader::nodes::heartbeats::Heartbeats;

/// The numbers of moves that are in progress, for each node and in the cluster.
#[derive(Default)]
struct MovesInProgress {
    sources: BTreeMap<NodeId, usize>,
    targets: BTreeMap<NodeId, usize>,
    all: usize,
}

/// Returns the moves that may begin now.
pub(in crate::leader) fn admitted_moves(
    moves: &[(&IndexInfo, &SliceMove)],
    heartbeats: &Heartbeats,
    settings: &MoveSettings,
    now_ms: u64,
) -> BTreeSet<MoveId> {
    let mut busy = MovesInProgress::default();
    let mut waiting = Vec::new();
    for (info, m) in moves {
        let source = copy_source(info, m, heartbeats, now_ms);
        match m.stage {
            MoveStage::Start => waiting.push((m.id, source, m.to)),
            // A move without a live source waits for one, and does not count against the limits of other moves
            // meanwhile.
            MoveStage::Pending | MoveStage::Catchup if source.is_none() => {}
            MoveStage::Pending | MoveStage::Catchup => busy.add(source, m.to),
            MoveStage::Done => {}
        }
    }
    waiting.sort_unstable_by_key(|(id, ..)| *id);
    let mut admitted = BTreeSet::new();
    for (id, source, target) in waiting {
        let lives = target.is_some_and(|target| heartbeats.is_alive(target, now_ms));
        if lives && source.is_some() && busy.is_within_limits(source, target, settings) {
            busy.add(source, target);
            admitted.insert(id);
        }
    }
    admitted
}

/// Returns a node in the topology from which the slice can be copied: it is alive and is not
/// building the slice. The node that the move will remove is preferred.
pub(in crate::leader) fn copy_source(
    info: &IndexInfo,
    m: &SliceMove,
    heartbeats: &Heartbeats,
    now_ms: u64,
) -> Option<NodeId> {
    let copies = info.topology.replicas(m.slice);
    let goes = copies.iter().filter(|node| Some(**node) == m.from);
    let slice = info.local_id().slice(m.slice);
    goes.chain(copies)
        .copied()
        .find(|node| heartbeats.is_alive(*node, now_ms) && !heartbeats.is_building(*node, slice))
}

impl MovesInProgress {
    fn add(&mut self, source: Option<NodeId>, target: Option<NodeId>) {
        source.into_iter().for_each(|node| *self.sources.entry(node).or_default() += 1);
        target.into_iter().for_each(|node| *self.targets.entry(node).or_default() += 1);
        self.all += 1;
    }

    /// Returns true if one more move between these nodes is within the limits.
    fn is_within_limits(
        &self,
        source: Option<NodeId>,
        target: Option<NodeId>,
        settings: &MoveSettings,
    ) -> bool {
        let of = |counts: &BTreeMap<NodeId, usize>, node: Option<NodeId>| {
            node.and_then(|node| counts.get(&node).copied()).unwrap_or(0)
        };
        self.all < settings.in_all_max
            && of(&self.sources, source) < settings.sources_max
            && of(&self.targets, target) < settings.targets_max
    }
}
