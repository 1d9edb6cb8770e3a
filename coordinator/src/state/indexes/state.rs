//! The records of indexes, with all of their generations ([`crate::state::indexes::generations`] explains generations).

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::ids::{
    BucketId, Epoch, Generation, IndexId, LocalIndexId, MoveId, NodeId, SliceNo, TopologyNo,
};
use proto::model::index::{IndexInfo, IndexSpec, IndexState};
use proto::model::moves::{EndedMove, MoveStage, SliceMove};
use proto::model::topology::IndexTopology;
use serde::{Deserialize, Serialize};

use crate::state::capacity::limits::PAST_TOPOLOGY_BYTES_IN_ALL_MAX;
use crate::state::capacity::table::{PLACE_BYTES_MAX, TOPOLOGY_BYTES_MAX};
use crate::state::clock::CommandNumbers;
use crate::state::consequence::Consequence;
use crate::state::indexes::placement::{Placement, change_copies, change_placement};
use crate::state::indexes::record::IndexRecord;

/// The records of indexes. Ids are never reused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::state) struct IndexesState {
    /// The last id that was assigned.
    last: u64,
    /// The generation that the name of each index refers to (the *named* generation): the serving
    /// one, or the first one during its build.
    named: BTreeMap<IndexId, IndexRecord>,
    /// The generations that are not named: newer ones being built, and retired ones.
    others: BTreeMap<LocalIndexId, IndexRecord>,
    /// The newest generation that was ever begun, for each index that has had more than one.
    newest: BTreeMap<IndexId, Generation>,
    /// The slice sizes, in bytes, from which indexes grow.
    slice_bytes_max: BTreeMap<IndexId, u64>,
}

impl IndexesState {
    pub(in crate::state) fn last(&self) -> IndexId {
        IndexId(self.last)
    }

    /// Returns the named generations, by index.
    pub(in crate::state) fn named(&self) -> &BTreeMap<IndexId, IndexRecord> {
        &self.named
    }

    /// Returns the generations that are not named.
    pub(in crate::state) fn others(&self) -> &BTreeMap<LocalIndexId, IndexRecord> {
        &self.others
    }

    pub(in crate::state) fn newest(&self) -> &BTreeMap<IndexId, Generation> {
        &self.newest
    }

    pub(in crate::state) fn slice_bytes_max(&self) -> &BTreeMap<IndexId, u64> {
        &self.slice_bytes_max
    }

    /// Iterates over all generations of all indexes: first the named one of each index, by id,
    /// then the others.
    pub(in crate::state) fn all(&self) -> impl Iterator<Item = &IndexRecord> {
        self.named.values().chain(self.others.values())
    }

    pub(in crate::state) fn infos(&self) -> impl Iterator<Item = &Arc<IndexInfo>> {
        self.all().map(|record| &record.info)
    }

    /// Returns the generation that the name of an index refers to; `None` if there is no such
    /// index.
    pub(in crate::state) fn get(&self, index: IndexId) -> Option<&Arc<IndexInfo>> {
        self.named.get(&index).map(|record| &record.info)
    }

    pub(in crate::state) fn id_of(&self, name: &str) -> Option<IndexId> {
        self.named.iter().find(|(_, index)| index.info.spec.name == name).map(|(id, _)| *id)
    }

    /// Iterates over the generations over a bucket that names of indexes refer to.
    pub(in crate::state) fn on_bucket(
        &self,
        bucket: BucketId,
    ) -> impl Iterator<Item = &Arc<IndexInfo>> {
        let infos = self.named.values().map(|record| &record.info);
        infos.filter(move |info| info.bucket == bucket)
    }

    /// The record of a generation.
    pub(in crate::state) fn record(&self, id: LocalIndexId) -> Option<&IndexRecord> {
        let named = self.named.get(&id.index).filter(|record| record.info.local_id() == id);
        named.or_else(|| self.others.get(&id))
    }

    /// Iterates over all generations of an index, the named one first.
    pub(in crate::state) fn generations_of(
        &self,
        index: IndexId,
    ) -> impl Iterator<Item = &Arc<IndexInfo>> {
        let others = self.others.range(LocalIndexId::all_of(index)).map(|(_, record)| &record.info);
        self.get(index).into_iter().chain(others)
    }

