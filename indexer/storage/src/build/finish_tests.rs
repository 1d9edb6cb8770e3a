//! Tests that builds use a bounded amount of memory, however large the index is.

use proto::env::Env;
use proto::model::ids::{IndexId, LocalIndexId};
use proto::model::index::IndexInfo;
use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};

use super::*;
use crate::engine::storage_engine::StorageEngine;
use crate::engine::storage_engine::tests::{
    INDEX, NODE, State, batch, body, entry_key, info, mark,
};
use crate::options::StoreOptions;
use crate::slice_store::SliceStore;

fn open(dir: &tempfile::TempDir, memory_bytes: u64) -> StorageEngine {
    let options = StoreOptions { memory_bytes, ..StoreOptions::default() };
    StorageEngine::open(&Env::real(), NODE, dir.path(), options).unwrap()
}

#[tokio::test]
async fn builds_share_one_quarter_of_the_budget() {
    const BUDGET: u64 = 1 << 20;
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir, BUDGET);
    let local = |n| LocalIndexId { index: IndexId(n), ..INDEX };
    let indexes: Vec<LocalIndexId> = (1..=4).map(local).collect();
    for index in &indexes {
        let info = IndexInfo { id: index.index, ..IndexInfo::clone(&info()) };
        store.begin_build(Arc::new(info), crate::Grouping::Together).await.unwrap();
        store.begin_backfill(*index).await.unwrap();
    }
    let mut most = 0;
    for n in 0..200 {
        for index in &indexes {
            let mut writer = KeyVersionsWriter::default();
            for document in 0..20 {
                writer.mutation(1, MutationKind::Upsert, &format!("k{n}-{document}"), 1);
                writer.index(*index, 1);
                writer.entry(SliceNo(0), &entry_key("country", n), b"");
            }
            store.backfill(*index, writer.finish()).await.unwrap();
            let indexes = store.context.state.indexes_and_rebuilds();
            let gathered =
                indexes.iter().map(|index| index.backfill_bytes.load(Ordering::Relaxed)).sum();
            most = u64::max(most, gathered);
        }
    }
    assert!(most > BUDGET / 16, "they gather something: {most} bytes");
    assert!(most <= BUDGET / 4, "{most} bytes gathered, the budget is {BUDGET}");
}

/// All documents of the backfill are deleted before the end of the build.
#[tokio::test]
async fn corrections_are_written_as_they_gather() {
    const BUDGET: u64 = 1 << 20;
    const DOCUMENTS: u64 = 10_000;
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir, BUDGET);
    store.begin_build(info(), crate::Grouping::Together).await.unwrap();
    store.begin_backfill(INDEX).await.unwrap();
    let ids: Vec<String> = (0..DOCUMENTS).map(|n| format!("k{n:05}")).collect();
    let there = |id| -> State<'_> { (1, id, &[("country", 1)]) };
    let documents: Vec<_> = ids.iter().map(|id| there(id)).collect();
    store.backfill(INDEX, body(&documents)).await.unwrap();
    assert_eq!(store.progress()[0].entries, DOCUMENTS, "entries of a backfill count at once");
    let gone: Vec<State<'_>> = ids.iter().map(|id| (2, &id[..], &[][..])).collect();
    store.apply(batch(1, 100, body(&gone))).await.unwrap();
    store.finish_build(INDEX, &mark(1, 100)).await.unwrap();
    let shown = store.snapshot(INDEX, Epoch(1)).unwrap();
    assert_eq!(shown.checksum(SliceNo(0)).unwrap().1, 0);
    assert_eq!(store.progress()[0].entries, 0);
    let index = store.context.state.get(INDEX).unwrap();
    let version = index.version.load();
    let tables = version.slices[&SliceNo(0)].forward.iter().map(|source| &source.table);
    let corrections = tables.filter(|table| table.stats.newest == Epoch(1));
    let rows: Vec<u64> = corrections.map(|table| table.stats.rows).collect();
    assert_eq!(rows.iter().sum::<u64>(), DOCUMENTS);
    // A waiting row takes more than 32 bytes.
    assert!(rows.iter().all(|rows| rows * 32 <= BUDGET / 4), "{rows:?} rows together");
    assert_eq!(index.backfill_bytes.load(Ordering::Relaxed), 0);
}
