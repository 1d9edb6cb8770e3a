//! Which moves begin: in the order of their numbers, as many at a time as their ends, and the cluster, bear.

use std::collections::{BTreeMap, BTreeSet};

use proto::model::ids::{MoveId, NodeId};
use proto::model::index::IndexInfo;
use proto::model::moves::{MoveStage, SliceMove};

use super::Leader;

/// How many moves at a time, and how much patience.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveSettings {
    /// Moves that a node is the source of at a time.
    pub sources_max: usize,
    /// Moves that a node is the target of at a time.
    pub targets_max: usize,
    /// Moves at a time in the cluster.
    pub in_all_max: usize,
    /// A target that is silent for longer is given up.
    pub target_silent_ms: u64,
    /// A target that has trouble and comes no further for longer is given up.
    pub stuck_ms: u64,
    /// Is the source's copy kept until no scan can ask for an epoch from before? If not, such scans go on at
    /// the target, which can answer them just as well, but for the time that it takes to find that out.
    pub keep_sources: bool,
    /// The copies of a node that is silent for longer count as lost, and are made elsewhere.
    pub node_gone_ms: u64,
}

impl Default for MoveSettings {
    fn default() -> Self {
        Self {
            sources_max: 2,
            targets_max: 2,
            in_all_max: 16,
            target_silent_ms: 60_000,
            stuck_ms: 60_000,
            keep_sources: true,
            node_gone_ms: 10 * 60_000,
        }
    }
}

/// The moves that are not `start` and not `done`, counted.
#[derive(Default)]
struct Busy {
    sources: BTreeMap<NodeId, usize>,
    targets: BTreeMap<NodeId, usize>,
    all: usize,
}

impl Leader {
    /// The moves whose turn it is.
    pub(super) fn admitted(
        &self,
        moves: &[(&IndexInfo, &SliceMove)],
        now_ms: u64,
    ) -> BTreeSet<MoveId> {
        let settings = &self.moves.settings;
        let mut busy = Busy::default();
        let mut waiting = Vec::new();
        for (info, m) in moves {
            let source = self.source(info, m, now_ms);
            match m.stage {
                MoveStage::Start => waiting.push((m.id, source, m.to)),
                // One whose source died waits for it and takes nobody's place meanwhile.
                MoveStage::Pending | MoveStage::Catchup if source.is_none() => {}
                MoveStage::Pending | MoveStage::Catchup => busy.add(source, m.to),
                MoveStage::Done => {}
            }
        }
        waiting.sort_unstable_by_key(|(id, ..)| *id);
        let mut admitted = BTreeSet::new();
        for (id, source, target) in waiting {
            let lives = target.is_some_and(|target| self.lives(target, now_ms));
            if lives && source.is_some() && busy.has_room(source, target, settings) {
                busy.add(source, target);
                admitted.insert(id);
            }
        }
        admitted
    }
}

impl Busy {
    fn add(&mut self, source: Option<NodeId>, target: Option<NodeId>) {
        source.into_iter().for_each(|node| *self.sources.entry(node).or_default() += 1);
        target.into_iter().for_each(|node| *self.targets.entry(node).or_default() += 1);
        self.all += 1;
    }

    fn has_room(
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
