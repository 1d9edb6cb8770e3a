//! An operation that fails midway leaves no file that nothing names, whichever file operation it was that failed.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use proto::env::Env;
use proto::env::sim::{self, SimFs};
use proto::lock::lock;
use proto::{Error, Result};

use crate::engine::storage_engine::StorageEngine;
use crate::engine::storage_engine::tests::{INDEX, NODE, State, batch, body, info, mark};
use crate::file_id::FileId;
use crate::options::StoreOptions;
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;

fn open() -> (StorageEngine, SimFs) {
    let (env, _, fs) = sim::world(1);
    let store = StorageEngine::open(&env, NODE, Path::new("/node"), StoreOptions::default());
    (store.unwrap(), fs)
}

/// Prepares a build whose documents are gathered and not written; an epoch has changed half of
/// them.
async fn building(store: &StorageEngine) {
    let ids: Vec<String> = (0..40).map(|n| format!("k{n:02}")).collect();
    let documents: Vec<State<'_>> = ids.iter().map(|id| (1, &id[..], &[("a", 1)][..])).collect();
    let gone: Vec<State<'_>> = ids.iter().step_by(2).map(|id| (2, &id[..], &[][..])).collect();
    store.begin_build(info(), Grouping::Together).await.unwrap();
    store.begin_backfill(INDEX).await.unwrap();
    store.backfill(INDEX, body(&documents)).await.unwrap();
    store.apply(batch(1, 100, body(&gone))).await.unwrap();
}

/// Prepares a finished build with epochs in memory and as many flushed epochs.
async fn built(store: &StorageEngine) {
    building(store).await;
    store.finish_build(INDEX, &mark(1, 100)).await.unwrap();
    for epoch in 2..6 {
        let changed = body(&[(2, "k03", &[("b", epoch as i64)])]);
        store.apply(batch(epoch, 100 * epoch, changed)).await.unwrap();
        if epoch < 5 {
            store.flush().await.unwrap();
        }
    }
}

/// Returns the files on disk that neither the index nor its backfill names.
fn leaked(store: &StorageEngine) -> BTreeSet<FileId> {
    let files = &store.context.files;
    files.delete_retired();
    let mut listed = BTreeSet::from_iter(files.list().unwrap());
    if let Some(index) = store.context.state.get(INDEX) {
        let lists = lock(&index.fragment_lists);
        let mut named = lists.manifest.files();
        let backfill = lists.backfill.iter().flat_map(|b| b.forward.iter().chain(&b.back));
        named.extend(backfill.map(|new| new.file));
        listed.retain(|file| !named.contains(file));
    }
    listed
}

/// Returns true after a failed write of a manifest: this manifest may be on disk, so its files are
/// kept.
fn may_keep_files(error: &Error) -> bool {
    error.to_string().contains(".manifest")
}

/// Lets each file operation of `work` fail in turn, and checks after each failure that every file
/// has a name.
async fn check_each_failure(
    prepare: impl AsyncFn(&StorageEngine),
    work: impl AsyncFn(&StorageEngine) -> Result<()>,
) {
    let mut failures = 0;
    for operation in 1.. {
        let (store, fs) = open();
        prepare(&store).await;
        fs.fail_at(fs.operations() + operation);
        let done = work(&store).await;
        fs.disarm_faults();
        match done {
            Err(error) if may_keep_files(&error) => {}
            Err(error) => {
                failures += 1;
                let leaked = leaked(&store);
                assert!(leaked.is_empty(), "operation {operation}: {leaked:?} after {error}");
            }
            Ok(()) if operation > 200 => break,
            Ok(()) => {}
        }
    }
    assert!(failures > 3, "the operations fail: {failures}");
}

#[tokio::test]
async fn the_end_of_a_build_that_fails_leaves_no_file() {
    check_each_failure(building, async |store| store.finish_build(INDEX, &mark(1, 100)).await)
        .await;
}

#[tokio::test]
async fn a_flush_that_fails_leaves_no_file() {
    check_each_failure(built, async |store| store.flush().await).await;
}

#[tokio::test]
async fn a_compaction_that_fails_leaves_no_file() {
    check_each_failure(built, async |store| store.compact().await).await;
}

/// The documents of a failed write are no longer counted, and the build can restart.
#[tokio::test]
async fn a_build_whose_write_failed_begins_anew() {
    let (store, fs) = open();
    building(&store).await;
    fs.fail_at(fs.operations() + 1);
    assert!(store.finish_build(INDEX, &mark(1, 100)).await.is_err());
    assert_eq!(store.context.backfill_bytes(), 0);
    store.begin_backfill(INDEX).await.unwrap();
    store.backfill(INDEX, Bytes::new()).await.unwrap();
    store.finish_build(INDEX, &mark(1, 100)).await.unwrap();
    assert!(store.snapshot(INDEX, mark(1, 100).epoch).is_ok());
}

/// A build that is cancelled while its fragments are being written leaves no file: the write
/// deletes files that no build owns.
#[tokio::test(flavor = "multi_thread")]
async fn a_build_that_is_cancelled_midway_leaves_no_file() {
    let (env, dir) = (Env::real(), tempfile::tempdir().unwrap());
    let store = StorageEngine::open(&env, NODE, dir.path(), StoreOptions::default()).unwrap();
    let ids: Vec<String> = (0..2000).map(|n| format!("k{n:04}")).collect();
    let documents: Vec<State<'_>> = ids.iter().map(|id| (1, &id[..], &[("a", 1)][..])).collect();
    store.begin_build(info(), Grouping::Together).await.unwrap();
    for attempt in 0..60 {
        store.begin_backfill(INDEX).await.unwrap();
        store.backfill(INDEX, body(&documents)).await.unwrap();
        let mark = mark(1, 100);
        let end = store.finish_build(INDEX, &mark);
        if tokio::time::timeout(Duration::from_micros(attempt * 100), end).await.is_ok() {
            break;
        }
    }
    // The threads that write have a low priority, and may end late on a busy machine.
    for _ in 0..2_000 {
        if leaked(&store).is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(leaked(&store), BTreeSet::new());
    store.drop_index(INDEX).await.unwrap();
    assert_eq!(leaked(&store), BTreeSet::new());
}

/// An index that is dropped while its build writes a fragment leaves no file, also on a node
/// without other work: no later work searches for files there.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_build_leaves_no_file() {
    let ids: Vec<String> = (0..2000).map(|n| format!("k{n:04}")).collect();
    let documents: Vec<State<'_>> = ids.iter().map(|id| (1, &id[..], &[("a", 1)][..])).collect();
    for attempt in 0..40 {
        let (env, dir) = (Env::real(), tempfile::tempdir().unwrap());
        let store = StorageEngine::open(&env, NODE, dir.path(), StoreOptions::default()).unwrap();
        store.begin_build(info(), Grouping::Together).await.unwrap();
        store.begin_backfill(INDEX).await.unwrap();
        store.backfill(INDEX, body(&documents)).await.unwrap();
        let mark = mark(1, 100);
        let end = store.finish_build(INDEX, &mark);
        let _ended = tokio::time::timeout(Duration::from_micros(attempt * 100), end).await;
        store.drop_index(INDEX).await.unwrap();
        // The thread that writes has a low priority, and may end late on a busy machine.
        for _ in 0..2_000 {
            if store.context.files.list().unwrap().is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(store.context.files.list().unwrap(), [], "attempt {attempt}");
    }
}
