//! The open shard scans of a node: they are admitted, read batch by batch, and parked while the
//! client does not read them.
//!
//! A scan needs a permit of the node's admission from its first batch on: one of the limited
//! number of scans, and memory for the blocks of its cursors. Its snapshot keeps memory and files
//! in use that the engine has released. A scan that makes no progress must keep neither permit nor
//! snapshot:
//!
//! - A scan that is **not read** is *parked*: it releases its permit, its snapshot and its
//!   blocks, and keeps only the entry to read next. When the client reads again, the scan waits
//!   for a permit like a new scan, takes a new snapshot of the same epoch, and continues with
//!   that entry. The contents of an epoch never change (I3), so the rows are the same. A scan is
//!   parked early if other scans wait, and later otherwise. An ordered scan that waits for one
//!   node's rows therefore occupies no permit on another node, and two such scans never wait for
//!   each other.
//! - A **long** scan takes a new snapshot of its epoch from time to time, so that no memory
//!   stays in use for much longer than the engine needs it.
//!
//! A scan inside a transaction sees the transaction's rows as of a place in it. They do not
//! change while the transaction continues; once it has ended, a scan that takes a new snapshot
//! ends with `SnapshotTooOld`.
//!
//! The router's lease protects the epoch; if the epoch is lost nevertheless, the scan ends with
//! `SnapshotTooOld`. Mutations need no permit, and never wait for a resource that a scan has.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures::stream;
use proto::env::{Env, Task};
use proto::flow::{Admission, AdmissionStatus, Permit};
use proto::lock::lock;
use proto::rpc::api::{FIRST_BATCH_BYTES, ResultStream};
use proto::rpc::scan::{FirstBatch, ShardBatch, ShardScan};
use proto::{Error, ErrorCode, Result};
use tokio::sync::Notify;
use tokio::time::Instant;

use storage::{SliceStore, Snapshot, StorageEngine};

use super::own_changes::wait_for_own_changes;
use super::scanner::{INLINE_STEP_COST, STEP_COST, ShardScanner};

/// The times after which a scan is parked, or takes a new snapshot.
#[derive(Clone, Copy, Debug)]
pub struct ScanTimeouts {
    /// The time after which a scan that the client does not read is parked, if other scans wait.
    pub while_waited_for: Duration,
    /// The time after which a scan that the client does not read is parked in any case.
    pub unread: Duration,
    /// The age at which the snapshot of a scan is replaced by a new one.
    pub snapshot: Duration,
}

impl Default for ScanTimeouts {
    fn default() -> Self {
        Self {
            // An active reader needs a small part of this time for a batch.
            while_waited_for: Duration::from_millis(200),
            // The time of a few flushes on a busy node.
            unread: Duration::from_secs(2),
            snapshot: Duration::from_secs(5),
        }
    }
}

/// The open scans of a node. After a drop of this value open scans continue, but none is parked
/// any more.
pub struct Scans {
    table: Arc<ScanTable>,
    _parking: Task,
}

struct ScanTable {
    env: Env,
    /// The engine. The reference is weak, so that an open scan does not keep the engine of a
    /// stopped node.
    store: Weak<StorageEngine>,
    admission: Admission,
    patience: ScanTimeouts,
    /// Size, in bytes, at which a batch of rows is full.
    batch_bytes: usize,
    open: Mutex<BTreeMap<u64, Arc<Mutex<ScanResources>>>>,
    next_id: AtomicU64,
    /// Signals that a scan was opened.
    opened: Notify,
}

/// The permit and the scanner of an open scan, between two batches. Both are absent while a batch
/// is made, and the permit while the scan is parked.
struct ScanResources {
    scanner: Option<ShardScanner>,
    permit: Option<Permit>,
    since: Instant,
    snapshot_since: Instant,
}

/// The client's end of an open scan, from which batches are read.
struct ScanReader {
    table: Arc<ScanTable>,
    id: u64,
    held: Arc<Mutex<ScanResources>>,
    scan: Arc<ShardScan>,
}

