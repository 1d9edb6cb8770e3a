//! The published state of a bucket: the end of its durable history, its newest mutations (the
//! *head*, which all up-to-date streams share), and its stability timestamps.
//!
//! The bucket's writer publishes each committed group in one step: positions, head and wake-up
//! together. So a published cut never splits a statement, and a reader that reads the cut and the
//! head's end in one step misses no mutation between them. The head is bounded in bytes. A reader
//! that lags behind the head continues from the store's log, which is complete.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use proto::lock::lock;
use proto::model::assignment::{VbucketAssignment, VbucketSet};
use proto::model::bucket::BucketInfo;
use proto::model::commits::{Committed, Fate, NewestCommits, TransactionEvent};
use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::history::{Branches, FailoverLogs, SourceHistory, branch_of};
use proto::model::ids::{BucketId, Seqno, TransactionId, VbucketId};
use proto::model::open_commit::CommitId;
use tokio::sync::watch;

use proto::Result;

use super::backlog::BacklogBytes;
use super::head::{Head, HeadPosition};
use super::large_commits::{LargeCommit, LargeCommits};
use super::open_state::OpenState;
use super::serving::ServingState;
use crate::source::groups::ahead::Positions;
use crate::source::groups::gate::Gate;
use crate::source::groups::links::Links;
use crate::transactions::open::Transactions;
use documents::mutation::Mutation;
use documents::ownership::Ownership;
use documents::record::{BucketRecord, is_partial};

/// For vbuckets that were not owned, or were released, at some time since the start: the positions
/// at which they joined.
pub type JoinedAt = BTreeMap<VbucketId, Position>;

/// The state of a bucket in memory.
pub struct Bucket {
    /// The bucket's definition.
    pub info: BucketInfo,
    /// The turns of the bucket's groups.
    pub gate: Gate,
    /// The open transactions.
    pub transactions: Arc<Transactions>,
    /// The links to the other copies, if this copy leads.
    pub links: Arc<Links>,
    pub(super) head_bytes_max: usize,
    state: Mutex<SourceState>,
    pub(super) changed: watch::Sender<u64>,
    /// Incremented at each change other than a publication of mutations, for watchers.
    turned: watch::Sender<u64>,
}

pub(in crate::source) struct SourceState {
    pub(in crate::source) bucket: BucketId,
    pub(in crate::source) durable: Cut,
    /// The failover logs of all stored vbuckets.
    pub(in crate::source) logs: FailoverLogs,
    /// The failover logs of the owned vbuckets.
    pub(super) owned_logs: Arc<FailoverLogs>,
    pub(in crate::source) ownership: Arc<Ownership>,
    assignment: Arc<VbucketAssignment>,
    /// For vbuckets that were not owned, or were released, at some time since the start: the
    /// positions at which they joined.
    joined_at: JoinedAt,
    pub(in crate::source) given_up: BTreeMap<VbucketId, Branches>,
    pub(in crate::source) commits: NewestCommits,
    pub(in crate::source) open: OpenState,
    pub(super) large_commits: LargeCommits,
    /// The number of losses of history since the start.
    losses: u64,
    pub(super) head: Head,
    pub(in crate::source) epochs: VecDeque<EpochMark>,
    pub(super) unpublished: BacklogBytes,
    pub(super) serving: ServingState,
}

impl SourceState {
    pub(super) fn set_logs(&mut self, branches: Vec<Branches>) {
        self.logs = FailoverLogs::new(branches);
        self.owned_logs = Arc::new(self.logs.of(&self.ownership.owned));
    }

    pub(in crate::source) fn has_data(&self, vbucket: VbucketId) -> bool {
        let has_branches = self.logs.get(vbucket).is_some_and(|branches| !branches.is_empty());
        has_branches || self.durable.get(vbucket).seqno.0 > 0
    }

