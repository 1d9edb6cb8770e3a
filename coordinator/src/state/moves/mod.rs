//! Moves of slices.
//!
//! A move is stored in its index from StartMoves until EndMove, so that all services see it. The ends of the last
//! moves are kept. The leader takes a move from stage to stage. Only the command that makes a move `done` changes the
//! topology; until then a move can be undone without a trace.
//!
//! - A slice has at most one move that is not `done`. A move that is `done` and waits to be forgotten blocks nothing,
//!   except that the node which it leaves cannot be a target.
//! - The last copy of a slice is never removed: `from` leaves the topology when `to` enters it, and a copy is removed
//!   without a replacement only if another copy stays.
//! - Removing a node removes its part of all moves (see `nodes`).

pub mod hand_overs;

use proto::model::ids::{BucketId, Epoch, IndexId, LocalIndexId, MoveId, NodeId, SliceNo};
use proto::model::index::{IndexInfo, IndexState};
use proto::model::moves::{EndedMove, MoveStage, PlannedMove, SliceMove};
use proto::model::node::Role;
use proto::model::topology::TopologyProvider;
use proto::rpc::command::{
    AdvanceMove, CancelHandOver, CancelMoves, EndMove, HandOver, HandedOver, Outcome, StartMoves,
};
use proto::{Error, ErrorCode, Result};

use crate::state::capacity::limits::{ENDED_MOVES_MAX, REASON_BYTES_MAX, beginning};
use crate::state::context::StateContext;
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, Effect};
use crate::state::indexes::placement::change_copies;
use crate::state::indexes::record::IndexRecord;

impl Apply for StartMoves {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.start_moves(&self.moves)
    }
}

impl Apply for AdvanceMove {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.advance_move(self.index, self.id, self.stage)
    }
}

impl Apply for EndMove {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.end_move(self.index, self.id, self.undone.as_deref())
    }
}

impl Apply for CancelMoves {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.cancel_moves(self.index)
    }
}

impl Apply for HandOver {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.hand_over(self.bucket, &self.vbuckets, self.to)
    }
}

impl Apply for HandedOver {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.handed_over(self.bucket, self.number)
    }
}

impl Apply for CancelHandOver {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.cancel_hand_over(self.bucket)
    }
}

