//! Tests of open scans over a real store: a parked and resumed scan returns the same rows, and
//! epochs with deletions are applied whatever scans are open.

use std::path::Path;

use bytes::Bytes;
use futures::StreamExt;
use proto::ErrorCode;
use proto::expr::aggregate::AggregateFunction;
use proto::expr::{ColumnType, Expr};
use proto::flow::AdmissionLimits;
use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::ids::{
    BucketId, Epoch, Generation, IndexId, LocalIndexId, NodeId, Seqno, SliceNo, VbucketId, Vbuuid,
};
use proto::model::index::{IndexInfo, IndexSpec, KeyPart};
use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};
use proto::rpc::scan::{AggregateCall, KeyRange, Output};
use proto::value::Value;
use proto::value::key;
use proto::value::path::Step;

use super::*;
use crate::recorded_tasks;
use storage::{EpochBatch, Grouping, Rows, StorageEngine, StoreOptions, VbucketMutations};

#[path = "own_changes_tests.rs"]
mod own_changes_tests;

const INDEX: LocalIndexId = LocalIndexId { index: IndexId(1), generation: Generation(0) };
const BUCKET: BucketId = BucketId(1);
const NODE: NodeId = NodeId(7);
/// The number of documents: enough for several hundred blocks in many batches.
const DOCUMENTS: u64 = 20_000;

fn key_of(n: u64) -> Vec<u8> {
    let mut key = Vec::new();
    key::encode_part(&Value::String(format!("group {:03}", n / 100)), false, &mut key);
    key::encode_part(&Value::int(n as i64), false, &mut key);
    key
}

fn mark(epoch: u64) -> EpochMark {
    let position = Position { vbuuid: Vbuuid(9), seqno: Seqno(epoch * DOCUMENTS) };
    EpochMark {
        bucket: BUCKET,
        epoch: Epoch(epoch),
        parent: Epoch(epoch - 1),
        cut: Arc::new(Cut::zero(1).with(&[(VbucketId(0), position)])),
        horizon: Epoch(0),
        points: Arc::default(),
    }
}

/// Returns an epoch that writes these documents (`written`), or deletes them.
fn epoch(epoch: u64, documents: std::ops::Range<u64>, written: bool) -> EpochBatch {
    let mut writer = KeyVersionsWriter::default();
    for (at, n) in documents.enumerate() {
        let kind = if written { MutationKind::Upsert } else { MutationKind::Deletion };
        writer.mutation(1 + at as u64, kind, &format!("k{n:06}"), 1);
        writer.index(INDEX, usize::from(written));
        if written {
            writer.entry(SliceNo(0), &key_of(n), b"");
        }
    }
    let base = Seqno((epoch - 1) * DOCUMENTS);
    let piece =
        VbucketMutations { body: writer.finish(), base, after: base, to: Seqno(epoch * DOCUMENTS) };
    EpochBatch { mark: mark(epoch), pieces: vec![piece], commits: Vec::new() }
}

/// Creates a store with an index that is empty at epoch 1 and has all documents at epoch 2.
async fn filled(env: &Env, dir: &Path, memory_bytes: u64) -> Arc<StorageEngine> {
    let options = StoreOptions { memory_bytes, ..StoreOptions::default() };
    let store = Arc::new(StorageEngine::open(env, NODE, dir, options).unwrap());
    let part = |name: &str| KeyPart {
        expr: Expr::Path(vec![Step::Field(name.into())]),
        name: name.into(),
        column_type: ColumnType::Text,
        descending: false,
        include_missing: false,
    };
    let keys = vec![part("group"), part("n")];
    let spec = IndexSpec { primary: false, keys, ..IndexSpec::new("i", "b") };
    let info = Arc::new(IndexInfo::new(INDEX.index, BUCKET, spec, vec![vec![NODE]]));
    store.begin_build(info, Grouping::Together).await.unwrap();
    store.begin_backfill(INDEX).await.unwrap();
    store.apply(epoch(1, 0..0, true)).await.unwrap();
    store.finish_build(INDEX, &mark(1)).await.unwrap();
    store.apply(epoch(2, 0..DOCUMENTS, true)).await.unwrap();
    store.flush().await.unwrap();
    store
}