    pub(super) fn set_end(&mut self, vbucket: VbucketId, seqno: Seqno) {
        let vbuuid = self.logs.branch_of(vbucket, seqno);
        self.durable.set(vbucket, Position { vbuuid, seqno });
    }
}

impl Bucket {
    /// Creates a bucket whose logs end at these seqnos.
    pub fn new(record: BucketRecord, ends: &[Seqno], head_bytes_max: usize) -> Self {
        let BucketRecord { info, branches, ownership, given_up, mut commits } = record;
        commits.plant_forgotten();
        let mut open = OpenState::default();
        open.count_ages(commits.pushed().map(|commit| CommitId::Pushed(commit.transaction)));
        let positions = ends.iter().zip(&branches).map(|(seqno, branches)| Position {
            vbuuid: branch_of(branches, *seqno),
            seqno: *seqno,
        });
        let state = SourceState {
            bucket: info.id,
            durable: Cut::from_positions(positions.collect()),
            owned_logs: Arc::new(FailoverLogs::new(branches.clone()).of(&ownership.owned)),
            logs: FailoverLogs::new(branches),
            ownership: Arc::new(ownership),
            // The catalog sets the owners before they are used.
            assignment: Arc::default(),
            joined_at: BTreeMap::new(),
            given_up,
            open,
            commits,
            large_commits: LargeCommits::default(),
            losses: 0,
            head: Head::new(head_bytes_max),
            epochs: VecDeque::new(),
            unpublished: BacklogBytes::default(),
            serving: ServingState::new(info.source),
        };
        let ((changed, _), (turned, _)) = (watch::channel(0), watch::channel(0));
        let links = Arc::new(Links::default());
        let gate = Gate::new(Arc::clone(&links));
        let transactions = Arc::new(Transactions::new(turned.clone()));
        let state = Mutex::new(state);
        Self { info, gate, transactions, links, head_bytes_max, state, changed, turned }
    }

