//! The topologies that this router has seen. A continuation token names the topology under which its scan began.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use proto::lock::lock;
use proto::model::catalog::Catalog;
use proto::model::ids::{IndexId, TopologyNo};
use proto::model::topology::IndexTopology;

/// Maximum of remembered topologies of one index; the coordinator remembers about as many.
const TOPOLOGIES_MAX: usize = 64;

type ByNumber = BTreeMap<TopologyNo, Arc<IndexTopology>>;

/// The topologies of each index, by number.
#[derive(Clone, Default)]
pub struct Topologies(Arc<Mutex<BTreeMap<IndexId, ByNumber>>>);

impl Topologies {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<IndexId, ByNumber>> {
        lock(&self.0)
    }

    /// Remembers the topologies of a catalog, and forgets indexes that are not in it.
    pub fn take_catalog(&self, catalog: &Catalog) {
        self.lock().retain(|index, _| catalog.indexes.contains_key(index));
        catalog.indexes.values().for_each(|index| self.keep(index.id, &index.topology));
    }

    /// Remembers one topology.
    pub fn keep(&self, index: IndexId, topology: &Arc<IndexTopology>) {
        let mut all = self.lock();
        let known = all.entry(index).or_default();
        known.entry(topology.number).or_insert_with(|| Arc::clone(topology));
        if known.len() > TOPOLOGIES_MAX {
            known.pop_first();
        }
    }

    /// Returns the topology with a number.
    pub fn get(&self, index: IndexId, number: TopologyNo) -> Option<Arc<IndexTopology>> {
        self.lock().get(&index)?.get(&number).cloned()
    }
}
