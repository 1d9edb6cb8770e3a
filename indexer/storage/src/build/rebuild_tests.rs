//! Tests of rebuilds: the index's other slices stay readable, and the rebuilt slices have their
//! former contents.

use proptest::prelude::*;
use proto::model::ids::SliceNo;
use proto::model::index::IndexInfo;

use super::*;
use crate::build::compare::tests::{Changes, INDEX, NODE, Row, Source, built, changes, rows};
use crate::engine::storage_engine::StorageEngine;
use crate::options::StoreOptions;
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;

const LOST: SliceNo = SliceNo(1);

fn open(dir: &tempfile::TempDir) -> StorageEngine {
    let env = proto::env::Env::real();
    let store = StorageEngine::open(&env, NODE, dir.path(), StoreOptions::default());
    let store = store.expect("the store opens");
    store.load_all();
    store
}

/// The applied epochs, and the entries of slice 0 at each.
struct Played {
    source: Source,
    shown: Vec<Vec<Row>>,
}

impl Played {
    async fn epoch(&mut self, store: &StorageEngine, changes: &Changes) {
        let body = self.source.change(changes);
        self.apply(store, body).await;
    }

    async fn apply(&mut self, store: &StorageEngine, body: bytes::Bytes) {
        let epoch = self.shown.len() as u64 + 1;
        store.apply(self.source.batch(epoch, body)).await.expect("an epoch");
        self.shown.push(self.source.rows(&[0]));
        self.stays(store);
    }

    fn newest(&self) -> u64 {
        self.shown.len() as u64
    }

    fn stays(&self, store: &StorageEngine) {
        for (shown, epoch) in self.shown.iter().zip(1..) {
            assert_eq!(rows(store, epoch, &[0]), *shown, "slice 0 at epoch {epoch}");
        }
    }

    async fn backfill(&self, store: &StorageEngine) {
        store.begin_backfill(INDEX).await.expect("a backfill");
        for body in self.source.snapshot() {
            store.backfill(INDEX, body).await.expect("documents");
        }
    }
}

fn info(store: &StorageEngine) -> Arc<IndexInfo> {
    Arc::clone(&store.indexes()[0].info)
}

fn entries(store: &StorageEngine) -> Vec<(SliceNo, bool, u64)> {
    let told = store.progress().into_iter();
    told.map(|told| (told.slice.slice, told.floor.is_some(), told.entries)).collect()
}

async fn lost(dir: &tempfile::TempDir, first: &Changes) -> (StorageEngine, Played) {
    let mut source = Source::default();
    let store = built(dir, &mut source, first).await;
    let shown = vec![source.rows(&[0])];
    let info = info(&store);
    let slice = INDEX.slice(LOST);
    store.drop_slice(slice).await.expect("it goes");
    store.begin_rebuild(info, &[LOST], Grouping::Together).await.expect("a rebuild");
    (store, Played { source, shown })
}

/// Checks that both slices are complete, at the newest epoch and after one more epoch.
async fn is_whole(store: &StorageEngine, played: &mut Played, more: &Changes) {
    assert_eq!(rows(store, played.newest(), &[0, 1]), played.source.rows(&[0, 1]));
    played.epoch(store, more).await;
    assert_eq!(rows(store, played.newest(), &[0, 1]), played.source.rows(&[0, 1]));
    let count = |slice| played.source.rows(&[slice]).len() as u64;
    let expected = [(SliceNo(0), true, count(0)), (LOST, true, count(1))];
    assert_eq!(entries(store), expected);
}