    pub(in crate::source) fn state(&self) -> MutexGuard<'_, SourceState> {
        lock(&self.state)
    }

    /// Wakes the watchers of the bucket.
    pub fn wake(&self) {
        self.turned.send_modify(|count| *count += 1);
        self.changed.send_modify(|count| *count += 1);
    }

    /// Wakes the followers that wait for a group.
    pub(in crate::source) fn wake_copies(&self, has_changes: bool) {
        if has_changes && !self.links.is_alone() {
            self.changed.send_modify(|count| *count += 1);
        }
    }

    /// Returns a receiver that is notified of every change: mutations, stability timestamps,
    /// removal.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Returns a receiver that is notified of every change except new mutations, for a reader that
    /// collects these.
    pub fn watch_turns(&self) -> watch::Receiver<u64> {
        self.turned.subscribe()
    }

    /// The end of the durable history in all stored vbuckets.
    pub fn durable(&self) -> Cut {
        self.state().durable.clone()
    }

    /// Returns true if any data of the vbucket is stored.
    pub fn has_data(&self, vbucket: VbucketId) -> bool {
        self.state().has_data(vbucket)
    }

    /// Returns true if the vbucket is stored only partially.
    pub fn is_partial(&self, vbucket: VbucketId) -> bool {
        let state = self.state();
        let end = state.durable.get(vbucket).seqno;
        state.logs.get(vbucket).is_some_and(|branches| is_partial(branches, end))
    }

    /// Returns the vbuckets that have a branch. In a version of a data set, these are the whole
    /// partitions.
    pub fn whole(&self) -> VbucketSet {
        let state = self.state();
        let of = state.logs.iter().filter(|(_, branches)| !branches.is_empty());
        of.map(|(vbucket, _)| vbucket).collect()
    }

    /// Returns the vbuckets whose documents this projector may read: the owned ones, or all whole
    /// partitions of a version, since all holders have equal documents.
    pub fn readable(&self) -> VbucketSet {
        match self.info.source.reports() {
            true => self.ownership().owned.clone(),
            false => self.whole(),
        }
    }

    /// The branches of all stored vbuckets.
    pub fn branches(&self) -> Vec<Branches> {
        self.state().logs.iter().map(|(_, branches)| branches.clone()).collect()
    }

    /// Returns the published positions, branches and commits.
    pub(in crate::source) fn published(&self) -> Positions {
        let next = self.durable().iter().map(|(_, position)| position).collect();
        Positions { next, branches: self.branches(), commits: self.commits() }
    }

    /// Waits for the group that is being logged, and then runs `also`. Returns the history and the
    /// commits at that moment, including logged groups that are not published.
    pub fn logged_with(
        &self,
        also: impl FnOnce() -> Result<()>,
    ) -> Result<(SourceHistory, NewestCommits)> {
        let Positions { next, branches, commits } = self.gate.logged(|| self.published(), also)?;
        let history = SourceHistory {
            durable: Cut::from_positions(next),
            logs: Arc::new(FailoverLogs::new(branches)),
            kept: VbucketSet::all(self.info.vbuckets),
        };
        Ok((history, commits))
    }

    /// Returns the newest published commits of transactions.
    pub fn commits(&self) -> NewestCommits {
        self.state().commits.clone()
    }

    /// Returns the number of published commits of transactions.
    pub fn commit_count(&self) -> u64 {
        self.state().commits.count()
    }

    /// Returns the remembered large commits after the first `count`, and the number of all large
    /// commits.
    pub fn large_commits_after(&self, count: u64) -> (Vec<Arc<LargeCommit>>, u64) {
        self.state().large_commits.after(count)
    }

    /// The commit of a transaction, if it is remembered.
    pub fn committed(&self, transaction: TransactionId) -> Option<Committed> {
        self.state().commits.find(transaction).cloned()
    }

    /// Returns the fate of a transaction that is not open, and that began when the bucket had
    /// `behind` commits.
    pub fn fate(&self, transaction: TransactionId, behind: u64) -> Fate {
        self.state().commits.fate(transaction, behind)
    }

    /// The vbuckets that this projector owns.
    pub fn ownership(&self) -> Arc<Ownership> {
        Arc::clone(&self.state().ownership)
    }

    /// The owned vbuckets, and the positions at which they joined if they were not always owned.
    pub fn joined_at(&self) -> (Arc<Ownership>, JoinedAt) {
        let state = self.state();
        (Arc::clone(&state.ownership), state.joined_at.clone())
    }

    /// The owners of all vbuckets in the catalog.
    pub fn assignment(&self) -> Arc<VbucketAssignment> {
        Arc::clone(&self.state().assignment)
    }

    /// Returns, as of one moment, the end of the durable history in the owned vbuckets, the end of
    /// the head, and [`Self::joined_at`].
    pub fn end(&self) -> (Cut, HeadPosition, (Arc<Ownership>, JoinedAt)) {
        let state = self.state();
        let joined_at = (Arc::clone(&state.ownership), state.joined_at.clone());
        (state.durable.of(&state.ownership.owned), state.head.end(), joined_at)
    }

    /// Returns, as of one moment, the failover logs and the end of the durable history of the owned
    /// vbuckets.
    pub fn history(&self) -> SourceHistory {
        let state = self.state();
        let kept = state.ownership.owned.clone();
        SourceHistory {
            durable: state.durable.of(&kept),
            logs: Arc::clone(&state.owned_logs),
            kept,
        }
    }

    /// The failover logs of the owned vbuckets, and the number of losses of history.
    pub fn logs(&self) -> (Arc<FailoverLogs>, u64) {
        let state = self.state();
        (Arc::clone(&state.owned_logs), state.losses)
    }

    /// The bucket's record in the store.
    pub fn record(&self) -> BucketRecord {
        let state = self.state();
        let branches = state.logs.iter().map(|(_, branches)| branches.clone()).collect();
        let ownership = Ownership::clone(&state.ownership);
        let (given_up, commits) = (state.given_up.clone(), state.commits.clone());
        BucketRecord { info: self.info.clone(), branches, ownership, given_up, commits }
    }

    /// The bucket's record with other branches and another ownership.
    pub fn record_with(&self, branches: Vec<Branches>, ownership: Ownership) -> BucketRecord {
        BucketRecord { branches, ownership, ..self.record() }
    }

    /// Replaces the branches that have no mutations any more.
    pub fn set_given_up(&self, given_up: BTreeMap<VbucketId, Branches>) {
        self.state().given_up = given_up;
    }

    /// Publishes a loss of history: the vbuckets in `ends` end earlier now, and their new branches
    /// continue from there. All streams end.
    pub fn lose_history(&self, branches: Vec<Branches>, ends: &[(VbucketId, Seqno)]) {
        let mut state = self.state();
        state.set_logs(branches);
        for (vbucket, seqno) in ends {
            state.set_end(*vbucket, *seqno);
            state.commits.go_back(*vbucket, *seqno);
        }
        state.losses += 1;
        state.open.forget_cuts();
        state.large_commits.clear();
        state.head.clear();
        drop(state);
        self.wake();
    }

    /// Replaces the ownership and the catalog's owners.
    pub fn set_ownership(&self, ownership: Ownership, assignment: Arc<VbucketAssignment>) {
        let mut state = self.state();
        for vbucket in (0..self.info.vbuckets).map(VbucketId) {
            if ownership.is_writable(vbucket) && !state.ownership.is_writable(vbucket) {
                let at = state.durable.get(vbucket);
                state.joined_at.insert(vbucket, at);
            }
        }
        state.ownership = Arc::new(ownership);
        state.assignment = assignment;
        state.owned_logs = Arc::new(state.logs.of(&state.ownership.owned));
        drop(state);
        self.wake();
    }

    /// Sets the branches of a new term, or those of the leading copy.
    pub fn set_branches(&self, branches: Vec<Branches>) {
        let mut state = self.state();
        state.set_logs(branches);
        let ends: Vec<_> = state.durable.iter().map(|(v, position)| (v, position.seqno)).collect();
        ends.into_iter().for_each(|(vbucket, seqno)| state.set_end(vbucket, seqno));
    }

    /// Adds mutations that the leading copy has numbered. A follower does not serve reads of them.
    pub fn extend(&self, mutations: &[Arc<Mutation>], commits: &[TransactionEvent]) {
        let mut state = self.state();
        mutations.iter().for_each(|mutation| state.set_end(mutation.vbucket, mutation.seqno));
        state.add_steps(commits);
    }

    /// Adds steps of transactions that were received with a vbucket from its owner.
    pub fn add_events(&self, events: &[TransactionEvent]) {
        let mut state = self.state();
        let SourceState { open, durable, .. } = &mut *state;
        open.note(events, durable);
        events.iter().for_each(|event| state.commits.add(event));
    }

    /// Sets the ends of vbuckets that are not owned.
    pub fn set_copied(
        &self,
        branches: Vec<Branches>,
        ends: impl IntoIterator<Item = (VbucketId, Seqno)>,
    ) {
        let mut state = self.state();
        state.set_logs(branches);
        for (vbucket, end) in ends {
            if end < state.durable.get(vbucket).seqno {
                state.commits.go_back(vbucket, end);
            }
            state.set_end(vbucket, end);
        }
    }

    /// Reads the head from a position on: all mutations, or about `bytes` bytes but at least one
    /// mutation. Also returns the next position. `None` if the head no longer has the given
    /// position.
    pub fn read_head(
        &self,
        from: HeadPosition,
        bytes: usize,
    ) -> Option<(Vec<Arc<Mutation>>, HeadPosition)> {
        self.state().head.read(from, bytes)
    }
}

#[cfg(test)]
#[path = "bucket_tests.rs"]
mod tests;
