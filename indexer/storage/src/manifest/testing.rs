//! Helpers for the tests of manifests.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::ids::{BucketId, Epoch, Generation, IndexId, NodeId};
use proto::model::index::{IndexInfo, IndexSpec, IndexState};

use super::IndexManifest;

/// Returns the manifest of an index without slices.
pub(crate) fn manifest() -> IndexManifest {
    let spec = IndexSpec { primary: false, ..IndexSpec::new("by_city", "places") };
    let info = IndexInfo {
        state: IndexState::Maintenance,
        generation: Generation(3),
        ..IndexInfo::new(IndexId(7), BucketId(2), spec, vec![vec![NodeId(1)]])
    };
    IndexManifest {
        info: Arc::new(info),
        arrived: Default::default(),
        points: Vec::new(),
        floor: Some(Epoch(5)),
        flushed: Epoch(60),
        slices: BTreeMap::new(),
        entries: BTreeMap::new(),
    }
}
