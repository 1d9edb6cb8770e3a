//! Tests of generations whose slices are ranges of another generation's slices: their contents,
//! their state after a crash, and the deletion of shared files.

use std::path::Path;

use bytes::Bytes;
use proto::env::{Env, sim};
use proto::model::ids::{Generation, NodeId};
use proto::model::index::{IndexSpec, PartitionBy, RangePartition};
use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};
use proto::value::Value;
use proto::value::key::encode_part;

use super::*;
use crate::edit::install::tests::round;
use crate::engine::storage_engine::StorageEngine;
use crate::engine::storage_engine::tests::{INDEX as FIRST, NODE, batch, entry_key, info, mark};
use crate::options::StoreOptions;
use crate::read::index_version::IndexVersion;
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;
use crate::verify::check::verify;

const DIR: &str = "/node";
const SECOND: LocalIndexId = LocalIndexId { generation: Generation(1), ..FIRST };
const WHOLE: SliceNo = SliceNo(0);
/// The slices of the first and the second half.
const HALVES: [SliceNo; 2] = [SliceNo(0), SliceNo(1)];

fn open(env: &Env) -> StorageEngine {
    let store = StorageEngine::open(env, NODE, Path::new(DIR), StoreOptions::default()).unwrap();
    store.load_all();
    store
}

fn country(n: u64) -> String {
    format!("c{n:03}")
}

/// The half of a country: the split point is that of document 50.
fn half(n: u64) -> SliceNo {
    HALVES[usize::from(n >= 50)]
}

fn split_point() -> Bytes {
    let mut bytes = Vec::new();
    encode_part(&Value::String(country(50)), false, &mut bytes);
    bytes.into()
}

/// Returns key-versions of documents. Each has two different entries for both generations, one at
/// its own number and one at the number that `other` returns.
fn moved(numbers: impl IntoIterator<Item = u64>, other: impl Fn(u64) -> u64) -> Bytes {
    let mut writer = KeyVersionsWriter::default();
    for n in numbers {
        writer.mutation(1, MutationKind::Upsert, &format!("d{n:03}"), 2);
        let entries: BTreeMap<_, _> =
            [n, other(n)].map(|n| (entry_key(&country(n), 7), half(n))).into();
        for (id, of_first) in [(FIRST, true), (SECOND, false)] {
            writer.index(id, entries.len());
            for (key, half) in &entries {
                writer.entry(if of_first { WHOLE } else { *half }, key, b"");
            }
        }
    }
    writer.finish()
}

fn documents(numbers: impl IntoIterator<Item = u64>) -> Bytes {
    moved(numbers, |n| 99 - n)
}

fn second() -> Arc<IndexInfo> {
    let first = info();
    let bounds = vec![split_point().to_vec()];
    let partition =
        PartitionBy::Range(RangePartition { expr: first.spec.keys[0].expr.clone(), bounds });
    let spec = IndexSpec { partition, slices: 2, ..(*first.spec).clone() };
    let info = IndexInfo::new(SECOND.index, first.bucket, spec, vec![vec![NODE]; 2]);
    Arc::new(IndexInfo { generation: SECOND.generation, ..info })
}

fn cuts() -> Vec<SliceCut> {
    let at = split_point();
    let below = KeyRange { low: Bytes::new(), high: Some(at.clone()) };
    let above = KeyRange { low: at, high: None };
    let cut = |(slice, range)| SliceCut { slice, from: WHOLE, range: Some(range) };
    HALVES.into_iter().zip([below, above]).map(cut).collect()
}

/// The checksum and the number of the entries of a slice.
fn shown(store: &StorageEngine, id: LocalIndexId, slice: SliceNo, epoch: u64) -> (u64, u64) {
    store.snapshot(id, Epoch(epoch)).unwrap().checksum(slice).unwrap()
}

fn whole(store: &StorageEngine, epoch: u64) -> (u64, u64) {
    shown(store, FIRST, WHOLE, epoch)
}

/// Returns the numbers of entries of both halves at an epoch.
fn halves(store: &StorageEngine, epoch: u64) -> (u64, u64) {
    let [low, high] = HALVES.map(|slice| shown(store, SECOND, slice, epoch));
    (low.0.wrapping_add(high.0), low.1 + high.1)
}

/// Creates a store whose first generation is at epoch 3: the older epochs are in fragments, the
/// last one in memory.
async fn served(env: &Env) -> StorageEngine {
    let store = open(env);
    store.begin_build(info(), Grouping::Together).await.unwrap();
    store.begin_backfill(FIRST).await.unwrap();
    store.backfill(FIRST, documents(0..80)).await.unwrap();
    store.apply(batch(1, 1, Bytes::new())).await.unwrap();
    store.finish_build(FIRST, &mark(1, 1)).await.unwrap();
    store.apply(batch(2, 2, documents(80..90))).await.unwrap();
    store.flush().await.unwrap();
    // Entries leave their half, and others stay where they are.
    store.apply(batch(3, 3, moved(0..20, |n| n + 1))).await.unwrap();
    store
}

