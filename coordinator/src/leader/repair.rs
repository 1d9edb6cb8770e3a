//! What the leader gives the planner, and the repairs that it orders by itself.

use std::collections::BTreeMap;

use proto::model::ids::{IndexId, NodeId, SliceId, SliceNo};
use proto::model::index::{IndexInfo, IndexState};
use proto::model::moves::{MoveStage, RebalancePlan, RebalanceRequest, SliceMove};
use proto::model::node::Role;
use proto::rpc::command::Command;
use proto::{Error, ErrorCode, Result};

use super::heartbeats::{Heartbeats, SILENT_MS_MAX};
use super::move_settings::MoveSettings;
use super::moves::Moves;
use super::plan::Plan;
use crate::planner::{self, Goal, Health, Index, Node, Slice, View};
use crate::state::{StateContext, placement::settled};

/// How often the leader looks whether a node is to be emptied or a copy is missing.
const REPAIR_EVERY_MS: u64 = 3_000;

/// What the nodes say of a slice: the most bytes, and the most entries.
type Sizes = BTreeMap<SliceId, (u64, u64)>;

/// When the leader has repaired.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    /// When repairs were planned last.
    repaired_ms: Option<u64>,
}

impl Repairs {
    /// Orders what must be: every few seconds, since what it sees comes with the heartbeats.
    pub(super) fn plan(
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
        if now_ms < due_ms {
            return plan.look_at(due_ms);
        }
        self.repaired_ms = Some(now_ms);
        plan.look_at(now_ms + REPAIR_EVERY_MS);
        if unheard(state, heartbeats, now_ms).is_none() {
            let repairs = planner::plan(
                &view(state, heartbeats, &moves.settings, None, now_ms),
                Goal::Repair,
            )
            .moves;
            plan.commands.extend(Some(repairs).filter(|m| !m.is_empty()).map(Command::StartMoves));
        }
    }
}

/// Plans a rebalance; of one index, then only what that has on the nodes weighs.
pub(super) fn rebalance(
    state: &StateContext,
    heartbeats: &Heartbeats,
    settings: &MoveSettings,
    request: &RebalanceRequest,
    now_ms: u64,
) -> Result<RebalancePlan> {
    let index = request.index.as_deref().map(|name| movable(state, name)).transpose()?;
    if let Some(node) = unheard(state, heartbeats, now_ms) {
        let what = format!("the leading coordinator has not heard of node {node} yet");
        return Err(Error::unavailable(what).with_hint("try again in a few seconds"));
    }
    Ok(planner::plan(&view(state, heartbeats, settings, index, now_ms), Goal::Balance))
}

/// An indexer that may be alive though this leader, which has just begun, has not heard of it.
fn unheard(state: &StateContext, heartbeats: &Heartbeats, now_ms: u64) -> Option<NodeId> {
    let may_be_silent = heartbeats.leads_ms(now_ms) >= SILENT_MS_MAX;
    let mut indexers = state.nodes().filter(|node| node.role == Role::Indexer);
    let unheard = |node: NodeId| !may_be_silent && !heartbeats.nodes.contains_key(&node);
    indexers.find(|node| unheard(node.id)).map(|node| node.id)
}

fn view(
    state: &StateContext,
    heartbeats: &Heartbeats,
    settings: &MoveSettings,
    only: Option<IndexId>,
    now_ms: u64,
) -> View {
    let sizes = sizes(heartbeats);
    let node = |id, zone: &str| Node {
        node: id,
        zone: zone.to_owned(),
        draining: state.is_draining(id),
        health: health(id, heartbeats, settings, now_ms),
    };
    let indexers = state.nodes().filter(|node| node.role == Role::Indexer);
    let wanted = |info: &&IndexInfo| only.is_none_or(|only| info.id == only);
    View {
        nodes: indexers.map(|info| node(info.id, &info.zone)).collect(),
        indexes: state
            .indexes()
            .map(|record| &*record.info)
            .filter(wanted)
            .map(|info| index(info, &sizes))
            .collect(),
    }
}

fn health(node: NodeId, heartbeats: &Heartbeats, settings: &MoveSettings, now_ms: u64) -> Health {
    if heartbeats.lives(node, now_ms) {
        Health::Alive
    } else if heartbeats.silent_ms(node, now_ms) < settings.node_gone_ms {
        Health::Silent
    } else {
        Health::Gone
    }
}

fn sizes(heartbeats: &Heartbeats) -> Sizes {
    let mut sizes = Sizes::new();
    for said in heartbeats.nodes.values().flat_map(|heard| &heard.heartbeat.slices) {
        let (bytes, entries) = sizes.entry(said.slice).or_default();
        *bytes = said.bytes.max(*bytes);
        *entries = said.entries.max(*entries);
    }
    sizes
}

fn index(info: &IndexInfo, sizes: &Sizes) -> Index {
    let slice = |(no, copies)| {
        let no = SliceNo(no as u16);
        let id = SliceId { index: info.id, generation: info.generation, slice: no };
        let (bytes, load) = sizes.get(&id).copied().unwrap_or_default();
        let unfinished = |m: &&SliceMove| m.stage < MoveStage::Done;
        let (under_way, done): (Vec<_>, Vec<_>) =
            info.moves.iter().filter(|m| m.slice == no).partition(unfinished);
        let leaving = done.iter().filter_map(|m| m.from).collect();
        Slice { copies, busy: !under_way.is_empty(), leaving, bytes, load }
    };
    Index {
        index: info.id,
        generation: info.generation,
        name: info.spec.name.clone(),
        copies: usize::from(info.spec.replicas) + 1,
        movable: info.state == IndexState::Maintenance,
        slices: settled(info).into_iter().enumerate().map(slice).collect(),
    }
}

fn movable(state: &StateContext, name: &str) -> Result<IndexId> {
    let mut infos = state.indexes().map(|record| &record.info);
    let Some(info) = infos.find(|info| info.spec.name == name) else {
        return Err(Error::new(ErrorCode::Unknown, format!("index \"{name}\" does not exist")));
    };
    if info.state == IndexState::Maintenance {
        return Ok(info.id);
    }
    let what = format!("index \"{name}\" is in {}: its slices do not move", info.state.name());
    Err(Error::new(ErrorCode::InvalidParameter, what)
        .with_hint("BUILD INDEX it, or wait until it serves scans"))
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
