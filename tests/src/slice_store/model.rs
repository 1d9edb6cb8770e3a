//! A simple slice store as a model: ordered maps with every state of every document by epoch;
//! nothing is on disk, and nothing is ever dropped.
//!
//! A snapshot at epoch n takes the newest state at or below n of each document and sorts the
//! entries. Splits, clones and removals of slices rewrite all states, so that earlier epochs of a
//! slice change too. The model ignores the horizon: it answers epochs below the horizon, which the
//! store may refuse.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use bytes::Bytes;
use proto::lock::lock;
use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, Epoch, LocalIndexId, NodeId, SliceId, SliceNo};
use proto::model::index::IndexInfo;
use proto::rpc::api::SliceProgress;
use proto::rpc::mutation::{IndexKeys, KeyVersionsReader};
use proto::rpc::scan::KeyRange;
use proto::{Error, ErrorCode, Result};
use storage::{Counters, EpochBatch, Grouping, LoadState, Rows, SliceStore, Snapshot, StoredIndex};

/// The entries of one document, with their included values.
type State = BTreeMap<(SliceNo, Vec<u8>), Vec<u8>>;

/// The model store.
pub struct Model {
    node: NodeId,
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    indexes: BTreeMap<LocalIndexId, Index>,
    applied: BTreeMap<BucketId, EpochMark>,
}

struct Index {
    info: Arc<IndexInfo>,
    slices: BTreeSet<SliceNo>,
    /// The first epoch in which the index is readable; `None` while it is being built.
    built: Option<Epoch>,
    /// Epochs that were applied without their parent.
    gaps: BTreeSet<Epoch>,
    documents: BTreeMap<String, BTreeMap<Epoch, State>>,
    /// The state of each document in the backfill snapshot.
    snapshot: BTreeMap<String, State>,
    /// The states of documents in epochs since the build began.
    updates: BTreeMap<String, State>,
}

impl Index {
    fn new(info: Arc<IndexInfo>, node: NodeId) -> Self {
        Self {
            slices: info.topology.slices_on(node).into_iter().collect(),
            info,
            built: None,
            gaps: BTreeSet::new(),
            documents: BTreeMap::new(),
            snapshot: BTreeMap::new(),
            updates: BTreeMap::new(),
        }
    }

    fn floor(&self) -> Option<Epoch> {
        self.built.map(|built| self.gaps.last().map_or(built, |gap| built.max(*gap)))
    }

    fn apply(&mut self, mark: &EpochMark, gap: bool, states: &BTreeMap<String, State>) {
        let Some(built) = self.built else {
            self.updates.extend(states.iter().map(|(id, state)| (id.clone(), state.clone())));
            return;
        };
        // The build contains this epoch, which is repeated after a crash.
        if mark.epoch <= built {
            return;
        }
        if gap {
            self.gaps.insert(mark.epoch);
        }
        for (id, state) in states {
            self.documents.entry(id.clone()).or_default().insert(mark.epoch, state.clone());
        }
    }

    fn forget_above(&mut self, epoch: Epoch) {
        let Some(built) = self.built else { return };
        self.gaps.retain(|gap| *gap <= epoch);
        for states in self.documents.values_mut() {
            states.retain(|at, _| *at <= epoch.max(built));
        }
    }

    /// Replaces every entry of every state by one in each slice that `to` returns.
    fn rewrite(&mut self, to: impl Fn(SliceNo, &[u8]) -> Vec<SliceNo>) {
        for state in self.documents.values_mut().flat_map(BTreeMap::values_mut) {
            for ((slice, entry), include) in std::mem::take(state) {
                for slice in to(slice, &entry) {
                    state.insert((slice, entry.clone()), include.clone());
                }
            }
        }
    }

    fn visible(&self, epoch: Epoch) -> State {
        let newest = |states: &BTreeMap<Epoch, State>| {
            states.range(..=epoch).next_back().map(|(_, state)| state.clone())
        };
        self.documents.values().filter_map(newest).flatten().collect()
    }
}

/// Returns the state of a document from its packed key-versions.
fn state_of(id: &str, keys: &IndexKeys<'_>) -> State {
    let whole = |key: &[u8]| [key, id.as_bytes()].concat();
    keys.entries().map(|e| ((e.slice, whole(e.key)), e.include.to_vec())).collect()
}

fn moved(index: LocalIndexId) -> Error {
    Error::new(ErrorCode::SliceMoved, format!("index {index} is not in the model"))
}

impl Tables {
    fn index(&mut self, index: LocalIndexId) -> Result<&mut Index> {
        self.indexes.get_mut(&index).ok_or_else(|| moved(index))
    }

    fn slice(&mut self, slice: SliceId) -> Result<&mut Index> {
        let index = self.index(slice.local_index())?;
        if index.slices.contains(&slice.slice) {
            Ok(index)
        } else {
            Err(moved(slice.local_index()))
        }
    }

