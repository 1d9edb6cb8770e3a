//! A model of an indexer: the product's mutation queue and follower policy over a naive store. Work
//! for which the product starts tasks is done at once here; durable data survives a crash.

mod builds;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use indexer::follow::policy;
use indexer::queue::MutationQueue;
use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::cut::{Cut, EpochMark};
use proto::model::history::FailoverLogs;
use proto::model::ids::{BucketId, Epoch, IndexId, LocalIndexId, MoveId, NodeId, SliceId, SliceNo};
use proto::model::index::IndexInfo;
use proto::model::moves::{MovePhase, MoveProgress, MoveStage, SliceMove};
use proto::rpc::api::{BucketProgress, Heartbeat, IndexerReport, SliceProgress};
use proto::rpc::mutation::StreamMessage;
use proto::rpc::scan::AppliedReport;
use proto::{Error, ErrorCode, Result};
use storage::EpochBatch;

use self::builds::Build;
use super::source::Packed;
use super::store::Copy;

/// The reported limit of the queue, in bytes.
const QUEUE_BYTES_MAX: u64 = 1 << 20;

/// An index in the stream, with its slices on this node.
pub struct Fed {
    /// The index.
    pub info: Arc<IndexInfo>,
    /// By slice, the cut from which frames carry its mutations.
    pub since: BTreeMap<SliceNo, Cut>,
}

/// A move of a slice to this node.
pub struct Incoming {
    /// The slice of the copy.
    pub slice: SliceId,
    /// The phase of the move.
    pub phase: MovePhase,
    /// True during the copy.
    pub begun: bool,
}

/// The exclusive bounds of a range of epochs that were skipped because a rollback has removed them.
type Skipped = (Epoch, Epoch);

/// The durable state, which survives a crash.
#[derive(Clone, Default)]
struct Saved {
    applied: Option<EpochMark>,
    copies: BTreeMap<SliceId, Rc<Copy>>,
    skipped: Vec<Skipped>,
}

/// A simulated indexer.
pub struct Indexer {
    /// The node id of the indexer.
    pub id: NodeId,
    /// True while the indexer runs.
    pub up: bool,
    /// The number of the indexer's newest subscription.
    pub session: u64,
    /// True while the indexer's stream is open.
    pub connected: bool,
    /// The catalog that the indexer has received.
    pub catalog: Arc<Catalog>,
    /// The newest epoch applied.
    pub applied: Option<EpochMark>,
    /// The copies of slices on this indexer.
    pub copies: BTreeMap<SliceId, Rc<Copy>>,
    /// Ranges of epochs that are dead because an applied epoch skipped them, even if the catalog
    /// does not contain the rollback.
    skipped: Vec<Skipped>,
    /// The indexes of the stream.
    pub fed: BTreeMap<LocalIndexId, Fed>,
    /// The moves to this indexer.
    pub incoming: BTreeMap<(LocalIndexId, MoveId), Incoming>,
    /// The snapshots to fetch, each with its index and the number of the build on this node.
    pub to_fetch: Vec<(LocalIndexId, u64)>,
    /// True if there is a change to report to routers and the leader.
    pub news: bool,
    /// The queued bytes that were reported last.
    pub reported_bytes: u64,
    bucket: BucketId,
    queue: Option<MutationQueue>,
    history: Option<Arc<FailoverLogs>>,
    revisions: BTreeMap<IndexId, u64>,
    builds: BTreeMap<LocalIndexId, Build>,
    last_build: u64,
    saved: Saved,
}

impl Indexer {
    /// Returns an indexer without data.
    pub fn new(id: NodeId, bucket: BucketId) -> Self {
        Self {
            id,
            up: true,
            session: 0,
            connected: false,
            catalog: Arc::default(),
            applied: None,
            copies: BTreeMap::new(),
            skipped: Vec::new(),
            fed: BTreeMap::new(),
            incoming: BTreeMap::new(),
            to_fetch: Vec::new(),
            news: false,
            reported_bytes: 0,
            bucket,
            queue: None,
            history: None,
            revisions: BTreeMap::new(),
            builds: BTreeMap::new(),
            last_build: 0,
            saved: Saved::default(),
        }
    }

    /// Crashes the indexer, which keeps only durable data.
    pub fn crash(&mut self) {
        let saved = std::mem::take(&mut self.saved);
        let fresh = Self::new(self.id, self.bucket);
        *self = Self {
            up: false,
            session: self.session + 1,
            last_build: self.last_build,
            applied: saved.applied.clone(),
            copies: saved.copies.clone(),
            skipped: saved.skipped.clone(),
            saved,
            ..fresh
        };
    }

