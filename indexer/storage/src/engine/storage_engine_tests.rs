//! Tests of the engine through its trait: the entries that are visible after epochs, builds and
//! restarts.

use std::path::PathBuf;

use proto::env::sim;
use proto::expr::{ColumnType, Expr};
use proto::model::cut::{Cut, Position};
use proto::model::ids::{Generation, IndexId, LocalIndexId, Seqno, SliceNo, VbucketId, Vbuuid};
use proto::model::index::{IndexSpec, KeyPart};
use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};
use proto::rpc::scan::KeyRange;
use proto::value::path::Step;
use proto::value::{Value, key};

use super::*;
use crate::batch::VbucketMutations;
use crate::log::options::LogOptions;

pub(crate) const INDEX: LocalIndexId =
    LocalIndexId { index: IndexId(1), generation: Generation(0) };
pub(crate) const NODE: NodeId = NodeId(7);

/// An index on (country, pop) with one slice.
pub(crate) fn info() -> Arc<IndexInfo> {
    let part = |name: &str| KeyPart {
        expr: Expr::Path(vec![Step::Field(name.into())]),
        name: name.into(),
        column_type: ColumnType::Text,
        descending: false,
        include_missing: false,
    };
    let keys = vec![part("country"), part("pop")];
    let spec = IndexSpec { primary: false, keys, ..IndexSpec::new("i", "b") };
    Arc::new(IndexInfo::new(INDEX.index, BucketId(1), spec, vec![vec![NODE]]))
}

pub(crate) fn entry_key(country: &str, pop: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    key::encode_part(&Value::String(country.into()), false, &mut bytes);
    key::encode_part(&Value::int(pop), false, &mut bytes);
    bytes
}

/// A state of a document: its seqno, its id, and its new entries.
pub(crate) type State<'a> = (u64, &'a str, &'a [(&'a str, i64)]);

