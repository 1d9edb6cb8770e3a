//! A cluster in memory for the sessions of tests and fuzzers. Documents are in a map, and indexes
//! are computed for each scan. An epoch is the number of writes so far; a pinned epoch is a copy
//! of the documents.
//!
//! Two indexes are for tests of streams: a scan of `endless` never ends, and a scan of `stuck`
//! never answers.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::cut::{Cut, Position, WritePosition};
use proto::model::data_set::{DataSet, Files, Version, VersionStage};
use proto::model::ids::{
    BucketId, Epoch, Generation, IndexId, LocalIndexId, NodeId, ProducerTransactionId, Seqno,
    SliceNo, TransactionId, VbucketId, Vbuuid,
};
use proto::model::index::IndexInfo;
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::model::pushed_commit::PushedCommit;
use proto::model::users::Users;
use proto::rpc::api::{
    CheckedWrites, CoordinatorChange, CoordinatorChanged, CoordinatorStatus, NodeStatus, PushReply,
    PushRequest, SliceProgress, TransactionPush, TransactionPushed, TransactionStatus, WriteKind,
    WriteReply,
};
use proto::rpc::command::{Command, Outcome, Proposal};
use proto::rpc::scan::{Consistency, ScanRequest};
use proto::{Error, ErrorCode, Result};
use router::Knowledge;

use super::entries::{entries, scan_batches};
use super::state::MemoryState;
use super::streams::{EndlessScan, MemoryBatches, MemoryPin};
use super::transaction::MemoryTransaction;
use super::{definitions, users};
use crate::access::{
    Access, AccessProvider, BatchSource, BucketTransaction, Cluster, EpochPin, TransactionView,
};
use crate::audit::Attempt;
use crate::principal::Principal;

/// The maximum number of documents of one read whose ids begin with `long`.
const READ_DOCUMENTS_MAX: usize = 100;

/// A cluster in memory, with counters of its calls.
#[derive(Default)]
pub(in crate::pg) struct MemoryCluster {
    inner: Arc<Mutex<MemoryState>>,
    /// The number of batches that were requested from the index `endless`.
    pub(in crate::pg) batches: Arc<AtomicU64>,
    /// The number of scans.
    pub(in crate::pg) scans: AtomicU64,
    /// The number of times that a scan was parked.
    pub(in crate::pg) parked: Arc<AtomicU64>,
    /// The number of writes in the largest batch.
    pub(in crate::pg) writes_max: AtomicU64,
    /// The number of ids in each read.
    pub(in crate::pg) reads: Mutex<Vec<usize>>,
    /// The consistency of the last scan.
    pub(in crate::pg) consistency: Mutex<Option<Consistency>>,
    /// The write positions for which an epoch was requested, as text.
    pub(in crate::pg) covered: Mutex<Vec<String>>,
    /// True if the projector has lost all writes.
    pub(in crate::pg) is_lost: AtomicBool,
    /// The number of transactions that were begun.
    transactions: AtomicU64,
    /// The numbers of all transactions, by bucket.
    numbers: Mutex<BTreeSet<(BucketId, TransactionId)>>,
    users: Mutex<Users>,
}

impl MemoryCluster {
    /// Returns a second cluster with the same documents and indexes.
    pub(in crate::pg) fn copy_of_cluster(&self) -> Self {
        let inner = self.inner.lock().unwrap().clone();
        Self { inner: Arc::new(Mutex::new(inner)), ..Self::default() }
    }

    /// Returns the number of pinned epochs.
    pub(in crate::pg) fn pins(&self) -> usize {
        self.inner.lock().unwrap().pins
    }

