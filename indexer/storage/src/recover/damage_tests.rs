//! Tests of a log or a node manifest that is lost, truncated or replaced by an old copy.

use std::path::{Path, PathBuf};

use proto::ErrorCode;
use proto::env::{Env, OpenMode, sim};
use proto::model::ids::{BucketId, Epoch, SliceNo};

use super::load::tests::{DIR, INDEXES, NODE, apply, body, info, mark, open};
use crate::engine::storage_engine::StorageEngine;
use crate::options::StoreOptions;
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;
use crate::verify::verify;
use crate::{layout, manifest};

/// Creates a store with an index that became readable at epoch 1; nothing was flushed or released
/// afterwards.
async fn young_node() -> (Env, sim::SimFs) {
    let (env, _, fs) = sim::world(3);
    let store = open(&env);
    build(&store, 0).await;
    apply(&store, 2, 20..30).await;
    store.wait_durable(BucketId(1), Epoch(2)).await.unwrap();
    drop(store);
    (env, fs)
}

/// Builds an index, which becomes readable at epoch 1.
async fn build(store: &StorageEngine, index: usize) {
    store.begin_build(info(INDEXES[index]), Grouping::Together).await.unwrap();
    store.begin_backfill(INDEXES[index]).await.unwrap();
    store.backfill(INDEXES[index], body(0..10)).await.unwrap();
    apply(store, 1, 0..0).await;
    store.finish_build(INDEXES[index], &mark(1)).await.unwrap();
}

fn segments(env: &Env) -> Vec<PathBuf> {
    env.fs.list(&layout::log_dir(Path::new(DIR))).unwrap()
}

fn bytes(env: &Env, path: &Path) -> Vec<u8> {
    let file = env.fs.open(path, OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn put(env: &Env, path: &Path, bytes: &[u8]) {
    let file = env.fs.open(path, OpenMode::Create).unwrap();
    file.set_len(0).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file.sync().unwrap();
}

#[tokio::test]
async fn slices_that_can_be_read_have_an_applied_epoch_even_if_the_log_is_gone() {
    for cut in [None, Some(0), Some(7), Some(20)] {
        let (env, _fs) = young_node().await;
        let [segment] = &segments(&env)[..] else { panic!("one segment") };
        match cut {
            None => env.fs.remove_file(segment).unwrap(),
            Some(len) => env.fs.open(segment, OpenMode::ReadWrite).unwrap().set_len(len).unwrap(),
        }
        if cut.is_none() {
            let findings = verify(&env, Path::new(DIR)).findings;
            assert!(findings.iter().any(|f| f.message.contains("commit log is missing")));
        }
        let store = open(&env);
        store.load_all();
        let applied = store.applied();
        assert_eq!(applied, [mark(1)], "cut {cut:?}: the stream continues behind epoch 1");
        let shown = store.snapshot(INDEXES[0], Epoch(1)).unwrap();
        assert_eq!(shown.checksum(SliceNo(0)).unwrap().1, 10, "cut {cut:?}");
    }
}

#[tokio::test]
async fn a_missing_node_manifest_is_named() {
    let (env, _fs) = young_node().await;
    let path = layout::manifest_dir(Path::new(DIR)).join("node.manifest");
    env.fs.remove_file(&path).unwrap();
    let findings = verify(&env, Path::new(DIR)).findings;
    assert!(findings.iter().any(|finding| finding.path == path), "{findings:?}");
    let opened = StorageEngine::open(&env, NODE, Path::new(DIR), StoreOptions::default());
    let error = opened.err().expect("slices without a place in the log");
    assert_eq!(error.code, ErrorCode::Corrupt);
    assert!(error.message.contains("node.manifest"), "{error}");
}

#[tokio::test]
async fn an_old_copy_of_an_index_manifest_is_named() {
    let (env, _fs) = young_node().await;
    let path = manifest::index_path(&layout::manifest_dir(Path::new(DIR)), INDEXES[0]);
    let old = bytes(&env, &path);
    let store = open(&env);
    store.load_all();
    apply(&store, 3, 30..40).await;
    // The fragments of the old copy stay, since nothing is compacted, and the log is released.
    store.flush().await.unwrap();
    drop(store);
    put(&env, &path, &old);
    let findings = verify(&env, Path::new(DIR)).findings;
    assert!(findings.iter().any(|finding| finding.path == path), "{findings:?}");
    let opened = StorageEngine::open(&env, NODE, Path::new(DIR), StoreOptions::default());
    let error = opened.err().expect("epochs 2 and 3 are in no fragment of the copy");
    assert!(error.message.contains("index-1.0.manifest"), "{error}");
}

#[tokio::test]
async fn a_log_without_its_oldest_segment_is_named() {
    let (env, _, _fs) = sim::world(3);
    let mut options = StoreOptions::default();
    options.log.segment_bytes = 200;
    let open = || StorageEngine::open(&env, NODE, Path::new(DIR), options.clone());
    let store = open().unwrap();
    build(&store, 0).await;
    for epoch in 2..9 {
        apply(&store, epoch, 20..30).await;
        store.wait_durable(BucketId(1), Epoch(epoch)).await.unwrap();
    }
    drop(store);
    let segments = segments(&env);
    assert!(segments.len() > 2, "{segments:?}");
    env.fs.remove_file(&segments[0]).unwrap();
    let findings = verify(&env, Path::new(DIR)).findings;
    assert!(findings.iter().any(|f| f.message.contains("a segment is missing")), "{findings:?}");
    let error = open().err().expect("the first epochs are gone");
    assert!(error.message.contains("a segment is missing"), "{error}");
}
