//! The rollbacks of each bucket in the status. A rollback follows when a part of the source's
//! history is lost.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, Epoch, NodeId};
use proto::model::index::IndexState;
use proto::model::joint::PartlyLostCommit;
use proto::model::rollback::DeadEpochs;
use proto::rpc::api::{CoordinatorStatus, NodeStatus};

use super::cluster_status::RollbackStatus;

/// Returns the last rollbacks of each bucket, oldest first, then the commits over several buckets
/// whose changes in the bucket are lost. For the last rollback of a bucket, the result contains
/// the copies that could not be rolled back and are not restored yet. Without the coordinator's
/// status, these copies are unknown.
pub(super) fn rollbacks(
    catalog: &Catalog,
    reports: Option<&CoordinatorStatus>,
) -> Vec<RollbackStatus> {
    let with_rebuilding = |bucket: &Arc<BucketInfo>| {
        let mut rollbacks = of_bucket(bucket);
        if let Some(last) = rollbacks.last_mut() {
            last.rebuilding =
                reports.and_then(|reports| rebuilding(catalog, bucket.id, &reports.nodes));
        }
        let halved = reports.into_iter().flat_map(|reports| &reports.halved);
        let of_bucket = halved.filter(|halved| halved.lost_in == bucket.id);
        rollbacks.extend(of_bucket.map(|halved| halved_commit(catalog, bucket, halved)));
        rollbacks
    };
    catalog.buckets.values().flat_map(with_rebuilding).collect()
}

/// Returns the row for a commit over several buckets whose changes in this bucket are lost.
fn halved_commit(
    catalog: &Catalog,
    bucket: &BucketInfo,
    halved: &PartlyLostCommit,
) -> RollbackStatus {
    let PartlyLostCommit { transaction, bucket: other, .. } = halved;
    let known = catalog.buckets.get(other);
    let other = known.map_or_else(|| other.to_string(), |other| other.name.clone());
    RollbackStatus {
        bucket: bucket.name.clone(),
        stage: "halved",
        back_to_epoch: None,
        dead_to_epoch: None,
        resumed_epoch: None,
        rebuilding: None,
        note: Some(format!(
            "transaction {transaction} is committed in bucket {other}, and its part is lost here"
        )),
    }
}

/// Returns a text about the copies of a bucket's slices that are being restored, from another
/// node or from the projector; `None` if there are none.
fn rebuilding(catalog: &Catalog, bucket: BucketId, nodes: &[NodeStatus]) -> Option<String> {
    let mut found = BTreeMap::<_, Vec<String>>::new();
    for (node, told) in nodes.iter().flat_map(|n| n.slices.iter().map(|told| (n.node, told))) {
        let index = catalog.indexes.get(&told.slice.index).filter(|index| {
            (index.bucket, index.state) == (bucket, IndexState::Maintenance)
                && index.generation == told.slice.generation
        });
        if let Some(index) = index.filter(|_| told.floor.is_none()) {
            let place = (node, &*index.spec.name, told.copied_from);
            found.entry(place).or_default().push(told.slice.slice.to_string());
        }
    }
    let in_words =
        |((node, index, from), slices): (&(NodeId, &str, Option<NodeId>), &Vec<String>)| {
            let slices = slices.join(", ");
            match from {
                Some(from) => format!("node {node} copies {slices} of {index} from node {from}"),
                None => format!("node {node} builds {slices} of {index} from the source"),
            }
        };
    let found: Vec<_> = found.iter().map(in_words).collect();
    (!found.is_empty()).then(|| found.join("; "))
}

