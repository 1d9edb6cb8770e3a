//! Concurrency on a busy node: epochs, flushes, compactions, changes of groups and scans on
//! separate threads; cancelled calls, full disks, dropped slices.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use proto::ErrorCode;
use proto::env::{BoxFuture, Env, FileSystem, Spawner, Task, sim};
use proto::expr::{ColumnType, Expr};
use proto::lock::lock;
use proto::model::cut::{Cut, EpochMark};
use proto::model::ids::{
    BucketId, Epoch, Generation, IndexId, LocalIndexId, NodeId, Seqno, SliceNo,
};
use proto::model::index::{IncludedColumn, IndexInfo, IndexSpec};
use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};
use proto::rpc::scan::KeyRange;
use proto::value::path::Step;

use crate::batch::{EpochBatch, VbucketMutations};
use crate::edit::edits::regroup_index;
use crate::engine::storage_engine::StorageEngine;
use crate::log::options::LogOptions;
use crate::maintain::compaction::{CompactionScope, compact_index};
use crate::maintain::flush::flush;
use crate::options::StoreOptions;
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;
use crate::{layout, verify};

const INDEX: LocalIndexId = LocalIndexId { index: IndexId(1), generation: Generation(0) };
const SLICE: SliceNo = SliceNo(0);
const BUCKET: BucketId = BucketId(1);
const NODE: NodeId = NodeId(7);

fn info() -> Arc<IndexInfo> {
    let expr = Expr::Path(vec![Step::Field("more".into())]);
    let include = IncludedColumn { expr, name: "more".into(), column_type: ColumnType::Text };
    let spec = IndexSpec { include: vec![include], ..IndexSpec::new("i", "b") };
    Arc::new(IndexInfo::new(INDEX.index, BUCKET, spec, vec![vec![NODE]]))
}

fn mark(epoch: u64, horizon: u64) -> EpochMark {
    EpochMark {
        bucket: BUCKET,
        epoch: Epoch(epoch),
        parent: Epoch(epoch - 1),
        cut: Arc::new(Cut::zero(1)),
        horizon: Epoch(horizon),
        points: Arc::default(),
    }
}

/// An epoch in which some documents get another key and another included value.
fn batch(epoch: u64, horizon: u64, ids: impl Iterator<Item = u64>) -> EpochBatch {
    let mut writer = KeyVersionsWriter::default();
    for n in ids {
        writer.mutation(1, MutationKind::Upsert, &format!("d{n:05}"), 1);
        writer.index(INDEX, 1);
        writer.entry(SLICE, &(epoch * 7919 % 1000).to_be_bytes(), &epoch.to_be_bytes());
    }
    let body = writer.finish();
    let piece = VbucketMutations { body, base: Seqno(0), after: Seqno(0), to: Seqno(u64::MAX) };
    EpochBatch { mark: mark(epoch, horizon), pieces: vec![piece], commits: Vec::new() }
}

/// Creates a store with an index that is at epoch 1, without documents.
async fn built(env: &Env, dir: &Path, options: StoreOptions) -> StorageEngine {
    let store = StorageEngine::open(env, NODE, dir, options).unwrap();
    store.begin_build(info(), Grouping::Together).await.unwrap();
    store.begin_backfill(INDEX).await.unwrap();
    store.backfill(INDEX, Bytes::new()).await.unwrap();
    store.apply(batch(1, 0, 0..0)).await.unwrap();
    store.finish_build(INDEX, &mark(1, 0)).await.unwrap();
    store
}

/// Waits until the background work of a store has ended too.
async fn close(store: Arc<StorageEngine>) {
    let context = Arc::downgrade(&store.context);
    drop(store);
    while context.strong_count() > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}

/// Returns the number of entries that are visible at an epoch; `None` if the epoch is too old.
fn entries(store: &StorageEngine, epoch: u64, include: bool) -> Option<u64> {
    let snapshot = match store.snapshot(INDEX, Epoch(epoch)) {
        Err(error) if error.code == ErrorCode::SnapshotTooOld => return None,
        other => other.unwrap(),
    };
    let mut rows = snapshot.rows(&[SLICE], &KeyRange::all(), false, include).unwrap();
    let mut count = 0;
    while rows.next().unwrap() {
        count += 1;
    }
    Some(count)
}

const DOCUMENTS: u64 = 500;
const EPOCHS: u64 = 250;

