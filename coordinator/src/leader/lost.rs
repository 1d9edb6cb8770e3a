//! Slices whose nodes are all silent: after a long time other nodes rebuild them, and what an operator forces.
//!
//! The data directory of a silent node is worth more than a rebuild, during which the index cannot be read either. So the leader waits
//! for `lost_after_ms`. It gives nothing up while more indexers are silent than alive: then it is rather the network, and the
//! few others could not keep everything.

use proto::model::ids::NodeId;
use proto::model::index::IndexState;
use proto::model::node::Role;
use proto::rpc::command::Command;
use proto::{Error, ErrorCode, Result};

use super::heartbeats::{Heartbeats, SILENT_MS_MAX};
use super::looks::Looks;
use super::move_settings::MoveSettings;
use super::plan::Plan;
use crate::state::StateContext;
use crate::state::nodes::{OLD_ONES_GO, only_copy_of};

/// The time between two looks for lost slices, which are lost for minutes by then.
const LOOK_EVERY_MS: u64 = 3_000;

/// The leader's memory of its looks for lost slices.
#[derive(Debug, Default)]
pub(super) struct LostSlices {
    looks: Looks<LOOK_EVERY_MS>,
}

impl LostSlices {
    /// Plans to give the lost slices to other nodes.
    pub(super) fn plan(
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
        plan.look_at(now_ms + LOOK_EVERY_MS);
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
            let command = Box::new(Command::PlaceLost { lost, lost_to_builds });
            plan.commands.push(Command::Avoiding { silent, command });
        }
    }
}

fn indexers(state: &StateContext) -> impl Iterator<Item = NodeId> {
    state.nodes().filter(|node| node.role == Role::Indexer).map(|node| node.id)
}

/// The indexers that the leader has not heard of for [`SILENT_MS_MAX`], ascending. In the first seconds of its term there are none.
pub(super) fn silent_indexers(
    state: &StateContext,
    heartbeats: &Heartbeats,
    now_ms: u64,
) -> Vec<NodeId> {
    let is_silent = |node: &NodeId| heartbeats.silent_ms(*node, now_ms) >= SILENT_MS_MAX;
    indexers(state).filter(is_silent).collect()
}

/// The projectors that the leader has not heard of for [`SILENT_MS_MAX`], ascending.
fn silent_projectors(state: &StateContext, heartbeats: &Heartbeats, now_ms: u64) -> Vec<NodeId> {
    let projectors = state.nodes().filter(|node| node.role == Role::Projector);
    let is_silent = |node: &NodeId| heartbeats.silent_ms(*node, now_ms) >= SILENT_MS_MAX;
    projectors.map(|node| node.id).filter(is_silent).collect()
}

/// Names the silent indexers to a command that places slices, and the silent projectors to one that places partitions.
pub(super) fn avoiding_silent(
    state: &StateContext,
    heartbeats: &Heartbeats,
    command: Command,
    now_ms: u64,
) -> Command {
    if is_load(&command) {
        return avoiding(silent_projectors(state, heartbeats, now_ms), command);
    }
    let places = match &command {
        Command::Create { command, .. } => {
            matches!(**command, Command::CreateIndex { .. } | Command::BuildGeneration { .. })
        }
        Command::BuildIndexes { .. }
        | Command::DrainNode { drain: true, .. }
        | Command::RemoveNode { .. }
        | Command::RemoveNodeForced { .. } => true,
        _ => false,
    };
    let silent = if places { silent_indexers(state, heartbeats, now_ms) } else { Vec::new() };
    avoiding(silent, command)
}

/// Names silent nodes to a command, if there are any.
pub(super) fn avoiding(silent: Vec<NodeId>, command: Command) -> Command {
    match silent.is_empty() {
        true => command,
        false => Command::Avoiding { silent, command: Box::new(command) },
    }
}

/// True for a command that gives partitions to projectors.
fn is_load(command: &Command) -> bool {
    let Command::Create { command, .. } = command else { return false };
    matches!(**command, Command::LoadVersion { .. } | Command::AllowEmpty { .. })
}

/// Checks that a forced removal gives up no copy of an indexer that is alive.
pub(super) fn judge_forced(
    state: &StateContext,
    heartbeats: &Heartbeats,
    node: NodeId,
    now_ms: u64,
) -> Result<()> {
    let silent_ms = heartbeats.silent_ms(node, now_ms);
    let Some((info, slice)) = state.only_copy_on(node).filter(|_| silent_ms < SILENT_MS_MAX) else {
        return Ok(());
    };
    let what = format!("node {node} is alive and has {}", only_copy_of(info, slice));
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