/// Packed key-versions.
pub(crate) fn body(states: &[State<'_>]) -> Bytes {
    let mut writer = KeyVersionsWriter::default();
    for (seqno, id, entries) in states {
        writer.mutation(*seqno, MutationKind::Upsert, id, 1);
        writer.index(INDEX, entries.len());
        for (country, pop) in *entries {
            writer.entry(SliceNo(0), &entry_key(country, *pop), b"");
        }
    }
    writer.finish()
}

pub(crate) fn mark(epoch: u64, seqno: u64) -> EpochMark {
    let position = Position { vbuuid: Vbuuid(9), seqno: Seqno(seqno) };
    EpochMark {
        bucket: BucketId(1),
        epoch: Epoch(epoch),
        parent: Epoch(epoch - 1),
        cut: Arc::new(Cut::zero(1).with(&[(VbucketId(0), position)])),
        horizon: Epoch(0),
        points: Arc::default(),
    }
}

/// Returns the mark of an epoch whose cut ends at the seqno with the epoch's number. The epoch is
/// its own horizon, so no older version is kept.
pub(crate) fn horizon_mark(epoch: u64) -> EpochMark {
    EpochMark { horizon: Epoch(epoch), ..mark(epoch, epoch) }
}

pub(crate) fn batch(epoch: u64, to: u64, body: Bytes) -> EpochBatch {
    let piece = VbucketMutations { body, base: Seqno(0), after: Seqno(0), to: Seqno(to) };
    EpochBatch { mark: mark(epoch, to), pieces: vec![piece], commits: Vec::new() }
}

fn open(dir: &tempfile::TempDir) -> StorageEngine {
    let path = PathBuf::from(dir.path());
    let store = StorageEngine::open(&Env::real(), NODE, &path, StoreOptions::default());
    let store = store.expect("the store opens");
    store.load_all();
    store
}

/// Creates a store with an index that is at epoch 1.
pub(crate) async fn built(dir: &tempfile::TempDir, documents: Bytes) -> StorageEngine {
    let store = open(dir);
    store.begin_build(info(), Grouping::Together).await.unwrap();
    store.begin_backfill(INDEX).await.unwrap();
    store.backfill(INDEX, documents).await.unwrap();
    store.apply(batch(1, 100, Bytes::new())).await.unwrap();
    store.finish_build(INDEX, &mark(1, 100)).await.unwrap();
    store
}

/// Returns the countries of the rows that are visible at an epoch.
fn countries(store: &StorageEngine, epoch: Epoch) -> Vec<String> {
    let snapshot = store.snapshot(INDEX, epoch).unwrap();
    let mut rows = snapshot.rows(&[SliceNo(0)], &KeyRange::all(), false, false).unwrap();
    let mut found = Vec::new();
    while rows.next().unwrap() {
        let value = key::decode_part(&mut rows.entry(), false).unwrap();
        found.push(value.as_str().unwrap().to_owned());
    }
    found
}

#[tokio::test]
async fn a_restart_shows_every_epoch_and_keeps_runs_few() {
    let dir = tempfile::tempdir().unwrap();
    let store = built(&dir, Bytes::new()).await;
    for n in 1..300u64 {
        let id = format!("k{}", n % 10);
        store
            .apply(batch(1 + n, 100 + n, body(&[(100 + n, &id, &[("a", n as i64)])])))
            .await
            .unwrap();
    }
    let before = store.snapshot(INDEX, Epoch(300)).unwrap();
    let expected = before.checksum(SliceNo(0)).unwrap();
    assert_eq!(expected.1, 10);
    store.wait_durable(BucketId(1), Epoch(300)).await.unwrap();
    drop(store);
    let store = open(&dir);
    let after = store.snapshot(INDEX, Epoch(300)).unwrap();
    assert_eq!(after.checksum(SliceNo(0)).unwrap(), expected);
    assert_eq!(store.counters(BucketId(1)).durable, Epoch(300));
    let error = store.snapshot(INDEX, Epoch(301)).err().expect("not applied");
    assert_eq!(error.code, ErrorCode::Unavailable);
}

#[tokio::test]
async fn an_update_of_an_array_replaces_only_changed_entries() {
    let dir = tempfile::tempdir().unwrap();
    let store = built(&dir, body(&[(1, "k", &[("c", 1), ("a", 1), ("b", 1)])])).await;
    store.apply(batch(2, 101, body(&[(101, "k", &[("d", 1), ("b", 1)])]))).await.unwrap();
    assert_eq!(countries(&store, Epoch(2)), ["b", "d"]);
    assert_eq!(countries(&store, Epoch(1)), ["a", "b", "c"], "the epoch before is still whole");
    assert_eq!(store.progress()[0].entries, 2);
}

/// Flushes, merges and compactions run on other threads while epochs are applied; none of them may
/// lose a run that an epoch publishes meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn background_work_loses_no_epoch() {
    let dir = tempfile::tempdir().unwrap();
    let options = || StoreOptions { memory_bytes: 128 << 10, ..StoreOptions::default() };
    let path = PathBuf::from(dir.path());
    let store = StorageEngine::open(&Env::real(), NODE, &path, options()).expect("the store opens");
    store.begin_build(info(), Grouping::Together).await.unwrap();
    store.begin_backfill(INDEX).await.unwrap();
    store.apply(batch(1, 100, Bytes::new())).await.unwrap();
    store.finish_build(INDEX, &mark(1, 100)).await.unwrap();
    for epoch in 2..400u64 {
        let ids: Vec<String> = (0..40).map(|n| format!("k{}", (epoch * 40 + n) % 3000)).collect();
        let entries = [("a", epoch as i64)];
        let states: Vec<State<'_>> =
            ids.iter().map(|id| (100 + epoch, id.as_str(), &entries[..])).collect();
        let mut batch = batch(epoch, 100 + epoch, body(&states));
        batch.mark.horizon = Epoch(epoch - 1);
        store.apply(batch).await.unwrap();
    }
    let shown = |store: &StorageEngine| {
        let snapshot = store.snapshot(INDEX, Epoch(399)).unwrap();
        snapshot.checksum(SliceNo(0)).unwrap()
    };
    let before = shown(&store);
    assert_eq!(before.1, 3000, "each document has one entry");
    assert_eq!(store.progress()[0].entries, 3000);
    store.flush().await.unwrap();
    store.compact().await.unwrap();
    assert_eq!(shown(&store), before);
    drop(store);
    let store = StorageEngine::open(&Env::real(), NODE, &path, options()).expect("it opens again");
    store.load_all();
    assert_eq!(shown(&store), before);
}

/// An epoch whose parent was missed raises the floor of an index without rows in memory. The flush
/// that writes the floor fails at each of its file operations in turn; the next flush must write
/// the floor.
#[tokio::test]
async fn a_floor_that_a_flush_could_not_write_is_written_by_the_next() {
    let dir = PathBuf::from("/node");
    for place in 1.. {
        let (env, _, fs) = sim::world(7);
        let open = || StorageEngine::open(&env, NODE, &dir, StoreOptions::default());
        let store = open().unwrap();
        store.begin_build(info(), Grouping::Together).await.unwrap();
        store.begin_backfill(INDEX).await.unwrap();
        store.apply(batch(1, 100, Bytes::new())).await.unwrap();
        store.finish_build(INDEX, &mark(1, 100)).await.unwrap();
        store.apply(batch(9, 109, Bytes::new())).await.unwrap();
        store.wait_durable(BucketId(1), Epoch(9)).await.unwrap();
        fs.fail_at(fs.operations() + place);
        if store.flush().await.is_ok() {
            return assert!(place > 3, "the flush has file operations");
        }
        // A rollback removes the rows that the flush had set aside.
        store.roll_back(&mark(9, 109), Epoch(0)).await.unwrap();
        store.flush().await.unwrap();
        drop(store);
        let floor = open().unwrap().indexes()[0].floor;
        assert_eq!(floor, Some(Epoch(9)), "operation {place} of the flush failed");
    }
}