/// A unit of work that a thread repeats; it takes the number of the repetition.
type Work = Box<dyn Fn(u64) + Send>;

/// Returns the background work, and a scan that must find each document once.
fn works(store: &Arc<StorageEngine>, newest: &Arc<AtomicU64>) -> Vec<Work> {
    let of = || (store.context.state.get(INDEX).unwrap(), Arc::clone(store));
    let (index, node) = of();
    let flush: Work = Box::new(move |_| {
        flush(&index, &node.context.files).unwrap();
    });
    let (index, node) = of();
    let compact: Work = Box::new(move |turn| {
        let mut done = Default::default();
        let scope = match turn % 2 {
            0 => CompactionScope::Everything(&mut done),
            _ => CompactionScope::WherePays,
        };
        compact_index(&index, &node.context.files, scope).unwrap();
        node.context.files.delete_retired();
    });
    let (index, node) = of();
    let regroup: Work = Box::new(move |turn| {
        let grouping = if turn % 2 == 0 { Grouping::Apart } else { Grouping::Together };
        regroup_index(&index, grouping, &node.context.files).unwrap();
    });
    let (node, newest) = (Arc::clone(store), Arc::clone(newest));
    let scan: Work = Box::new(move |turn| {
        let epoch = newest.load(Ordering::Acquire);
        let shown = entries(&node, epoch, turn % 2 == 0);
        assert!(shown.is_none_or(|shown| shown == DOCUMENTS), "{shown:?} at epoch {epoch}");
    });
    vec![flush, compact, regroup, scan]
}

/// Ends the work on other threads when it is dropped, also when the test fails.
struct End(Arc<AtomicBool>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// All documents are written in epoch 2 and repeatedly afterwards: with any concurrent work, each
/// document is visible exactly once at each later epoch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_work_on_another_thread_loses_or_doubles_an_entry() {
    let dir = tempfile::tempdir().unwrap();
    let options = || StoreOptions { memory_bytes: 256 << 10, ..StoreOptions::default() };
    let store = Arc::new(built(&Env::real(), dir.path(), options()).await);
    store.apply(batch(2, 0, 0..DOCUMENTS)).await.unwrap();
    let newest = Arc::new(AtomicU64::new(2));
    let env = Env::real();
    let end = End(Arc::default());
    let threads = works(&store, &newest).into_iter().map(|work| {
        let ended = Arc::clone(&end.0);
        let turns = move || (0..).take_while(|_| !ended.load(Ordering::Relaxed)).for_each(work);
        env.blocking(turns)
    });
    let threads = futures::future::join_all(threads);
    let apply = async {
        for epoch in 3..EPOCHS {
            let ids = (0..20).map(|n| (epoch * 37 + n) % DOCUMENTS);
            store.apply(batch(epoch, epoch - 2, ids)).await.unwrap();
            newest.store(epoch, Ordering::Release);
        }
        end.0.store(true, Ordering::Relaxed);
    };
    tokio::join!(threads, apply);
    assert_eq!(entries(&store, EPOCHS - 1, true), Some(DOCUMENTS));
    store.flush().await.unwrap();
    close(store).await;
    let report = verify::verify(&Env::real(), dir.path());
    let version = layout::version_path(dir.path());
    let findings: Vec<_> = report.findings.iter().filter(|f| f.path != version).collect();
    assert!(findings.is_empty(), "{findings:?}");
    let store = StorageEngine::open(&Env::real(), NODE, dir.path(), options()).unwrap();
    store.load_all();
    assert_eq!(entries(&store, EPOCHS - 1, false), Some(DOCUMENTS));
    assert_eq!(store.progress()[0].entries, DOCUMENTS);
}