/// Returns the time until which a scan may wait for its admission: a little before the router's
/// own deadline, so that the router receives the error.
fn admission_deadline(scan: &ShardScan, began: Instant) -> Instant {
    began + Duration::from_millis(scan.timeout_ms - scan.timeout_ms / 8)
}

impl Scans {
    /// Creates a table without open scans.
    pub fn new(
        env: Env,
        store: &Arc<StorageEngine>,
        admission: Admission,
        patience: ScanTimeouts,
        batch_bytes: usize,
    ) -> Self {
        let table = Arc::new(ScanTable {
            env,
            store: Arc::downgrade(store),
            admission,
            patience,
            batch_bytes,
            open: Mutex::default(),
            next_id: AtomicU64::new(0),
            opened: Notify::new(),
        });
        let parked = Arc::clone(&table);
        // A scan that was half parked makes its own reader fail; the others need parking all the same.
        let parking =
            table.env.spawn_restarted("scan-parking", move || park_unread(Arc::clone(&parked)));
        Self { table, _parking: parking }
    }

    /// Returns the numbers of running, waiting and refused scans.
    pub fn status(&self) -> AdmissionStatus {
        self.table.admission.status()
    }

    /// Opens a scan of a snapshot that has all of the scan's slices, after its admission. `began`
    /// is the time at which the request arrived.
    pub async fn open(
        &self,
        scan: ShardScan,
        snapshot: Arc<dyn Snapshot>,
        began: Instant,
    ) -> Result<ResultStream<ShardBatch>> {
        let table = &self.table;
        let scan = Arc::new(scan);
        let mut scanner = ShardScanner::new(snapshot, Arc::clone(&scan), table.batch_bytes)?;
        let permit = table.admit(&mut scanner, began).await?;
        let now = Instant::now();
        let held = Arc::new(Mutex::new(ScanResources {
            scanner: Some(scanner),
            permit: Some(permit),
            since: now,
            snapshot_since: now,
        }));
        let id = table.next_id.fetch_add(1, Ordering::Relaxed);
        lock(&table.open).insert(id, Arc::clone(&held));
        table.opened.notify_one();
        let reading = ScanReader { table: Arc::clone(table), id, held, scan };
        Ok(Box::pin(stream::unfold(Some(reading), |reading| async {
            let mut reading = reading?;
            match reading.next().await {
                Ok(last @ (ShardBatch::Done | ShardBatch::Failed(..))) => Some((Ok(last), None)),
                Ok(batch) => Some((Ok(batch), Some(reading))),
                Err(error) => Some((Err(error), None)),
            }
        })))
    }
}

impl Scans {
    /// Reads the first batch of a scan, after its admission. A cheap scan runs on this thread as
    /// long as it needs no disk. Any other scan is read on a blocking thread.
    pub async fn first_batch(
        &self,
        scan: ShardScan,
        snapshot: Arc<dyn Snapshot>,
        began: Instant,
    ) -> Result<FirstBatch> {
        let table = &self.table;
        let bytes = FIRST_BATCH_BYTES.min(table.batch_bytes);
        let mut scanner = ShardScanner::new(snapshot, Arc::new(scan), bytes)?;
        let _permit = table.admit(&mut scanner, began).await?;
        if !scanner.is_costly() {
            match scanner.without_waiting()?.first_batch(INLINE_STEP_COST) {
                Err(error) if error.code == ErrorCode::NotInMemory => {}
                read => return read,
            }
        }
        table.env.blocking(move || scanner.first_batch(STEP_COST)).await
    }
}

impl ScanTable {
    /// Takes a new snapshot for a scan. Waits until `by` for the changes of the scan's own
    /// transaction, which a new stream may have to send again.
    async fn snapshot(&self, scan: &ShardScan, by: Instant) -> Result<Arc<dyn Snapshot>> {
        let store = self.store.upgrade();
        let store = store.ok_or_else(|| Error::unavailable("the indexer has stopped"))?;
        wait_for_own_changes(&store, scan, by).await?;
        store.snapshot_of_transaction(scan.index, scan.epoch, scan.own)
    }

