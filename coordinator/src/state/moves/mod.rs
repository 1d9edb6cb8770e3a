//! Moves of slices.
//!
//! A move is stored in its index from StartMoves until EndMove, so that all services see it. The
//! last ended moves are kept. The leader takes a move from stage to stage. Only the command that
//! makes a move `done` changes the topology; until then a move can be undone without a trace.
//!
//! - A slice has at most one move that is not `done`. A move that is `done` and waits to be
//!   forgotten blocks nothing, except that the node which it leaves cannot be a target.
//! - The last copy of a slice is never removed: `from` leaves the topology when `to` enters it, and
//!   a copy is removed without a replacement only if another copy stays.
//! - Removing a node removes its part of all moves (see `nodes`).

pub mod hand_overs;
pub mod state;

use std::sync::Arc;

use proto::model::ids::{LocalIndexId, MoveId, NodeId, SliceNo};
use proto::model::index::{IndexInfo, IndexState};
use proto::model::moves::{MoveStage, PlannedMove, SliceMove};
use proto::model::node::Role;
use proto::model::topology::TopologyProvider;
use proto::rpc::command::{AdvanceMove, CancelMoves, EndMove, Outcome, StartMoves};
use proto::{Error, ErrorCode, Result};

use crate::state::capacity::table::MOVES;
use crate::state::consequence::Consequence;
use crate::state::context::StateContext;
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, catalog_changed, changed_if, nothing};

impl Apply for StartMoves {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let mut ids = Vec::new();
        let mut refusal = None;
        for planned in &self.moves {
            match check_move(state, planned) {
                Ok(()) => ids.extend(start_move(state, planned)),
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        match refusal {
            Some(error) if ids.is_empty() => Err(error),
            _ => Ok((Outcome::Moves(ids.clone()), changed_if(!ids.is_empty()))),
        }
    }
}

impl Apply for AdvanceMove {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let Self { index, id, stage } = *self;
        let before = match stage {
            MoveStage::Pending => Some(MoveStage::Start),
            MoveStage::Catchup => Some(MoveStage::Pending),
            MoveStage::Done => Some(MoveStage::Catchup),
            MoveStage::Start => None,
        };
        // The move may have been dropped, ended or advanced since the leader looked.
        let stands = |m: &SliceMove| m.id == id && Some(m.stage) == before;
        let bucket = state.indexes.get(index).map(|info| info.bucket);
        let epoch = bucket.and_then(|bucket| state.epochs.newest(bucket));
        let generation = state.indexes.generations_of(index).find(|of| of.moves.iter().any(stands));
        let generation = generation.map(|of| of.local_id());
        let (Some(generation), Some(epoch)) = (generation, epoch) else { return nothing() };
        state.carry_out(&Consequence::MoveAdvanced { generation, id, stage, epoch });
        catalog_changed()
    }
}

impl Apply for EndMove {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let ends = |m: &SliceMove| {
            m.id == self.id && (m.stage == MoveStage::Done) == self.undone.is_none()
        };
        let generation =
            state.indexes.generations_of(self.index).find(|of| of.moves.iter().any(ends));
        let generation = generation.map(|of| of.local_id());
        let Some(generation) = generation else { return nothing() };
        let (ids, undone) = (vec![self.id], self.undone.clone());
        state.carry_out(&Consequence::MovesEnded { generation, ids, undone });
        catalog_changed()
    }
}

impl Apply for CancelMoves {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        if let Some(index) = self.index {
            state.index_of_command(index)?;
        }
        let is_meant = |info: &&Arc<IndexInfo>| self.index.is_none_or(|index| info.id == index);
        let unfinished = |info: &IndexInfo| -> Vec<MoveId> {
            let moves = info.moves.iter().filter(|m| m.stage < MoveStage::Done);
            moves.map(|m| m.id).collect()
        };
        let of_generations = state.indexes.infos().filter(is_meant);
        let cancelled: Vec<(LocalIndexId, Vec<MoveId>)> =
            of_generations.map(|info| (info.local_id(), unfinished(info))).collect();
        let mut ended = Vec::new();
        for (generation, ids) in cancelled {
            ended.extend(ids.iter().copied());
            let undone = Some("cancelled".to_owned());
            state.carry_out(&Consequence::MovesEnded { generation, ids, undone });
        }
        let effects = changed_if(!ended.is_empty());
        Ok((Outcome::Moves(ended), effects))
    }
}

