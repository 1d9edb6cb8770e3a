//! Plans moves of slices: repairs (moves that become necessary, for example because a node is
//! drained), and rebalances on request. Also builds the input of the planner.

use std::collections::{BTreeMap, BTreeSet};

use proto::model::ids::{IndexId, NodeId, SliceId, SliceNo};
use proto::model::index::{IndexInfo, IndexState};
use proto::model::moves::{MoveStage, RebalancePlan, RebalanceRequest, SliceMove};
use proto::model::node::Role;
use proto::rpc::command::StartMoves;
use proto::{Error, ErrorCode, Result};

use crate::leader::moves::Moves;
use crate::leader::moves::settings::MoveSettings;
use crate::leader::nodes::heartbeats::{Heartbeats, SILENT_MS_MAX};
use crate::leader::plan::Plan;
use crate::planner::{self, ClusterView, Goal, Health, IndexView, NodeView, SliceView};
use crate::state::{StateContext, indexes::placement::placement_after_moves};

/// The interval between two searches for necessary moves, in ms. A shorter one is useless,
/// because the input arrives with the heartbeats.
const REPAIR_EVERY_MS: u64 = 3_000;

/// The largest size in bytes and the largest number of entries that any node reports, by slice.
type Sizes = BTreeMap<SliceId, (u64, u64)>;

/// The slices that some node is fetching or building, and those nodes.
type SlicesInProgress = BTreeSet<(SliceId, NodeId)>;

/// The leader's memory of its repairs.
#[derive(Debug, Default)]
pub(in crate::leader) struct Repairs {
    /// The time at which repairs were last planned; `None` before the first time.
    repaired_ms: Option<u64>,
    /// The nodes that were being drained when repairs were last planned.
    draining: BTreeSet<NodeId>,
}

impl Repairs {
    /// Plans repairs every few seconds, and immediately when a node begins to be drained: DRAIN
    /// NODE waits for the plan.
    pub(in crate::leader) fn plan(
        &mut self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        moves: &Moves,
        now_ms: u64,
        plan: &mut Plan,
    ) {
        if !state.indexes().any(|record| record.info.state == IndexState::Maintenance) {
            return;
        }
        let next_ms = self.repaired_ms.map_or(now_ms, |at_ms| at_ms + REPAIR_EVERY_MS);
        let due_ms = next_ms.max(moves.repair_not_before_ms);
        self.draining.retain(|node| state.is_draining(*node));
        let is_asked = !state.draining().is_subset(&self.draining);
        if now_ms < due_ms && !is_asked {
            return plan.plan_again_at(due_ms);
        }
        self.repaired_ms = Some(now_ms);
        plan.plan_again_at(now_ms + REPAIR_EVERY_MS);
        if unreported_indexer(state, heartbeats, now_ms).is_none() {
            self.draining.clone_from(state.draining());
            let repairs = planner::plan(
                &cluster_view(state, heartbeats, &moves.settings, None, now_ms),
                Goal::Repair,
            )
            .moves;
            if !repairs.is_empty() {
                plan.commands.push(StartMoves { moves: repairs }.into());
            }
        }
    }
}

/// Plans a rebalance of all indexes or of one. With one index, only the load of that index counts.
pub(in crate::leader) fn rebalance(
    state: &StateContext,
    heartbeats: &Heartbeats,
    settings: &MoveSettings,
    request: &RebalanceRequest,
    now_ms: u64,
) -> Result<RebalancePlan> {
    request.index.map_or(Ok(()), |index| check_movable(state, index))?;
    if let Some(node) = unreported_indexer(state, heartbeats, now_ms) {
        let what = format!("node {node} has not reported to the new leading coordinator yet");
        return Err(Error::unavailable(what).with_hint("try again in a few seconds"));
    }
    Ok(planner::plan(
        &cluster_view(state, heartbeats, settings, request.index, now_ms),
        Goal::Balance,
    ))
}

/// Returns an indexer that has not reported in this term, while the term is too young to count it
/// as silent.
fn unreported_indexer(
    state: &StateContext,
    heartbeats: &Heartbeats,
    now_ms: u64,
) -> Option<NodeId> {
    let may_be_silent = heartbeats.term_ms(now_ms) >= SILENT_MS_MAX;
    let mut indexers = state.nodes().filter(|node| node.role == Role::Indexer);
    let unreported = |node: NodeId| !may_be_silent && !heartbeats.nodes.contains_key(&node);
    indexers.find(|node| unreported(node.id)).map(|node| node.id)
}