async fn split(store: &StorageEngine, epoch: u64) -> Result<Vec<EstimatedSlice>> {
    store.derive_slices(FIRST, second(), cuts(), &mark(epoch, epoch)).await
}

fn files(store: &StorageEngine) -> usize {
    store.context.files.list().unwrap().len()
}

#[tokio::test]
async fn an_uncounted_slice_stays_uncounted() {
    let (env, ..) = sim::world(1);
    let store = served(&env).await;
    let estimated = split(&store, 3).await.unwrap();
    assert_eq!(estimated.len(), 2);
    let third = Arc::new(IndexInfo { generation: Generation(2), ..(*second()).clone() });
    let cuts = HALVES.map(|slice| SliceCut { slice, from: slice, range: None });
    let again = store.derive_slices(SECOND, third, cuts.into(), &mark(3, 3)).await.unwrap();
    assert_eq!(again, estimated, "they were not counted yet");
}

#[tokio::test]
async fn halves_have_the_rows_of_the_parent() {
    let (env, ..) = sim::world(1);
    let store = served(&env).await;
    let before = store.snapshot(FIRST, Epoch(3)).unwrap();
    let written = files(&store) + 2;
    let estimated = split(&store, 3).await.unwrap();
    assert_eq!(files(&store), written, "the memory was flushed, and nothing else was written");
    let live = || {
        let told = store.progress().into_iter().filter(|told| told.slice.local_index() == SECOND);
        told.map(|told| told.live_bytes.is_some()).collect::<Vec<_>>()
    };
    assert_eq!(live(), [false, false], "their entries were not counted yet");
    assert_eq!(halves(&store, 3), whole(&store, 3));
    assert_eq!(before.checksum(WHOLE).unwrap(), whole(&store, 3));
    let early = store.snapshot(SECOND, Epoch(3)).unwrap();
    store.apply(batch(4, 4, moved(10..95, |n| 94 - n / 2))).await.unwrap();
    assert_eq!(halves(&store, 4), whole(&store, 4));
    assert_eq!(halves(&store, 3), whole(&store, 3), "the older epoch");
    let low = early.checksum(HALVES[0]).unwrap();
    assert_eq!(low, shown(&store, SECOND, HALVES[0], 3));
    for (slice, told) in estimated {
        store.count_installed(SECOND.slice(slice), Epoch(3), told).await.unwrap();
    }
    for progress in store.progress().iter().filter(|p| p.slice.local_index() == SECOND) {
        let (_, entries) = shown(&store, SECOND, progress.slice.slice, 4);
        assert_eq!(progress.entries, entries, "slice {}", progress.slice);
        assert_eq!(progress.floor, Some(Epoch(3)), "the epoch at which it was made");
    }
    store.compact().await.unwrap();
    assert_eq!(halves(&store, 4), whole(&store, 4));
}

#[tokio::test]
async fn the_halves_survive_a_crash_and_the_epochs_since() {
    let (env, _, fs) = sim::world(1);
    let store = served(&env).await;
    split(&store, 3).await.unwrap();
    store.apply(batch(4, 4, moved(40..60, |n| 99 - n))).await.unwrap();
    store.wait_durable(mark(4, 4).bucket, Epoch(4)).await.unwrap();
    let expected = [halves(&store, 3), halves(&store, 4)];
    drop(store);
    fs.crash();
    fs.restart();
    let store = open(&env);
    assert_eq!([halves(&store, 3), halves(&store, 4)], expected);
    assert_eq!(halves(&store, 4), whole(&store, 4));
    store.apply(batch(5, 5, documents(0..95))).await.unwrap();
    assert_eq!(halves(&store, 5), whole(&store, 5));
    store.flush().await.unwrap();
    let findings = verify(&env, Path::new(DIR)).findings;
    assert!(findings.iter().all(|finding| finding.path.ends_with("VERSION")), "{findings:?}");
}

/// Either generation may be the first to drop a shared file, also after a restart, when each
/// generation has opened the file separately.
#[tokio::test]
async fn last_generation_deletes_shared_file() {
    for (restarts, first) in [(false, FIRST), (true, FIRST), (false, SECOND), (true, SECOND)] {
        let (env, _, fs) = sim::world(1);
        let mut store = served(&env).await;
        split(&store, 3).await.unwrap();
        let expected = whole(&store, 3);
        if restarts {
            drop(store);
            fs.crash();
            fs.restart();
            // The fragments of entries are opened after the first compaction.
            store =
                StorageEngine::open(&env, NODE, Path::new(DIR), StoreOptions::default()).unwrap();
            store.wait_loaded(first).await.unwrap();
        }
        store.drop_index(first).await.unwrap();
        store.context.files.delete_retired();
        let other = if first == FIRST { SECOND } else { FIRST };
        store.wait_loaded(other).await.unwrap();
        let left = if first == FIRST { halves(&store, 3) } else { whole(&store, 3) };
        assert_eq!(left, expected, "restarts: {restarts}, dropped: {first}");
        store.drop_index(other).await.unwrap();
        store.context.files.delete_retired();
        assert_eq!(files(&store), 0, "restarts: {restarts}, dropped: {first}");
    }
}

