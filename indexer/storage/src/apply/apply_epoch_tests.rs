//! Epochs that fail half-way.

use std::path::Path;

use bytes::Bytes;
use proto::env::sim;
use proto::model::ids::{Epoch, SliceNo};
use proto::rpc::scan::KeyRange;
use proto::value::key;

use crate::engine::storage_engine::StorageEngine;
use crate::engine::storage_engine::tests::{INDEX, NODE, State, batch, body, info, mark};
use crate::options::StoreOptions;
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;
use crate::tables::run::failure;

/// Returns the countries of the entries that are visible at an epoch.
fn countries(store: &StorageEngine, epoch: u64) -> Vec<String> {
    let snapshot = store.snapshot(INDEX, Epoch(epoch)).unwrap();
    let mut rows = snapshot.rows(&[SliceNo(0)], &KeyRange::all(), false, false).unwrap();
    let mut found = Vec::new();
    while rows.next().unwrap() {
        let value = key::decode_part(&mut rows.entry(), false).unwrap();
        found.push(value.as_str().unwrap().to_owned());
    }
    found
}

/// An epoch whose run cannot be built fails after its documents were compared with the back index.
/// A retry compares them with their states before the failed attempt.
#[tokio::test]
async fn a_failed_run_leaves_nothing_that_a_retry_would_see() {
    let (env, _, _fs) = sim::world(1);
    let store =
        StorageEngine::open(&env, NODE, Path::new("/node"), StoreOptions::default()).unwrap();
    store.load_all();
    let before: [State<'_>; 2] = [(1, "k1", &[("a", 1)]), (2, "k2", &[("b", 1)])];
    store.begin_build(info(), Grouping::Together).await.unwrap();
    store.begin_backfill(INDEX).await.unwrap();
    store.backfill(INDEX, body(&before)).await.unwrap();
    store.apply(batch(1, 100, Bytes::new())).await.unwrap();
    store.finish_build(INDEX, &mark(1, 100)).await.unwrap();
    assert_eq!(countries(&store, 1), ["a", "b"]);

    let changed: [State<'_>; 3] =
        [(101, "k1", &[("c", 1)]), (102, "k2", &[]), (103, "k3", &[("d", 1), ("e", 1)])];
    let epoch = || batch(2, 103, body(&changed));
    failure::fail_next_run();
    store.apply(epoch()).await.expect_err("its run fails");
    assert_eq!(countries(&store, 1), ["a", "b"], "nothing of the epoch is visible");
    assert_eq!(store.progress()[0].entries, 2, "nothing of the epoch is counted");

    store.apply(epoch()).await.expect("the retry");
    assert_eq!(countries(&store, 1), ["a", "b"]);
    assert_eq!(countries(&store, 2), ["c", "d", "e"]);
    assert_eq!(store.progress()[0].entries, 3);
}