/// A slow flush of one index, because of its size or a slow file, must not delay flushes of other
/// indexes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_that_takes_long_holds_up_no_flush_of_another_index() {
    const OTHER: LocalIndexId = LocalIndexId { index: IndexId(2), ..INDEX };
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions { memory_bytes: 256 << 10, ..StoreOptions::default() };
    let store = Arc::new(built(&Env::real(), dir.path(), options).await);
    let spec = IndexSpec::new("other", "b");
    let other = IndexInfo::new(OTHER.index, BUCKET, spec, vec![vec![NODE]]);
    store.begin_build(Arc::new(other), Grouping::Together).await.unwrap();
    store.begin_backfill(OTHER).await.unwrap();
    store.backfill(OTHER, Bytes::new()).await.unwrap();
    store.apply(batch(2, 0, 0..0)).await.unwrap();
    store.finish_build(OTHER, &mark(2, 0)).await.unwrap();
    let (slow, other) = (store.context.state.get(INDEX).unwrap(), store.context.state.get(OTHER));
    let (other, (end, ended)) = (other.unwrap(), std::sync::mpsc::channel::<()>());
    let locked = Arc::new(tokio::sync::Notify::new());
    let (told, index) = (Arc::clone(&locked), Arc::clone(&slow));
    let env = Env::real();
    let holder = env.blocking(move || {
        let _flush_in_progress = lock(&index.flush);
        told.notify_one();
        let _until_the_test_ends = ended.recv();
    });
    let written = async {
        locked.notified().await;
        for epoch in 3.. {
            let mut writer = KeyVersionsWriter::default();
            for n in 0..100 {
                // The slow index has more, so that it is chosen first.
                writer.mutation(1, MutationKind::Upsert, &format!("d{n:05}"), 2);
                writer.index(INDEX, 1);
                writer.entry(SLICE, &[epoch as u8; 64], &[]);
                writer.index(OTHER, 1);
                writer.entry(SLICE, &[epoch as u8; 32], &[]);
            }
            let (body, to) = (writer.finish(), Seqno(u64::MAX));
            let piece = VbucketMutations { body, base: Seqno(0), after: Seqno(0), to };
            let batch = EpochBatch {
                mark: mark(epoch, epoch - 1),
                pieces: vec![piece],
                commits: Vec::new(),
            };
            store.apply(batch).await.unwrap();
            if other.longest_list.load(Ordering::Relaxed) > 0 {
                break;
            }
        }
    };
    let written = async {
        let written = tokio::time::timeout(std::time::Duration::from_secs(30), written).await;
        let slow_fragments = slow.longest_list.load(Ordering::Relaxed);
        drop(end);
        (written, slow_fragments)
    };
    let ((), (written, slow_fragments)) = tokio::join!(holder, written);
    written.expect("the other index was flushed");
    assert_eq!(slow_fragments, 0, "the slow flush had not ended");
}

/// A spawner that can delay blocking work.
#[derive(Default)]
struct Gate {
    closed: AtomicBool,
    waiting: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
}

impl Spawner for Gate {
    fn spawn(&self, name: &'static str, future: BoxFuture<()>) -> Task {
        sim::InlineSpawner.spawn(name, future)
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        match self.closed.load(Ordering::Relaxed) {
            true => lock(&self.waiting).push(work),
            false => work(),
        }
    }
}

#[tokio::test]
async fn cancelled_apply_releases_the_log() {
    let (env, _, _fs) = sim::world(5);
    let gate = Arc::new(Gate::default());
    let env = Env { spawner: gate.clone(), ..env };
    let log = LogOptions { segment_bytes: 2 << 10, ..LogOptions::default() };
    let options = StoreOptions { log, ..StoreOptions::default() };
    let store = built(&env, Path::new("/node"), options).await;
    gate.closed.store(true, Ordering::Relaxed);
    let applied =
        tokio::time::timeout(std::time::Duration::from_millis(20), store.apply(batch(2, 0, 0..50)));
    assert!(applied.await.is_err(), "the call is cancelled while the epoch is being applied");
    gate.closed.store(false, Ordering::Relaxed);
    let waiting = std::mem::take(&mut *lock(&gate.waiting));
    assert!(!waiting.is_empty(), "it waits for a thread");
    waiting.into_iter().for_each(|work| work());
    assert_eq!(entries(&store, 2, true), Some(50));
    for epoch in 3..40 {
        store.apply(batch(epoch, 0, 0..50)).await.unwrap();
        // Lets the log write a group, and so close segments.
        store.wait_durable(BUCKET, Epoch(epoch)).await.unwrap();
    }
    store.flush().await.unwrap();
    assert!(
        store.context.log.retained_bytes() < 8 << 10,
        "{} bytes",
        store.context.log.retained_bytes()
    );
    assert_eq!(store.counters(BUCKET).stable, Epoch(39));
}

