//! An index with the states that its topology had.
//!
//! A scan keeps the topology that it began under, by number, and asks for it again when it goes on at
//! another router. So the states that a scan may still name are remembered: those that held during the
//! longest life of a scan, and some more. Each state has a number of its own, which only grows.

use std::sync::Arc;

use proto::model::ids::TopologyNo;
use proto::model::index::IndexInfo;
use proto::model::topology::IndexTopology;
use serde::{Deserialize, Serialize};

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

#[cfg(test)]
#[path = "index_record_tests.rs"]
mod tests;
