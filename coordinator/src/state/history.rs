//! An index with the states that its topology had.
//!
//! A scan keeps the topology that it began under, by number, and asks for it again when it goes on at
//! another router. So the states that a scan may still name are remembered: those that held during the
//! longest life of a scan, and some more. Each state has a number of its own, which only grows.

use std::sync::Arc;

use proto::model::ids::{IndexId, NodeId, SliceNo, TopologyNo};
use proto::model::index::IndexInfo;
use proto::model::topology::IndexTopology;
use proto::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};

use super::StateContext;
use crate::planner::replace_copy;

/// Remembered in any case, however old.
const TOPOLOGIES_MIN: usize = 64;
/// Those that held within this time are remembered too: longer than a scan holds back the horizon.
const KEPT_MS: u64 = 15 * 60 * 1000;
/// Places (a copy of a slice on a node) that the remembered states of an index may name: beyond that only
/// [`TOPOLOGIES_MIN`] of them are kept. A few hundred KiB of a snapshot.
const PLACES_MAX: usize = 1 << 17;

/// An index and where its slices have been.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexRecord {
    /// What the cluster knows of it.
    pub info: Arc<IndexInfo>,
    /// The topologies that it had, the newest last.
    pub topologies: Vec<TopologyRecord>,
}

/// A topology and since when it holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopologyRecord {
    /// The topology.
    pub topology: Arc<IndexTopology>,
    /// The log position at which it came to hold.
    pub position: u64,
    /// The time at which it came to hold.
    pub unix_ms: u64,
}

impl IndexRecord {
    pub(super) fn new(mut info: IndexInfo, position: u64, unix_ms: u64) -> Self {
        info.revision = position;
        let topology = info.topology.clone();
        let topologies = vec![TopologyRecord { topology, position, unix_ms }];
        Self { info: Arc::new(info), topologies }
    }

    /// Changes the index; a new topology gets its place in the history.
    pub(super) fn change<T>(
        &mut self,
        position: u64,
        unix_ms: u64,
        change: impl FnOnce(&mut IndexInfo) -> T,
    ) -> T {
        let before = self.info.topology.number;
        let info = Arc::make_mut(&mut self.info);
        let result = change(info);
        info.revision = position;
        if self.info.topology.number != before {
            let topology = self.info.topology.clone();
            self.topologies.push(TopologyRecord { topology, position, unix_ms });
            self.forget(unix_ms);
        }
        result
    }

    /// A state of its topology, if it is remembered.
    pub fn topology(&self, number: TopologyNo) -> Option<&Arc<IndexTopology>> {
        let numbers = |record: &TopologyRecord| record.topology.number;
        let at = self.topologies.binary_search_by_key(&number, numbers).ok()?;
        Some(&self.topologies[at].topology)
    }

    fn forget(&mut self, unix_ms: u64) {
        let places: usize = self.info.topology.placement.iter().map(Vec::len).sum();
        let most = (PLACES_MAX / places.max(1)).max(TOPOLOGIES_MIN);
        let old = |next: &TopologyRecord| next.unix_ms.saturating_add(KEPT_MS) < unix_ms;
        // A state ceased to hold when the next one began.
        let of_age = self.topologies.iter().skip(1).take_while(|next| old(next)).count();
        let surplus = of_age.max(self.topologies.len().saturating_sub(most));
        let surplus = surplus.min(self.topologies.len().saturating_sub(TOPOLOGIES_MIN));
        self.topologies.drain(..surplus);
    }
}