    /// Makes the data durable.
    pub fn save(&mut self) {
        self.saved = Saved {
            applied: self.applied.clone(),
            copies: self.copies.clone(),
            skipped: self.skipped.clone(),
        };
    }

    /// Returns the newest applied epoch.
    pub fn applied_epoch(&self) -> Epoch {
        self.applied.as_ref().map(|mark| mark.epoch).unwrap_or_default()
    }

    /// Returns the next heartbeat of the indexer.
    pub fn heartbeat(&self) -> Heartbeat {
        let slice = |(slice, copy): (&SliceId, &Rc<Copy>)| SliceProgress {
            slice: *slice,
            floor: copy.floor,
            entries: 16,
            bytes: 1_000,
            live_bytes: Some(1_000),
            built_percent: None,
            seconds_left: None,
            copied_from: None,
            trouble: None,
        };
        let of_move =
            |((index, id), incoming): (&(LocalIndexId, MoveId), &Incoming)| MoveProgress {
                index: *index,
                id: *id,
                phase: incoming.phase,
                bytes: 0,
                bytes_total: 0,
                bytes_per_s: 0,
                trouble: None,
            };
        let high = || self.queue.as_ref().map(|queue| queue.watermarks().clone());
        let progress = self.applied.as_ref().map(|mark| BucketProgress {
            bucket: self.bucket,
            high_watermark: high().unwrap_or_else(|| Cut::clone(&mark.cut)),
            applied: mark.epoch,
            durable: self.saved.applied.as_ref().map(|mark| mark.epoch).unwrap_or_default(),
            queue_bytes: self.reported_bytes,
            queue_bytes_max: QUEUE_BYTES_MAX,
        });
        let report = IndexerReport {
            buckets: progress.into_iter().collect(),
            slices: self.copies.iter().map(slice).collect(),
            moves: self.incoming.iter().map(of_move).collect(),
            ..IndexerReport::default()
        };
        Heartbeat::new(self.id, 0, report)
    }

    /// Returns the report of the indexer to routers.
    pub fn report(&self) -> AppliedReport {
        let readable = self.copies.iter().filter_map(|(slice, copy)| Some((*slice, copy.floor?)));
        AppliedReport {
            node: self.id,
            applied: vec![(self.bucket, self.applied_epoch())],
            readable: Some(readable.collect()),
            rebuilt: Vec::new(),
        }
    }

    /// Applies a newer catalog: drops slices that are no longer placed here, and begins and ends
    /// moves.
    pub fn take_catalog(&mut self, catalog: Arc<Catalog>) {
        let (id, before) = (self.id, self.copies.len());
        self.copies.retain(|slice, copy| match catalog.indexes.get(&slice.index) {
            None => slice.index > catalog.newest_index,
            Some(index) => index.revision < copy.info.revision || index.may_keep(id, slice.slice),
        });
        if self.copies.len() != before {
            self.news = true;
            self.save();
        }
        let mut wanted = BTreeMap::new();
        for index in catalog.indexes.values() {
            let copies = |m: &&SliceMove| {
                m.to == Some(id) && matches!(m.stage, MoveStage::Pending | MoveStage::Catchup)
            };
            for m in index.moves.iter().filter(copies) {
                wanted.insert((index.local_id(), m.id), index.local_id().slice(m.slice));
            }
        }
        self.incoming.retain(|key, _| wanted.contains_key(key));
        for (key, slice) in wanted {
            let new = || Incoming { slice, phase: MovePhase::Copying, begun: false };
            self.incoming.entry(key).or_insert_with(new);
        }
        self.catalog = catalog;
        self.restart_lost_moves();
    }

    /// Restarts moves whose installed slice was dropped in the meantime.
    fn restart_lost_moves(&mut self) {
        for incoming in self.incoming.values_mut() {
            let here = self.copies.contains_key(&incoming.slice);
            if incoming.phase == MovePhase::Installed && !here {
                incoming.phase = MovePhase::Copying;
            }
        }
    }

    fn bucket(&self) -> Option<&Arc<BucketInfo>> {
        self.catalog.buckets.get(&self.bucket)
    }

    fn dead_range(&self) -> Option<proto::model::rollback::DeadEpochs> {
        let newest = || self.copies.values().map(|copy| copy.newest);
        let epochs = || newest().filter(|e| *e > Epoch(0)).chain([self.applied_epoch()]);
        policy::dead_range(self.bucket()?, epochs)
    }

