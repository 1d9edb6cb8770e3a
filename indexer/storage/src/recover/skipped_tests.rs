//! Restarts after a rollback to zero: the indexes are rebuilt, and the next epoch of the bucket skips all earlier ones.
//!
//! Until this epoch is in fragments of the indexes, the mark in the node manifest is one of the
//! skipped epochs.

use std::path::Path;
use std::sync::Arc;

use proto::env::Env;
use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, Epoch, Generation, IndexId, LocalIndexId, Seqno};
use proto::model::index::{IndexInfo, IndexSpec};
use proto::{ErrorCode, Result};

use crate::batch::{EpochBatch, VbucketMutations};
use crate::engine::storage_engine::StorageEngine;
use crate::maintain::release::release_log;
use crate::manifest::node_manifest::NodeManifest;
use crate::manifest::read_all;
use crate::recover::load::tests::{
    DIR, INDEXES, NODE, apply, body, entries, info, mark, node, open,
};
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;

const BUCKET: BucketId = BucketId(1);
const OTHER_BUCKET: BucketId = BucketId(2);
const OTHER_INDEX: LocalIndexId = LocalIndexId { index: IndexId(3), generation: Generation(0) };
/// The first epoch after the rollback.
const FIRST: u64 = 10;
const NEWEST: u64 = FIRST + 1;

/// Returns the mark of an epoch without a parent.
fn first_mark() -> EpochMark {
    EpochMark { parent: Epoch(0), ..mark(FIRST) }
}

/// An epoch of the bucket with documents.
fn epoch(mark: EpochMark, ids: std::ops::Range<u64>) -> EpochBatch {
    let piece =
        VbucketMutations { body: body(ids), base: Seqno(0), after: Seqno(0), to: Seqno(u64::MAX) };
    EpochBatch { mark, pieces: vec![piece], commits: Vec::new() }
}

/// Rolls back to zero: drops the indexes, rebuilds them from 30 documents, and applies the first epoch.
async fn go_back_to_zero(store: &StorageEngine) -> Result<()> {
    for index in INDEXES {
        store.drop_index(index).await?;
        store.begin_build(info(index), Grouping::Together).await?;
        store.begin_backfill(index).await?;
        store.backfill(index, body(0..30)).await?;
    }
    store.apply(epoch(first_mark(), 0..0)).await
}

/// Makes the indexes readable, and applies an epoch that only the log and the memory have.
async fn go_on(store: &StorageEngine) -> Result<()> {
    for index in INDEXES {
        store.finish_build(index, &first_mark()).await?;
    }
    store.apply(epoch(mark(NEWEST), 25..40)).await?;
    store.wait_durable(BUCKET, Epoch(NEWEST)).await
}

/// Checks that the indexes are at the newest epoch, without data of an undone epoch.
fn check(store: &StorageEngine) {
    assert_eq!(store.committed(BUCKET), Epoch(NEWEST));
    for index in INDEXES {
        assert_eq!(entries(store, index, NEWEST).unwrap(), 40);
        for dead in [1, 3, FIRST - 1] {
            let error = entries(store, index, dead).expect_err("a dead epoch");
            assert_eq!(error.code, ErrorCode::SnapshotTooOld);
        }
    }
}

fn opened(env: &Env) -> StorageEngine {
    let store = open(env);
    store.load_all();
    store
}

fn reopened(env: &Env, store: StorageEngine) -> StorageEngine {
    drop(store);
    opened(env)
}

fn node_manifest(env: &Env) -> NodeManifest {
    let dir = crate::layout::manifest_dir(Path::new(DIR));
    read_all(&*env.fs, &dir).unwrap().node.expect("a node manifest")
}

#[tokio::test]
async fn each_restart_after_a_rollback_to_zero_shows_the_epochs_after_it() {
    let (env, _fs) = node().await;
    let store = opened(&env);
    go_back_to_zero(&store).await.unwrap();
    go_on(&store).await.unwrap();
    check(&store);
    let store = reopened(&env, store);
    check(&store);
    let store = reopened(&env, store);
    check(&store);
    store.flush().await.unwrap();
    let saved = node_manifest(&env);
    let dead = saved.dead.iter().map(|dead| (dead.above, dead.to)).collect::<Vec<_>>();
    assert_eq!(dead, [(Epoch(0), Epoch(FIRST - 1))], "the log no longer says it");
    check(&reopened(&env, store));
}

