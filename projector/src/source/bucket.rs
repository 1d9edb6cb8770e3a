//! A bucket as its readers see it: where its durable history ends, its newest mutations (the *head*,
//! shared by all streams that keep up), and its stability timestamps.
//!
//! The writer publishes each committed group in one step: positions, head and wake-up together. So a
//! cut that is read here never splits a statement, and a reader that takes the cut and the head's end
//! in one step misses nothing between them. The head is bounded in bytes; a reader that falls behind it
//! goes on from the store's log, which has everything.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use proto::model::bucket::BucketInfo;
use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::history::{Branches, FailoverLogs, SourceHistory, branch_of};
use proto::model::homes::{Homes, VbucketSet};
use proto::model::ids::{Epoch, Seqno, VbucketId};
use proto::{Error, ErrorCode, Result};
use tokio::sync::watch;

use super::backlog::{self, Unpublished};
use super::mutation::Mutation;
use super::ownership::Keeping;
use super::record::{BucketRecord, is_part};

/// Timestamps that are kept at most, however old the horizon is: as many as the coordinator keeps, more
/// than a minute of them.
const EPOCHS_MAX: usize = 4096;
/// Positions that the kept timestamps may hold together: 16 MiB.
const EPOCH_POSITIONS_MAX: usize = 1 << 20;
/// Timestamps that may be kept however many vbuckets there are: five seconds of them.
const EPOCHS_MIN: usize = 256;

/// Where vbuckets began that were not always kept, or were released once.
pub type Began = BTreeMap<VbucketId, Position>;

/// A place in the head: all mutations that this process published are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeadPosition(u64);

/// A bucket in memory.
pub struct Bucket {
    /// Its definition.
    pub info: BucketInfo,
    head_bytes_max: usize,
    state: Mutex<State>,
    changed: watch::Sender<u64>,
}

struct State {
    durable: Cut,
    /// Of all vbuckets that are here.
    logs: FailoverLogs,
    /// Of those that are kept.
    told: Arc<FailoverLogs>,
    keeping: Arc<Keeping>,
    homes: Arc<Homes>,
    /// Where vbuckets began that this process did not keep, or had released, when it started.
    began: Began,
    given_up: BTreeMap<VbucketId, Branches>,
    /// Counts the losses of history.
    losses: u64,
    head: VecDeque<Arc<Mutation>>,
    head_bytes: usize,
    /// How many mutations have left the head.
    head_begin: u64,
    epochs: VecDeque<EpochMark>,
    unpublished: Unpublished,
    removed: bool,
}

impl State {
    fn set_logs(&mut self, branches: Vec<Branches>) {
        self.logs = FailoverLogs::new(branches);
        self.told = Arc::new(self.logs.of(&self.keeping.kept));
    }

    fn set_end(&mut self, vbucket: VbucketId, seqno: Seqno) {
        let vbuuid = self.logs.branch_of(vbucket, seqno);
        self.durable.set(vbucket, Position { vbuuid, seqno });
    }
}