/// A node whose newest epoch is the rollback point need not roll back, and never had the dead
/// epochs.
#[tokio::test]
async fn dead_epochs_are_refused_on_a_node_that_did_not_roll_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = built(&dir, body(&[])).await;
    let mut next = batch(4, 104, Bytes::new());
    next.mark.parent = Epoch(1);
    store.apply(next).await.unwrap();
    let code = |store: &StorageEngine, epoch| {
        store.snapshot(INDEX, Epoch(epoch)).err().map(|error| error.code)
    };
    let dead = Some(ErrorCode::SnapshotTooOld);
    assert_eq!([1, 2, 3, 4].map(|epoch| code(&store, epoch)), [None, dead, dead, None]);
    store.wait_durable(BucketId(1), Epoch(4)).await.unwrap();
    store.flush().await.unwrap();
    drop(store);
    let store = open(&dir);
    assert_eq!([2, 3].map(|epoch| code(&store, epoch)), [dead, dead], "also after a restart");
}

/// A heartbeat reads the counters on an async thread, which must not wait for a writer of memory or
/// lists.
#[tokio::test]
async fn counters_and_progress_are_available_while_the_writer_is_busy() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(built(&dir, body(&[(1, "k", &[("a", 1)])])).await);
    store.apply(batch(2, 101, body(&[(101, "l", &[("a", 2)])]))).await.unwrap();
    store.wait_durable(BucketId(1), Epoch(2)).await.unwrap();
    let index = store.context.state.get(INDEX).unwrap();
    let (begun, is_busy) = tokio::sync::oneshot::channel();
    let (end, ended) = std::sync::mpsc::channel();
    Env::real().spawner.spawn_blocking(Box::new(move || {
        let _busy = (lock(&index.flush), lock(&index.fragment_lists), index.writer());
        begun.send(()).unwrap();
        ended.recv().unwrap();
    }));
    is_busy.await.unwrap();
    let asked = Arc::clone(&store);
    let env = Env::real();
    let answer = env.blocking(move || {
        let entries = asked.progress()[0].entries;
        (asked.counters(BucketId(1)), entries, asked.memory_bytes())
    });
    let told = tokio::time::timeout(std::time::Duration::from_secs(10), answer).await;
    end.send(()).unwrap();
    let (counters, entries, memory_bytes) = told.expect("no lock is waited for");
    assert_eq!(
        (counters.committed, counters.durable, counters.stable),
        (Epoch(2), Epoch(2), Epoch(1))
    );
    assert!(entries == 2 && memory_bytes > 0);
    store.flush().await.unwrap();
    assert_eq!(store.counters(BucketId(1)).stable, Epoch(2));
}

#[tokio::test]
async fn a_split_a_clone_and_a_change_of_groups_write_less_than_a_hundredth_of_the_slice() {
    let (env, _, fs) = sim::world(11);
    let dir = PathBuf::from("/node");
    let store = StorageEngine::open(&env, NODE, &dir, StoreOptions::default()).unwrap();
    let more = proto::model::index::IncludedColumn {
        expr: Expr::Path(vec![Step::Field("more".into())]),
        name: "more".into(),
        column_type: ColumnType::Text,
    };
    let mut info = IndexInfo::clone(&info());
    Arc::make_mut(&mut info.spec).include = vec![more];
    store.begin_build(Arc::new(info), Grouping::Together).await.unwrap();
    store.begin_backfill(INDEX).await.unwrap();
    let ids: Vec<String> = (0..20_000).map(|n| format!("document{n:08}")).collect();
    let entries: Vec<_> = (0..20_000i64).map(|n| [("a", n * 7919 % 20_000)]).collect();
    let states: Vec<State<'_>> =
        ids.iter().zip(&entries).map(|(id, entry)| (1, id.as_str(), &entry[..])).collect();
    store.backfill(INDEX, body(&states)).await.unwrap();
    store.apply(batch(1, 100, Bytes::new())).await.unwrap();
    store.finish_build(INDEX, &mark(1, 100)).await.unwrap();
    store.compact().await.unwrap();
    let slice_bytes = store.progress()[0].bytes;
    assert!(slice_bytes > 300_000, "{slice_bytes} bytes");
    let of = |slice| INDEX.slice(SliceNo(slice));
    let mut before = fs.written_bytes();
    let mut check = |what: &str| {
        let now = fs.written_bytes();
        let written = now - std::mem::replace(&mut before, now);
        assert!(written > 0 && written * 100 < slice_bytes, "{what}: {written} of {slice_bytes}");
    };
    store.split(of(0), &entry_key("a", 9000), SliceNo(1), SliceNo(2)).await.unwrap();
    check("a split");
    store.clone_slice(of(2), SliceNo(3)).await.unwrap();
    check("a clone");
    store.regroup(INDEX, Grouping::Apart).await.unwrap();
    check("a change of groups");
    store.drop_slice(of(3)).await.unwrap();
    check("a drop");
    let entries: Vec<u64> = store.progress().iter().map(|slice| slice.entries).collect();
    assert_eq!(entries, [9000, 11_000]);
}