/// The other generation may drop its files after the lists were chosen and before the manifest is
/// written.
#[tokio::test]
async fn reserved_files_are_not_deleted() {
    let (env, ..) = sim::world(1);
    let store = served(&env).await;
    let at = boundary_after(&store.context, mark(3, 3).bucket, Epoch(3)).await;
    let from = store.context.state.get(FIRST).unwrap();
    let mut arriving = restrict_slices(&store.context, &from, second(), &cuts(), at).unwrap();
    let chosen = arriving.tables.len();
    // As if a third generation had retired the files: each has tables of its own.
    arriving.tables.clear();
    drop(from);
    store.drop_index(FIRST).await.unwrap();
    store.context.files.delete_retired();
    assert_eq!((files(&store), chosen > 0), (chosen, true));
    store.context.files.end_reservation(SECOND);
    store.context.files.delete_retired();
    assert_eq!(files(&store), 0);
}

#[tokio::test]
async fn a_compaction_of_one_generation_leaves_the_files_of_the_other() {
    let (env, _, fs) = sim::world(1);
    let store = served(&env).await;
    split(&store, 3).await.unwrap();
    let expected = whole(&store, 3);
    let index = store.context.state.get(FIRST).unwrap();
    crate::maintain::compaction::compact_everything(&index, &store.context.files).unwrap();
    store.context.files.delete_retired();
    assert_eq!([whole(&store, 3), halves(&store, 3)], [expected; 2]);
    drop((index, store));
    fs.crash();
    fs.restart();
    let store = open(&env);
    assert_eq!([whole(&store, 3), halves(&store, 3)], [expected; 2]);
}

#[tokio::test]
async fn slices_roll_back_to_first_epoch() {
    let (env, ..) = sim::world(1);
    let store = served(&env).await;
    split(&store, 3).await.unwrap();
    store.apply(batch(4, 4, documents(0..95))).await.unwrap();
    let can = |epoch| HALVES.map(|half| store.can_roll_back(SECOND.slice(half), Epoch(epoch)));
    assert_eq!([can(2), can(3)], [[false; 2], [true; 2]]);
    let expected = whole(&store, 3);
    store.roll_back(&mark(3, 3), Epoch(4)).await.unwrap();
    assert_eq!([whole(&store, 3), halves(&store, 3)], [expected; 2]);
}

#[tokio::test]
async fn nothing_is_made_at_another_epoch_or_from_an_absent_slice() {
    let (env, ..) = sim::world(1);
    let store = served(&env).await;
    assert!(split(&store, 2).await.is_err(), "epoch 3 is applied");
    let mut absent = cuts();
    absent[1].from = SliceNo(9);
    assert!(store.derive_slices(FIRST, second(), absent, &mark(3, 3)).await.is_err());
    assert!(store.indexes().iter().all(|stored| stored.id() == FIRST));
    split(&store, 3).await.unwrap();
    assert!(split(&store, 3).await.is_err(), "the slices are there");
    assert_eq!(halves(&store, 3), whole(&store, 3));
}

/// A generation must not be derived below the floor of its parent: the parent's lists may lack
/// versions that are visible there, so that the child would return wrong rows.
#[tokio::test]
async fn nothing_is_made_below_the_floor_of_the_parent_or_of_its_slice() {
    let (env, ..) = sim::world(1);
    let store = served(&env).await;
    store.flush().await.unwrap();
    let at = boundary_after(&store.context, mark(3, 3).bucket, Epoch(3)).await;
    let from = store.context.state.get(FIRST).unwrap();
    let as_it_is = from.version.load_full();
    let cut = || restrict_slices(&store.context, &from, second(), &cuts(), at).map(drop);
    let later = RetainedEpochs { horizon: Epoch(4), points: Vec::new() };
    let mut of_index = IndexVersion::clone(&as_it_is);
    of_index.set_readable_epochs(later.clone());
    let mut of_slice = IndexVersion::clone(&as_it_is);
    of_slice.arrived.insert(WHOLE, later);
    for lacking in [of_index, of_slice] {
        from.version.store(Arc::new(lacking));
        let error = cut().unwrap_err();
        assert!(error.message.contains("lacks the epoch"), "{error}");
    }
    from.version.store(as_it_is);
    cut().unwrap();
}

/// A half moves like any slice: its parts of the shared files are sent with its restrictions.
#[tokio::test]
async fn a_half_moves_to_another_node() {
    let (env, ..) = sim::world(1);
    let store = served(&env).await;
    split(&store, 3).await.unwrap();
    let target = Path::new("/target");
    let other = StorageEngine::open(&env, NodeId(8), target, StoreOptions::default()).unwrap();
    let slice = SECOND.slice(HALVES[1]);
    let mut received = other.begin_receiving(NODE);
    round(&store, slice, &mut received).await;
    other.apply(batch(3, 3, Bytes::new())).await.unwrap();
    let installed = other.install_slice(received, slice, second(), &mark(3, 3)).await;
    installed.map_err(|refused| refused.error).unwrap();
    assert_eq!(shown(&other, SECOND, HALVES[1], 3), shown(&store, SECOND, HALVES[1], 3));
}