    /// True if an epoch is known to be dead, by the catalog or because an applied epoch skipped it.
    pub fn is_dead(&self, epoch: Epoch) -> bool {
        self.skipped.iter().any(|(above, below)| *above < epoch && epoch < *below)
            || self.bucket().is_some_and(|bucket| bucket.is_dead(epoch))
    }

    /// True if the newest epoch of the node or of one of its copies is dead.
    pub fn must_roll_back(&self) -> bool {
        self.dead_range().is_some()
    }

    /// Rolls back until no newest epoch is dead; returns the rollback points that were used.
    pub fn go_back(&mut self) -> Vec<EpochMark> {
        let mut gone_back = Vec::new();
        while let Some(dead) = self.dead_range() {
            let applied = self.applied_epoch();
            self.queue = None;
            self.fed.clear();
            self.builds.clear();
            let point = dead.point.clone().filter(|_| dead.contains(applied));
            let indexes: BTreeSet<_> =
                self.copies.keys().map(|slice| slice.local_index()).collect();
            for index in indexes {
                let of_index =
                    || self.copies.iter().filter(|(slice, _)| slice.local_index() == index);
                let newest = of_index().map(|(_, copy)| copy.newest).max().unwrap_or_default();
                let stays = policy::can_keep_index(&dead, point.as_ref(), newest, |point| {
                    of_index().all(|(_, copy)| copy.floor.is_some() && copy.can_go_back(point))
                });
                if !stays {
                    self.copies.retain(|slice, _| slice.local_index() != index);
                }
            }
            if let Some(point) = point {
                let copies = self.copies.values_mut();
                copies.for_each(|copy| Rc::make_mut(copy).go_back(point.epoch));
                gone_back.push(point.clone());
                self.applied = Some(point);
            } else if dead.contains(applied) {
                self.applied = None;
            }
            self.news = true;
            self.save();
        }
        self.restart_lost_moves();
        gone_back
    }

    /// Opens a stream; returns the cut from which it must start and the newest known epoch.
    pub fn subscribe(&mut self) -> (Option<Cut>, Epoch) {
        self.session += 1;
        self.connected = true;
        self.history = None;
        let queue = self.queue.as_mut();
        let newest = queue.map(|queue| {
            queue.forget_epochs();
            (queue.watermarks().clone(), queue.newest_epoch())
        });
        let applied = self.applied.as_ref().filter(|_| !self.copies.is_empty());
        match newest {
            Some((watermarks, newest)) => (Some(watermarks), newest),
            None => (applied.map(|mark| Cut::clone(&mark.cut)), self.applied_epoch()),
        }
    }

    /// Handles a refusal, which means that the source does not have the cut in its history. The
    /// queue also forgets the cuts since which the stream carried indexes, because the next stream
    /// may begin at a later cut.
    pub fn refused(&mut self) {
        if self.queue.take().is_some() {
            self.fed.clear();
            self.builds.clear();
        }
        self.connected = false;
    }

    /// Processes a message of the stream; returns the epochs that were applied. After an error the
    /// stream ends.
    pub fn message(&mut self, message: StreamMessage) -> Result<Vec<EpochMark>> {
        match message {
            StreamMessage::Begin { at, indexes, .. } => self.begin(at, indexes)?,
            StreamMessage::History(logs) => {
                self.history = Some(logs);
                self.finish_builds();
            }
            StreamMessage::IndexJoin { index, at } => self.join(index, &at)?,
            StreamMessage::IndexLeave { index } => {
                self.builds.remove(&index);
                self.fed.remove(&index);
                self.leave(index)?;
            }
            StreamMessage::Frames(frames) => {
                for frame in frames {
                    let hole = self.queue()?.add_frame(frame).err();
                    if let Some(hole) = hole {
                        return Err(Error::new(ErrorCode::DropData, format!("{hole:?}")));
                    }
                }
                return self.apply_ready();
            }
            StreamMessage::Epoch(mark) => {
                policy::check_follows(&mark, self.history.as_deref(), self.applied_epoch())?;
                self.queue()?.add_epoch(mark);
                return self.apply_ready();
            }
            StreamMessage::StreamBegin { .. } | StreamMessage::StreamEnd { .. } => {
                return Err(Error::unavailable("the stream ended"));
            }
            StreamMessage::Bodies(_)
            | StreamMessage::TransactionBack { .. }
            | StreamMessage::Committing { .. }
            | StreamMessage::Committed(_)
            | StreamMessage::TransactionsEnded(_) => {
                return Err(Error::internal("the source of the cores has no transactions"));
            }
        }
        Ok(Vec::new())
    }