impl Bucket {
    /// A bucket whose logs end at these seqnos.
    pub fn new(record: BucketRecord, ends: &[Seqno], head_bytes_max: usize) -> Self {
        let BucketRecord { info, branches, keeping, given_up } = record;
        let positions = ends.iter().zip(&branches).map(|(seqno, branches)| Position {
            vbuuid: branch_of(branches, *seqno),
            seqno: *seqno,
        });
        let state = State {
            durable: Cut::from_positions(positions.collect()),
            told: Arc::new(FailoverLogs::new(branches.clone()).of(&keeping.kept)),
            logs: FailoverLogs::new(branches),
            keeping: Arc::new(keeping),
            // The catalog tells of them before anybody depends on them.
            homes: Arc::default(),
            began: BTreeMap::new(),
            given_up,
            losses: 0,
            head: VecDeque::new(),
            head_bytes: 0,
            head_begin: 0,
            epochs: VecDeque::new(),
            unpublished: Unpublished::default(),
            removed: false,
        };
        let (changed, _) = watch::channel(0);
        Self { info, head_bytes_max, state: Mutex::new(state), changed }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn wake(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// Tells of every change: mutations, stability timestamps, removal.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Where the durable history ends, in all vbuckets that are here.
    pub fn durable(&self) -> Cut {
        self.state().durable.clone()
    }

    /// Is something of a vbucket here?
    pub fn has_some(&self, vbucket: VbucketId) -> bool {
        let state = self.state();
        let has_branches = state.logs.get(vbucket).is_some_and(|branches| !branches.is_empty());
        has_branches || state.durable.get(vbucket).seqno.0 > 0
    }

    /// Is a vbucket here in part?
    pub fn has_part(&self, vbucket: VbucketId) -> bool {
        let state = self.state();
        let end = state.durable.get(vbucket).seqno;
        state.logs.get(vbucket).is_some_and(|branches| is_part(branches, end))
    }

    /// The branches of all vbuckets that are here.
    pub fn branches(&self) -> Vec<Branches> {
        self.state().logs.iter().map(|(_, branches)| branches.clone()).collect()
    }

    /// Which vbuckets are kept.
    pub fn keeping(&self) -> Arc<Keeping> {
        Arc::clone(&self.state().keeping)
    }

    /// Which vbuckets are kept, and where those began that were not always.
    pub fn began(&self) -> (Arc<Keeping>, Began) {
        let state = self.state();
        (Arc::clone(&state.keeping), state.began.clone())
    }

    /// Where the catalog says that the vbuckets are.
    pub fn homes(&self) -> Arc<Homes> {
        Arc::clone(&self.state().homes)
    }

    /// The end of the durable history, as far as it is kept, and of the head, as one; with [`Self::began`].
    pub fn end(&self) -> (Cut, HeadPosition, (Arc<Keeping>, Began)) {
        let state = self.state();
        let head = HeadPosition(state.head_begin + state.head.len() as u64);
        let began = (Arc::clone(&state.keeping), state.began.clone());
        (state.durable.of(&state.keeping.kept), head, began)
    }

    /// The failover logs and where the durable history ends, as one, of the vbuckets that are kept.
    pub fn history(&self) -> SourceHistory {
        let state = self.state();
        let kept = state.keeping.kept.clone();
        SourceHistory { durable: state.durable.of(&kept), logs: Arc::clone(&state.told), kept }
    }

    /// The failover logs of the vbuckets that are kept, and how often a piece of the history was lost.
    pub fn logs(&self) -> (Arc<FailoverLogs>, u64) {
        let state = self.state();
        (Arc::clone(&state.told), state.losses)
    }

    /// What the store keeps of the bucket besides its contents.
    pub fn record(&self) -> BucketRecord {
        let state = self.state();
        let branches = state.logs.iter().map(|(_, branches)| branches.clone()).collect();
        let keeping = Keeping::clone(&state.keeping);
        let given_up = state.given_up.clone();
        BucketRecord { info: self.info.clone(), branches, keeping, given_up }
    }

    /// The same with these branches, and this kept.
    pub fn record_with(&self, branches: Vec<Branches>, keeping: Keeping) -> BucketRecord {
        BucketRecord { branches, keeping, ..self.record() }
    }

    /// Remembers the branches of which nothing is left.
    pub fn give_up(&self, given_up: BTreeMap<VbucketId, Branches>) {
        self.state().given_up = given_up;
    }

    /// Is it gone from the catalog?
    pub fn is_removed(&self) -> bool {
        self.state().removed
    }

    /// It is gone from the catalog: streams end.
    pub fn remove(&self) {
        self.state().removed = true;
        self.wake();
    }

    /// Has the durable history all of a cut in some vbuckets, as far as they take mutations here? Not where a
    /// projector's disk has lost what it had told of.
    pub fn reaches(&self, vbuckets: &VbucketSet, cut: &Cut) -> bool {
        let state = self.state();
        let takes = |vbucket: &VbucketId| state.keeping.takes(*vbucket);
        let has = |vbucket| state.durable.get(vbucket).seqno >= cut.get(vbucket).seqno;
        vbuckets.iter().filter(takes).all(has)
    }

    /// The error for whoever still uses a bucket that is gone.
    pub fn removed_error(&self) -> Error {
        Error::new(ErrorCode::Unknown, format!("bucket {} was dropped", self.info.name))
    }

    /// The error for a vbucket that is kept elsewhere, or soon will be.
    pub fn not_home(&self, vbucket: VbucketId) -> Error {
        let what = format!("vbucket {vbucket} of bucket {} is not kept here", self.info.name);
        Error::new(ErrorCode::NotHome, what)
            .with_hint("ask again: another projector keeps it, or soon will")
    }

    /// Publishes a committed group.
    pub fn publish(&self, mutations: Vec<Arc<Mutation>>, branches: Option<Vec<Branches>>) {
        let bytes = mutations.iter().map(|mutation| mutation.bytes()).sum();
        let last = mutations.last().map(|mutation| (mutation.vbucket, mutation.seqno));
        let mut state = self.state();
        if let Some((vbucket, seqno)) = last {
            state.unpublished.add(vbucket, seqno, bytes);
        }
        if let Some(branches) = branches {
            state.set_logs(branches);
        }
        for mutation in mutations {
            let vbuuid = state.logs.branch_of(mutation.vbucket, mutation.seqno);
            let position = Position { vbuuid, seqno: mutation.seqno };
            state.durable.set(mutation.vbucket, position);
            state.head_bytes += mutation.bytes();
            state.head.push_back(mutation);
        }
        while state.head_bytes > self.head_bytes_max
            && let Some(oldest) = state.head.pop_front()
        {
            state.head_bytes -= oldest.bytes();
            state.head_begin += 1;
        }
        drop(state);
        self.wake();
    }

    /// A piece of the history is gone: these vbuckets end earlier now, and others of these branches go on from
    /// there. All streams end.
    pub fn lose(&self, branches: Vec<Branches>, ends: &[(VbucketId, Seqno)]) {
        let mut state = self.state();
        state.set_logs(branches);
        ends.iter().for_each(|(vbucket, seqno)| state.set_end(*vbucket, *seqno));
        state.losses += 1;
        // No place of before is one of the new head, not even its end.
        state.head_begin += state.head.len() as u64 + 1;
        state.head.clear();
        state.head_bytes = 0;
        drop(state);
        self.wake();
    }

    /// Which vbuckets are kept has changed.
    pub fn keep(&self, keeping: Keeping, homes: Arc<Homes>) {
        let mut state = self.state();
        for vbucket in (0..self.info.vbuckets).map(VbucketId) {
            if keeping.takes(vbucket) && !state.keeping.takes(vbucket) {
                let at = state.durable.get(vbucket);
                state.began.insert(vbucket, at);
            }
        }
        state.keeping = Arc::new(keeping);
        state.homes = homes;
        state.told = Arc::new(state.logs.of(&state.keeping.kept));
        drop(state);
        self.wake();
    }

    /// A vbucket that is not kept ends elsewhere.
    pub fn copied(&self, branches: Vec<Branches>, (vbucket, end): (VbucketId, Seqno)) {
        let mut state = self.state();
        state.set_logs(branches);
        state.set_end(vbucket, end);
    }

    /// Mutations of the head from a place on, all or about so many bytes of them but at least one, and
    /// the place behind them; `None` where the head no longer has that place.
    pub fn read_head(
        &self,
        from: HeadPosition,
        bytes: usize,
    ) -> Option<(Vec<Arc<Mutation>>, HeadPosition)> {
        let state = self.state();
        let skip = from.0.checked_sub(state.head_begin)? as usize;
        let mut size = 0;
        let fitting = state.head.range(skip.min(state.head.len())..).take_while(|mutation| {
            let more = size < bytes;
            size += mutation.bytes();
            more
        });
        let found: Vec<_> = fitting.cloned().collect();
        let next = HeadPosition(from.0 + found.len() as u64);
        Some((found, next))
    }

    /// Takes in a stability timestamp, unless it is known; forgets those that a rollback has taken back, thins
    /// those below the horizon, and the oldest beyond a bound. A stream that begins before what is kept has a gap in its timestamps,
    /// which its reader sees by the parent of the next.
    pub fn add_epoch(&self, mark: EpochMark) {
        let mut state = self.state();
        if state.epochs.back().is_some_and(|newest| newest.epoch >= mark.epoch) {
            return;
        }
        while state.epochs.back().is_some_and(|newest| newest.epoch > mark.parent) {
            state.epochs.pop_back();
        }
        let horizon = mark.horizon;
        let vbuckets = usize::from(self.info.vbuckets).max(1);
        let epochs_max = (EPOCH_POSITIONS_MAX / vbuckets).clamp(EPOCHS_MIN, EPOCHS_MAX);
        let State { epochs, unpublished, durable, .. } = &mut *state;
        unpublished.publish(&mark.cut, durable);
        epochs.push_back(mark);
        backlog::forget(epochs, horizon, epochs_max);
        drop(state);
        self.wake();
    }

    /// The stability timestamps after an epoch, ascending.
    pub fn epochs_after(&self, epoch: Epoch) -> Vec<EpochMark> {
        let state = self.state();
        let from = state.epochs.partition_point(|mark| mark.epoch <= epoch);
        state.epochs.iter().skip(from).cloned().collect()
    }

    /// Where a reader of the log of some vbuckets at a place reads to next; `None` where no timestamp is ahead of it.
    pub fn next_goal(&self, vbuckets: &VbucketSet, at: &Cut) -> Option<Arc<Cut>> {
        backlog::next_goal(&self.state().epochs, vbuckets, at).map(|mark| Arc::clone(&mark.cut))
    }

    /// Bytes of mutations that no timestamp covers yet.
    pub fn unpublished_bytes(&self) -> usize {
        self.state().unpublished.bytes()
    }

    /// The newest stability timestamp that is not after an epoch, if one is kept.
    pub fn newest_epoch_until(&self, epoch: Epoch) -> Option<EpochMark> {
        let state = self.state();
        let after = state.epochs.partition_point(|mark| mark.epoch <= epoch);
        after.checked_sub(1).map(|at| state.epochs[at].clone())
    }

    /// The newest stability timestamp.
    pub fn newest_epoch(&self) -> Option<EpochMark> {
        self.state().epochs.back().cloned()
    }

    /// Is this a place in the bucket's durable history, as far as it is kept here? `OutOfOrder` says which vbucket disagrees.
    pub fn check_place(&self, cut: &Cut) -> Result<()> {
        let state = self.state();
        if cut.vbuckets() != self.info.vbuckets {
            return Err(Error::new(
                ErrorCode::InvalidParameter,
                format!(
                    "the cut has {} vbuckets, bucket {} has {}",
                    cut.vbuckets(),
                    self.info.name,
                    self.info.vbuckets
                ),
            ));
        }
        for (vbucket, position) in cut.iter() {
            if !state.keeping.kept.contains(vbucket) {
                continue;
            }
            let end = state.durable.get(vbucket).seqno;
            if position.seqno > end && state.keeping.released.contains(vbucket) {
                let what = format!("vbucket {vbucket} may have another home already");
                return Err(Error::unavailable(what));
            }
            if position.seqno > end || !state.logs.includes(vbucket, position) {
                return Err(Error::new(
                    ErrorCode::OutOfOrder,
                    format!(
                        "vbucket {vbucket} of bucket {}: {:x}/{} is not in its history, which ends at seqno {end}",
                        self.info.name, position.vbuuid.0, position.seqno
                    ),
                ));
            }
        }
        Ok(())
    }
}
