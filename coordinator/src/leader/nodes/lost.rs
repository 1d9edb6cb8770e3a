//! Plans the rebuild of slices whose nodes are all silent: other nodes rebuild them after a long
//! time, or when an operator forces the removal of a node.
//!
//! The data directory of a silent node is worth more than a rebuild, during which the index
//! cannot be read either. So the leader waits for `lost_after_ms`. It gives up no slice while
//! more indexers are silent than alive: the cause is then more likely the network, and the few
//! live indexers could not store everything.

use proto::model::ids::NodeId;
use proto::model::index::IndexState;
use proto::model::node::Role;
use proto::rpc::command::{Command, PlacedKind, ReplaceLostSlices};
use proto::{Error, ErrorCode, Result};

use crate::leader::check_timer::CheckTimer;
use crate::leader::moves::settings::MoveSettings;
use crate::leader::nodes::heartbeats::{Heartbeats, SILENT_MS_MAX};
use crate::leader::plan::Plan;
use crate::state::StateContext;
use crate::state::nodes::{OLD_ONES_GO, only_copy_text};

/// The interval between two searches for lost slices, in ms. Such a slice has been without a live
/// copy for minutes.
const LOOK_EVERY_MS: u64 = 3_000;

/// The leader's memory of its checks for lost slices.
#[derive(Debug, Default)]
pub(in crate::leader) struct LostSlices {
    looks: CheckTimer<LOOK_EVERY_MS>,
}

impl LostSlices {
    /// Plans the placement of lost slices on other nodes.
    pub(in crate::leader) fn plan(
        &mut self,
        state: &StateContext,
        heartbeats: &Heartbeats,
        settings: &MoveSettings,
        now_ms: u64,
        plan: &mut Plan,
    ) {
        if !self.looks.is_due(now_ms) {
            return;
        }
        let silent = silent_indexers(state, heartbeats, now_ms);
        if silent.is_empty() {
            return;
        }
        plan.plan_again_at(now_ms + LOOK_EVERY_MS);
        let live = indexers(state).filter(|node| heartbeats.is_alive(*node, now_ms));
        let live: Vec<NodeId> = live.collect();
        let can_receive = live.iter().any(|node| !state.is_draining(*node));
        if live.len() < silent.len() || !can_receive {
            return;
        }
        let silent_for = |ms: u64| {
            let long = |node: &&NodeId| heartbeats.silent_ms(**node, now_ms) >= ms;
            silent.iter().filter(long).copied().collect::<Vec<_>>()
        };
        let lost = settings.lost_after_ms.map(silent_for).unwrap_or_default();
        let lost_to_builds = silent_for(settings.target_silent_ms);
        if state.has_lost(&lost, &lost_to_builds) {
            tracing::warn!(
                ?lost,
                ?lost_to_builds,
                "slices on silent indexers alone are given to others, which rebuild them from the documents"
            );
            plan.commands
                .push(Command::ReplaceLostSlices(ReplaceLostSlices { lost, lost_to_builds }));
        }
    }
}

fn indexers(state: &StateContext) -> impl Iterator<Item = NodeId> {
    state.nodes().filter(|node| node.role == Role::Indexer).map(|node| node.id)
}

/// Returns the indexers from which the leader has received nothing for [`SILENT_MS_MAX`],
/// ascending; none in the first seconds of a term.
pub(in crate::leader) fn silent_indexers(
    state: &StateContext,
    heartbeats: &Heartbeats,
    now_ms: u64,
) -> Vec<NodeId> {
    let is_silent = |node: &NodeId| heartbeats.silent_ms(*node, now_ms) >= SILENT_MS_MAX;
    indexers(state).filter(is_silent).collect()
}

/// Returns the projectors from which the leader has received nothing for [`SILENT_MS_MAX`],
/// ascending.
fn silent_projectors(state: &StateContext, heartbeats: &Heartbeats, now_ms: u64) -> Vec<NodeId> {
    let projectors = state.nodes().filter(|node| node.role == Role::Projector);
    let is_silent = |node: &NodeId| heartbeats.silent_ms(*node, now_ms) >= SILENT_MS_MAX;
    projectors.map(|node| node.id).filter(is_silent).collect()
}

/// Returns the silent nodes that a command should avoid, ascending: indexers if it places slices,
/// projectors if it gives partitions to load.
pub(in crate::leader) fn silent_nodes_for(
    state: &StateContext,
    heartbeats: &Heartbeats,
    command: &Command,
    now_ms: u64,
) -> Vec<NodeId> {
    match command.places() {
        Some(PlacedKind::Slices) => silent_indexers(state, heartbeats, now_ms),
        Some(PlacedKind::Partitions) => silent_projectors(state, heartbeats, now_ms),
        None => Vec::new(),
    }
}

/// Checks that the forced removal of a node does not give up a slice whose only copy is on that
/// node while the node is alive.
pub(in crate::leader) fn check_forced_removal(
    state: &StateContext,
    heartbeats: &Heartbeats,
    node: NodeId,
    now_ms: u64,
) -> Result<()> {
    let silent_ms = heartbeats.silent_ms(node, now_ms);
    let Some((info, slice)) = state.only_copy_on(node).filter(|_| silent_ms < SILENT_MS_MAX) else {
        return Ok(());
    };
    let what = format!("node {node} is alive and has {}", only_copy_text(info, slice));
    let way = match info.state {
        IndexState::Retired => OLD_ONES_GO.to_owned(),
        _ => format!("DRAIN NODE '{node}' moves its slices away"),
    };
    Err(Error::new(ErrorCode::WrongState, what).with_hint(format!(
        "{way}; if its data is lost, stop its process, wait {} seconds and repeat the statement",
        SILENT_MS_MAX / 1_000
    )))
}

#[cfg(test)]
#[path = "lost_tests.rs"]
mod tests;