/// Open scans with room for one scan at a time.
fn scans(env: &Env, store: &Arc<StorageEngine>, patience_ms: u64) -> Scans {
    let limits = AdmissionLimits {
        what: "shard scans on node 7".into(),
        count_max: 1,
        bytes_max: 64 << 20,
        bytes_each_max: 64 << 20,
    };
    let patience = ScanTimeouts {
        while_waited_for: Duration::from_millis(patience_ms),
        unread: Duration::from_secs(3600),
        snapshot: Duration::from_secs(3600),
    };
    Scans::new(env.clone(), store, Admission::new(limits), patience, 64 << 10)
}

fn scan(timeout_ms: u64) -> ShardScan {
    ShardScan {
        bucket: BUCKET,
        index: INDEX,
        slices: vec![SliceNo(0)],
        epoch: Epoch(2),
        own: None,
        ranges: [KeyRange::all()].into(),
        filter: None,
        reverse: false,
        distinct_parts: None,
        resume_after: None,
        limit: None,
        output: Output::Rows { include: false },
        timeout_ms,
    }
}

async fn open(scans: &Scans, scan: ShardScan) -> Result<ResultStream<ShardBatch>> {
    let snapshot = scans.table.snapshot(&scan, Instant::now()).await?;
    scans.open(scan, snapshot, Instant::now()).await
}

/// Returns all batches of a scan's rows, or its count; with `parked` the scan is parked after each
/// batch.
async fn all(scans: &Scans, scan: ShardScan, parked: bool) -> Vec<Bytes> {
    let mut stream = open(scans, scan).await.unwrap();
    let mut found = Vec::new();
    while let Some(batch) = stream.next().await {
        match batch.unwrap() {
            ShardBatch::Rows(block) => {
                found.extend(block.iter().map(|row| Bytes::copy_from_slice(row.entry)));
            }
            ShardBatch::Partials(partials) => found.push(format!("{partials:?}").into()),
            ShardBatch::Done => break,
            other @ (ShardBatch::Moved(_) | ShardBatch::Failed(..)) => panic!("{other:?}"),
        }
        let open: Vec<_> = lock(&scans.table.open).values().cloned().collect();
        for held in open.iter().filter(|_| parked) {
            let mut held = lock(held);
            held.scanner.as_mut().unwrap().park();
            held.permit = None;
        }
    }
    found
}

#[tokio::test]
async fn a_scan_that_is_parked_after_each_batch_shows_the_same_rows() {
    let (env, dir) = (Env::real(), tempfile::tempdir().unwrap());
    let store = filled(&env, dir.path(), 64 << 20).await;
    let scans = scans(&env, &store, 100);
    // Later epochs do not affect the scan.
    store.apply(epoch(3, 0..DOCUMENTS / 2, false)).await.unwrap();
    let middle =
        |low: u64, high: u64| KeyRange { low: key_of(low).into(), high: Some(key_of(high).into()) };
    let count = AggregateCall { function: AggregateFunction::Count, argument: None };
    let cases = [
        (scan(1000), DOCUMENTS),
        (ShardScan { reverse: true, ..scan(1000) }, DOCUMENTS),
        (ShardScan { limit: Some(7_777), ..scan(1000) }, 7_777),
        (
            ShardScan { ranges: [middle(500, 3000), middle(9000, 15_000)].into(), ..scan(1000) },
            8_500,
        ),
        (ShardScan { distinct_parts: Some(1), ..scan(1000) }, DOCUMENTS / 100),
        (ShardScan { epoch: Epoch(3), ..scan(1000) }, DOCUMENTS / 2),
        (ShardScan { output: Output::Aggregates([count].into()), ..scan(1000) }, 1),
    ];
    for (scan, rows) in cases {
        let expected = all(&scans, scan.clone(), false).await;
        assert_eq!(expected.len() as u64, rows, "{scan:?}");
        let found = all(&scans, scan.clone(), true).await;
        assert!(found == expected, "{} rows, not the same ones: {scan:?}", found.len());
    }
    assert_eq!(scans.status().running, 0);
}

