//! Tests of gaps, limits and waits of the store.

use std::collections::BTreeSet;
use std::time::Duration;

use proto::env::sim;
use proto::model::ids::Epoch;
use proto::rpc::scan::KeyRange;

use super::*;
use crate::engine::storage_engine::StorageEngine;
use crate::late_commit::tests::testing::*;
use crate::late_commit::transactions::buckets::BucketTransactions;
use crate::options::StoreOptions;
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;

async fn store(memory_bytes: u64) -> StorageEngine {
    let (env, _, _) = sim::world(5);
    built(&env, StoreOptions { memory_bytes, ..StoreOptions::default() }, Grouping::Together).await
}

/// Returns a store that keeps all transactions in memory.
async fn store_in_memory(memory_bytes: u64) -> StorageEngine {
    let (env, _, _) = sim::world(5);
    let open_transactions_disk_bytes_max = Some(0);
    let options =
        StoreOptions { memory_bytes, open_transactions_disk_bytes_max, ..StoreOptions::default() };
    built(&env, options, Grouping::Together).await
}

/// Returns changes of the documents `from..to`, each with one entry.
fn documents(transaction: u64, from: u64, to: u64) -> UncommittedChanges {
    let ids: Vec<String> = (from..to).map(|n| format!("document {n}")).collect();
    let state = State::from([((1, 1), 1)]);
    let changes = (1..).zip(&ids).map(|(at, id)| (at, id.as_str(), &state));
    bodies(transaction, from, to, body(changes))
}

/// Returns the number of rows that a transaction's view has over epoch 1.
fn count(store: &StorageEngine, transaction: u64, place: u64) -> Result<u64> {
    let snapshot = store.snapshot_of_transaction(BY_ID, Epoch(1), Some(own(transaction, place)))?;
    let slices: Vec<SliceNo> = (0..SLICES).map(SliceNo).collect();
    Ok(snapshot.rows(&slices, &KeyRange::all(), false, false)?.count(u64::MAX)?.rows)
}

fn code<T>(result: Result<T>) -> Option<ErrorCode> {
    result.err().map(|error| error.code)
}

#[tokio::test]
async fn changes_that_do_not_continue_are_refused() {
    let store = store(64 << 20).await;
    let late = store.late_commit();
    let drop_data = Some(ErrorCode::DropData);
    assert_eq!(code(late.add_changes(BUCKET, &documents(1, 3, 5))), drop_data, "nothing is here");
    late.add_changes(BUCKET, &documents(1, 0, 5)).unwrap();
    late.add_changes(BUCKET, &documents(1, 5, 7)).unwrap();
    assert_eq!(count(&store, 1, 7), Ok(7));
    late.add_changes(BUCKET, &documents(1, 0, 2)).unwrap();
    assert_eq!(count(&store, 1, 2), Ok(2), "a beginning replaces what was there");
    assert_eq!(code(late.add_changes(BUCKET, &documents(1, 3, 5))), drop_data);
    assert_eq!(code(count(&store, 1, 2)), Some(ErrorCode::Unavailable), "forgotten after an error");
    late.add_changes(BUCKET, &documents(1, 0, 4)).unwrap();
    let back = |to| late.roll_back(BUCKET, TransactionId(1), TransactionPlace(to));
    back(2).unwrap();
    assert_eq!(code(count(&store, 1, 3)), Some(ErrorCode::SnapshotTooOld), "it was rolled back");
    assert_eq!(count(&store, 1, 2), Ok(2));
    assert_eq!(code(back(3)), drop_data);
    let mut torn = documents(1, 0, 4);
    torn.body.truncate(torn.body.len() - 1);
    assert!(late.add_changes(BUCKET, &torn).is_err());
    assert_eq!((late.open(), late.bytes()), (0, 0));
}