    fn apply(&mut self, batch: &EpochBatch) -> Result<()> {
        let mark = &batch.mark;
        let before = self.applied.get(&mark.bucket).map(|before| before.epoch);
        let gap = before.is_some_and(|before| before != mark.parent);
        for index in self.indexes.values_mut().filter(|index| index.info.bucket == mark.bucket) {
            let mut states = BTreeMap::new();
            for piece in &batch.pieces {
                for versions in KeyVersionsReader::new(&piece.body) {
                    let versions = versions?;
                    let seqno = piece.base.0 + versions.seqno_minus_base;
                    let mine = versions.indexes().find(|keys| keys.index == index.info.local_id());
                    if let Some(keys) =
                        mine.filter(|_| piece.after.0 < seqno && seqno <= piece.to.0)
                    {
                        states.insert(versions.id.to_owned(), state_of(versions.id, &keys));
                    }
                }
            }
            index.apply(mark, gap, &states);
        }
        self.applied.insert(mark.bucket, mark.clone());
        Ok(())
    }
}

impl Model {
    /// Returns an empty store.
    pub fn new(node: NodeId) -> Self {
        Self { node, tables: Mutex::default() }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        lock(&self.tables)
    }

    /// Returns to the state after a crash: epochs above `mark` are lost (all epochs if it is
    /// `None`), except those that a finished build contains. Unfinished builds are lost.
    pub fn lose(&self, bucket: BucketId, mark: Option<&EpochMark>) {
        let mut tables = self.tables();
        match mark {
            Some(mark) => tables.applied.insert(bucket, mark.clone()),
            None => tables.applied.remove(&bucket),
        };
        tables.indexes.retain(|_, index| index.built.is_some());
        let epoch = mark.map_or(Epoch(0), |mark| mark.epoch);
        for index in tables.indexes.values_mut().filter(|index| index.info.bucket == bucket) {
            index.forget_above(epoch);
        }
    }

    /// Returns the slices of an index.
    pub fn slices(&self, index: LocalIndexId) -> Vec<SliceNo> {
        let tables = self.tables();
        tables.indexes.get(&index).map_or(Vec::new(), |i| i.slices.iter().copied().collect())
    }
}

#[async_trait]
impl SliceStore for Model {
    fn applied(&self) -> Vec<EpochMark> {
        self.tables().applied.values().cloned().collect()
    }

    fn counters(&self, bucket: BucketId) -> Counters {
        let epoch = self.tables().applied.get(&bucket).map_or(Epoch(0), |mark| mark.epoch);
        Counters { staged: epoch, committed: epoch, durable: epoch, stable: epoch }
    }

    fn indexes(&self) -> Vec<StoredIndex> {
        let stored = |index: &Index| {
            let floor = index.floor();
            let slices = index.slices.iter().map(|slice| (*slice, floor.unwrap_or_default()));
            let newest = Epoch(0);
            StoredIndex { info: index.info.clone(), floor, newest, slices: slices.collect() }
        };
        self.tables().indexes.values().map(stored).collect()
    }

    async fn begin_build(&self, info: Arc<IndexInfo>, _: Grouping) -> Result<()> {
        self.tables().indexes.insert(info.local_id(), Index::new(info, self.node));
        Ok(())
    }

    async fn begin_backfill(&self, index: LocalIndexId) -> Result<()> {
        self.tables().index(index)?.snapshot.clear();
        Ok(())
    }

    async fn backfill(&self, index: LocalIndexId, documents: Bytes) -> Result<()> {
        let mut tables = self.tables();
        let of = tables.index(index)?;
        for versions in KeyVersionsReader::new(&documents) {
            let versions = versions?;
            let mut keys = versions.indexes();
            if let Some(keys) = keys.find(|k| k.index == index) {
                of.snapshot.insert(versions.id.to_owned(), state_of(versions.id, &keys));
            }
        }
        Ok(())
    }

    async fn finish_build(&self, index: LocalIndexId, mark: &EpochMark) -> Result<()> {
        let mut tables = self.tables();
        let index = tables.index(index)?;
        let mut documents = std::mem::take(&mut index.snapshot);
        documents.append(&mut index.updates);
        let at = |(id, state)| (id, BTreeMap::from([(mark.epoch, state)]));
        index.documents = documents.into_iter().map(at).collect();
        index.built = Some(mark.epoch);
        Ok(())
    }

    async fn drop_index(&self, index: LocalIndexId) -> Result<()> {
        self.tables().indexes.remove(&index);
        Ok(())
    }

    async fn apply(&self, batch: EpochBatch) -> Result<()> {
        self.tables().apply(&batch)
    }

    async fn wait_durable(&self, _: BucketId, _: Epoch) -> Result<()> {
        Ok(())
    }

    async fn flush(&self) -> Result<()> {
        Ok(())
    }

    async fn compact(&self) -> Result<()> {
        Ok(())
    }

    async fn split(&self, slice: SliceId, at: &[u8], low: SliceNo, high: SliceNo) -> Result<()> {
        let mut tables = self.tables();
        let index = tables.slice(slice)?;
        index.slices.remove(&slice.slice);
        index.slices.extend([low, high]);
        index.rewrite(|from, entry| match (from == slice.slice, entry < at) {
            (false, _) => vec![from],
            (true, true) => vec![low],
            (true, false) => vec![high],
        });
        Ok(())
    }