    /// Turns two buckets into the versions of a data set. The first one is current; the second
    /// one becomes current when the next epoch is pinned.
    pub(in crate::pg) fn make_versions(&self, name: &str, buckets: [&str; 2]) {
        let mut inner = self.inner.lock().unwrap();
        let id = |name: &str| inner.catalog.bucket(name).expect("a bucket").id;
        let (set, buckets) = (id(name), buckets.map(id));
        let with_current = |current: BucketId| {
            let version = |bucket: BucketId| Version {
                name: format!("v{}", bucket.0),
                bucket,
                files: Files { pattern: "x.csv".into(), id: "id".into() },
                nodes: Vec::new(),
                stage: if bucket == current { VersionStage::Current } else { VersionStage::Kept },
                partitions: Vec::new(),
            };
            let mut catalog = inner.catalog.clone();
            let mut of_name = DataSet::new(1, 1, 0);
            of_name.versions = buckets.map(|bucket| (bucket.0, version(bucket))).into();
            catalog.data_sets.insert(set, of_name);
            catalog
        };
        let (before, after) = (with_current(buckets[0]), with_current(buckets[1]));
        (inner.catalog, inner.at_pin) = (before, Some(after));
    }

    /// Returns the number of transactions that were begun.
    pub(in crate::pg) fn transactions_begun(&self) -> u64 {
        self.transactions.load(Ordering::Relaxed)
    }

    /// Sets whether the memory for changes of transactions is used up.
    pub(in crate::pg) fn set_full(&self, is_full: bool) {
        self.inner.lock().unwrap().is_full = is_full;
    }

    /// Returns the number of changes of open transactions.
    pub(in crate::pg) fn uncommitted(&self) -> usize {
        self.inner.lock().unwrap().changes.len()
    }
}

/// An access provider for the cluster in memory, which records the principals of sessions.
#[derive(Clone, Default)]
pub(in crate::pg) struct MemoryAccess {
    pub memory: Arc<MemoryCluster>,
    pub principals: Arc<Mutex<Vec<Principal>>>,
}

impl AccessProvider for MemoryAccess {
    fn access_of(&self, principal: Principal) -> Access {
        self.principals.lock().unwrap().push(principal);
        Access::trusted(Arc::clone(&self.memory) as _)
    }
}

/// Returns the error for a call of a producer, which this cluster does not support.
fn no_producers() -> Error {
    Error::new(ErrorCode::Unsupported, "the sessions of these tests have no producers")
}

#[async_trait]
impl Cluster for MemoryCluster {
    fn catalog(&self) -> Arc<Catalog> {
        Arc::new(self.inner.lock().unwrap().catalog.clone())
    }

    async fn catch_up(&self) -> Result<()> {
        Ok(())
    }

    fn users(&self) -> Arc<Users> {
        Arc::new(self.users.lock().unwrap().clone())
    }

    fn knowledge(&self) -> Option<(NodeId, Knowledge)> {
        None
    }

