//! Queries about the generations of indexes, for scans and for growth.

use std::sync::Arc;

use proto::model::ids::{LocalIndexId, TopologyNo};
use proto::model::index::{GENERATIONS_MAX, IndexState};
use proto::model::topology::IndexTopology;
use proto::{Error, ErrorCode, Result};

use crate::state::indexes::state::IndexesState;

impl IndexesState {
    /// Returns true if a generation with more slices may be begun for a serving index. One
    /// further generation must stay possible for a statement, which would otherwise be refused
    /// until a retired generation is dropped.
    pub(in crate::state) fn can_grow(&self, from: LocalIndexId) -> bool {
        let serves = self
            .get(from.index)
            .is_some_and(|info| info.local_id() == from && info.state == IndexState::Maintenance);
        let count = self.generations_of(from.index).count();
        serves && self.next_generation(from.index).is_none() && count + 1 < GENERATIONS_MAX
    }

    /// Returns a topology of a generation by its number. Returns an error if it is not known:
    /// this member may lag, or the topology was dropped.
    pub(in crate::state) fn topology(
        &self,
        id: LocalIndexId,
        number: TopologyNo,
    ) -> Result<Arc<IndexTopology>> {
        let Some(record) = self.record(id) else {
            let newest = self.newest_generation(id.index);
            let is_behind = newest.map_or(id.index > self.last(), |newest| newest < id.generation);
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