/// Checks that a planned move is possible now.
fn check_move(state: &StateContext, planned: &PlannedMove) -> Result<()> {
    let moves: usize = state.indexes.infos().map(|info| info.moves.len()).sum();
    MOVES.check(moves + 1).map_err(|error| Error { code: ErrorCode::Unavailable, ..error })?;
    let index = planned.index;
    // Only slices of the serving generation move.
    let Some(info) = state.indexes.get(index) else {
        return Err(Error::new(ErrorCode::Unknown, format!("index {index} does not exist")));
    };
    let of = |error: Error| {
        error.context(format!("move slice {} of \"{}\"", planned.slice, info.spec.name))
    };
    let bad = |what: String| of(Error::new(ErrorCode::InvalidParameter, what));
    let wait = |what: String| of(Error::unavailable(what));
    if info.generation != planned.generation || planned.slice.0 >= info.topology.slices() {
        let slices = info.topology.slices();
        return Err(bad(format!("generation {} has {slices} slices", info.generation)));
    }
    if state.buckets.is_rolling_back(info.bucket) {
        return Err(wait("the bucket is being rolled back".into())
            .with_hint("wait until the rollback has ended (SHOW ROLLBACKS)"));
    }
    if info.state != IndexState::Maintenance {
        return Err(wait(format!("the index is {}", info.state.name()))
            .with_hint("slices move when the index serves scans"));
    }
    let unfinished = |m: &&SliceMove| m.slice == planned.slice && m.stage < MoveStage::Done;
    if let Some(m) = info.moves.iter().find(unfinished) {
        return Err(wait(format!("move {} of the slice has not ended", m.id))
            .with_hint("wait until the move has ended (SHOW MOVES), or use CANCEL REBALANCE"));
    }
    let hosts = info.topology.replicas(planned.slice);
    match (planned.from, planned.to) {
        (None, None) => return Err(bad("a move needs a source or a target".into())),
        (Some(from), _) if !hosts.contains(&from) => {
            return Err(bad(format!("node {from} has no copy")));
        }
        (Some(from), None) if hosts.len() == 1 => {
            return Err(bad(format!("node {from} has the only copy")));
        }
        _ => {}
    }
    planned.to.map_or(Ok(()), |to| check_target(state, info, (planned.slice, to)).map_err(of))
}

/// Starts a move under the next number. Moves that only remove a copy are done at once.
fn start_move(state: &mut StateContext, planned: &PlannedMove) -> Option<MoveId> {
    let PlannedMove { index, slice, from, to, .. } = *planned;
    let epoch = state.epochs.newest(state.indexes.get(index)?.bucket)?;
    let id = state.moves.assign_number();
    // The removal of a copy needs no preparation.
    let stage = if to.is_some() { MoveStage::Start } else { MoveStage::Done };
    let started = SliceMove { id, slice, from, to, stage, epoch };
    state.carry_out(&Consequence::MoveStarted { index, started });
    Some(id)
}

/// Checks that a node may receive a slice.
fn check_target(
    state: &StateContext,
    info: &IndexInfo,
    (slice, to): (SliceNo, NodeId),
) -> Result<()> {
    let bad = |what: String| Err(Error::new(ErrorCode::InvalidParameter, what));
    match state.nodes.get(to) {
        None => {
            return Err(Error::new(ErrorCode::Unknown, format!("node {to} is not registered")));
        }
        Some(node) if node.role != Role::Indexer => {
            return bad(format!("node {to} is a {}, not an indexer", node.role.name()));
        }
        Some(_) => {}
    }
    if state.is_draining(to) {
        let what = format!("node {to} is being drained");
        return Err(Error::new(ErrorCode::InvalidParameter, what)
            .with_hint("choose another node, or stop draining this one"));
    }
    if info.topology.hosts(to, slice) {
        return bad(format!("node {to} has a copy already"));
    }
    if info.moves.iter().any(|m| m.slice == slice && m.from == Some(to)) {
        let what = format!("scans may still read the copy that node {to} had");
        return Err(
            Error::unavailable(what).with_hint("try again when the node's last move has ended")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests;
