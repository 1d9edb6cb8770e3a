//! The record of an index, with its past topologies.
//!
//! A scan names the topology under which it began by number, and needs it again when it continues
//! at another router. So the record keeps all topologies that were current within the longest
//! lifetime of a scan, and some more. The numbers of topologies only grow.

use std::sync::Arc;

use proto::model::ids::TopologyNo;
use proto::model::index::IndexInfo;
use proto::model::topology::IndexTopology;
use serde::{Deserialize, Serialize};

/// The number of the newest topologies that are kept regardless of age.
const TOPOLOGIES_MIN: usize = 64;
/// The time, in ms, for which each topology is kept after it ceased to be current. No scan holds
/// the horizon back for longer.
const KEPT_MS: u64 = 15 * 60 * 1000;
/// The limit of places (a copy of a slice on a node) in the kept topologies of one index. Beyond it
/// only the newest [`TOPOLOGIES_MIN`] are kept. `IndexesState` bounds the topologies of all
/// indexes.
const PLACES_MAX: usize = 1 << 17;

/// An index with its current topology and its past ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexRecord {
    /// The index as the catalog shows it.
    pub info: Arc<IndexInfo>,
    /// The retained topologies, the newest (the current one) last.
    pub topologies: Vec<TopologyRecord>,
}

/// A topology and the time from which it was current.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopologyRecord {
    /// The topology of the index at that time.
    pub topology: Arc<IndexTopology>,
    /// The log position from which it was current.
    pub position: u64,
    /// The time from which it was current, in ms.
    pub unix_ms: u64,
}

impl IndexRecord {
    pub(in crate::state) fn new(mut info: IndexInfo, position: u64, unix_ms: u64) -> Self {
        (info.revision, info.defined) = (position, position);
        let topology = info.topology.clone();
        let topologies = vec![TopologyRecord { topology, position, unix_ms }];
        Self { info: Arc::new(info), topologies }
    }

    /// Changes the index with `change`, under a new revision. Retains its new topology if that
    /// has changed.
    pub(in crate::state) fn change<T>(
        &mut self,
        position: u64,
        unix_ms: u64,
        change: impl FnOnce(&mut IndexInfo) -> T,
    ) -> T {
        let (before, spec) = (self.info.topology.number, Arc::clone(&self.info.spec));
        let info = Arc::make_mut(&mut self.info);
        let result = change(info);
        info.revision = position;
        if !Arc::ptr_eq(&info.spec, &spec) {
            info.defined = position;
        }
        if self.info.topology.number != before {
            let topology = self.info.topology.clone();
            self.topologies.push(TopologyRecord { topology, position, unix_ms });
            self.drop_old_topologies(unix_ms);
        }
        result
    }

    /// Returns a retained topology by its number.
    pub fn topology(&self, number: TopologyNo) -> Option<&Arc<IndexTopology>> {
        let numbers = |record: &TopologyRecord| record.topology.number;
        let at = self.topologies.binary_search_by_key(&number, numbers).ok()?;
        Some(&self.topologies[at].topology)
    }

    /// Drops past topologies that are too old or too many.
    fn drop_old_topologies(&mut self, unix_ms: u64) {
        let places: usize = self.info.topology.placement.iter().map(Vec::len).sum();
        let most = (PLACES_MAX / places.max(1)).max(TOPOLOGIES_MIN);
        let old = |next: &TopologyRecord| next.unix_ms.saturating_add(KEPT_MS) < unix_ms;
        // A topology ceased to be current when the next one began.
        let of_age = self.topologies.iter().skip(1).take_while(|next| old(next)).count();
        let surplus = of_age.max(self.topologies.len().saturating_sub(most));
        let surplus = surplus.min(self.topologies.len().saturating_sub(TOPOLOGIES_MIN));
        self.topologies.drain(..surplus);
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
