//! The catalog: the part of the StateContext that every service follows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::bucket::BucketInfo;
use crate::model::ids::{BucketId, IndexId, NodeId};
use crate::model::index::IndexInfo;
use crate::model::moves::EndedMove;
use crate::model::node::NodeInfo;

/// What every service knows of the cluster: one state of the StateContext, without the coordinator's
/// own bookkeeping.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Catalog {
    /// Grows with each change of the catalog: the StateContext's `cas` after the last one.
    pub cas: u64,
    /// The largest index number given out so far: an index that is not in `indexes` and not above this
    /// was dropped, others may not be known here yet.
    pub newest_index: IndexId,
    /// Buckets by number.
    pub buckets: BTreeMap<BucketId, Arc<BucketInfo>>,
    /// Indexes by number.
    pub indexes: BTreeMap<IndexId, Arc<IndexInfo>>,
    /// Registered processes by number.
    pub nodes: BTreeMap<NodeId, Arc<NodeInfo>>,
    /// Indexers that get no more slices and give away those that they have.
    pub draining: BTreeSet<NodeId>,
    /// Moves that have ended, the newest last; a bounded number of them.
    pub ended_moves: Vec<EndedMove>,
}

impl Catalog {
    /// The bucket of a name.
    pub fn bucket(&self, name: &str) -> Option<&Arc<BucketInfo>> {
        self.buckets.values().find(|bucket| bucket.name == name)
    }

    /// The index of a name.
    pub fn index(&self, name: &str) -> Option<&Arc<IndexInfo>> {
        self.indexes.values().find(|index| index.spec.name == name)
    }
}