    fn begin(&mut self, at: Cut, indexes: Vec<Arc<IndexInfo>>) -> Result<()> {
        let applied = self.applied_epoch();
        let queue = self.queue.get_or_insert_with(|| MutationQueue::new(at.clone(), applied));
        if *queue.watermarks() != at {
            return Err(Error::internal("the stream does not begin at the watermarks"));
        }
        self.builds.retain(|build, _| indexes.iter().any(|index| index.local_id() == *build));
        self.builds.values_mut().for_each(|build| policy::lower_join_cut(&mut build.joined, &at));
        self.fed.clear();
        let here: BTreeSet<_> = self.copies.keys().map(|slice| slice.local_index()).collect();
        let carried = |id: &LocalIndexId| indexes.iter().any(|index| index.local_id() == *id);
        for index in here.into_iter().filter(|id| !carried(id)) {
            self.leave(index)?;
        }
        indexes.into_iter().try_for_each(|index| self.join(index, &at))
    }

    fn queue(&mut self) -> Result<&mut MutationQueue> {
        self.queue.as_mut().ok_or_else(|| Error::internal("a stream without a beginning"))
    }

    fn kept_revision(&self, index: LocalIndexId) -> Option<u64> {
        let copies = self.copies.iter().filter(|(slice, _)| slice.local_index() == index);
        copies.map(|(_, copy)| copy.info.revision).max()
    }

    fn leave(&mut self, index: LocalIndexId) -> Result<()> {
        let Some(kept) = self.kept_revision(index) else { return Ok(()) };
        let known = self.catalog.indexes.get(&index.index);
        let is_older = known.is_some_and(|known| known.revision < kept);
        if is_older || !policy::is_placed_elsewhere_or_gone(&self.catalog, index, self.id) {
            return Err(Error::unavailable("the source is behind"));
        }
        self.copies.retain(|slice, _| slice.local_index() != index);
        self.news = true;
        self.save();
        Ok(())
    }

    fn join(&mut self, index: Arc<IndexInfo>, at: &Cut) -> Result<()> {
        let (id, known) = (index.local_id(), self.revisions.get(&index.id).copied().unwrap_or(0));
        if index.revision < known.max(self.kept_revision(id).unwrap_or(0)) {
            return Err(Error::unavailable("the source is behind"));
        }
        self.revisions.insert(index.id, index.revision);
        let (node, before) = (self.id, self.copies.len());
        let fed = |slice: &SliceId| slice.local_index() != id || index.is_fed(node, slice.slice);
        self.copies.retain(|slice, _| fed(slice));
        if self.copies.len() != before {
            self.news = true;
            self.save();
        }
        let before = self.fed.remove(&id).map(|fed| fed.since).unwrap_or_default();
        let since = policy::streamed_since(&index, node, before, at);
        self.fed.insert(id, Fed { info: Arc::clone(&index), since });
        self.build_if_missing(index, at.clone());
        Ok(())
    }

    fn apply_ready(&mut self) -> Result<Vec<EpochMark>> {
        let mut applied = Vec::new();
        while let Some(batch) = self.queue()?.next_ready_epoch() {
            self.apply(&batch);
            self.applied = Some(batch.mark.clone());
            self.news = true;
            self.finish_builds();
            applied.push(batch.mark);
        }
        Ok(applied)
    }

    fn apply(&mut self, batch: &EpochBatch) {
        let epoch = batch.mark.epoch;
        let gap = self.applied.as_ref().is_some_and(|mark| mark.epoch != batch.mark.parent);
        if batch.mark.parent.0 + 1 < epoch.0 {
            self.skipped.push((batch.mark.parent, epoch));
        }
        for piece in &batch.pieces {
            for packed in Packed::read(&piece.body) {
                let seqno = piece.base.0 + packed.seqno_minus_base;
                if seqno <= piece.after.0 || seqno > piece.to.0 {
                    continue;
                }
                for (slice, copy) in &mut self.copies {
                    let slices = copy.info.topology.placement.len();
                    let mine = super::history::slice_of(packed.doc, slices);
                    if packed.is_for(slice.index) && mine == usize::from(slice.slice.0) {
                        Rc::make_mut(copy).put(packed.doc, epoch, packed.value);
                    }
                }
            }
        }
        for copy in self.copies.values_mut() {
            Rc::make_mut(copy).applied(&batch.mark, gap);
        }
    }
}
