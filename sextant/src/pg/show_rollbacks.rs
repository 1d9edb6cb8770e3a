//! SHOW ROLLBACKS: what a source's loss of a piece of its history has taken back, by bucket.

use proto::expr::ColumnType;
use proto::ids::Epoch;
use proto::index::{BucketInfo, Catalog};
use proto::rollback::DeadEpochs;

use super::show::named;
use super::value::Datum;
use crate::sql::plan::ColumnInfo;

use ColumnType::{Int8, Text};

/// The columns.
pub(super) fn columns() -> Vec<ColumnInfo> {
    named(&[
        ("bucket", Text),
        ("stage", Text),
        ("back_to_epoch", Int8),
        ("dead_to_epoch", Int8),
        ("resumed_epoch", Int8),
        ("note", Text),
    ])
}

/// The last rollbacks of each bucket, the oldest first; the one that is under way is the last of its bucket.
pub(super) fn rollbacks(catalog: &Catalog) -> Vec<Vec<Datum>> {
    catalog.buckets.values().flat_map(|bucket| of_bucket(bucket)).collect()
}

fn of_bucket(bucket: &BucketInfo) -> Vec<Vec<Datum>> {
    let current = bucket.rollback.as_deref();
    let resumes = current.and_then(|rollback| rollback.resumes);
    let mut rows: Vec<_> = bucket
        .dead
        .iter()
        .map(|dead| {
            let resumed = Epoch(dead.to.0 + 1);
            let stage = match (resumes == Some(resumed), current) {
                (true, Some(rollback)) => rollback.stage.name(),
                _ => "ended",
            };
            ended(bucket, dead, stage, resumed)
        })
        .collect();
    // Before its last stage a rollback has taken nothing back yet.
    if let Some(rollback) = current.filter(|rollback| rollback.resumes.is_none()) {
        let mut row = vec![Datum::text(&*bucket.name), Datum::text(rollback.stage.name())];
        row.extend([Datum::NULL, Datum::NULL, Datum::NULL]);
        row.push(Datum::text("new scans wait until it is known what has survived"));
        rows.push(row);
    }
    rows
}

fn ended(bucket: &BucketInfo, dead: &DeadEpochs, stage: &str, resumed: Epoch) -> Vec<Datum> {
    let int = |epoch: Epoch| Datum::int(epoch.0 as i64);
    let (point, note) = match &dead.point {
        Some(point) => (int(point.epoch), Datum::NULL),
        None => (Datum::NULL, Datum::text("no kept epoch fitted: the indexes were built anew")),
    };
    vec![Datum::text(&*bucket.name), Datum::text(stage), point, int(dead.to), int(resumed), note]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::ids::{BucketId, NodeId};
    use proto::index::SourceKind;
    use proto::rollback::{Rollback, RollbackStage};

    use super::*;

    fn stages(bucket: BucketInfo) -> Vec<Datum> {
        of_bucket(&bucket).into_iter().map(|mut row| row.swap_remove(1)).collect()
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
        assert_eq!(stages(bucket.clone()), [Datum::text("started")]);
        bucket.dead = Arc::new(vec![DeadEpochs { point: None, to: Epoch(9) }]);
        bucket.rollback = under_way(RollbackStage::Rollback, Some(Epoch(10)));
        assert_eq!(stages(bucket.clone()), [Datum::text("rollback")]);
        bucket.rollback = None;
        assert_eq!(stages(bucket), [Datum::text("ended")]);
    }
}