impl StateContext {
    /// A state of an index's topology. A member that is behind does not know the newest ones yet.
    pub fn topology(&self, index: IndexId, number: TopologyNo) -> Result<Arc<IndexTopology>> {
        let Some(record) = self.indexes.get(&index) else {
            let what = format!("index {index} does not exist");
            return Err(match index.0 > self.last_index {
                true => Error::unavailable(what).with_hint("this coordinator member is behind"),
                false => Error::new(ErrorCode::Unknown, what),
            });
        };
        let newest = record.info.topology.number;
        record.topology(number).cloned().ok_or_else(|| match number > newest {
            true => Error::unavailable(format!(
                "topology {number} of index {index} is not known here yet; the newest is {newest}"
            ))
            .with_hint("this coordinator member is behind"),
            false => Error::new(
                ErrorCode::SnapshotTooOld,
                format!("topology {number} of index {index} is no longer remembered"),
            )
            .with_hint("begin the scan anew"),
        })
    }
}

/// Gives a slice another node, or a node more or less, as the next state of the topology.
pub(super) fn change_copies(
    info: &mut IndexInfo,
    slice: SliceNo,
    from: Option<NodeId>,
    to: Option<NodeId>,
) {
    let mut placement = info.topology.placement.clone();
    if let Some(copies) = placement.get_mut(usize::from(slice.0)) {
        replace_copy(copies, from, to);
    }
    change_placement(info, placement);
}

/// The next state of the topology.
pub(super) fn change_placement(info: &mut IndexInfo, placement: Vec<Vec<NodeId>>) {
    let number = TopologyNo(info.topology.number.0 + 1);
    info.topology = Arc::new(IndexTopology { number, placement });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::tests::{apply, create_index, spec, with_bucket};

    fn record() -> IndexRecord {
        let mut state = with_bucket();
        apply(&mut state, create_index(spec("i")));
        state.indexes.remove(&IndexId(1)).unwrap()
    }

    /// Moves slice 0 to and fro.
    fn turn(record: &mut IndexRecord, unix_ms: u64) {
        record.change(0, unix_ms, |info| {
            let from = info.topology.placement[0][0];
            let to = NodeId(if from.0 == 20 { 40 } else { 20 });
            change_copies(info, SliceNo(0), Some(from), Some(to));
        });
    }

    #[test]
    fn topologies_are_remembered_while_a_scan_may_name_them() {
        let mut record = record();
        (0..1000).for_each(|n| turn(&mut record, n * 500));
        assert_eq!(record.topologies.len(), 1001, "all of eight minutes");
        let first = record.topology(TopologyNo(1)).unwrap();
        assert_eq!(first.placement[0][0], NodeId(20));
        turn(&mut record, 500 * 500 + KEPT_MS);
        let oldest = &record.topologies[0].topology;
        assert_eq!(oldest.number, TopologyNo(501), "it held until the time that is kept began");
        turn(&mut record, 100 * KEPT_MS);
        assert_eq!(record.topologies.len(), TOPOLOGIES_MIN);
        assert!(record.topology(TopologyNo(900)).is_none());
    }

    #[test]
    fn the_history_of_a_large_index_is_bounded() {
        let mut record = record();
        record.change(0, 0, |info| change_placement(info, vec![vec![NodeId(20); 2]; 512]));
        (0..200).for_each(|n| turn(&mut record, n));
        assert_eq!(record.topologies.len(), PLACES_MAX / 1024);
        let numbers: Vec<u64> = record.topologies.iter().map(|r| r.topology.number.0).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn a_topology_is_found_by_its_number_and_it_is_said_why_not() {
        let mut state = with_bucket();
        apply(&mut state, create_index(spec("i")));
        let code = |index, number| state.topology(index, TopologyNo(number)).unwrap_err().code;
        assert_eq!(state.topology(IndexId(1), TopologyNo(1)).unwrap().placement.len(), 4);
        assert_eq!(code(IndexId(1), 0), ErrorCode::SnapshotTooOld);
        assert_eq!(code(IndexId(1), 2), ErrorCode::Unavailable, "this member may be behind");
        assert_eq!(code(IndexId(2), 1), ErrorCode::Unavailable);
        assert_eq!(code(IndexId(0), 1), ErrorCode::Unknown);
    }
}