    /// Runs a step of a scanner on a blocking thread, because it may wait for a disk, and a
    /// filter may be slow.
    async fn step(&self, mut scanner: ShardScanner) -> (ShardScanner, Result<Option<ShardBatch>>) {
        let work = move || {
            let step = scanner.step(STEP_COST);
            (scanner, step)
        };
        self.env.blocking(work).await
    }

    /// Waits until a scan of a snapshot is admitted.
    async fn admit(&self, scanner: &mut ShardScanner, began: Instant) -> Result<Permit> {
        let bytes = scanner.memory_bytes();
        if let Some(permit) = self.admission.try_admit(bytes)? {
            return Ok(permit);
        }
        // A waiting scan must not hold a snapshot.
        scanner.park();
        let by = admission_deadline(scanner.scan(), began);
        let permit = self.admission.admit(bytes, by).await?;
        scanner.unpark(self.snapshot(scanner.scan(), by).await?);
        Ok(permit)
    }
}

impl ScanReader {
    /// Returns the next batch of the scan. Lets other tasks run after each step without a batch.
    async fn next(&mut self) -> Result<ShardBatch> {
        let (scanner, permit, mut snapshot_since) = {
            let mut held = lock(&self.held);
            (held.scanner.take(), held.permit.take(), held.snapshot_since)
        };
        let Some(mut scanner) = scanner else {
            // Each batch puts the scanner back. Another node has the same rows, and so has a new scan of this one.
            let message = "the scan was given up, because parking it panicked; the log says where";
            return Err(Error::unavailable(message));
        };
        let permit = match permit {
            Some(permit) => permit,
            None => {
                let by = admission_deadline(&self.scan, Instant::now());
                self.table.admission.admit(scanner.memory_bytes(), by).await?
            }
        };
        let patience = self.table.patience;
        let batch = loop {
            if !scanner.is_parked() && snapshot_since.elapsed() > patience.snapshot {
                scanner.park();
            }
            if scanner.is_parked() {
                let by = admission_deadline(&self.scan, Instant::now());
                scanner.unpark(self.table.snapshot(&self.scan, by).await?);
                snapshot_since = Instant::now();
            }
            let step;
            (scanner, step) = self.table.step(scanner).await;
            match step? {
                Some(batch) => break batch,
                None => tokio::task::yield_now().await,
            }
        };
        let mut held = lock(&self.held);
        (held.scanner, held.permit) = (Some(scanner), Some(permit));
        (held.since, held.snapshot_since) = (Instant::now(), snapshot_since);
        Ok(batch)
    }
}

impl Drop for ScanReader {
    fn drop(&mut self) {
        lock(&self.table.open).remove(&self.id);
    }
}

/// Parks scans that clients do not read. Sleeps while no scan is open.
async fn park_unread(scans: Arc<ScanTable>) -> Infallible {
    loop {
        let open: Vec<_> = lock(&scans.open).values().cloned().collect();
        if open.is_empty() {
            scans.opened.notified().await;
        }
        let ScanTimeouts { while_waited_for, unread, .. } = scans.patience;
        let patience = if scans.admission.has_waiting() { while_waited_for } else { unread };
        for held in open {
            let mut held = lock(&held);
            if held.permit.is_some() && held.since.elapsed() >= patience {
                // The scanner is absent while it makes a batch.
                let Some(mut scanner) = held.scanner.take() else { continue };
                // The scan has neither scanner nor permit while it is parked: a panic then ends this scan alone.
                let permit = held.permit.take();
                scanner.park();
                // The permit counts the scanner's memory, so it ends after the memory is released.
                drop(permit);
                held.scanner = Some(scanner);
            }
        }
        tokio::time::sleep(while_waited_for / 2).await;
    }
}

#[cfg(test)]
#[path = "open_scans_tests.rs"]
mod tests;
