//! Tests of reads while a node loads.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use proto::ErrorCode;
use proto::env::{BoxFuture, Env, Spawner, Task, sim};
use proto::model::cut::{Cut, EpochMark};
use proto::model::ids::{
    BucketId, Epoch, Generation, IndexId, LocalIndexId, NodeId, Seqno, SliceNo,
};
use proto::model::index::{IndexInfo, IndexSpec};
use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};

use super::*;
use crate::batch::{EpochBatch, VbucketMutations};
use crate::engine::storage_engine::StorageEngine;
use crate::maintain::merge_runs::is_worth_merging;
use crate::options::StoreOptions;
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;

pub(crate) const NODE: NodeId = NodeId(7);
pub(crate) const INDEXES: [LocalIndexId; 2] = [
    LocalIndexId { index: IndexId(1), generation: Generation(0) },
    LocalIndexId { index: IndexId(2), generation: Generation(0) },
];
pub(crate) const DIR: &str = "/node";

/// A spawner that delays the first blocking work until the test releases it.
#[derive(Default)]
pub(crate) struct Hold {
    pub(crate) first: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    taken: Mutex<bool>,
}

impl Spawner for Hold {
    fn spawn(&self, name: &'static str, future: BoxFuture<()>) -> Task {
        sim::InlineSpawner.spawn(name, future)
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        match std::mem::replace(&mut *lock(&self.taken), true) {
            true => work(),
            false => *lock(&self.first) = Some(work),
        }
    }
}

pub(crate) fn mark(epoch: u64) -> EpochMark {
    EpochMark {
        bucket: BucketId(1),
        epoch: Epoch(epoch),
        parent: Epoch(epoch - 1),
        cut: Arc::new(Cut::zero(1)),
        horizon: Epoch(0),
        points: Arc::default(),
    }
}

/// Documents with an entry in each index.
pub(crate) fn body(ids: std::ops::Range<u64>) -> Bytes {
    let mut writer = KeyVersionsWriter::default();
    for n in ids {
        writer.mutation(n + 1, MutationKind::Upsert, &format!("d{n}"), INDEXES.len());
        for index in INDEXES {
            writer.index(index, 1);
            writer.entry(SliceNo(0), &n.to_be_bytes(), b"");
        }
    }
    writer.finish()
}

pub(crate) async fn apply(store: &StorageEngine, epoch: u64, ids: std::ops::Range<u64>) {
    let piece =
        VbucketMutations { body: body(ids), base: Seqno(0), after: Seqno(0), to: Seqno(u64::MAX) };
    store
        .apply(EpochBatch { mark: mark(epoch), pieces: vec![piece], commits: Vec::new() })
        .await
        .unwrap();
}

pub(crate) fn open(env: &Env) -> StorageEngine {
    StorageEngine::open(env, NODE, Path::new(DIR), StoreOptions::default()).unwrap()
}

/// An index with one slice.
pub(crate) fn info(index: LocalIndexId) -> Arc<IndexInfo> {
    let spec = IndexSpec::new("i", "b");
    Arc::new(IndexInfo::new(index.index, BucketId(1), spec, vec![vec![NODE]]))
}

/// Returns a node with two indexes at epoch 3: one epoch built, one flushed, and one only in the
/// log.
pub(crate) async fn node() -> (Env, sim::SimFs) {
    let (env, _, fs) = sim::world(3);
    let store = open(&env);
    for index in INDEXES {
        store.begin_build(info(index), Grouping::Together).await.unwrap();
        store.begin_backfill(index).await.unwrap();
        store.backfill(index, body(0..10)).await.unwrap();
    }
    apply(&store, 1, 0..0).await;
    for index in INDEXES {
        store.finish_build(index, &mark(1)).await.unwrap();
    }
    apply(&store, 2, 5..15).await;
    store.flush().await.unwrap();
    apply(&store, 3, 12..20).await;
    store.wait_durable(BucketId(1), Epoch(3)).await.unwrap();
    (env, fs)
}

pub(crate) fn entries(store: &StorageEngine, index: LocalIndexId, epoch: u64) -> Result<u64> {
    let snapshot = store.snapshot(index, Epoch(epoch))?;
    snapshot.checksum(SliceNo(0)).map(|(_, entries)| entries)
}