    /// Returns the newest generation that was ever begun for an index.
    pub(in crate::state) fn newest_generation(&self, index: IndexId) -> Option<Generation> {
        let named = self.get(index)?.generation;
        Some(self.newest.get(&index).copied().unwrap_or(named))
    }

    /// Returns the generation that is being built to replace the named one.
    pub(in crate::state) fn next_generation(&self, index: IndexId) -> Option<&Arc<IndexInfo>> {
        let mut others = self.others.range(LocalIndexId::all_of(index)).map(|(_, record)| record);
        let next = others.find(|record| record.info.state == IndexState::Backfill);
        next.map(|record| &record.info)
    }

    /// True if a generation is built over a version of a data set that is not current.
    pub(in crate::state) fn is_of_next_version(&self, info: &IndexInfo) -> bool {
        self.get(info.id).is_some_and(|named| named.bucket != info.bucket)
    }

    /// Returns true if all indexes can switch from bucket `from` to bucket `to`: each index on
    /// `from` whose build was begun has a next generation over `to`.
    pub(in crate::state) fn can_switch(&self, from: BucketId, to: BucketId) -> bool {
        let mut begun = self.on_bucket(from).filter(|info| info.state != IndexState::Pending);
        begun.all(|info| self.next_generation(info.id).is_some_and(|next| next.bucket == to))
    }

    #[cfg(test)]
    pub(in crate::state) fn named_mut(&mut self) -> &mut BTreeMap<IndexId, IndexRecord> {
        &mut self.named
    }

    pub(super) fn next_id(&self) -> IndexId {
        IndexId(self.last + 1)
    }

    /// Adds an index under the next id.
    pub(super) fn create(&mut self, info: IndexInfo, now: CommandNumbers) {
        self.last = info.id.0;
        self.named.insert(info.id, IndexRecord::new(info, now.revision, now.unix_ms));
    }

    /// Adds the newest generation of an index.
    pub(super) fn begin_generation(&mut self, info: IndexInfo, now: CommandNumbers) {
        let id = info.local_id();
        self.newest.insert(id.index, id.generation);
        let is_pending = info.state == IndexState::Pending;
        let record = IndexRecord::new(info, now.revision, now.unix_ms);
        if is_pending {
            // No part of the index was built: the new declaration replaces the old one.
            self.named.insert(id.index, record);
        } else {
            self.others.insert(id, record);
            self.renew_named_revision(id.index, now);
        }
    }

    /// Sets the slice size from which an index grows, 0 for never; returns true if it changes.
    pub(super) fn set_slice_bytes_max(&mut self, index: IndexId, bytes: u64) -> bool {
        let before = match bytes {
            0 => self.slice_bytes_max.remove(&index),
            _ => self.slice_bytes_max.insert(index, bytes),
        };
        before.unwrap_or(0) != bytes
    }

    /// Returns the record of a generation, to change it.
    fn record_mut(&mut self, id: LocalIndexId) -> Option<&mut IndexRecord> {
        match self.named.get_mut(&id.index).filter(|record| record.info.local_id() == id) {
            Some(record) => Some(record),
            None => self.others.get_mut(&id),
        }
    }

    /// Returns the ids of all generations.
    fn ids(&self) -> Vec<LocalIndexId> {
        self.infos().map(|info| info.local_id()).collect()
    }

    /// Changes a generation, if it exists.
    pub(super) fn change(
        &mut self,
        id: LocalIndexId,
        now: CommandNumbers,
        change: impl FnOnce(&mut IndexInfo),
    ) {
        if let Some(record) = self.record_mut(id) {
            record.change(now.revision, now.unix_ms, change);
        }
    }

    /// Changes the definition in the generations of an index: in all of them with `retired_too`,
    /// otherwise without the retired ones.
    pub(super) fn change_spec(
        &mut self,
        index: IndexId,
        (now, retired_too): (CommandNumbers, bool),
        change: impl Fn(&mut IndexSpec),
    ) {
        let ids: Vec<LocalIndexId> = self.generations_of(index).map(|of| of.local_id()).collect();
        for id in ids {
            self.change(id, now, |info| {
                if retired_too || info.state != IndexState::Retired {
                    change(Arc::make_mut(&mut info.spec));
                }
            });
        }
    }

