//! Tests of the floors of a session.

use std::sync::Arc;

use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::cut::Position;
use proto::model::ids::{NodeId, Seqno, VbucketId, Vbuuid};
use proto::model::index::IndexSpec;
use proto::model::rollback::DeadEpochs;

use super::*;

const BUCKET: BucketId = BucketId(1);

fn at(branch: u64, seqno: u64) -> WritePosition {
    let position = Position { vbuuid: Vbuuid(branch), seqno: Seqno(seqno) };
    WritePosition { bucket: BUCKET, positions: vec![(VbucketId(0), position)] }
}

fn catalog(dead: Option<DeadEpochs>) -> Catalog {
    let mut bucket = BucketInfo::new(BUCKET, "b", 1, SourceKind::Push, NodeId(100));
    bucket.dead = Arc::new(dead.into_iter().collect());
    Catalog { buckets: [(BUCKET, Arc::new(bucket))].into(), ..Catalog::default() }
}

fn index(id: u64) -> IndexInfo {
    IndexInfo::new(IndexId(id), BUCKET, IndexSpec::new("i", "b"), Vec::new())
}

#[test]
fn a_floor_never_falls_and_holds_for_its_index_alone() {
    let mut floors = Floors::default();
    for epoch in [5, 9, 7] {
        floors.note_scan(&index(1), &Consistency::Any, Epoch(epoch));
    }
    assert_eq!(floors.floor_of_index(BUCKET, IndexId(1)), Epoch(9));
    assert_eq!(floors.floor_of_index(BUCKET, IndexId(2)), Epoch(0));
    assert_eq!(floors.floor_of_bucket(BUCKET), Epoch(9), "a transaction may read any index");
    assert!(!floors.has_read_others(BUCKET) && floors.has_read_others(BucketId(2)));
}

#[test]
fn a_write_is_asked_for_once_and_again_after_a_rollback_of_its_epoch() {
    let (mut floors, whole) = (Floors::default(), catalog(None));
    assert_eq!(floors.writes_without_epoch(BUCKET, &whole), None);
    floors.note_write(at(7, 3));
    assert_eq!(floors.writes_without_epoch(BUCKET, &whole), Some(&[at(7, 3)][..]));
    floors.set_write_epoch(BUCKET, Epoch(8));
    assert_eq!(floors.writes_without_epoch(BUCKET, &whole), None);
    assert_eq!(floors.floor_of_index(BUCKET, IndexId(2)), Epoch(8), "in all indexes of the bucket");
    let rolled_back = catalog(Some(DeadEpochs { point: None, to: Epoch(11) }));
    assert!(floors.is_rolled_back(BUCKET, &rolled_back));
    assert_eq!(floors.writes_without_epoch(BUCKET, &rolled_back), Some(&[at(7, 3)][..]));
    floors.set_write_epoch(BUCKET, Epoch(12));
    assert_eq!(floors.writes_without_epoch(BUCKET, &rolled_back), None);
    floors.note_write(at(7, 4));
    assert_eq!(floors.writes_without_epoch(BUCKET, &rolled_back), Some(&[at(7, 4)][..]));
    floors.note_write(WritePosition { bucket: BUCKET, positions: Vec::new() });
    floors.set_write_epoch(BUCKET, Epoch(13));
    floors.note_write(WritePosition { bucket: BUCKET, positions: Vec::new() });
    assert_eq!(floors.writes_without_epoch(BUCKET, &rolled_back), None, "nothing was written");
}

#[test]
fn a_write_on_another_branch_does_not_hide_an_earlier_one() {
    let (mut floors, whole) = (Floors::default(), catalog(None));
    floors.note_write(at(7, 100));
    floors.note_write(at(8, 91));
    floors.note_write(at(8, 92));
    assert_eq!(floors.writes_without_epoch(BUCKET, &whole), Some(&[at(7, 100), at(8, 92)][..]));
    floors.set_write_epoch(BUCKET, Epoch(5));
    floors.note_write(at(8, 93));
    assert_eq!(
        floors.writes_without_epoch(BUCKET, &whole),
        Some(&[at(8, 93)][..]),
        "it was in the history"
    );
}

#[test]
fn an_open_outcome_lasts_until_a_scan_of_everything() {
    let (mut floors, whole) = (Floors::default(), catalog(None));
    let before = floors.begin_write(BUCKET);
    assert!(floors.is_open(BUCKET), "its answer may be lost");
    floors.end_write(BUCKET, before);
    assert!(!floors.is_open(BUCKET));
    let _lost = floors.begin_write(BUCKET);
    let before = floors.begin_write(BUCKET);
    floors.note_write(at(7, 3));
    floors.end_write(BUCKET, before);
    assert!(floors.is_open(BUCKET), "the earlier one is open all the same");
    floors.note_scan(&index(1), &Consistency::RequestPlus, Epoch(6));
    assert!(!floors.is_open(BUCKET));
    assert_eq!(floors.floor_of_index(BUCKET, IndexId(2)), Epoch(6), "for all indexes");
    assert_eq!(
        floors.writes_without_epoch(BUCKET, &whole),
        Some(&[at(7, 3)][..]),
        "it may be lost"
    );
    floors.forget_writes(BUCKET);
    assert!(floors.is_open(BUCKET), "other writes are not forgotten with the lost ones");
    floors.note_scan(&index(1), &Consistency::RequestPlus, Epoch(7));
    let rolled_back = catalog(Some(DeadEpochs { point: None, to: Epoch(11) }));
    assert!(!floors.is_rolled_back(BUCKET, &rolled_back), "no known write is behind it");
    assert_eq!(at_least(floors.floor_of_bucket(BucketId(2))), Consistency::Any);
}

#[test]
fn another_version_of_a_data_set_begins_with_floors_of_its_own() {
    let mut floors = Floors::default();
    floors.note_scan(&index(1), &Consistency::Any, Epoch(900));
    let next = BucketId(2);
    let switched = IndexInfo::new(IndexId(1), next, IndexSpec::new("i", "b"), Vec::new());
    floors.note_scan(&switched, &Consistency::Any, Epoch(3));
    assert_eq!(floors.floor_of_index(next, IndexId(1)), Epoch(3), "its epochs are others");
    assert_eq!(floors.floor_of_bucket(BUCKET), Epoch(0), "and the old ones count no more");
}