#[tokio::test]
async fn rows_for_a_slice_that_has_gone_stop_no_flush() {
    let (env, _, _fs) = sim::world(5);
    let store = built(&env, Path::new("/node"), StoreOptions::default()).await;
    store.apply(batch(2, 0, 0..20)).await.unwrap();
    let of = |slice| INDEX.slice(slice);
    store.clone_slice(of(SLICE), SliceNo(1)).await.unwrap();
    store.drop_slice(of(SLICE)).await.unwrap();
    store.apply(batch(3, 0, 0..20)).await.unwrap();
    store.flush().await.unwrap();
    assert_eq!(store.counters(BUCKET).stable, Epoch(3));
    let pending = store.oldest_pending_file();
    store.apply(batch(4, 0, 0..20)).await.unwrap();
    store.flush().await.unwrap();
    assert_eq!(store.counters(BUCKET).stable, Epoch(4));
    assert_eq!(store.oldest_pending_file(), pending, "invisible versions are not written");
}

#[tokio::test]
async fn a_full_disk_keeps_no_part_of_a_fragment_and_no_file_pending() {
    let (env, _, fs) = sim::world(5);
    let dir = Path::new("/node");
    let store = built(&env, dir, StoreOptions::default()).await;
    store.apply(batch(2, 0, 0..2000)).await.unwrap();
    store.wait_durable(BUCKET, Epoch(2)).await.unwrap();
    let list = || fs.list(&layout::fragment_dir(dir)).unwrap();
    let before = list();
    fs.set_capacity(64 << 10);
    let index = store.context.state.get(INDEX).unwrap();
    flush(&index, &store.context.files).unwrap_err();
    store.context.files.delete_retired();
    assert_eq!(list(), before);
    assert_eq!(store.oldest_pending_file(), store.context.files.next().0);
    assert_eq!(entries(&store, 2, true), Some(2000));
    fs.set_capacity(u64::MAX);
    store.flush().await.unwrap();
    assert_eq!(store.counters(BUCKET).stable, Epoch(2));
    assert_eq!(entries(&store, 2, true), Some(2000));
}

/// Two rollbacks to the same epoch remove the epochs applied between them, also after a crash that
/// interrupted the second one.
#[tokio::test]
async fn a_second_rollback_to_the_same_epoch_takes_back_what_came_since_the_first() {
    let (env, _, fs) = sim::world(5);
    let dir = Path::new("/node");
    let store = built(&env, dir, StoreOptions::default()).await;
    store.apply(batch(2, 0, 0..10)).await.unwrap();
    for (epoch, documents) in [(3, 20), (5, 30)] {
        let mut next = batch(epoch, 0, 0..documents);
        next.mark.parent = Epoch(2);
        store.apply(next).await.unwrap();
        store.flush().await.unwrap();
        store.roll_back(&mark(2, 0), Epoch(0)).await.unwrap();
        assert_eq!(entries(&store, 2, true), Some(10));
        assert_eq!(store.progress()[0].entries, 10);
    }
    drop(store);
    fs.crash();
    fs.restart();
    let store = StorageEngine::open(&env, NODE, dir, StoreOptions::default()).unwrap();
    assert_eq!(entries(&store, 2, true), Some(10));
    assert_eq!(store.counters(BUCKET).committed, Epoch(2));
}

/// Until the log is released, only the log has a record of skipped epochs.
#[tokio::test]
async fn epochs_that_were_skipped_stay_dead_after_two_restarts() {
    let (env, _, fs) = sim::world(5);
    let dir = Path::new("/node");
    let mut store = built(&env, dir, StoreOptions::default()).await;
    store.apply(batch(2, 0, 0..10)).await.unwrap();
    store.flush().await.unwrap();
    let mut next = batch(5, 0, 0..0);
    next.mark.parent = Epoch(2);
    store.apply(next).await.unwrap();
    store.wait_durable(BUCKET, Epoch(5)).await.unwrap();
    for restarts in 0..3 {
        assert_eq!(entries(&store, 2, true), Some(10), "after {restarts} restarts");
        assert_eq!(entries(&store, 4, true), None, "after {restarts} restarts");
        assert_eq!(entries(&store, 5, true), Some(10), "after {restarts} restarts");
        drop(store);
        fs.crash();
        fs.restart();
        store = StorageEngine::open(&env, NODE, dir, StoreOptions::default()).unwrap();
        store.load_all();
    }
}