    /// Gives the named record of an index a new revision, because the set of its generations has
    /// changed.
    pub(super) fn renew_named_revision(&mut self, index: IndexId, now: CommandNumbers) {
        if let Some(record) = self.named.get_mut(&index) {
            record.change(now.revision, now.unix_ms, |_| {});
        }
    }

    /// Removes all generations of an index.
    pub(super) fn remove(&mut self, index: IndexId) {
        self.named.remove(&index);
        self.others.retain(|id, _| id.index != index);
        self.newest.remove(&index);
        self.slice_bytes_max.remove(&index);
    }

    /// Removes a generation that the name of its index does not refer to. The nodes then drop
    /// their data of it.
    pub(super) fn remove_generation(&mut self, id: LocalIndexId, now: CommandNumbers) {
        self.others.remove(&id);
        self.renew_named_revision(id.index, now);
    }

    /// Makes a generation the serving one of its index, and retires the previous one. Returns the
    /// moves that end by this.
    pub(super) fn serve(&mut self, id: LocalIndexId, now: CommandNumbers) -> Vec<EndedMove> {
        let next = self.others.remove(&id);
        let ended = if next.is_some() { self.retire(id.index, now) } else { Vec::new() };
        self.named.extend(next.map(|next| (id.index, next)));
        self.change(id, now, |info| info.state = IndexState::Maintenance);
        ended
    }

    /// Retires the named generation of an index. An unfinished first build is dropped instead,
    /// since it was never readable. Returns the moves that end by this.
    fn retire(&mut self, index: IndexId, now: CommandNumbers) -> Vec<EndedMove> {
        let Some(info) = self.get(index) else { return Vec::new() };
        if info.state == IndexState::Backfill {
            self.named.remove(&index);
            return Vec::new();
        }
        let id = info.local_id();
        let why = "a newer generation serves the index";
        let ended = self.end_moves(id, now, Some(why), is_unfinished);
        self.change(id, now, |info| info.state = IndexState::Retired);
        self.others.extend(self.named.remove(&index).map(|record| (id, record)));
        ended
    }

    /// Ends those moves of a generation for which `ends` returns true, and returns them. `undone`
    /// is the reason if they are undone.
    fn end_moves(
        &mut self,
        id: LocalIndexId,
        now: CommandNumbers,
        undone: Option<&str>,
        ends: impl Fn(&SliceMove) -> bool,
    ) -> Vec<EndedMove> {
        let Some(record) = self.record_mut(id) else { return Vec::new() };
        if !record.info.moves.iter().any(&ends) {
            return Vec::new();
        }
        let extract = |info: &mut IndexInfo| info.moves.extract_if(.., |m| ends(m)).collect();
        let ended: Vec<SliceMove> = record.change(now.revision, now.unix_ms, extract);
        let end = |was| EndedMove { index: id.index, was, undone: undone.map(str::to_owned) };
        ended.into_iter().map(end).collect()
    }

    /// Ends all moves of slices that have lost all of their copies. Returns the ended moves.
    fn end_moves_of_lost(
        &mut self,
        id: LocalIndexId,
        now: CommandNumbers,
        slices: &[SliceNo],
    ) -> Vec<EndedMove> {
        let is_done = |m: &SliceMove| slices.contains(&m.slice) && m.stage == MoveStage::Done;
        let mut ended = self.end_moves(id, now, None, is_done);
        let why = "the nodes with the slice are lost; another one rebuilds it";
        ended.extend(self.end_moves(id, now, Some(why), |m| slices.contains(&m.slice)));
        ended
    }