/// A second rollback to zero begins while the bucket's mark is still older than the first one.
#[tokio::test]
async fn a_restart_after_two_rollbacks_to_zero_shows_the_epochs_after_both() {
    let (env, _fs) = node().await;
    let store = opened(&env);
    go_back_to_zero(&store).await.unwrap();
    go_on(&store).await.unwrap();
    let store = reopened(&env, store);
    for index in INDEXES {
        store.drop_index(index).await.unwrap();
        store.begin_build(info(index), Grouping::Together).await.unwrap();
        store.begin_backfill(index).await.unwrap();
    }
    let second = EpochMark { parent: Epoch(0), ..mark(2 * FIRST) };
    store.apply(epoch(second, 0..20)).await.unwrap();
    for index in INDEXES {
        store.finish_build(index, &mark(2 * FIRST)).await.unwrap();
    }
    apply(&store, 2 * FIRST + 1, 20..30).await;
    store.wait_durable(BUCKET, Epoch(2 * FIRST + 1)).await.unwrap();
    let store = reopened(&env, store);
    assert_eq!(store.committed(BUCKET), Epoch(2 * FIRST + 1));
    assert_eq!(entries(&store, INDEXES[0], 2 * FIRST + 1).unwrap(), 30);
    let error = entries(&store, INDEXES[0], FIRST).expect_err("a dead epoch");
    assert_eq!(error.code, ErrorCode::SnapshotTooOld);
}

/// A rollback below the floor is refused and changes nothing; the bucket is then rolled back to zero.
#[tokio::test]
async fn a_rollback_below_the_floor_leaves_a_rollback_to_zero_possible() {
    let (env, _fs) = node().await;
    let store = opened(&env);
    let above_three = EpochMark { horizon: Epoch(4), ..mark(4) };
    store.apply(epoch(above_three, 0..0)).await.unwrap();
    store.compact().await.unwrap();
    let refused = store.roll_back(&mark(2), Epoch(4)).await.expect_err("below the floor");
    assert_eq!(refused.code, ErrorCode::SnapshotTooOld);
    assert_eq!(store.committed(BUCKET), Epoch(4));
    go_back_to_zero(&store).await.unwrap();
    go_on(&store).await.unwrap();
    check(&reopened(&env, store));
}

/// An index of another bucket.
fn other_info() -> Arc<IndexInfo> {
    let spec = IndexSpec::new("other", "c");
    Arc::new(IndexInfo::new(OTHER_INDEX.index, OTHER_BUCKET, spec, vec![vec![NODE]]))
}

/// Applies an epoch of the other bucket.
async fn apply_other(store: &StorageEngine, mark: EpochMark) {
    let mark = EpochMark { bucket: OTHER_BUCKET, ..mark };
    store.apply(EpochBatch { mark, pieces: Vec::new(), commits: Vec::new() }).await.unwrap();
}

/// The node manifest is written for another bucket, while its mark of the rolled-back bucket is
/// old: when the other bucket gets its first mark, when the log is released, when the other bucket
/// is rolled back, and when an epoch of it skips others.
#[tokio::test]
async fn the_manifest_is_written_for_another_bucket_after_a_rollback_to_zero() {
    let (env, _fs) = node().await;
    let store = opened(&env);
    let other = |epoch: u64| EpochMark { bucket: OTHER_BUCKET, ..mark(epoch) };
    store.begin_build(other_info(), Grouping::Together).await.unwrap();
    store.begin_backfill(OTHER_INDEX).await.unwrap();
    apply_other(&store, other(1)).await;
    go_back_to_zero(&store).await.unwrap();
    store.finish_build(OTHER_INDEX, &other(1)).await.unwrap();
    go_on(&store).await.unwrap();
    release_log(&store.context).await.unwrap();
    apply_other(&store, other(2)).await;
    store.roll_back(&other(1), Epoch(2)).await.unwrap();
    apply_other(&store, EpochMark { parent: Epoch(1), ..other(5) }).await;
    release_log(&store.context).await.unwrap();
    store.wait_durable(OTHER_BUCKET, Epoch(5)).await.unwrap();
    let store = reopened(&env, store);
    check(&store);
    assert_eq!(store.committed(OTHER_BUCKET), Epoch(5));
    store.flush().await.unwrap();
    let store = reopened(&env, store);
    check(&store);
    assert!(store.context.state.is_dead(OTHER_BUCKET, Epoch(4)));
}

/// A crash loses any part of the unsynced data. The bucket is in its state before or after the rollback, never in between; the rollback is
/// then repeated.
#[tokio::test]
async fn a_crash_during_a_rollback_to_zero_leaves_the_epoch_before_or_after_it() {
    for place in 1.. {
        let (env, fs) = node().await;
        let store = opened(&env);
        let at = fs.operations() + place;
        fs.crash_at(at);
        let ended = match go_back_to_zero(&store).await {
            Ok(()) => go_on(&store).await,
            failed => failed,
        };
        if fs.operations() < at {
            assert!(ended.is_ok() && place > 10, "a rollback to zero has file operations");
            break;
        }
        drop(store);
        fs.restart();
        let store = opened(&env);
        let stands = store.committed(BUCKET).0;
        assert!([3, FIRST, NEWEST].contains(&stands), "operation {place}: epoch {stands}");
        if stands < FIRST {
            go_back_to_zero(&store).await.unwrap();
            go_on(&store).await.unwrap();
        }
        if stands != FIRST {
            check(&store);
            check(&reopened(&env, store));
        }
    }
}