    fn note_error(&self, _: &'static str) {}

    async fn command(&self, proposal: Proposal, _: &Attempt) -> Result<Outcome> {
        match proposal.command {
            Command::Users(command) => users::change(&mut self.users.lock().unwrap(), *command),
            command => definitions::run(&mut self.inner.lock().unwrap().catalog, command),
        }
    }

    /// Returns at once, except for an index with the name `unfinished`, whose build never ends.
    async fn wait_ready(&self, index: IndexId, _: Option<Generation>) -> Result<()> {
        let catalog = self.catalog();
        match catalog.indexes.get(&index).is_some_and(|index| index.spec.name == "unfinished") {
            true => std::future::pending().await,
            false => Ok(()),
        }
    }

    async fn wait_version(&self, _: BucketId, _: u64) -> Result<()> {
        Ok(())
    }

    async fn wait_drained(&self, _: NodeId) -> Result<()> {
        Ok(())
    }

    async fn rebalance(&self, _: RebalanceRequest, _: &Attempt) -> Result<RebalancePlan> {
        Err(Error::unavailable("there is no coordinator in a test"))
    }

    /// Returns a status without coordinators, in which the build of each index is at 40 %.
    async fn status(&self) -> Result<CoordinatorStatus> {
        let slice = |index: &Arc<IndexInfo>| SliceProgress {
            slice: index.local_id().slice(SliceNo(0)),
            floor: None,
            entries: 7,
            bytes: 0,
            live_bytes: Some(0),
            built_percent: Some(40),
            seconds_left: Some(12),
            copied_from: None,
            trouble: None,
        };
        let slices = self.catalog().indexes.values().map(slice).collect();
        let (buckets, moves) = (Vec::new(), Vec::new());
        let node =
            NodeStatus { node: NodeId(9), silent_ms: 0, buckets, slices, moves, scans: None };
        Ok(CoordinatorStatus {
            node: NodeId(1),
            leader: Some(NodeId(1)),
            term: 1,
            committed: 1,
            applied: 1,
            catalog_cas: 1,
            active: true,
            differences: Vec::new(),
            nodes: vec![node],
            left_out: Vec::new(),
            halved: Vec::new(),
            holds: Vec::new(),
            members: Default::default(),
            version_waits: Vec::new(),
            past_slow: Vec::new(),
        })
    }

    /// Returns some documents of a bucket. For a bucket with the name `silent`, never returns.
    async fn sample(&self, bucket: &BucketInfo) -> Result<Vec<Bytes>> {
        if bucket.name == "silent" {
            std::future::pending::<()>().await;
        }
        let inner = self.inner.lock().unwrap();
        Ok(inner.documents.get(&bucket.id).into_iter().flatten().map(|(_, d)| d.clone()).collect())
    }

    async fn write(&self, bucket: &BucketInfo, writes: CheckedWrites) -> Result<WriteReply> {
        // Two kinds of documents delay a write: one for a while, the other for ever.
        let writes = writes.writes();
        if writes.iter().any(|write| write.id().starts_with("slow")) {
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        if writes.iter().any(|write| write.id().starts_with("never")) {
            std::future::pending::<()>().await;
        }
        tokio::task::yield_now().await;
        self.writes_max.fetch_max(writes.len() as u64, Ordering::Relaxed);
        let mut inner = self.inner.lock().unwrap();
        let mut documents = inner.documents.get(&bucket.id).cloned().unwrap_or_default();
        let mut affected = 0;
        inner.epoch += 1;
        for write in writes {
            let epoch = inner.epoch;
            let id = write.id().to_string();
            inner.changed.insert((bucket.id, id.clone()), epoch);
            affected += match write.kind() {
                WriteKind::Insert(_) if documents.contains_key(&id) => {
                    let message = format!("there is a document {id:?}");
                    return Err(Error::new(ErrorCode::DuplicateId, message));
                }
                WriteKind::Insert(document) | WriteKind::Upsert(document) => {
                    documents.insert(id, document.clone());
                    1
                }
                WriteKind::Delete => documents.remove(&id).map_or(0, |_| 1),
            };
        }
        inner.documents.insert(bucket.id, documents);
        let position = Position { vbuuid: Vbuuid(1), seqno: Seqno(inner.epoch) };
        let positions = vec![(VbucketId(0), position)];
        Ok(WriteReply { affected, position: WritePosition { bucket: bucket.id, positions } })
    }

    async fn get(
        &self,
        bucket: &BucketInfo,
        ids: Vec<String>,
        view: TransactionView,
    ) -> Result<Vec<Option<Bytes>>> {
        self.reads.lock().unwrap().push(ids.len());
        let documents = self.inner.lock().unwrap().view(bucket.id, view);
        if ids.len() > READ_DOCUMENTS_MAX && ids[0].starts_with("long") {
            return Err(Error::new(ErrorCode::OverLimit, "too long for one answer"));
        }
        Ok(ids.iter().map(|id| documents.get(id).cloned()).collect())
    }

    async fn pin(&self, _: LocalIndexId, _: &Consistency, _: u64) -> Result<Box<dyn EpochPin>> {
        let pinned = self.inner.lock().unwrap().pin();
        Ok(Box::new(MemoryPin(Arc::clone(&self.inner), pinned)))
    }

    async fn pin_bucket(&self, _: BucketId, _: u64) -> Result<Box<dyn EpochPin>> {
        let pinned = self.inner.lock().unwrap().pin();
        Ok(Box::new(MemoryPin(Arc::clone(&self.inner), pinned)))
    }

    async fn transactions(&self) -> Result<Vec<TransactionStatus>> {
        Ok(Vec::new())
    }

    async fn committed(&self, _: TransactionId) -> Result<Vec<WriteReply>> {
        Ok(Vec::new())
    }

    async fn cancel_transaction(&self, _: TransactionId, _: &Attempt) -> Result<bool> {
        Ok(false)
    }

    fn begin(
        &self,
        bucket: &Arc<BucketInfo>,
        _: &str,
        joined: Option<TransactionId>,
    ) -> Result<Arc<dyn BucketTransaction>> {
        let id = TransactionId(self.transactions.fetch_add(1, Ordering::Relaxed));
        let mut numbers = self.numbers.lock().unwrap();
        if joined.is_some_and(|joined| numbers.contains(&(bucket.id, joined))) {
            return Err(Error::internal("changes that were taken back could come late"));
        }
        numbers.insert((bucket.id, id));
        Ok(Arc::new(MemoryTransaction::new(Arc::clone(&self.inner), Arc::clone(bucket), id)))
    }

    async fn epoch_of(&self, write: &WritePosition, _: u64) -> Result<Epoch> {
        self.covered.lock().unwrap().push(write.to_string());
        match self.is_lost.load(Ordering::Relaxed) {
            true => Err(Error::new(ErrorCode::InvalidParameter, "it is in no history")),
            false => Ok(Epoch(self.inner.lock().unwrap().epoch)),
        }
    }

    async fn change_coordinators(
        &self,
        _: CoordinatorChange,
        _: &Attempt,
    ) -> Result<CoordinatorChanged> {
        Err(Error::unavailable("there is no coordinator"))
    }

    async fn positions(&self, _: &BucketInfo) -> Result<Cut> {
        Err(no_producers())
    }

    async fn push(&self, _: &BucketInfo, _: PushRequest) -> Result<PushReply> {
        Err(no_producers())
    }

    async fn push_in(&self, _: &BucketInfo, _: TransactionPush) -> Result<TransactionPushed> {
        Err(no_producers())
    }

    async fn commit_pushed(&self, _: &BucketInfo, _: PushedCommit) -> Result<PushReply> {
        Err(no_producers())
    }

    async fn abort_pushed(&self, _: &BucketInfo, _: ProducerTransactionId) -> Result<()> {
        Err(no_producers())
    }

    async fn scan(&self, request: ScanRequest, _: Option<&str>) -> Result<Box<dyn BatchSource>> {
        self.scans.fetch_add(1, Ordering::Relaxed);
        *self.consistency.lock().unwrap() = Some(request.consistency.clone());
        let inner = self.inner.lock().unwrap();
        let index = inner.catalog.local_index(request.index);
        let index = index.ok_or_else(|| Error::new(ErrorCode::Unknown, "no such index"))?;
        if let name @ ("endless" | "stuck") = index.spec.name.as_str() {
            let [batches, parked] = [&self.batches, &self.parked].map(Arc::clone);
            return Ok(Box::new(EndlessScan(batches, name == "stuck", parked)));
        }
        let snapshot = match &request.consistency {
            Consistency::Epoch(epoch) => Some(*epoch),
            _ => None,
        };
        let view = TransactionView { snapshot, own: request.own };
        let entries = entries(&index.spec, &inner.view(index.bucket, view));
        let epoch = snapshot.unwrap_or(Epoch(inner.epoch));
        let parked = Arc::clone(&self.parked);
        Ok(Box::new(MemoryBatches(scan_batches(&request, entries)?.into_iter(), epoch, parked)))
    }
}
