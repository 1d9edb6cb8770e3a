//! The slice store, used as an indexer uses it: one task packs key-versions, and about every ten
//! milliseconds another makes an epoch from all packed ones and applies it. An update contains only
//! the new entry; the store finds the old one.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use proto::env::Env;
use proto::expr::{ColumnType, Expr};
use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::ids::{
    BucketId, Epoch, Generation, IndexId, LocalIndexId, NodeId, Seqno, SliceNo, VbucketId, Vbuuid,
};
use proto::model::index::{IndexInfo, IndexSpec, KeyPart};
use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};
use proto::rpc::rows::RowBlockBuilder;
use proto::rpc::scan::KeyRange;
use proto::value::path::Step;
use storage::log::{LogOptions, SyncPolicy};
use storage::{
    Bounds, EpochBatch, Grouping, SliceStore, StorageEngine, StoreOptions, VbucketMutations,
};
use tokio::sync::mpsc;

use super::workload::{BATCH, Documents, Id, Key};
use super::{Engine, Outcome};

const BUCKET: BucketId = BucketId(1);
const NODE: NodeId = NodeId(1);
const INDEX: LocalIndexId = LocalIndexId { index: IndexId(1), generation: Generation(0) };
const SLICE: SliceNo = SliceNo(0);
/// The interval between two epochs.
const EPOCH: Duration = Duration::from_millis(10);
/// The number of batches that are packed ahead.
const AHEAD: usize = 64;
/// The size of a block of rows on the wire.
const BLOCK_BYTES: usize = 64 << 10;

/// The slice store under measurement.
pub struct Sextant {
    runtime: tokio::runtime::Runtime,
    store: Arc<dyn SliceStore>,
    /// The newest epoch.
    mark: EpochMark,
    block: RowBlockBuilder,
}

impl Sextant {
    /// Creates a store with an empty index.
    pub fn open(dir: &Path, memory_bytes: u64) -> Outcome<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let store = {
            let _in_runtime = runtime.enter();
            // Writes are synced once at the end, as for the other engines.
            let log = LogOptions { sync: SyncPolicy::OnDemand, ..LogOptions::default() };
            let options = StoreOptions { memory_bytes, log, ..StoreOptions::default() };
            Arc::new(StorageEngine::open(&Env::real(), NODE, dir, options)?)
        };
        let mut engine = Self {
            runtime,
            store,
            mark: mark(Epoch(0), 0),
            block: RowBlockBuilder::with_capacity(BLOCK_BYTES + 4096),
        };
        engine.build(Documents::all(0))?;
        Ok(engine)
    }

    /// Rebuilds the index through the backfill path: unsorted documents, no log.
    pub fn build(&mut self, documents: Documents) -> Outcome<()> {
        let Self { runtime, store, mark, .. } = self;
        runtime.block_on(async {
            store.begin_build(info(), Grouping::Together).await?;
            store.begin_backfill(INDEX).await?;
            let mut packed = pack_ahead(documents, 0);
            while let Some(batch) = packed.recv().await {
                store.backfill(INDEX, batch.body).await?;
            }
            *mark = next(mark, 0);
            store
                .apply(EpochBatch { mark: mark.clone(), pieces: Vec::new(), commits: Vec::new() })
                .await?;
            store.finish_build(INDEX, mark).await?;
            Ok(())
        })
    }

    /// Scans from an entry on until `rows_max` rows are packed; returns their number.
    fn scan(&mut self, low: Bytes, rows_max: u64) -> Outcome<u64> {
        let snapshot = self.store.snapshot(INDEX, self.mark.epoch)?;
        let range = KeyRange { low, high: None };
        let mut rows = snapshot.rows(&[SLICE], &range, false, false)?;
        let (mut entries, mut bytes, mut more) = (0, 0, true);
        while more && entries < rows_max {
            let bounds = Bounds::of_rows(BLOCK_BYTES, rows_max - entries);
            more = !rows.pack(&mut self.block, bounds)?.is_end;
            let block = self.block.finish();
            entries += u64::from(block.rows);
            bytes += block.data.len();
        }
        std::hint::black_box(bytes);
        Ok(entries)
    }
}

impl Engine for Sextant {
    #[allow(clippy::disallowed_methods, reason = "the bench measures real time")]
    fn write(&mut self, documents: Documents, _replace: bool) -> Outcome<()> {
        let Self { runtime, store, mark, .. } = self;
        runtime.block_on(async {
            let mut packed = pack_ahead(documents, seqno(mark));
            let mut cut_at = Instant::now() + EPOCH;
            loop {
                let batches = gather(&mut packed, cut_at).await;
                let Some(last) = batches.last() else { break };
                cut_at = Instant::now() + EPOCH;
                *mark = next(mark, last.to);
                let pieces = batches.into_iter().map(Batch::piece).collect();
                store.apply(EpochBatch { mark: mark.clone(), pieces, commits: Vec::new() }).await?;
            }
            Ok(store.wait_durable(BUCKET, mark.epoch).await?)
        })
    }