#[tokio::test]
async fn a_scan_that_nobody_reads_gives_its_place_to_one_that_waits() {
    let (env, dir) = (Env::real(), tempfile::tempdir().unwrap());
    let store = filled(&env, dir.path(), 64 << 20).await;
    let scans = scans(&env, &store, 50);
    let mut unread = open(&scans, scan(10_000)).await.unwrap();
    let mut rows = 0;
    let mut read = |batch: Option<Result<ShardBatch>>| match batch {
        Some(Ok(ShardBatch::Rows(block))) => {
            rows += u64::from(block.rows);
            true
        }
        Some(Ok(ShardBatch::Done)) => false,
        other => panic!("{other:?}"),
    };
    assert!(read(unread.next().await));
    let other = all(&scans, scan(10_000), false).await;
    assert_eq!(other.len() as u64, DOCUMENTS);
    while read(unread.next().await) {}
    assert_eq!(rows, DOCUMENTS, "each once, though it was parked on the way");
    assert_eq!(scans.status().refused, 0);
}

#[tokio::test]
async fn scans_at_the_limit_delay_no_deletion_and_the_next_scan_learns_the_reason() {
    let (env, dir) = (Env::real(), tempfile::tempdir().unwrap());
    let store = filled(&env, dir.path(), 8 << 20).await;
    let scans = scans(&env, &store, 3_600_000);
    let mut holds = open(&scans, scan(10_000)).await.unwrap();
    holds.next().await.unwrap().unwrap();
    let refused = open(&scans, scan(400)).await.err().expect("one scan is admitted");
    assert_eq!(refused.code, ErrorCode::TooBusy, "{refused}");
    let waiting = open(&scans, scan(60_000));
    let delete = async {
        for n in 0..20 {
            let some = DOCUMENTS / 20;
            store.apply(epoch(3 + n, n * some..(n + 1) * some, false)).await?;
        }
        store.flush().await?;
        Ok::<_, Error>(())
    };
    let deleted = async {
        let limit = Duration::from_secs(60);
        tokio::time::timeout(limit, delete).await.expect("in time").unwrap();
        assert_eq!(scans.status().waiting, 1, "the scan still waits");
        assert_eq!(store.counters(BUCKET).durable, Epoch(22));
        drop(holds);
    };
    let (waited, ()) = tokio::join!(waiting, deleted);
    drop(waited.unwrap());
    let gone = all(&scans, ShardScan { epoch: Epoch(22), ..scan(1000) }, false).await;
    assert!(gone.is_empty());
    assert_eq!(all(&scans, scan(1000), false).await.len() as u64, DOCUMENTS, "the epoch before");
}

#[tokio::test]
async fn a_scan_parked_for_long_keeps_no_run_in_memory() {
    let (env, dir) = (Env::real(), tempfile::tempdir().unwrap());
    let store = filled(&env, dir.path(), 64 << 20).await;
    store.apply(epoch(3, 0..DOCUMENTS, true)).await.unwrap();
    let scans = scans(&env, &store, 20);
    let third = ShardScan { epoch: Epoch(3), ..scan(1000) };
    let snapshot = scans.table.snapshot(&third, Instant::now()).await.unwrap();
    let let_go = Arc::downgrade(&snapshot);
    let mut unread = scans.open(third, snapshot, Instant::now()).await.unwrap();
    unread.next().await.unwrap().unwrap();
    assert!(let_go.upgrade().is_some(), "the scan is being read");
    // A waiting scan shortens the hour until the unread one is parked.
    let refused = open(&scans, scan(1)).await;
    let other = tokio::time::timeout(Duration::from_secs(30), open(&scans, scan(60_000)));
    let _other = other.await.expect("it was parked").unwrap();
    assert!(refused.is_err() && let_go.upgrade().is_none());
}