    /// Applies a consequence to the indexes. Returns the moves that end by this.
    pub(in crate::state) fn on(
        &mut self,
        consequence: &Consequence,
        now: CommandNumbers,
    ) -> Vec<EndedMove> {
        match consequence {
            Consequence::BucketDropped(bucket) => self.remove_indexes_over(*bucket, now),
            Consequence::RollbackBegun { bucket, .. } => {
                let of_bucket = self.infos().filter(|info| info.bucket == *bucket);
                let ids: Vec<LocalIndexId> = of_bucket.map(|info| info.local_id()).collect();
                let why = Some("the bucket is being rolled back");
                let end = |id| self.end_moves(id, now, why, is_unfinished);
                return ids.into_iter().flat_map(end).collect();
            }
            Consequence::NumbersSkipped(above) => self.continue_above(*above, now),
            Consequence::VersionSwitched { from, to } => return self.switch(*from, *to, now),
            Consequence::GenerationBegun { info, replaces } => {
                self.begin_generation(info.clone(), now);
                replaces.iter().for_each(|id| drop(self.others.remove(id)));
            }
            Consequence::MoveStarted { index, started } => self.start_move(*index, started, now),
            Consequence::MoveAdvanced { generation, id, stage, epoch } => {
                self.change(*generation, now, |info| advance_move(info, *id, *stage, *epoch));
            }
            Consequence::MovesEnded { generation, ids, undone } => {
                let ends = |m: &SliceMove| ids.contains(&m.id);
                return self.end_moves(*generation, now, undone.as_deref(), ends);
            }
            Consequence::CatalogChanged => self.forget_topologies(),
            Consequence::NoTarget { node, why } => return self.undo_moves_to(*node, now, why),
            Consequence::Placed(placements) => self.place(placements, now),
            Consequence::LostPlaced(lost) => {
                let mut ended = Vec::new();
                for (id, slices, placement) in lost {
                    ended.extend(self.end_moves_of_lost(*id, now, slices));
                    self.change(*id, now, |info| change_placement(info, placement.clone()));
                }
                return ended;
            }
            Consequence::IndexerRemoved { node, placements } => {
                return self.remove_node(*node, placements, now);
            }
            _ => {}
        }
        Vec::new()
    }

    fn start_move(&mut self, index: IndexId, started: &SliceMove, now: CommandNumbers) {
        let Some(id) = self.get(index).map(|info| info.local_id()) else { return };
        self.change(id, now, |info| {
            info.moves.push(started.clone());
            place_finished_move(info, started);
        });
    }

    /// Removes the indexes on a bucket, and all generations of other indexes over this bucket.
    fn remove_indexes_over(&mut self, bucket: BucketId, now: CommandNumbers) {
        let indexes: Vec<IndexId> = self.on_bucket(bucket).map(|info| info.id).collect();
        indexes.into_iter().for_each(|index| self.remove(index));
        let over = self.others.iter().filter(|(_, record)| record.info.bucket == bucket);
        let generations: Vec<LocalIndexId> = over.map(|(id, _)| *id).collect();
        generations.into_iter().for_each(|id| self.remove_generation(id, now));
    }

    /// Makes all generations over bucket `to` the serving ones, in place of those over bucket
    /// `from`. Returns the moves that end by this.
    fn switch(&mut self, from: BucketId, to: BucketId, now: CommandNumbers) -> Vec<EndedMove> {
        let indexes: Vec<LocalIndexId> = self.on_bucket(from).map(|info| info.local_id()).collect();
        let mut ended = Vec::new();
        for id in indexes {
            match self.next_generation(id.index).map(|next| next.local_id()) {
                Some(next) => ended.extend(self.serve(next, now)),
                // This generation has no entries yet.
                None => self.change(id, now, |info| info.bucket = to),
            }
        }
        ended
    }

    /// Lets all further ids and topology numbers of indexes begin above `above`.
    fn continue_above(&mut self, above: u64, now: CommandNumbers) {
        self.last = above;
        for record in self.named.values_mut().chain(self.others.values_mut()) {
            record.change(now.revision, now.unix_ms, |info| {
                Arc::make_mut(&mut info.topology).number = TopologyNo(above);
            });
        }
    }

    /// Undoes the unfinished moves to a node, and returns them.
    fn undo_moves_to(&mut self, node: NodeId, now: CommandNumbers, why: &str) -> Vec<EndedMove> {
        let why = format!("target node {node} {why}");
        let goes_there = |m: &SliceMove| is_unfinished(m) && m.to == Some(node);
        let ids = self.ids().into_iter();
        ids.flat_map(|id| self.end_moves(id, now, Some(&why), goes_there)).collect()
    }

