//! The slice store in memory: epoch runs and a back index for each index, and a commit log, kept
//! whole, from which all of it is made again after a restart.
//!
//! One writer per bucket applies epochs; readers take an `Arc` of the newest version of an index and
//! are never waited for. An epoch becomes visible in two steps: the runs of all indexes are published
//! first, then the bucket's applied epoch; a scan asks for an applied epoch, so it sees all or nothing.
//! Visible comes before durable: what a crash takes back is applied again from the source's stream,
//! with the same result (I1).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, RwLock};

use async_trait::async_trait;
use bytes::Bytes;
use proto::api::SliceProgress;
use proto::cut::EpochMark;
use proto::env::Env;
use proto::ids::{BucketId, Epoch, Generation, IndexId, NodeId, SliceId, SliceNo};
use proto::index::IndexInfo;
use proto::mutation::{KeyVersions, KeyVersionsReader};
use proto::scan::KeyRange;
use proto::{Error, ErrorCode, Result};

use super::build::Build;
use super::commit_log::{CommitLog, Lsn};
use super::old_merge::Merge;
use super::record::{Record, collapse};
use super::run::Run;
use super::slot::{Slot, lock};
use super::{Counters, EpochBatch, Rows, SliceStore, Snapshot, StoredIndex};

/// A build is written to the log in records of about this size.
const BUILD_RECORD_BYTES: usize = 4 << 20;

/// The store.
pub struct MemoryStore {
    env: Env,
    node: NodeId,
    log: CommitLog,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    slots: RwLock<BTreeMap<IndexId, Arc<Slot>>>,
    buckets: Mutex<BTreeMap<BucketId, Progress>>,
}

/// How far a bucket is.
struct Progress {
    applied: EpochMark,
    /// Epochs in the log and where their records end, the oldest first; those that are durable are
    /// taken off when asked for.
    logged: std::collections::VecDeque<(Epoch, Lsn)>,
    durable: Epoch,
}

impl MemoryStore {
    /// Opens the store in a directory, recovering what its log holds. Blocks.
    pub fn open(env: &Env, node: NodeId, dir: &Path) -> Result<Self> {
        let state = Arc::new(State::default());
        let mut builds: BTreeMap<(IndexId, Generation), Build> = BTreeMap::new();
        let mut replayed = BTreeMap::new();
        let log = CommitLog::open(env, &dir.join("commit.log"), &mut |record| {
            match Record::decode(record)? {
                Record::Epoch { mark, body } => {
                    state.apply(&mark, &body)?;
                    state.of_bucket(mark.bucket).iter().for_each(|slot| slot.compact());
                    replayed.insert(mark.bucket, mark.epoch);
                }
                Record::BuildPart { first, index, generation, body } => {
                    let build = builds.entry((index, generation)).or_default();
                    if first {
                        *build = Build::default();
                    }
                    build.add(index, generation, &body)?;
                }
                Record::BuildEnd { info, mark } => {
                    let build = builds.remove(&(info.id, info.generation)).unwrap_or_default();
                    let slot = Slot::new(Arc::new(*info));
                    slot.finish(&build, mark.epoch)?;
                    state.insert(slot);
                }
                Record::Drop { index } => {
                    state.remove(index);
                    builds.retain(|(dropped, _), _| *dropped != index);
                }
            }
            Ok(())
        })?;
        let mut buckets = lock(&state.buckets);
        for (bucket, epoch) in replayed {
            if let Some(progress) = buckets.get_mut(&bucket) {
                progress.durable = epoch;
            }
        }
        drop(buckets);
        Ok(Self { env: env.clone(), node, log, state })
    }

    fn slot(&self, index: IndexId, generation: Generation) -> Result<Arc<Slot>> {
        let slots = self.state.slots.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        match slots.get(&index) {
            Some(slot) if slot.info.generation == generation => Ok(Arc::clone(slot)),
            _ => Err(Error::new(
                ErrorCode::SliceMoved,
                format!("node {} has no slices of index {index}.{generation}", self.node),
            )),
        }
    }

    fn slots(&self) -> Vec<Arc<Slot>> {
        let slots = self.state.slots.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        slots.values().cloned().collect()
    }

    fn durable_epoch(&self, bucket: BucketId) -> Epoch {
        let durable_lsn = self.log.durable().borrow().lsn;
        let mut buckets = lock(&self.state.buckets);
        let Some(progress) = buckets.get_mut(&bucket) else { return Epoch(0) };
        while progress.logged.front().is_some_and(|(_, lsn)| *lsn <= durable_lsn) {
            progress.durable =
                progress.logged.pop_front().map_or(progress.durable, |(epoch, _)| epoch);
        }
        progress.durable
    }