/// While the disk is full, memory is used up and a scan is not read, deletions wait; all of them
/// are applied as soon as the disk has free space.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletions_that_wait_for_a_full_disk_proceed_when_it_has_room() {
    let ((mut env, _, fs), dir) = (proto::env::sim::world(3), Path::new("/indexer"));
    // Flushes fail repeatedly meanwhile; they need a thread of their own.
    env.spawner = Env::real().spawner;
    let store = filled(&env, dir, 2 << 20).await;
    let scans = scans(&env, &store, 3_600_000);
    let mut holds = open(&scans, scan(10_000)).await.unwrap();
    holds.next().await.unwrap().unwrap();
    fs.set_capacity(0);
    let (deleting, done) = (Arc::clone(&store), Arc::new(AtomicU64::new(0)));
    let counted = Arc::clone(&done);
    let deletions = tokio::task::JoinSet::from_iter([async move {
        for n in 0..200 {
            let some = DOCUMENTS / 200;
            deleting.apply(epoch(3 + n, n * some..(n + 1) * some, false)).await.unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
        }
    }]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(done.load(Ordering::Relaxed) < 200, "the disk is not full enough for this test");
    fs.set_capacity(u64::MAX);
    let limit = Duration::from_secs(60);
    tokio::time::timeout(limit, deletions.join_all()).await.expect("they go on");
    let durable = store.wait_durable(BUCKET, Epoch(202));
    tokio::time::timeout(limit, durable).await.expect("in time").unwrap();
    drop(holds);
    assert!(all(&scans, ShardScan { epoch: Epoch(202), ..scan(1000) }, false).await.is_empty());
}

/// A snapshot that panics when a scan is parked.
struct PanicsWhenParked(Arc<dyn Snapshot>, AtomicU64);

impl Snapshot for PanicsWhenParked {
    fn info(&self) -> &Arc<IndexInfo> {
        self.0.info()
    }
    fn has(&self, slice: SliceNo) -> bool {
        self.0.has(slice)
    }
    fn without_waiting(&self) -> Arc<dyn Snapshot> {
        self.0.without_waiting()
    }
    fn walk_bytes(&self, slices: &[SliceNo], include: bool) -> usize {
        // The first call is that of the admission.
        assert_eq!(self.1.fetch_add(1, Ordering::Relaxed), 0, "a panic, as told");
        self.0.walk_bytes(slices, include)
    }
    fn rows(
        &self,
        slices: &[SliceNo],
        range: &KeyRange,
        reverse: bool,
        include: bool,
    ) -> Result<Box<dyn Rows>> {
        self.0.rows(slices, range, reverse, include)
    }
}

#[tokio::test]
async fn a_panic_while_a_scan_is_parked_ends_that_scan_alone() {
    let ((env, failures), dir) = (recorded_tasks::env(), tempfile::tempdir().unwrap());
    let store = filled(&env, dir.path(), 64 << 20).await;
    let scans = scans(&env, &store, 20);
    let snapshot = scans.table.snapshot(&scan(1000), Instant::now()).await.unwrap();
    let panics = PanicsWhenParked(snapshot, AtomicU64::new(0));
    let mut unread = scans.open(scan(1000), Arc::new(panics), Instant::now()).await.unwrap();
    unread.next().await.unwrap().unwrap();
    // The waiting scan makes the unread one be parked; its place is free although that panics.
    let limit = Duration::from_secs(30);
    let second = tokio::time::timeout(limit, open(&scans, scan(60_000))).await;
    let mut second = second.expect("there is a place").unwrap();
    second.next().await.unwrap().unwrap();
    let lines = failures.lines();
    assert!(lines.len() == 1 && lines[0].contains("\"scan-parking\""), "once: {lines:?}");
    assert!(lines[0].contains("a panic, as told"), "{lines:?}");
    // The scan returns no further row, so that a router reads the rest elsewhere.
    let error = unread.next().await.expect("an answer").expect_err("it has no scanner");
    assert_eq!(error.code, ErrorCode::Unavailable, "{error}");
    assert!(unread.next().await.is_none());
    // The second scan is parked in its turn, by the restarted task, and loses no row.
    let third = tokio::time::timeout(limit, open(&scans, scan(60_000))).await;
    drop(third.expect("the second one was parked").unwrap());
    assert_eq!(failures.lines().len(), 1);
    let mut rows = 0;
    while let Some(batch) = second.next().await {
        match batch.unwrap() {
            ShardBatch::Rows(block) => rows += block.iter().count() as u64,
            ShardBatch::Done => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(rows > 0 && rows < DOCUMENTS, "{rows} rows after the first batch");
    assert_eq!(scans.status().running, 0);
}