#[tokio::test]
async fn an_index_is_read_as_soon_as_it_is_loaded_and_epochs_never_wait() {
    use LoadState::{Active, LoadingFragments};
    let (env, _fs) = node().await;
    let held = Arc::new(Hold::default());
    let env = Env { spawner: held.clone(), ..env };
    let store = open(&env);
    let [one, two] = INDEXES;
    assert_eq!(store.load_states(), [(one, LoadingFragments), (two, LoadingFragments)]);
    for index in INDEXES {
        assert_eq!(entries(&store, index, 3).unwrap_err().code, ErrorCode::Unavailable);
    }
    apply(&store, 4, 18..25).await;
    store.flush().await.unwrap();
    store.wait_loaded(two).await.unwrap();
    assert_eq!(store.load_states(), [(one, LoadingFragments), (two, Active)]);
    assert_eq!((entries(&store, two, 3).unwrap(), entries(&store, two, 4).unwrap()), (20, 25));
    assert_eq!(entries(&store, one, 3).unwrap_err().code, ErrorCode::Unavailable);
    let loader = lock(&held.first).take().expect("the loader");
    loader();
    assert_eq!(store.load_states(), [(one, Active), (two, Active)]);
    assert_eq!((entries(&store, one, 3).unwrap(), entries(&store, one, 4).unwrap()), (20, 25));
    store.drop_index(one).await.unwrap();
    assert_eq!(store.load_states(), [(two, Active)]);
    assert_eq!(entries(&store, one, 4).unwrap_err().code, ErrorCode::SliceMoved);
}

/// A rollback counts entries, so it needs all fragments, even while the node loads.
#[tokio::test]
async fn a_rollback_while_a_node_loads_goes_back_to_the_same_entries() {
    let (env, _fs) = node().await;
    let held = Arc::new(Hold::default());
    let store = open(&Env { spawner: held.clone(), ..env });
    store.roll_back(&mark(2), Epoch(0)).await.unwrap();
    for index in INDEXES {
        store.wait_loaded(index).await.unwrap();
        assert_eq!(entries(&store, index, 2).unwrap(), 15);
    }
    let counted: BTreeSet<u64> = store.progress().iter().map(|slice| slice.entries).collect();
    assert_eq!(counted, BTreeSet::from([15]));
}

#[tokio::test]
async fn a_damaged_fragment_keeps_no_other_index_from_being_read() {
    let (env, fs) = node().await;
    let store = open(&env);
    let index = store.context.state.get(INDEXES[0]).unwrap();
    let file = index.version.load().slices[&SliceNo(0)].forward[0].table.fragment().unwrap().id();
    drop((index, store));
    let path = crate::layout::fragment_path(Path::new(DIR), file);
    let bytes = env.fs.open(&path, proto::env::OpenMode::Read).unwrap().len().unwrap();
    fs.flip_bit(&path, 8 * (bytes - 20)).unwrap();
    let store = open(&env);
    let error = store.wait_loaded(INDEXES[0]).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Corrupt);
    assert!(error.message.contains(&path.display().to_string()), "{}", error.message);
    assert!(store.progress()[0].trouble.is_some());
    store.wait_loaded(INDEXES[1]).await.unwrap();
    assert_eq!(entries(&store, INDEXES[1], 3).unwrap(), 20);
    // The damaged index does not lose the epochs of the meantime.
    apply(&store, 4, 18..25).await;
    store.flush().await.unwrap();
    drop(store);
    fs.flip_bit(&path, 8 * (bytes - 20)).unwrap();
    let store = open(&env);
    store.wait_loaded(INDEXES[0]).await.unwrap();
    assert_eq!(entries(&store, INDEXES[0], 4).unwrap(), 25);
}

/// Regression: the worker that merges runs chose an index that had just been dropped.
#[tokio::test]
async fn an_index_that_is_dropped_during_a_flush_has_nothing_to_merge() {
    let (env, _fs) = node().await;
    let store = open(&env);
    let index = store.context.state.get(INDEXES[0]).unwrap();
    index.writer().frozen_runs = 1;
    store.drop_index(INDEXES[0]).await.unwrap();
    assert!(!is_worth_merging(&index));
}

#[tokio::test]
async fn a_failed_log_is_reported() {
    let (env, fs) = node().await;
    let store = open(&env);
    let failed = tokio::time::timeout(Duration::from_millis(50), store.wait_log_failed()).await;
    assert!(failed.is_err(), "nothing has failed");
    fs.fail_at(fs.operations() + 1);
    apply(&store, 4, 18..25).await;
    store.wait_log_failed().await;
    assert!(store.wait_durable(mark(4).bucket, Epoch(4)).await.is_err());
}