    /// Merges runs of an index in the background where that pays.
    fn compact_later(&self, slot: &Arc<Slot>) {
        if slot.is_worth_compacting() {
            let slot = Arc::clone(slot);
            self.env.spawner.spawn_blocking(Box::new(move || slot.compact()));
        }
    }
}

impl State {
    fn insert(&self, slot: Slot) {
        let mut slots = self.slots.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        slots.insert(slot.info.id, Arc::new(slot));
    }

    fn remove(&self, index: IndexId) -> bool {
        let mut slots = self.slots.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        slots.remove(&index).is_some()
    }

    fn of_bucket(&self, bucket: BucketId) -> Vec<Arc<Slot>> {
        let slots = self.slots.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        slots.values().filter(|slot| slot.info.bucket == bucket).cloned().collect()
    }

    /// Applies collapsed key-versions to all indexes of the bucket, then shows them.
    fn apply(&self, mark: &EpochMark, body: &[u8]) -> Result<()> {
        let states: Vec<KeyVersions<'_>> = KeyVersionsReader::new(body).collect::<Result<_>>()?;
        let before = lock(&self.buckets).get(&mark.bucket).map(|progress| progress.applied.epoch);
        // A copy that did not apply the parent cannot answer for the epochs it skipped.
        let gap = before.is_some_and(|before| before != mark.parent);
        for slot in self.of_bucket(mark.bucket) {
            slot.apply(mark, &states, gap)?;
        }
        let mut buckets = lock(&self.buckets);
        let progress = buckets.entry(mark.bucket).or_insert_with(|| Progress {
            applied: mark.clone(),
            logged: Default::default(),
            durable: Epoch(0),
        });
        progress.applied = mark.clone();
        Ok(())
    }
}

#[async_trait]
impl SliceStore for MemoryStore {
    fn applied(&self) -> Vec<EpochMark> {
        lock(&self.state.buckets).values().map(|progress| progress.applied.clone()).collect()
    }

    fn counters(&self, bucket: BucketId) -> Counters {
        let durable = self.durable_epoch(bucket);
        let committed = lock(&self.state.buckets)
            .get(&bucket)
            .map_or(Epoch(0), |progress| progress.applied.epoch);
        Counters { staged: committed, committed, durable, stable: Epoch(0) }
    }

    fn indexes(&self) -> Vec<StoredIndex> {
        let stored = |slot: Arc<Slot>| StoredIndex {
            info: Arc::clone(&slot.info),
            floor: slot.visible.load().floor,
        };
        self.slots().into_iter().map(stored).collect()
    }

    async fn begin_build(&self, info: Arc<IndexInfo>) -> Result<()> {
        let slot = Slot::new(info);
        lock(&slot.writer).build = Some(Build::default());
        self.state.insert(slot);
        Ok(())
    }

    async fn begin_backfill(&self, _index: IndexId, _generation: Generation) -> Result<()> {
        Ok(())
    }

    async fn backfill(
        &self,
        index: IndexId,
        generation: Generation,
        documents: Bytes,
    ) -> Result<()> {
        let slot = self.slot(index, generation)?;
        let add = move || match &mut lock(&slot.writer).build {
            Some(build) => build.add(index, generation, &documents),
            None => Err(Error::internal(format!("index {index} is not being built"))),
        };
        self.env.blocking(add).await
    }

    async fn finish_build(
        &self,
        index: IndexId,
        generation: Generation,
        mark: &EpochMark,
    ) -> Result<()> {
        let slot = self.slot(index, generation)?;
        let (epoch, info) = (mark.epoch, Box::new(IndexInfo::clone(&slot.info)));
        let finish = move || -> Result<Vec<Vec<u8>>> {
            let Some(build) = lock(&slot.writer).build.take() else {
                return Err(Error::internal(format!("index {index} is not being built")));
            };
            slot.finish(&build, epoch)?;
            Ok(build.parts(BUILD_RECORD_BYTES))
        };
        for (n, body) in self.env.blocking(finish).await?.into_iter().enumerate() {
            let record = Record::BuildPart { first: n == 0, index, generation, body: body.into() };
            self.log.append(&record.encode()?).await?;
        }
        let end = Record::BuildEnd { info, mark: mark.clone() }.encode()?;
        let lsn = self.log.append(&end).await?;
        self.log.wait_durable(lsn).await
    }

    async fn drop_index(&self, index: IndexId) -> Result<()> {
        if self.state.remove(index) {
            self.log.append(&Record::Drop { index }.encode()?).await?;
        }
        Ok(())
    }

    async fn apply(&self, batch: EpochBatch) -> Result<()> {
        let mark = batch.mark.clone();
        let state = Arc::clone(&self.state);
        let work = move || -> Result<Vec<u8>> {
            let body = collapse(&batch)?;
            state.apply(&batch.mark, &body)?;
            Record::Epoch { mark: batch.mark, body }.encode()
        };
        let lsn = self.log.append(&self.env.blocking(work).await?).await?;
        if let Some(progress) = lock(&self.state.buckets).get_mut(&mark.bucket) {
            progress.logged.push_back((mark.epoch, lsn));
        }
        for slot in self.state.of_bucket(mark.bucket) {
            self.compact_later(&slot);
        }
        Ok(())
    }

