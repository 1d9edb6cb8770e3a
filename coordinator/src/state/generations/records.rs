//! The records of generations: finding, changing and removing them.

use std::sync::Arc;

use proto::model::ids::{Generation, IndexId, LocalIndexId, TopologyNo};
use proto::model::index::{IndexInfo, IndexState};
use proto::model::topology::IndexTopology;
use proto::{Error, ErrorCode, Result};

use crate::state::context::StateContext;
use crate::state::indexes::record::IndexRecord;

impl StateContext {
    /// The record of a generation.
    pub(in crate::state) fn record(&self, id: LocalIndexId) -> Option<&IndexRecord> {
        let shown = self.indexes.get(&id.index).filter(|record| record.info.local_id() == id);
        shown.or_else(|| self.generations.get(&id))
    }

    pub(in crate::state) fn record_mut(&mut self, id: LocalIndexId) -> Option<&mut IndexRecord> {
        match self.indexes.get_mut(&id.index).filter(|record| record.info.local_id() == id) {
            Some(record) => Some(record),
            None => self.generations.get_mut(&id),
        }
    }

    /// All generations, in the order of [`Self::indexes`].
    pub(in crate::state) fn local_ids(&self) -> Vec<LocalIndexId> {
        self.indexes().map(|record| record.info.local_id()).collect()
    }

    /// All generations of an index, the one that its name means first.
    pub(in crate::state) fn generations_of(&self, index: IndexId) -> Vec<LocalIndexId> {
        let shown = self.indexes.get(&index).map(|record| record.info.local_id());
        let beside = self.generations.range(LocalIndexId::all_of(index)).map(|(id, _)| *id);
        shown.into_iter().chain(beside).collect()
    }

    /// The newest generation that was ever begun of an index.
    pub(crate) fn newest_generation(&self, index: IndexId) -> Option<Generation> {
        let shown = self.indexes.get(&index)?.info.generation;
        Some(self.newest_generations.get(&index).copied().unwrap_or(shown))
    }

    /// The generation that is being built to take the place of an index.
    pub(in crate::state) fn next_generation(&self, index: IndexId) -> Option<LocalIndexId> {
        let mut beside = self.generations.range(LocalIndexId::all_of(index));
        let is_built = |record: &IndexRecord| record.info.state == IndexState::Backfill;
        beside.find(|(_, record)| is_built(record)).map(|(id, _)| *id)
    }

    /// Changes a generation, if it is there.
    pub(in crate::state) fn change_index(
        &mut self,
        id: LocalIndexId,
        change: impl FnOnce(&mut IndexInfo),
    ) {
        let (revision, unix_ms) = (self.revision(), self.unix_ms);
        if let Some(record) = self.record_mut(id) {
            record.change(revision, unix_ms, change);
        }
    }

    /// Records a change of the set of an index's generations in the record that the name means.
    pub(in crate::state) fn note_generations(&mut self, index: IndexId) {
        let (revision, unix_ms) = (self.revision(), self.unix_ms);
        if let Some(record) = self.indexes.get_mut(&index) {
            record.change(revision, unix_ms, |_| {});
        }
    }

    /// Removes all generations of an index.
    pub(in crate::state) fn remove_index(&mut self, index: IndexId) {
        self.indexes.remove(&index);
        self.generations.retain(|id, _| id.index != index);
        self.newest_generations.remove(&index);
        self.slice_bytes_max.remove(&index);
    }

    /// Returns a topology of a generation by its number. A member that lags may not have the newest topologies yet.
    pub fn topology(&self, id: LocalIndexId, number: TopologyNo) -> Result<Arc<IndexTopology>> {
        let Some(record) = self.record(id) else {
            let newest = self.newest_generation(id.index);
            let is_behind =
                newest.map_or(id.index.0 > self.last_index, |newest| newest < id.generation);
            return Err(match is_behind {
                true => Error::unavailable(format!("index {id} does not exist"))
                    .with_hint("this coordinator member is behind"),
                false => Error::new(ErrorCode::Unknown, format!("index {id} no longer exists"))
                    .with_hint("begin the scan anew"),
            });
        };
        let newest = record.info.topology.number;
        record.topology(number).cloned().ok_or_else(|| match number > newest {
            true => Error::unavailable(format!(
                "topology {number} of index {id} is not known here yet; the newest is {newest}"
            ))
            .with_hint("this coordinator member is behind"),
            false => Error::new(
                ErrorCode::SnapshotTooOld,
                format!("topology {number} of index {id} is no longer remembered"),
            )
            .with_hint("begin the scan anew"),
        })
    }
}