#[tokio::test]
async fn a_transaction_that_is_too_large_is_given_up_alone() {
    let store = store_in_memory(8 << 20).await;
    let late = store.late_commit();
    late.add_changes(BUCKET, &documents(1, 0, 100)).unwrap();
    let (before, limit) = (late.bytes(), 1 << 20);
    assert!(before > 0 && store.memory_bytes() >= before);
    let mut place = 0;
    while count(&store, 2, place).is_ok() {
        late.add_changes(BUCKET, &documents(2, place, place + 500)).unwrap();
        place += 500;
        assert!(late.bytes() <= limit && place < 100_000, "{} bytes at {place}", late.bytes());
    }
    let error = count(&store, 2, place).unwrap_err();
    let hint = error.hint.clone().unwrap_or_default();
    assert_eq!(error.code, ErrorCode::OverLimit);
    assert!(error.message.contains("1048576 bytes") && hint.contains("memory_mb"), "{error:?}");
    assert!(late.bytes() < before + 4096, "its rows are dropped");
    // It continues without rows, without an effect on others.
    late.add_changes(BUCKET, &documents(2, place, place + 10)).unwrap();
    let back = |to| late.roll_back(BUCKET, TransactionId(2), TransactionPlace(to));
    back(place).unwrap();
    assert_eq!(code(count(&store, 2, place)), Some(ErrorCode::OverLimit));
    assert_eq!(count(&store, 1, 100), Ok(100));
    late.add_changes(BUCKET, &documents(1, 100, 110)).unwrap();
    assert_eq!(count(&store, 1, 110), Ok(110));
    // The rows and states of a message can exceed the limit although its bytes do not.
    let large = documents(4, 0, 12_000);
    assert!((large.body.len() as u64) < limit - late.bytes());
    late.add_changes(BUCKET, &large).unwrap();
    assert!(late.bytes() <= limit);
    assert_eq!(code(count(&store, 4, 12_000)), Some(ErrorCode::OverLimit));
    // A message that alone is too large is not even worked on.
    late.add_changes(BUCKET, &documents(3, 0, 60_000)).unwrap();
    assert_eq!(code(count(&store, 3, 60_000)), Some(ErrorCode::OverLimit));
    assert_eq!((late.given_up(), late.pieces_written(), late.disk_bytes()), (3, 0, 0));
    late.end_transactions(BUCKET, &[1, 2, 3, 4].map(TransactionId));
    assert_eq!((late.open(), late.bytes()), (0, 0));
}

#[tokio::test]
async fn the_largest_transaction_is_given_up_and_not_the_one_that_writes() {
    let store = store_in_memory(8 << 20).await;
    let late = store.late_commit();
    late.add_changes(BUCKET, &documents(1, 0, 100)).unwrap();
    late.add_changes(BUCKET, &documents(2, 0, 3_000)).unwrap();
    let mut place = 0;
    while late.given_up() == 0 {
        late.add_changes(BUCKET, &documents(3, place, place + 100)).unwrap();
        place += 100;
    }
    assert!(place < 3_000, "{place}");
    assert_eq!(code(count(&store, 2, 3_000)), Some(ErrorCode::OverLimit));
    assert_eq!((count(&store, 1, 100), count(&store, 3, place)), (Ok(100), Ok(place)));
    late.end_transactions(BUCKET, &[1, 2, 3].map(TransactionId));
    assert_drained(&store);
}

#[tokio::test]
async fn ended_transactions_are_remembered_until_their_bucket_is_dropped() {
    let store = store(64 << 20).await;
    let late = store.late_commit();
    let ended = || late.buckets.lock().get(&BUCKET).map(BucketTransactions::ended);
    for id in 1..2_000 {
        late.end_transactions(BUCKET, &[TransactionId(id)]);
    }
    late.drop_transactions(BUCKET);
    assert_eq!(ended(), Some(1 << 10), "a new stream knows nothing of them");
    late.drop_bucket(BUCKET);
    assert_eq!(ended(), None);
    // An operation that was in progress then has no effect any more.
    late.end_transactions(BUCKET, &[TransactionId(1)]);
    assert_eq!(code(late.add_changes(BUCKET, &documents(1, 0, 5))), Some(ErrorCode::DropData));
    assert_eq!((ended(), late.open(), late.bytes()), (None, 0, 0));
}