    async fn wait_durable(&self, _bucket: BucketId, _epoch: Epoch) -> Result<()> {
        let mut durable = self.log.durable();
        let end = durable.borrow_and_update().lsn;
        self.log.wait_durable(end).await
    }

    async fn flush(&self) -> Result<()> {
        Ok(())
    }

    async fn compact(&self) -> Result<()> {
        Ok(())
    }

    async fn split(&self, _: SliceId, _: &[u8], _: SliceNo, _: SliceNo) -> Result<()> {
        Err(Error::internal("not in memory"))
    }

    async fn clone_slice(&self, _: SliceId, _: SliceNo) -> Result<()> {
        Err(Error::internal("not in memory"))
    }

    async fn drop_slice(&self, _: SliceId) -> Result<()> {
        Err(Error::internal("not in memory"))
    }

    async fn truncate(&self, _: &EpochMark) -> Result<()> {
        Err(Error::internal("not in memory"))
    }

    fn snapshot(
        &self,
        index: IndexId,
        generation: Generation,
        epoch: Epoch,
    ) -> Result<Arc<dyn Snapshot>> {
        let slot = self.slot(index, generation)?;
        let visible = slot.visible.load_full();
        let Some(floor) = visible.floor else {
            return Err(Error::unavailable(format!("index {index} is being built")));
        };
        if epoch < floor {
            return Err(Error::new(
                ErrorCode::SnapshotTooOld,
                format!("epoch {epoch} is gone: index {index} answers from epoch {floor} on"),
            )
            .with_hint("begin the scan or the transaction anew"));
        }
        let applied = lock(&self.state.buckets)
            .get(&slot.info.bucket)
            .map_or(Epoch(0), |progress| progress.applied.epoch);
        if epoch > applied {
            return Err(Error::unavailable(format!("epoch {epoch} is not applied yet")));
        }
        Ok(Arc::new(MemorySnapshot {
            info: Arc::clone(&slot.info),
            epoch,
            runs: visible.runs.clone(),
        }))
    }

    fn progress(&self) -> Vec<SliceProgress> {
        let mut progress = Vec::new();
        for slot in self.slots() {
            let visible = slot.visible.load_full();
            let writer = lock(&slot.writer);
            for slice in slot.info.topology.slices_on(self.node) {
                let bytes = |run: &Arc<Run>| {
                    let rows = run.rows_of(slice);
                    run.size() as u64 * u64::from(rows.end - rows.start)
                        / u64::from(run.rows().max(1))
                };
                progress.push(SliceProgress {
                    slice: SliceId { index: slot.info.id, generation: slot.info.generation, slice },
                    floor: visible.floor,
                    entries: writer.entries.get(&slice).copied().unwrap_or(0).max(0) as u64,
                    bytes: visible.runs.iter().map(bytes).sum(),
                    trouble: self.log.durable().borrow().failed.as_ref().map(ToString::to_string),
                });
            }
        }
        progress
    }

    fn memory_bytes(&self) -> u64 {
        let size = |slot: &Arc<Slot>| {
            let runs: usize = slot.visible.load().runs.iter().map(|run| run.size()).sum();
            let writer = lock(&slot.writer);
            runs + writer.back.size() + writer.build.as_ref().map_or(0, Build::size)
        };
        self.slots().iter().map(size).sum::<usize>() as u64
    }
}

struct MemorySnapshot {
    info: Arc<IndexInfo>,
    epoch: Epoch,
    runs: Vec<Arc<Run>>,
}

impl Snapshot for MemorySnapshot {
    fn info(&self) -> &Arc<IndexInfo> {
        &self.info
    }

    fn is_in_memory(&self) -> bool {
        true
    }

    fn rows(
        &self,
        slices: &[SliceNo],
        range: &KeyRange,
        reverse: bool,
        _include: bool,
    ) -> Result<Box<dyn Rows>> {
        let merge = Merge::new(&self.runs, slices, range, self.epoch, reverse);
        Ok(Box::new(MemoryRows { merge, found: None }))
    }
}

struct MemoryRows {
    merge: Merge,
    found: Option<super::old_merge::Found>,
}

impl Rows for MemoryRows {
    fn next(&mut self) -> Result<bool> {
        self.found = self.merge.next_visible();
        Ok(self.found.is_some())
    }

    fn entry(&self) -> &[u8] {
        self.found.map_or(&[], |found| self.merge.entry(found))
    }

    fn include(&self) -> &[u8] {
        self.found.map_or(&[], |found| self.merge.include(found))
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
