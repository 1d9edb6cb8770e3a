//! Tests of failures between the source and the target of a move.

use std::path::Path;

use proto::ErrorCode;
use proto::env::{Env, sim};
use proto::model::ids::{Epoch, SliceId, SliceNo};
use proto::model::index::IndexSpec;

use super::*;
use crate::edit::export::PartRange;
use crate::engine::storage_engine::StorageEngine;
use crate::recover::load::tests::{
    DIR, Hold, INDEXES, NODE, apply, body, entries, mark, node, open,
};
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;
use crate::verify::check::verify;

const SLICE: SliceId = INDEXES[0].slice(SliceNo(0));

pub(crate) fn info() -> Arc<IndexInfo> {
    Arc::new(IndexInfo::new(
        INDEXES[0].index,
        mark(1).bucket,
        IndexSpec::new("i", "b"),
        vec![vec![NODE]],
    ))
}

/// Runs one round of a move: sends the files that the target lacks.
pub(crate) async fn round(source: &StorageEngine, slice: SliceId, received: &mut ReceivedFiles) {
    let export = source.export_slice(slice).await.unwrap();
    received.begin_round(export.head.clone()).await.unwrap();
    let have = received.complete_files();
    let missing = export.head.files.iter().filter(|(file, _)| !have.contains(file));
    let whole =
        |(file, len): &(u64, u64)| PartRange { file: *file, offset: 0, bytes: *len as usize };
    received.store_pieces(export.read(missing.map(whole).collect()).await.unwrap()).await.unwrap();
    received.sync().await.unwrap();
    assert!(received.is_complete());
}

/// A number of a file is only valid until the source closes its store.
#[tokio::test]
async fn files_of_a_source_before_its_disk_was_lost_are_not_mixed_with_new_ones() {
    let (env, _fs) = node().await;
    let (target, _, _target_fs) = sim::world(4);
    let target = open(&target);
    let mut received = target.begin_receiving(NODE);
    round(&open(&env), SLICE, &mut received).await;
    let before = received.complete_files();
    // Another directory with other documents, whose files have the same numbers.
    let (env, _, _fs) = sim::world(5);
    let source = open(&env);
    source.begin_build(info(), Grouping::Together).await.unwrap();
    source.begin_backfill(INDEXES[0]).await.unwrap();
    source.backfill(INDEXES[0], body(100..140)).await.unwrap();
    apply(&source, 1, 0..0).await;
    source.finish_build(INDEXES[0], &mark(1)).await.unwrap();
    apply(&target, 1, 0..0).await;
    round(&source, SLICE, &mut received).await;
    assert!(
        received.complete_files().iter().any(|file| before.contains(file)),
        "numbers are given again"
    );
    assert!(target.install_slice(received, SLICE, info(), &mark(1)).await.is_ok());
    let shown = |store: &StorageEngine| {
        let snapshot = store.snapshot(INDEXES[0], Epoch(1)).unwrap();
        snapshot.checksum(SliceNo(0)).unwrap()
    };
    assert_eq!(shown(&target), shown(&source));
    assert_eq!(shown(&target).1, 40);
}

/// Until the count, a manifest has neither the number of the slice's entries nor the number of
/// later changes.
#[tokio::test]
async fn a_slice_that_a_crash_has_left_uncounted_is_counted_when_it_is_loaded() {
    let (env, _fs) = node().await;
    let source = open(&env);
    let (env, _, _target_fs) = sim::world(4);
    let target = open(&env);
    for epoch in 1..=3 {
        apply(&target, epoch, 0..0).await;
    }
    let mut received = target.begin_receiving(NODE);
    round(&source, SLICE, &mut received).await;
    assert!(target.install_slice(received, SLICE, info(), &mark(3)).await.is_ok());
    apply(&target, 4, 18..25).await;
    target.wait_durable(mark(4).bucket, Epoch(4)).await.unwrap();
    drop(target);
    let held = Arc::new(Hold::default());
    let target = open(&Env { spawner: held.clone(), ..env.clone() });
    target.flush().await.unwrap();
    let loader = lock(&held.first).take().expect("the loader");
    loader();
    target.wait_loaded(INDEXES[0]).await.unwrap();
    assert_eq!(entries(&target, INDEXES[0], 4).unwrap(), 25);
    assert_eq!(target.progress()[0].entries, 25);
    target.flush().await.unwrap();
    drop(target);
    // The directory holds only the store, so the missing VERSION file is a finding.
    let findings = verify(&env, Path::new(DIR)).findings;
    assert!(findings.iter().all(|finding| finding.path.ends_with("VERSION")), "{findings:?}");
}