async fn rebuilt(all: [Changes; 5], flushes: bool) {
    let dir = tempfile::tempdir().expect("a directory");
    let [first, before, beside, after, more] = all;
    let (store, mut played) = lost(&dir, &first).await;
    played.epoch(&store, &before).await;
    // The snapshot is ahead of the applied epochs.
    let body = played.source.change(&beside);
    played.backfill(&store).await;
    if flushes {
        store.flush().await.expect("a flush");
    }
    played.apply(&store, body).await;
    played.epoch(&store, &after).await;
    let mark = played.source.mark(played.newest());
    assert!(store.snapshot(INDEX, mark.epoch).is_ok_and(|shown| !shown.has(LOST)));
    store.finish_build(INDEX, &mark).await.expect("the end of the build");
    is_whole(&store, &mut played, &more).await;
    played.stays(&store);
    assert_eq!(store.rebuilds(), []);
    assert_eq!(store.indexes()[0].slices, [(SliceNo(0), Epoch(1)), (LOST, mark.epoch)]);
    store.wait_durable(mark.bucket, Epoch(played.newest())).await.expect("durable");
    drop(store);
    let store = open(&dir);
    played.stays(&store);
    is_whole(&store, &mut played, &first).await;
    store.compact().await.expect("a compaction");
    is_whole(&store, &mut played, &before).await;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_rebuilt_slice_is_unchanged_and_other_slices_answer_meanwhile(
        all in [changes(), changes(), changes(), changes(), changes()],
        flushes: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(rebuilt(all, flushes));
    }
}

fn some(from: u8) -> Changes {
    (from..from + 12).map(|n| (n, [(0, n % 6, 0), (1, n % 5, 1)].into())).collect()
}

#[tokio::test]
async fn a_crash_drops_a_rebuild() {
    let dir = tempfile::tempdir().expect("a directory");
    let (store, mut played) = lost(&dir, &some(0)).await;
    played.epoch(&store, &some(4)).await;
    played.backfill(&store).await;
    store.flush().await.expect("a flush");
    store.wait_durable(played.source.mark(1).bucket, Epoch(2)).await.expect("durable");
    drop(store);
    let store = open(&dir);
    played.stays(&store);
    assert_eq!(entries(&store).len(), 1);
    let named =
        store.context.state.get(INDEX).map(|index| lock(&index.fragment_lists).manifest.files());
    let listed = store.context.files.list().expect("the files");
    assert_eq!(listed.into_iter().collect::<std::collections::BTreeSet<_>>(), named.unwrap());
}

#[tokio::test]
async fn a_rebuild_that_is_dropped_or_ends_late_leaves_nothing_and_the_next_one_succeeds() {
    let dir = tempfile::tempdir().expect("a directory");
    let (store, mut played) = lost(&dir, &some(0)).await;
    played.backfill(&store).await;
    played.epoch(&store, &some(4)).await;
    let late = store.finish_build(INDEX, &played.source.mark(1)).await;
    assert!(late.is_err_and(|error| error.is_retry()));
    for ends in [false, true] {
        store.begin_rebuild(info(&store), &[LOST], Grouping::Together).await.expect("a rebuild");
        played.backfill(&store).await;
        played.epoch(&store, &some(7)).await;
        if !ends {
            store.drop_rebuild(INDEX).await.expect("given up");
            assert!(store.backfill(INDEX, Default::default()).await.is_err());
        }
    }
    let mark = played.source.mark(played.newest());
    store.finish_build(INDEX, &mark).await.expect("the end of the build");
    is_whole(&store, &mut played, &some(2)).await;
    store.compact().await.expect("a compaction");
    let files = store.context.files.list().expect("the files").len();
    let named =
        store.context.state.get(INDEX).map(|index| lock(&index.fragment_lists).manifest.files());
    assert_eq!(Some(files), named.map(|named| named.len()));
}

#[tokio::test]
async fn a_rebuild_works_on_a_node_without_the_index() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut source = Source::default();
    let store = built(&dir, &mut source, &some(0)).await;
    let info = info(&store);
    store.drop_index(INDEX).await.expect("it goes");
    store.begin_rebuild(info, &[SliceNo(0), LOST], Grouping::Together).await.expect("a rebuild");
    let mut played = Played { source, shown: Vec::new() };
    played.backfill(&store).await;
    let body = played.source.change(&some(4));
    store.apply(played.source.batch(2, body)).await.expect("an epoch");
    assert!(store.indexes().is_empty());
    store.finish_build(INDEX, &played.source.mark(2)).await.expect("its end");
    assert_eq!(rows(&store, 2, &[0, 1]), played.source.rows(&[0, 1]));
    drop(store);
    let store = open(&dir);
    assert_eq!(rows(&store, 2, &[0, 1]), played.source.rows(&[0, 1]));
    assert_eq!(store.indexes()[0].slices, [(SliceNo(0), Epoch(2)), (LOST, Epoch(2))]);
}