/// Builds the input of the planner, with all indexes or only one.
fn cluster_view(
    state: &StateContext,
    heartbeats: &Heartbeats,
    settings: &MoveSettings,
    only: Option<IndexId>,
    now_ms: u64,
) -> ClusterView {
    let (sizes, built) = (sizes(heartbeats), slices_in_progress(heartbeats));
    let node = |id, zone: &str| NodeView {
        node: id,
        zone: zone.to_owned(),
        draining: state.is_draining(id),
        health: health(id, heartbeats, settings, now_ms),
    };
    let indexers = state.nodes().filter(|node| node.role == Role::Indexer);
    let wanted = |info: &&IndexInfo| only.is_none_or(|only| info.id == only);
    ClusterView {
        nodes: indexers.map(|info| node(info.id, &info.zone)).collect(),
        indexes: state
            .indexes()
            .map(|record| &*record.info)
            .filter(wanted)
            .map(|info| index(info, &sizes, &built))
            .collect(),
    }
}

fn health(node: NodeId, heartbeats: &Heartbeats, settings: &MoveSettings, now_ms: u64) -> Health {
    if heartbeats.is_alive(node, now_ms) {
        Health::Alive
    } else if heartbeats.silent_ms(node, now_ms) < settings.node_gone_ms {
        Health::Silent
    } else {
        Health::Gone
    }
}

/// Returns the sizes of the slices that nodes report.
fn sizes(heartbeats: &Heartbeats) -> Sizes {
    let mut sizes = Sizes::new();
    for progress in heartbeats.indexers().flat_map(|(_, report)| &report.slices) {
        let (bytes, entries) = sizes.entry(progress.slice).or_default();
        *bytes = progress.bytes.max(*bytes);
        *entries = progress.entries.max(*entries);
    }
    sizes
}

/// Returns the slices that cannot be copied from a node, because the node is fetching or building
/// them.
fn slices_in_progress(heartbeats: &Heartbeats) -> SlicesInProgress {
    let reports = heartbeats.indexers();
    let slices = reports.flat_map(|(node, report)| report.slices.iter().map(move |s| (node, s)));
    let built = slices.filter(|(_, progress)| progress.floor.is_none());
    built.map(|(node, progress)| (progress.slice, node)).collect()
}

/// Returns an index in the form of the planner's input.
fn index(info: &IndexInfo, sizes: &Sizes, built: &SlicesInProgress) -> IndexView {
    let slice = |(no, copies): (usize, Vec<NodeId>)| {
        let no = SliceNo(no as u16);
        let id = SliceId { index: info.id, generation: info.generation, slice: no };
        let (bytes, load) = sizes.get(&id).copied().unwrap_or_default();
        let unfinished = |m: &&SliceMove| m.stage < MoveStage::Done;
        let (under_way, done): (Vec<_>, Vec<_>) =
            info.moves.iter().filter(|m| m.slice == no).partition(unfinished);
        let leaving = done.iter().filter_map(|m| m.from).collect();
        // A slice that is rebuilt moves when it is there.
        let is_built = copies.iter().all(|node| built.contains(&(id, *node)));
        SliceView { copies, busy: !under_way.is_empty() || is_built, leaving, bytes, load }
    };
    IndexView {
        index: info.id,
        generation: info.generation,
        name: info.spec.name.clone(),
        copies: usize::from(info.spec.replicas) + 1,
        movable: info.state == IndexState::Maintenance,
        slices: placement_after_moves(info).into_iter().enumerate().map(slice).collect(),
    }
}

/// Returns an error if the slices of an index cannot be moved.
fn check_movable(state: &StateContext, index: IndexId) -> Result<()> {
    let info = state.index_of_command(index)?;
    if info.state == IndexState::Maintenance {
        return Ok(());
    }
    let (name, is) = (&info.spec.name, info.state.name());
    let what = format!("index \"{name}\" is {is}; slices move while it is online");
    Err(Error::new(ErrorCode::InvalidParameter, what)
        .with_hint("use BUILD INDEX, or wait until the index serves scans"))
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