    fn scan_all(&mut self) -> Outcome<u64> {
        self.scan(Bytes::new(), u64::MAX)
    }

    fn scan_100(&mut self, from: Key) -> Outcome<u64> {
        self.scan(Bytes::copy_from_slice(&from), 100)
    }

    fn compact(&mut self) -> Outcome<()> {
        let Self { runtime, store, mark, .. } = self;
        runtime.block_on(async {
            // Another epoch, so that the horizon passes the last one with changes.
            *mark = next(mark, seqno(mark));
            store
                .apply(EpochBatch { mark: mark.clone(), pieces: Vec::new(), commits: Vec::new() })
                .await?;
            Ok(store.compact().await?)
        })
    }
}

/// Packed key-versions of documents with the seqnos `(after, to]`, relative to `after`.
struct Batch {
    body: Bytes,
    after: u64,
    to: u64,
}

impl Batch {
    fn piece(self) -> VbucketMutations {
        let after = Seqno(self.after);
        VbucketMutations { body: self.body, base: after, after, to: Seqno(self.to) }
    }
}

/// Receives batches until a time; waits longer only for the first one. Empty at the end.
#[allow(clippy::disallowed_methods, reason = "the bench measures real time")]
async fn gather(packed: &mut mpsc::Receiver<Batch>, until: Instant) -> Vec<Batch> {
    let mut batches: Vec<Batch> = packed.recv().await.into_iter().collect();
    while !batches.is_empty() && Instant::now() < until {
        match tokio::time::timeout_at(until.into(), packed.recv()).await {
            Ok(Some(batch)) => batches.push(batch),
            Ok(None) | Err(_) => break,
        }
    }
    // All batches that are ready belong to the epoch, also after the time is up.
    while !batches.is_empty()
        && let Ok(batch) = packed.try_recv()
    {
        batches.push(batch);
    }
    batches
}

/// Packs documents on a separate thread and returns the receiver of the batches; `seqno` is the
/// last one in use.
#[allow(clippy::disallowed_methods, reason = "the bench runs on the real machine")]
fn pack_ahead(mut documents: Documents, mut seqno: u64) -> mpsc::Receiver<Batch> {
    let (packed, batches) = mpsc::channel(AHEAD);
    std::thread::spawn(move || {
        while documents.left() > 0 {
            let documents = documents.batch();
            let to = seqno + documents.len() as u64;
            let batch = Batch { body: pack(&documents), after: seqno, to };
            seqno = to;
            if packed.blocking_send(batch).is_err() {
                return;
            }
        }
    });
    batches
}

fn pack(documents: &[(Id, Key)]) -> Bytes {
    let mut writer = KeyVersionsWriter::default();
    for (n, (id, key)) in (1..).zip(documents) {
        let id = std::str::from_utf8(id).unwrap_or_default();
        writer.mutation(n, MutationKind::Upsert, id, 1);
        writer.index(INDEX, 1);
        writer.entry(SLICE, key, &[]);
    }
    debug_assert!(documents.len() <= BATCH);
    writer.finish()
}

fn seqno(mark: &EpochMark) -> u64 {
    mark.cut.get(VbucketId(0)).seqno.0
}

fn mark(epoch: Epoch, to: u64) -> EpochMark {
    let position = Position { vbuuid: Vbuuid(1), seqno: Seqno(to) };
    let cut = Arc::new(Cut::from_positions(vec![position]));
    EpochMark {
        bucket: BUCKET,
        epoch,
        parent: Epoch(0),
        cut,
        horizon: Epoch(0),
        points: Arc::default(),
    }
}

/// Returns the epoch after `last`, with the seqno `to`. Its horizon is such that no older epoch is
/// read.
fn next(last: &EpochMark, to: u64) -> EpochMark {
    let to = to.max(seqno(last));
    EpochMark { parent: last.epoch, horizon: last.epoch, ..mark(Epoch(last.epoch.0 + 1), to) }
}

/// Returns an index with one slice.
fn info() -> Arc<IndexInfo> {
    let part = KeyPart {
        expr: Expr::Path(vec![Step::Field("key".into())]),
        name: "key".into(),
        column_type: ColumnType::Text,
        descending: false,
        include_missing: false,
    };
    let spec = IndexSpec { primary: false, keys: vec![part], ..IndexSpec::new("bench", "bench") };
    Arc::new(IndexInfo::new(INDEX.index, BUCKET, spec, vec![vec![NODE]]))
}
