//! Tests of rollbacks that run concurrently with other work, and of interrupted rollbacks.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use proto::env::{Env, sim};
use proto::model::ids::{BucketId, Generation, IndexId, LocalIndexId};
use proto::model::index::IndexInfo;

use super::*;
use crate::apply::apply_epoch::apply_epoch;
use crate::apply::documents::last_changes;
use crate::batch::EpochBatch;
use crate::engine::storage_engine::StorageEngine;
use crate::engine::storage_engine::tests::{INDEX, NODE, State, batch, body, info, mark};
use crate::options::StoreOptions;
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;

const OTHER: LocalIndexId = LocalIndexId { index: IndexId(2), generation: Generation(0) };
const BUCKET: BucketId = BucketId(1);
/// The epoch of the rollbacks.
const POINT: Epoch = Epoch(3);
/// The newest epoch before the rollbacks.
const NEWEST: Epoch = Epoch(5);

fn open(env: &Env, dir: &Path) -> StorageEngine {
    let store = StorageEngine::open(env, NODE, dir, StoreOptions::default());
    let store = store.expect("the store opens");
    store.load_all();
    store
}

/// An epoch that adds a document to the index and moves another one.
fn epoch(n: u64) -> EpochBatch {
    let seqno = 100 + n;
    let own = format!("own{n}");
    let states: [State<'_>; 2] =
        [(seqno - 1, own.as_str(), &[("own", n as i64)]), (seqno, "moved", &[("moved", n as i64)])];
    let mut epoch = batch(n, seqno, body(&states));
    epoch.mark.horizon = Epoch(n);
    epoch.mark.points = [POINT].into_iter().filter(|point| point.0 < n).collect::<Vec<_>>().into();
    epoch
}

/// Creates a store with two indexes at epoch 5, of which the first has documents. Returns it with
/// the checksum and number of the entries at the rollback point.
async fn stored(env: &Env, dir: &Path) -> (StorageEngine, (u64, u64)) {
    let store = open(env, dir);
    for index in [INDEX, OTHER] {
        let info = IndexInfo { id: index.index, ..IndexInfo::clone(&info()) };
        store.begin_build(Arc::new(info), Grouping::Together).await.unwrap();
        store.begin_backfill(index).await.unwrap();
    }
    store.apply(batch(1, 100, Bytes::new())).await.unwrap();
    for index in [INDEX, OTHER] {
        store.finish_build(index, &mark(1, 100)).await.unwrap();
    }
    let mut at_point = (0, 0);
    for n in 2..=NEWEST.0 {
        store.apply(epoch(n)).await.unwrap();
        if Epoch(n) == POINT {
            at_point = shown(&store, POINT);
        }
    }
    (store, at_point)
}

/// Checksum and number of the entries at an epoch.
fn shown(store: &StorageEngine, epoch: Epoch) -> (u64, u64) {
    let snapshot = store.snapshot(INDEX, epoch).expect("it is shown");
    snapshot.checksum(proto::model::ids::SliceNo(0)).unwrap()
}

/// Newest epoch of each index.
fn newest(store: &StorageEngine) -> Vec<Epoch> {
    store.indexes().iter().map(|stored| stored.newest).collect()
}

/// Runs `work` on another thread while a bucket's lock is locked. The work must reach the log
/// before the lock is released, and must not change the visible entries.
async fn held_up(
    store: &Arc<StorageEngine>,
    work: impl Future<Output = Result<()>> + Send + 'static,
) {
    let env = Env::real();
    let (end, before) = (store.context.log.end(), (store.committed(BUCKET), newest(store)));
    let (ended, outcome) = tokio::sync::oneshot::channel();
    let bucket_lock = store.context.state.bucket_lock(BUCKET);
    {
        let _held = lock(&bucket_lock);
        let run = async move { drop(ended.send(work.await)) };
        env.spawn_request("beside", run).detach();
        while store.context.log.end() == end {
            env.spawner.pause(Duration::from_millis(1));
        }
        env.spawner.pause(Duration::from_millis(50));
        assert_eq!((store.committed(BUCKET), newest(store)), before, "another is at work");
    }
    outcome.await.expect("it ends").expect("it succeeds");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_epoch_and_a_rollback_of_a_bucket_wait_for_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = stored(&Env::real(), dir.path()).await;
    let store = Arc::new(store);
    let of = Arc::clone(&store);
    held_up(&store, async move { of.apply(epoch(6)).await }).await;
    assert_eq!(store.committed(BUCKET), Epoch(6));
    let of = Arc::clone(&store);
    held_up(&store, async move { of.roll_back(&epoch(POINT.0).mark, Epoch(6)).await }).await;
    assert_eq!((store.committed(BUCKET), newest(&store)), (POINT, vec![POINT; 2]));
}

#[tokio::test]
async fn an_epoch_in_progress_during_a_rollback_is_not_applied() {
    let (env, _, _fs) = sim::world(7);
    let (store, before) = stored(&env, Path::new("/node")).await;
    let late = epoch(6);
    let lsn = store.log_epoch(&late).await.unwrap();
    store.roll_back(&epoch(POINT.0).mark, Epoch(6)).await.unwrap();
    apply_epoch(&store.context.state, (&late.mark, &last_changes(&late).unwrap()), lsn).unwrap();
    assert_eq!((store.committed(BUCKET), newest(&store)), (POINT, vec![POINT; 2]));
    assert_eq!(shown(&store, POINT), before);
}

/// A rollback fails at each of its file operations in turn, while the index has runs in memory and
/// a floor that is not on disk. Later work must not hang. Then the process is killed.
#[tokio::test]
async fn an_interrupted_rollback_leaves_nothing_ahead_of_its_bucket() {
    let dir = Path::new("/node");
    for in_files in [false, true] {
        for place in 1.. {
            let (env, _, fs) = sim::world(7);
            let (store, before) = stored(&env, dir).await;
            if in_files {
                store.compact().await.unwrap();
                assert_eq!(store.indexes()[0].floor, Some(NEWEST), "only a point is left below");
            }
            store.wait_durable(BUCKET, NEWEST).await.unwrap();
            let at = fs.operations() + place;
            fs.fail_at(at);
            let went = store.roll_back(&epoch(POINT.0).mark, NEWEST).await;
            if fs.operations() < at {
                assert!(place > 10, "going back has file operations");
                break;
            }
            let _may_fail_too = store.flush().await;
            drop(store);
            let store = open(&env, dir);
            let stands = store.committed(BUCKET);
            let what = format!("operation {place}, in files: {in_files}");
            assert!(newest(&store).iter().all(|newest| *newest <= stands), "{what}");
            if stands == POINT {
                assert_eq!(shown(&store, POINT), before, "{what}");
            } else {
                assert!(went.is_err(), "{what}");
            }
        }
    }
}

/// The log has two rollbacks, the second to an older epoch than the first. A restart replays both
/// and ends at the second.
#[tokio::test]
async fn a_restart_keeps_the_second_rollback() {
    let dir = Path::new("/node");
    let (env, _, _fs) = sim::world(7);
    let store = open(&env, dir);
    store.begin_build(info(), Grouping::Together).await.unwrap();
    store.begin_backfill(INDEX).await.unwrap();
    store.apply(batch(1, 100, Bytes::new())).await.unwrap();
    store.finish_build(INDEX, &mark(1, 100)).await.unwrap();
    let follows = |n: u64, parent: u64| {
        let mut epoch = epoch(n);
        (epoch.mark.parent, epoch.mark.horizon) = (Epoch(parent), Epoch(1));
        epoch
    };
    for n in 2..=NEWEST.0 {
        store.apply(follows(n, n - 1)).await.unwrap();
    }
    let before = shown(&store, POINT);
    store.roll_back(&follows(4, 3).mark, NEWEST).await.unwrap();
    store.apply(follows(6, 4)).await.unwrap();
    store.roll_back(&follows(POINT.0, 2).mark, Epoch(6)).await.unwrap();
    store.apply(follows(7, POINT.0)).await.unwrap();
    store.wait_durable(BUCKET, Epoch(7)).await.unwrap();
    let floor = store.indexes()[0].floor;
    drop(store);
    let store = open(&env, dir);
    assert_eq!(store.committed(BUCKET), Epoch(7));
    assert_eq!(store.indexes()[0].floor, floor, "no epoch was skipped");
    assert_eq!(shown(&store, POINT), before);
}