    /// Gives generations new placements.
    fn place(&mut self, placements: &[(LocalIndexId, Placement)], now: CommandNumbers) {
        for (id, placement) in placements {
            self.change(*id, now, |info| change_placement(info, placement.clone()));
        }
    }

    /// Removes a node from all topologies and moves. Returns the moves that end by this.
    fn remove_node(
        &mut self,
        node: NodeId,
        placements: &[(LocalIndexId, Placement)],
        now: CommandNumbers,
    ) -> Vec<EndedMove> {
        let mut ended = Vec::new();
        for (id, _) in placements {
            // The new node begins without data, so no move of the slice can continue.
            let info = self.record(*id).map(|record| Arc::clone(&record.info));
            let lost = info.map(|info| slices_only_on(&info, &[node])).unwrap_or_default();
            ended.extend(self.end_moves_of_lost(*id, now, &lost));
        }
        ended.extend(self.undo_moves_to(node, now, "was removed"));
        let left = |m: &SliceMove| m.stage == MoveStage::Done && m.from == Some(node);
        let leaves = |m: &SliceMove| m.from == Some(node);
        for id in self.ids() {
            ended.extend(self.end_moves(id, now, None, left));
            if self.record(id).is_some_and(|record| record.info.moves.iter().any(leaves)) {
                self.change(id, now, |info| {
                    // The target's copy is then an additional one, copied from another source.
                    info.moves.iter_mut().filter(|m| leaves(m)).for_each(|m| m.from = None);
                });
            }
        }
        self.place(placements, now);
        ended
    }

    /// Drops the oldest past topologies of all indexes until the remaining ones fit in a
    /// snapshot. A scan that refers to a dropped topology starts again.
    fn forget_topologies(&mut self) {
        let past = |record: &IndexRecord| {
            let newest = record.topologies.len().saturating_sub(1);
            record.topologies[..newest].iter().map(|t| topology_bytes(&t.topology)).sum::<usize>()
        };
        let mut bytes: usize = self.all().map(past).sum();
        while bytes > PAST_TOPOLOGY_BYTES_IN_ALL_MAX {
            let with_past = self.all().filter(|record| record.topologies.len() > 1);
            let by_age =
                |record: &&IndexRecord| (record.topologies[0].position, record.info.local_id());
            let oldest = with_past.min_by_key(by_age).map(|record| record.info.local_id());
            // Only in a damaged snapshot is a record stored under a wrong key.
            let Some(record) = oldest.and_then(|id| self.record_mut(id)) else { return };
            if record.topologies.len() < 2 {
                return;
            }
            bytes -= topology_bytes(&record.topologies.remove(0).topology);
        }
    }
}

/// Returns the largest size, in bytes, that a topology can have in a snapshot.
fn topology_bytes(topology: &IndexTopology) -> usize {
    let places: usize = topology.placement.iter().map(Vec::len).sum();
    TOPOLOGY_BYTES_MAX + PLACE_BYTES_MAX * places
}

fn is_unfinished(m: &SliceMove) -> bool {
    m.stage < MoveStage::Done
}

/// Takes a move to its next stage.
fn advance_move(info: &mut IndexInfo, id: MoveId, stage: MoveStage, epoch: Epoch) {
    let Some(m) = info.moves.iter_mut().find(|m| m.id == id) else { return };
    (m.stage, m.epoch) = (stage, epoch);
    let advanced = m.clone();
    place_finished_move(info, &advanced);
}

/// Changes the topology by a move that is done; does nothing for an unfinished move.
fn place_finished_move(info: &mut IndexInfo, m: &SliceMove) {
    if m.stage == MoveStage::Done {
        change_copies(info, m.slice, m.from, m.to);
    }
}

/// Returns the slices of an index that have copies on these nodes only. Returns none if the build
/// has not begun, since such an index has no data.
pub(in crate::state) fn slices_only_on(info: &IndexInfo, nodes: &[NodeId]) -> Vec<SliceNo> {
    if info.state == IndexState::Pending {
        return Vec::new();
    }
    let is_alone = |copies: &Vec<NodeId>| copies.iter().all(|node| nodes.contains(node));
    let all = info.topology.placement.iter().enumerate();
    all.filter(|(_, copies)| is_alone(copies)).map(|(slice, _)| SliceNo(slice as u16)).collect()
}