/// An arrived slice can be rolled back to an epoch that is older than all epochs applied on its
/// node.
#[tokio::test]
async fn a_rollback_before_the_first_epoch_of_a_node_survives_a_crash() {
    let (env, _fs) = node().await;
    let source = open(&env);
    let (env, _, _target_fs) = sim::world(4);
    let target = open(&env);
    for epoch in 2..=3 {
        apply(&target, epoch, 0..0).await;
    }
    let mut received = target.begin_receiving(NODE);
    round(&source, SLICE, &mut received).await;
    assert!(target.install_slice(received, SLICE, info(), &mark(3)).await.is_ok());
    target.roll_back(&mark(1), Epoch(3)).await.unwrap();
    assert_eq!(target.applied(), [mark(1)]);
    drop(target);
    let target = open(&env);
    assert_eq!(target.applied(), [mark(1)], "the stream goes on behind it");
    target.wait_loaded(INDEXES[0]).await.unwrap();
    assert_eq!(entries(&target, INDEXES[0], 1).unwrap(), 10);
}

#[tokio::test]
async fn an_unwanted_checksum_stops_reading() {
    let (env, _fs) = node().await;
    let store = open(&env);
    apply(&store, 4, 100..10_100).await;
    store.wait_loaded(INDEXES[0]).await.unwrap();
    let snapshot = store.snapshot(INDEXES[0], Epoch(4)).unwrap();
    let asked = std::cell::Cell::new(0);
    let wanted = || {
        asked.set(asked.get() + 1);
        asked.get() < 2
    };
    let error = snapshot.checksum_while(SliceNo(0), &wanted).expect_err("it has gone");
    assert_eq!((error.code, asked.get()), (ErrorCode::Cancelled, 2), "long before the end");
    assert!(snapshot.checksum(SliceNo(0)).unwrap().1 > 10_000);
}

/// After a failed write the file's content is unknown: the next piece must not be appended to it.
#[tokio::test]
async fn a_file_whose_write_failed_is_received_from_its_beginning() {
    let (env, _fs) = node().await;
    let source = open(&env);
    let export = source.export_slice(SLICE).await.unwrap();
    let (file, len) = export.head.files[0];
    let half = len / 2;
    let first = PartRange { file, offset: 0, bytes: half as usize };
    let rest = PartRange { file, offset: half, bytes: (len - half) as usize };
    let first = export.read(vec![first]).await.unwrap();
    let rest = export.read(vec![rest]).await.unwrap();
    // Each operation of a piece fails in turn, up to the last one.
    for operation in 1.. {
        let (target, _, fs) = sim::world(4);
        let target = open(&target);
        let mut received = target.begin_receiving(NODE);
        received.begin_round(export.head.clone()).await.unwrap();
        fs.fail_at(fs.operations() + operation);
        let failed = received.store_pieces(first.clone()).await.is_err();
        fs.disarm_faults();
        if failed {
            assert!(received.store_pieces(rest.clone()).await.is_err(), "operation {operation}");
            received.store_pieces(first.clone()).await.unwrap();
        }
        received.store_pieces(rest.clone()).await.unwrap();
        assert_eq!(received.complete_files(), [file], "operation {operation}");
        drop(received);
        assert_eq!(target.context.files.list().unwrap(), [], "operation {operation}");
        if !failed {
            assert!(operation > 1, "a write can fail");
            return;
        }
    }
}