impl StateContext {
    pub(in crate::state) fn start_moves(&mut self, moves: &[PlannedMove]) -> Change {
        let mut ids = Vec::new();
        let mut refusal = None;
        for planned in moves {
            match self.check_move(planned) {
                Ok(()) => ids.extend(self.start_move(planned)),
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        match refusal {
            Some(error) if ids.is_empty() => Err(error),
            _ if ids.is_empty() => Ok((Outcome::Moves(ids), Vec::new())),
            _ => Ok((Outcome::Moves(ids), vec![Effect::CatalogChanged])),
        }
    }

    /// Checks that a move is possible.
    fn check_move(&self, planned: &PlannedMove) -> Result<()> {
        self.check_room_for_move()?;
        let index = planned.index;
        // Only slices of the serving generation move.
        let Some(info) = self.indexes.get(&index).map(|record| &record.info) else {
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
        self.check_not_rolling_back(info.bucket).map_err(of)?;
        if info.state != IndexState::Maintenance {
            return Err(wait(format!("the index is {}", info.state.name()))
                .with_hint("slices move when the index serves scans"));
        }
        if let Some(m) = self.unfinished(info, planned.slice) {
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
        planned.to.map_or(Ok(()), |to| self.check_target(info, planned.slice, to).map_err(of))
    }

    /// Checks that slices of the bucket may move now.
    fn check_not_rolling_back(&self, bucket: BucketId) -> Result<()> {
        match self.buckets.get(&bucket).and_then(|known| known.info.rollback.as_ref()) {
            Some(_) => Err(Error::unavailable("the bucket is being rolled back")
                .with_hint("wait until the rollback has ended (SHOW ROLLBACKS)")),
            None => Ok(()),
        }
    }

    fn check_target(&self, info: &IndexInfo, slice: SliceNo, to: NodeId) -> Result<()> {
        let bad = |what: String| Err(Error::new(ErrorCode::InvalidParameter, what));
        match self.nodes.get(&to) {
            None => {
                return Err(Error::new(ErrorCode::Unknown, format!("node {to} is not registered")));
            }
            Some(node) if node.role != Role::Indexer => {
                return bad(format!("node {to} is a {}, not an indexer", node.role.name()));
            }
            Some(_) => {}
        }
        if self.draining.contains(&to) {
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

    fn unfinished<'a>(&self, info: &'a IndexInfo, slice: SliceNo) -> Option<&'a SliceMove> {
        info.moves.iter().find(|m| m.slice == slice && m.stage < MoveStage::Done)
    }

    fn start_move(&mut self, planned: &PlannedMove) -> Option<MoveId> {
        let revision = self.revision();
        let record = self.indexes.get_mut(&planned.index)?;
        let epoch = self.buckets.get(&record.info.bucket)?.epochs.last().epoch;
        self.last_move += 1;
        let id = MoveId(self.last_move);
        let PlannedMove { slice, from, to, .. } = *planned;
        // The removal of a copy needs no preparation.
        let stage = if to.is_some() { MoveStage::Start } else { MoveStage::Done };
        record.change(revision, self.unix_ms, |info| {
            info.moves.push(SliceMove { id, slice, from, to, stage, epoch });
            if stage == MoveStage::Done {
                change_copies(info, slice, from, to);
            }
        });
        Some(id)
    }

    pub(in crate::state) fn advance_move(
        &mut self,
        index: IndexId,
        id: MoveId,
        stage: MoveStage,
    ) -> Change {
        let before = match stage {
            MoveStage::Pending => Some(MoveStage::Start),
            MoveStage::Catchup => Some(MoveStage::Pending),
            MoveStage::Done => Some(MoveStage::Catchup),
            MoveStage::Start => None,
        };
        let (epoch, revision, unix_ms) =
            (self.newest_epoch_of(index), self.revision(), self.unix_ms);
        // The move may have been dropped, ended or advanced since the leader looked.
        let stands = |m: &&SliceMove| m.id == id && Some(m.stage) == before;
        let generation = self.generation_with(index, id);
        let record = generation.and_then(|id| self.record_mut(id));
        let (Some(record), Some(epoch)) = (record, epoch) else {
            return Ok((Outcome::Done, Vec::new()));
        };
        let Some(&SliceMove { slice, from, to, .. }) = record.info.moves.iter().find(stands) else {
            return Ok((Outcome::Done, Vec::new()));
        };
        record.change(revision, unix_ms, |info| {
            info.moves.iter_mut().filter(|m| m.id == id).for_each(|m| {
                (m.stage, m.epoch) = (stage, epoch);
            });
            if stage == MoveStage::Done {
                change_copies(info, slice, from, to);
            }
        });
        Ok((Outcome::Done, vec![Effect::CatalogChanged]))
    }

    fn newest_epoch_of(&self, index: IndexId) -> Option<Epoch> {
        let bucket: BucketId = self.indexes.get(&index)?.info.bucket;
        Some(self.buckets.get(&bucket)?.epochs.last().epoch)
    }

    pub(in crate::state) fn end_move(
        &mut self,
        index: IndexId,
        id: MoveId,
        undone: Option<&str>,
    ) -> Change {
        let ends = |m: &SliceMove| m.id == id && (m.stage == MoveStage::Done) == undone.is_none();
        let ended = match self.generation_with(index, id) {
            Some(generation) => self.end_moves(generation, undone, ends),
            None => Vec::new(),
        };
        Ok((Outcome::Done, catalog_changed(!ended.is_empty())))
    }

    /// The generation of an index that has a move.
    fn generation_with(&self, index: IndexId, id: MoveId) -> Option<LocalIndexId> {
        let has_it = |record: &&IndexRecord| record.info.moves.iter().any(|m| m.id == id);
        let generations = self.generations_of(index).into_iter();
        generations
            .filter_map(|id| self.record(id))
            .find(has_it)
            .map(|record| record.info.local_id())
    }

    pub(in crate::state) fn cancel_moves(&mut self, index: Option<IndexId>) -> Change {
        let generations = match index {
            Some(index) => self.generations_of(self.index_of_command(index)?.id),
            None => self.local_ids(),
        };
        let unfinished = |m: &SliceMove| m.stage < MoveStage::Done;
        let cancel = |id| self.end_moves(id, Some("cancelled"), unfinished);
        let ended: Vec<MoveId> = generations.into_iter().flat_map(cancel).collect();
        let effects = catalog_changed(!ended.is_empty());
        Ok((Outcome::Moves(ended), effects))
    }

    /// Ends the moves of a generation that `meant` selects, and records how they ended.
    pub(in crate::state) fn end_moves(
        &mut self,
        id: LocalIndexId,
        undone: Option<&str>,
        meant: impl Fn(&SliceMove) -> bool,
    ) -> Vec<MoveId> {
        let (revision, unix_ms) = (self.revision(), self.unix_ms);
        let Some(record) = self.record_mut(id) else { return Vec::new() };
        if !record.info.moves.iter().any(&meant) {
            return Vec::new();
        }
        let ended: Vec<SliceMove> = record
            .change(revision, unix_ms, |info| info.moves.extract_if(.., |m| meant(m)).collect());
        let ids = ended.iter().map(|m| m.id).collect();
        let undone = undone.map(|why| beginning(why, REASON_BYTES_MAX).to_owned());
        let end = |was| EndedMove { index: id.index, was, undone: undone.clone() };
        self.ended_moves.extend(ended.into_iter().map(end));
        let surplus = self.ended_moves.len().saturating_sub(ENDED_MOVES_MAX);
        self.ended_moves.drain(..surplus);
        ids
    }
}

pub(in crate::state) fn catalog_changed(changed: bool) -> Vec<Effect> {
    if changed { vec![Effect::CatalogChanged] } else { Vec::new() }
}

#[cfg(test)]
mod tests;