#[tokio::test]
async fn a_view_waits_for_its_changes() {
    let store = Arc::new(store(64 << 20).await);
    let wait = |place| {
        let store = Arc::clone(&store);
        async move { store.wait_for_transaction(BUCKET, own(1, place)).await }
    };
    let soon = |waiting| tokio::time::timeout(Duration::from_secs(30), waiting);
    let not_yet =
        async |place| tokio::time::timeout(Duration::from_millis(20), wait(place)).await.is_err();
    wait(0).await.unwrap();
    assert!(not_yet(3).await, "the transaction is not known yet");
    let (waited, ()) = tokio::join!(soon(wait(3)), async {
        tokio::task::yield_now().await;
        store.late_commit().add_changes(BUCKET, &documents(1, 0, 2)).unwrap();
        tokio::task::yield_now().await;
        store.late_commit().add_changes(BUCKET, &documents(1, 2, 4)).unwrap();
    });
    waited.unwrap().unwrap();
    assert_eq!(count(&store, 1, 3), Ok(3));
    // A new stream sends it again.
    store.late_commit().drop_transactions(BUCKET);
    assert!(not_yet(3).await);
    let (waited, ()) = tokio::join!(soon(wait(3)), async {
        tokio::task::yield_now().await;
        store.late_commit().end_transactions(BUCKET, &[TransactionId(1)]);
    });
    assert_eq!(code(waited.unwrap()), Some(ErrorCode::SnapshotTooOld), "the transaction has ended");
}

#[tokio::test]
async fn an_index_that_gains_slices_lacks_them_until_the_stream_has_brought_them() {
    let store = store(64 << 20).await;
    let late = store.late_commit();
    let join = |slices: &[u16]| {
        let slices: BTreeSet<SliceNo> = slices.iter().copied().map(SliceNo).collect();
        late.carry_index(&info(BY_ID), slices);
    };
    late.add_changes(BUCKET, &documents(1, 0, 5)).unwrap();
    join(&[0, 1, 2]);
    join(&[0, 1]);
    assert_eq!(count(&store, 1, 5), Ok(5), "it has gained nothing");
    join(&[0, 1, 2]);
    assert_eq!(code(count(&store, 1, 5)), Some(ErrorCode::Unavailable));
    late.add_changes(BUCKET, &documents(1, 0, 5)).unwrap();
    assert_eq!(count(&store, 1, 5), Ok(5));
    late.stop_carrying_index(BUCKET, BY_ID);
    assert_eq!(code(count(&store, 1, 5)), Some(ErrorCode::Unavailable), "the stream lacks it");
    let before = late.bytes();
    late.drop_transactions(BUCKET);
    assert!(before > 0 && late.bytes() == 0);
}

#[tokio::test]
async fn small_messages_leave_few_runs() {
    let store = store(64 << 20).await;
    for place in 0..300 {
        store.late_commit().add_changes(BUCKET, &documents(1, place, place + 1)).unwrap();
    }
    let slices: Vec<SliceNo> = (0..SLICES).map(SliceNo).collect();
    let base = store.snapshot(BY_ID, Epoch(1)).unwrap();
    let view = store.late_commit().transaction_snapshot(Arc::clone(&base), own(1, 300)).unwrap();
    let runs = (view.cursors(&slices, false) - base.cursors(&slices, false)) / slices.len();
    assert!(runs < 16, "{runs} runs");
    assert_eq!(count(&store, 1, 299), Ok(299));
    assert!(view.checksum(SliceNo(0)).is_err(), "an own view has no checksum");
    // No other reader sees any of its rows.
    let mut rows = base.rows(&slices, &KeyRange::all(), false, false).unwrap();
    assert_eq!(rows.count(u64::MAX).unwrap().rows, 0);
}
