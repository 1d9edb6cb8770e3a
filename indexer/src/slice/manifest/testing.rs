//! What the tests of manifests share.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::ids::{BucketId, Epoch, Generation, IndexId, NodeId, TopologyNo};
use proto::index::{IndexInfo, IndexSpec, IndexState, PartitionBy};
use proto::topology::IndexTopology;

use super::IndexManifest;

/// The manifest of an index without slices.
pub(in crate::slice) fn manifest() -> IndexManifest {
    let spec = IndexSpec {
        name: "by_city".into(),
        bucket: "places".into(),
        primary: false,
        keys: Vec::new(),
        include: Vec::new(),
        predicate: None,
        partition: PartitionBy::DocumentId,
        slices: 1,
        replicas: 0,
        sql: String::new(),
    };
    let topology = IndexTopology { number: TopologyNo(1), placement: vec![vec![NodeId(1)]] };
    let info = IndexInfo {
        id: IndexId(7),
        bucket: BucketId(2),
        spec: Arc::new(spec),
        state: IndexState::Maintenance,
        generation: Generation(3),
        topology: Arc::new(topology),
        moves: Vec::new(),
        revision: 0,
    };
    IndexManifest {
        info: Arc::new(info),
        floors: Default::default(),
        floor: Some(Epoch(5)),
        flushed: Epoch(60),
        slices: BTreeMap::new(),
        entries: BTreeMap::new(),
    }
}