/// Returns the rows for the last rollbacks of a bucket.
fn of_bucket(bucket: &BucketInfo) -> Vec<RollbackStatus> {
    let current = bucket.rollback.as_deref();
    let resumes = current.and_then(|rollback| rollback.resumes);
    let stage = |resumed| match current {
        Some(rollback) if resumes == Some(resumed) => rollback.stage.name(),
        _ => "ended",
    };
    let ended = |dead: &DeadEpochs| {
        let resumed = Epoch(dead.to.0 + 1);
        let anew = "no rollback point was left: the indexes were built anew";
        RollbackStatus {
            bucket: bucket.name.clone(),
            stage: stage(resumed),
            back_to_epoch: dead.point.as_ref().map(|point| point.epoch),
            dead_to_epoch: Some(dead.to),
            resumed_epoch: Some(resumed),
            rebuilding: None,
            note: dead.point.is_none().then(|| anew.to_owned()),
        }
    };
    let mut rollbacks: Vec<_> = bucket.dead.iter().map(ended).collect();
    // A rollback removes epochs only in its last stage.
    if let Some(rollback) = current.filter(|rollback| rollback.resumes.is_none()) {
        rollbacks.push(RollbackStatus {
            bucket: bucket.name.clone(),
            stage: rollback.stage.name(),
            back_to_epoch: None,
            dead_to_epoch: None,
            resumed_epoch: None,
            rebuilding: None,
            note: Some("new scans wait until the surviving history is known".to_owned()),
        });
    }
    rollbacks
}

#[cfg(test)]
mod tests {
    use proto::model::bucket::SourceKind;
    use proto::model::ids::{Generation, IndexId, SliceId, SliceNo};
    use proto::model::index::{IndexInfo, IndexSpec};
    use proto::model::rollback::{Rollback, RollbackStage};
    use proto::rpc::api::SliceProgress;

    use super::*;

    fn stages(bucket: BucketInfo) -> Vec<&'static str> {
        of_bucket(&bucket).into_iter().map(|rollback| rollback.stage).collect()
    }

    #[test]
    fn each_rollback_has_one_row_with_its_stage() {
        let mut bucket = BucketInfo::new(BucketId(1), "b", 2, SourceKind::Embedded, NodeId(1));
        assert!(stages(bucket.clone()).is_empty());
        let under_way = |stage, resumes| {
            Some(Arc::new(Rollback {
                stage,
                failover: None,
                point: Epoch(0),
                restart: None,
                resumes,
            }))
        };
        bucket.rollback = under_way(RollbackStage::Started, None);
        assert_eq!(stages(bucket.clone()), ["started"]);
        bucket.dead = Arc::new(vec![DeadEpochs { point: None, to: Epoch(9) }]);
        bucket.rollback = under_way(RollbackStage::Rollback, Some(Epoch(10)));
        assert_eq!(stages(bucket.clone()), ["rollback"]);
        bucket.rollback = None;
        assert_eq!(stages(bucket), ["ended"]);
    }

    #[test]
    fn copies_that_are_being_restored_are_listed_by_node() {
        let mut bucket = BucketInfo::new(BucketId(1), "b", 2, SourceKind::Embedded, NodeId(1));
        bucket.dead = Arc::new(vec![DeadEpochs { point: None, to: Epoch(9) }; 2]);
        let copies = vec![vec![NodeId(7), NodeId(8)]; 4];
        let index = IndexInfo::new(IndexId(3), BucketId(1), IndexSpec::new("i", "b"), copies);
        let index = IndexInfo { state: IndexState::Maintenance, ..index };
        let catalog = Catalog {
            buckets: [(bucket.id, Arc::new(bucket))].into(),
            indexes: [(index.id, Arc::new(index))].into(),
            ..Catalog::default()
        };
        let told = |slice: u16, floor: Option<u64>, copied_from| SliceProgress {
            slice: SliceId { index: IndexId(3), generation: Generation(0), slice: SliceNo(slice) },
            floor: floor.map(Epoch),
            entries: 0,
            bytes: 0,
            live_bytes: Some(0),
            built_percent: None,
            seconds_left: None,
            copied_from,
            trouble: None,
        };
        let node = |node, slices| NodeStatus {
            node,
            silent_ms: 0,
            buckets: Vec::new(),
            slices,
            moves: Vec::new(),
            scans: None,
        };
        let old = Some(NodeId(7));
        let young = vec![
            told(0, Some(4), None),
            told(1, None, old),
            told(2, None, None),
            told(3, None, old),
        ];
        let mut nodes = vec![node(NodeId(7), vec![told(0, Some(2), None)]), node(NodeId(8), young)];
        let text = |nodes: &[NodeStatus]| rebuilding(&catalog, BucketId(1), nodes);
        let expected = "node 8 builds 2 of i from the source; node 8 copies 1, 3 of i from node 7";
        assert_eq!(text(&nodes).as_deref(), Some(expected));
        nodes.pop();
        assert_eq!(text(&nodes), None);
    }
}