#[tokio::test]
async fn a_restart_releases_the_log_that_nothing_needs() {
    let dir = tempfile::tempdir().unwrap();
    let log = LogOptions { segment_bytes: 4 << 10, ..LogOptions::default() };
    let options = || StoreOptions { log: log.clone(), ..StoreOptions::default() };
    let open = || StorageEngine::open(&Env::real(), NODE, dir.path(), options()).unwrap();
    let store = open();
    store.begin_build(info(), Grouping::Together).await.unwrap();
    store.begin_backfill(INDEX).await.unwrap();
    store.apply(batch(1, 100, Bytes::new())).await.unwrap();
    store.finish_build(INDEX, &mark(1, 100)).await.unwrap();
    for n in 1..600u64 {
        let id = format!("k{n}");
        let body = body(&[(100 + n, &id, &[("a", n as i64)])]);
        store.apply(batch(1 + n, 100 + n, body)).await.unwrap();
        if n.is_multiple_of(16) {
            // Records that are synced together are in one segment, so each is synced by itself,
            // however slow the machine is.
            store.wait_durable(BucketId(1), Epoch(1 + n)).await.unwrap();
        }
    }
    store.wait_durable(BucketId(1), Epoch(600)).await.unwrap();
    // The node stops after the fragments were written and before the log was released.
    flush(&store.context.state.get(INDEX).unwrap(), &store.context.files).unwrap();
    assert!(store.context.log.retained_bytes() > 16 << 10);
    drop(store);
    let store = open();
    store.load_all();
    assert!(
        store.context.log.retained_bytes() < 8 << 10,
        "{} bytes",
        store.context.log.retained_bytes()
    );
    assert_eq!(store.counters(BucketId(1)).stable, Epoch(600));
    drop(store);
    let store = open();
    store.load_all();
    let snapshot = store.snapshot(INDEX, Epoch(600)).unwrap();
    assert_eq!(snapshot.checksum(SliceNo(0)).unwrap().1, 599);
}

/// Documents are written repeatedly: the slice grows by the versions that rollback points keep,
/// while its live bytes stay constant.
#[tokio::test]
async fn superseded_versions_and_tombstones_are_not_live() {
    let dir = tempfile::tempdir().unwrap();
    let ids: Vec<String> = (0..500).map(|n| format!("document{n:04}")).collect();
    let all_at = |n: u64| {
        let entries: Vec<_> = (0..500u64).map(|id| [("a", (id * 7919 + n * 31) as i64)]).collect();
        let states: Vec<State<'_>> = ids
            .iter()
            .zip(&entries)
            .map(|(id, entry)| (100 + n, id.as_str(), &entry[..]))
            .collect();
        body(&states)
    };
    let store = built(&dir, all_at(0)).await;
    store.flush().await.unwrap();
    let size = || {
        let told = store.progress().remove(0);
        (told.bytes, told.live_bytes.expect("the entries are counted"))
    };
    let (bytes, live) = size();
    assert_eq!(bytes, live, "all of it is live");
    for n in 1..40 {
        store.apply(batch(1 + n, 100 + n, all_at(n))).await.unwrap();
        if n % 5 == 0 {
            store.flush().await.unwrap();
        }
    }
    let (bytes_then, live_then) = size();
    assert!(bytes_then > 20 * bytes, "{bytes_then} bytes, and {bytes} before");
    assert!((live / 2..live * 2).contains(&live_then), "{live_then} live bytes, and {live} before");
    store.compact().await.unwrap();
    let (bytes_then, live_then) = size();
    assert!(bytes_then > 10 * bytes, "the horizon keeps all versions: {bytes_then}");
    assert!((live / 2..live * 2).contains(&live_then), "{live_then} live bytes, and {live} before");
}
