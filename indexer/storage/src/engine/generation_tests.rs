//! Tests two generations of one index in one store: epochs, flushes, crashes and drops of one do not change the other.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use proto::ErrorCode;
use proto::env::{Env, sim};
use proto::model::ids::{Epoch, Generation, LocalIndexId, SliceNo};
use proto::model::index::IndexInfo;
use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};

use crate::engine::storage_engine::StorageEngine;
use crate::engine::storage_engine::tests::{INDEX as FIRST, NODE, batch, entry_key, info, mark};
use crate::options::StoreOptions;
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;
use crate::verify::check::verify;

const DIR: &str = "/node";
const SECOND: LocalIndexId = LocalIndexId { generation: Generation(1), ..FIRST };
const SLICE: SliceNo = SliceNo(0);

fn open(env: &Env) -> StorageEngine {
    StorageEngine::open(env, NODE, Path::new(DIR), StoreOptions::default()).unwrap()
}

/// Documents with an entry in the first generation; documents with an even number have two in the second.
fn documents(numbers: std::ops::Range<i64>) -> Bytes {
    let mut writer = KeyVersionsWriter::default();
    for n in numbers {
        writer.mutation(1, MutationKind::Upsert, &format!("d{n:03}"), 2);
        writer.index(FIRST, 1);
        writer.entry(SLICE, &entry_key("first", n), b"");
        let second: &[&str] = if n % 2 == 0 { &["second", "too"] } else { &[] };
        writer.index(SECOND, second.len());
        second.iter().for_each(|name| writer.entry(SLICE, &entry_key(name, n), b""));
    }
    writer.finish()
}

async fn begin(store: &StorageEngine, id: LocalIndexId, numbers: std::ops::Range<i64>) {
    let info = IndexInfo { generation: id.generation, ..IndexInfo::clone(&info()) };
    store.begin_build(Arc::new(info), Grouping::Together).await.unwrap();
    store.begin_backfill(id).await.unwrap();
    store.backfill(id, documents(numbers)).await.unwrap();
}

/// The checksum and the number of the entries at an epoch.
fn shown(store: &StorageEngine, id: LocalIndexId, epoch: u64) -> (u64, u64) {
    store.snapshot(id, Epoch(epoch)).unwrap().checksum(SLICE).unwrap()
}

/// Both generations at epoch 4: the first since epoch 1 and the second since epoch 2, some epochs in fragments and the last
/// one in the log.
async fn both(env: &Env) -> StorageEngine {
    let store = open(env);
    begin(&store, FIRST, 0..10).await;
    store.apply(batch(1, 1, Bytes::new())).await.unwrap();
    store.finish_build(FIRST, &mark(1, 1)).await.unwrap();
    begin(&store, SECOND, 0..10).await;
    store.apply(batch(2, 2, documents(10..20))).await.unwrap();
    store.finish_build(SECOND, &mark(2, 2)).await.unwrap();
    store.apply(batch(3, 3, documents(20..30))).await.unwrap();
    store.flush().await.unwrap();
    store.apply(batch(4, 4, documents(30..40))).await.unwrap();
    store.wait_durable(mark(4, 4).bucket, Epoch(4)).await.unwrap();
    store
}

fn ids(store: &StorageEngine) -> Vec<LocalIndexId> {
    store.indexes().iter().map(|stored| stored.id()).collect()
}

#[tokio::test]
async fn two_generations_survive_a_crash_side_by_side_and_one_is_dropped_alone() {
    let (env, _, fs) = sim::world(1);
    let store = both(&env).await;
    let expected = [shown(&store, FIRST, 4), shown(&store, SECOND, 4)];
    assert_eq!(expected.map(|(_, entries)| entries), [40, 40], "20 documents with two entries");
    assert_ne!(expected[0], expected[1], "the generations have different entries");
    drop(store);
    fs.crash();
    fs.restart();

    let store = open(&env);
    assert_eq!(ids(&store), [FIRST, SECOND]);
    assert_eq!([shown(&store, FIRST, 4), shown(&store, SECOND, 4)], expected);
    assert_eq!(shown(&store, FIRST, 1).1, 10, "the older epochs of the first");
    let early = store.snapshot(SECOND, Epoch(1)).err().map(|error| error.code);
    assert_eq!(early, Some(ErrorCode::SnapshotTooOld), "the floor is that of the generation");

    store.drop_index(FIRST).await.unwrap();
    let gone = store.snapshot(FIRST, Epoch(4)).err().map(|error| error.code);
    assert_eq!(gone, Some(ErrorCode::SliceMoved));
    assert_eq!(shown(&store, SECOND, 4), expected[1]);
    store.apply(batch(5, 5, documents(0..1))).await.unwrap();
    store.compact().await.unwrap();
    drop(store);
    fs.crash();
    fs.restart();

    let store = open(&env);
    assert_eq!(ids(&store), [SECOND]);
    assert_eq!(shown(&store, SECOND, 5), expected[1], "epoch 5 changed nothing");
    let findings = verify(&env, Path::new(DIR)).findings;
    assert!(findings.iter().all(|finding| finding.path.ends_with("VERSION")), "{findings:?}");
}

/// A restarted build, and a rebuild, replace the files of their generation only.
#[tokio::test]
async fn a_build_of_one_generation_leaves_the_other_and_its_rebuild_alone() {
    let (env, ..) = sim::world(1);
    let store = both(&env).await;
    let second = shown(&store, SECOND, 4);
    let absent = SliceNo(1);
    let placement = vec![vec![NODE]; 2];
    let info = IndexInfo::new(SECOND.index, info().bucket, (*info().spec).clone(), placement);
    let info = Arc::new(IndexInfo { generation: SECOND.generation, ..info });
    store.begin_rebuild(info, &[absent], Grouping::Together).await.unwrap();

    begin(&store, FIRST, 0..5).await;
    assert_eq!(shown(&store, SECOND, 4), second);
    assert_eq!(store.rebuilt_slices(SECOND), [absent]);
    assert_eq!(store.rebuilt_slices(FIRST), []);
    store.apply(batch(5, 5, Bytes::new())).await.unwrap();
    store.finish_build(FIRST, &mark(5, 5)).await.unwrap();
    assert_eq!(shown(&store, FIRST, 5).1, 5);
    store.drop_rebuild(SECOND).await.unwrap();
    assert_eq!(shown(&store, SECOND, 5), second);
}