    async fn clone_slice(&self, slice: SliceId, to: SliceNo) -> Result<()> {
        let mut tables = self.tables();
        let index = tables.slice(slice)?;
        index.slices.insert(to);
        index.rewrite(|from, _| if from == slice.slice { vec![from, to] } else { vec![from] });
        Ok(())
    }

    async fn drop_slice(&self, slice: SliceId) -> Result<()> {
        let mut tables = self.tables();
        let index = tables.slice(slice)?;
        index.slices.remove(&slice.slice);
        index.rewrite(|from, _| if from == slice.slice { Vec::new() } else { vec![from] });
        Ok(())
    }

    async fn regroup(&self, _: LocalIndexId, _: Grouping) -> Result<()> {
        Ok(())
    }

    fn can_roll_back(&self, slice: SliceId, epoch: Epoch) -> bool {
        let tables = self.tables();
        tables
            .indexes
            .get(&slice.local_index())
            .is_some_and(|index| index.floor().is_some_and(|f| f <= epoch))
    }

    async fn roll_back(&self, mark: &EpochMark, _: Epoch) -> Result<()> {
        let mut tables = self.tables();
        tables.applied.insert(mark.bucket, mark.clone());
        for index in tables.indexes.values_mut().filter(|index| index.info.bucket == mark.bucket) {
            index.forget_above(mark.epoch);
        }
        Ok(())
    }

    fn snapshot(&self, index: LocalIndexId, epoch: Epoch) -> Result<Arc<dyn Snapshot>> {
        let mut tables = self.tables();
        let index = tables.index(index)?;
        let (info, rows) = (Arc::clone(&index.info), index.visible(epoch));
        let (floor, slices) = (index.floor(), index.slices.clone());
        match (floor, tables.applied.get(&info.bucket)) {
            (Some(floor), _) if epoch < floor => {
                Err(Error::new(ErrorCode::SnapshotTooOld, "below the floor"))
            }
            (Some(_), Some(applied)) if epoch <= applied.epoch => {
                Ok(Arc::new(ModelSnapshot { info, slices, rows }))
            }
            _ => Err(Error::unavailable("not applied, or being built")),
        }
    }

    async fn wait_loaded(&self, _: LocalIndexId) -> Result<()> {
        Ok(())
    }

    fn load_states(&self) -> Vec<(LocalIndexId, LoadState)> {
        self.tables().indexes.keys().map(|index| (*index, LoadState::Active)).collect()
    }

    fn progress(&self) -> Vec<SliceProgress> {
        let mut progress = Vec::new();
        for index in self.tables().indexes.values() {
            let newest = index.visible(Epoch(u64::MAX));
            progress.extend(index.slices.iter().map(|slice| SliceProgress {
                slice: index.info.local_id().slice(*slice),
                floor: index.floor(),
                entries: newest.keys().filter(|(of, _)| of == slice).count() as u64,
                bytes: 0,
                live_bytes: Some(0),
                built_percent: None,
                seconds_left: None,
                copied_from: None,
                trouble: None,
            }));
        }
        progress
    }

    fn memory_bytes(&self) -> u64 {
        0
    }
}

/// A copy of the entries at one epoch.
#[derive(Clone)]
struct ModelSnapshot {
    info: Arc<IndexInfo>,
    slices: BTreeSet<SliceNo>,
    rows: State,
}

impl Snapshot for ModelSnapshot {
    fn info(&self) -> &Arc<IndexInfo> {
        &self.info
    }

    fn has(&self, slice: SliceNo) -> bool {
        self.slices.contains(&slice)
    }

    fn without_waiting(&self) -> Arc<dyn Snapshot> {
        Arc::new(self.clone())
    }

    fn rows(
        &self,
        slices: &[SliceNo],
        range: &KeyRange,
        reverse: bool,
        include: bool,
    ) -> Result<Box<dyn Rows>> {
        let mut rows: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        for ((slice, entry), included) in &self.rows {
            if slices.contains(slice) && range.contains(entry) {
                rows.push((entry.clone(), if include { included.clone() } else { Vec::new() }));
            }
        }
        rows.sort();
        if reverse {
            rows.reverse();
        }
        Ok(Box::new(ModelRows { rows, next: 0 }))
    }
}

struct ModelRows {
    rows: Vec<(Vec<u8>, Vec<u8>)>,
    /// The number of entries that were read.
    next: usize,
}

impl Rows for ModelRows {
    fn read_entry(&mut self) -> Result<Option<bool>> {
        self.next += 1;
        Ok((self.next <= self.rows.len()).then_some(true))
    }

    fn put_next_entry(&self, out: &mut Vec<u8>) -> bool {
        let ahead = self.rows.get(self.next);
        ahead.inspect(|(entry, _)| out.extend_from_slice(entry)).is_some()
    }

    fn entry(&self) -> &[u8] {
        self.rows.get(self.next.wrapping_sub(1)).map_or(&[], |(entry, _)| entry)
    }

    fn include(&self) -> &[u8] {
        self.rows.get(self.next.wrapping_sub(1)).map_or(&[], |(_, include)| include)
    }
}
