//! The topologies that this router has received. A continuation token names the topology under
//! which its scan began.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use proto::lock::lock;
use proto::model::catalog::Catalog;
use proto::model::ids::{LocalIndexId, TopologyNo};
use proto::model::topology::IndexTopology;

/// Maximum number of remembered topologies of one generation; the coordinator remembers about as
/// many.
const TOPOLOGIES_MAX: usize = 64;

/// The remembered topologies of one generation, by number.
type ByNumber = BTreeMap<TopologyNo, Arc<IndexTopology>>;

/// The topologies of each generation of an index, by number.
#[derive(Clone, Default)]
pub struct Topologies(Arc<Mutex<BTreeMap<LocalIndexId, ByNumber>>>);

impl Topologies {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<LocalIndexId, ByNumber>> {
        lock(&self.0)
    }

    /// Remembers the topologies of a catalog, and forgets generations of indexes that the catalog
    /// lacks.
    pub fn take_catalog(&self, catalog: &Catalog) {
        self.lock().retain(|id, _| catalog.local_index(*id).is_some());
        catalog.local_indexes().for_each(|index| self.remember(index.local_id(), &index.topology));
    }

    /// Remembers a topology of a generation, by its number.
    pub fn remember(&self, index: LocalIndexId, topology: &Arc<IndexTopology>) {
        let mut all = self.lock();
        let known = all.entry(index).or_default();
        known.entry(topology.number).or_insert_with(|| Arc::clone(topology));
        if known.len() > TOPOLOGIES_MAX {
            known.pop_first();
        }
    }

    /// Returns the topology with a number; `None` if this router does not remember the topology.
    pub fn get(&self, index: LocalIndexId, number: TopologyNo) -> Option<Arc<IndexTopology>> {
        self.lock().get(&index)?.get(&number).cloned()
    }
}
