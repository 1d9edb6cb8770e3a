//! A bucket in memory, as its readers see it: the end of its durable history, its newest
//! mutations (the *head*, which all up-to-date streams share), and its stability timestamps.
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
use proto::model::commits::{
    CommittedTransaction, NewestCommits, TransactionEvent, TransactionOutcome,
};
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

/// The positions at which vbuckets became writable on this projector. Contains only vbuckets that
/// were at some time since the start not owned, or released to another owner.
pub type JoinedAt = BTreeMap<VbucketId, Position>;

/// A bucket in memory: what readers and the writer of the bucket share.
pub struct Bucket {
    /// The bucket's definition.
    pub info: BucketInfo,
    /// The lock that orders the groups of the bucket.
    pub gate: Gate,
    /// The open transactions of the bucket.
    pub transactions: Arc<Transactions>,
    /// The links to the other copies of the bucket, if this copy leads.
    pub links: Arc<Links>,
    pub(super) head_bytes_max: usize,
    state: Mutex<SourceState>,
    pub(super) changed: watch::Sender<u64>,
    /// Incremented at each change of the bucket except new mutations; watchers are notified.
    turned: watch::Sender<u64>,
}

/// The data of a bucket in memory, protected by a lock.
pub(in crate::source) struct SourceState {
    pub(in crate::source) bucket: BucketId,
    pub(in crate::source) durable: Cut,
    /// The branches of all stored vbuckets.
    pub(in crate::source) logs: FailoverLogs,
    /// The branches of the owned vbuckets.
    pub(super) owned_logs: Arc<FailoverLogs>,
    pub(in crate::source) ownership: Arc<Ownership>,
    assignment: Arc<VbucketAssignment>,
    /// The positions at which vbuckets became writable on this projector, for those that were not
    /// writable all the time.
    joined_at: JoinedAt,
    pub(in crate::source) given_up: BTreeMap<VbucketId, Branches>,
    pub(in crate::source) commits: NewestCommits,
    pub(in crate::source) open: OpenState,
    pub(super) large_commits: LargeCommits,
    /// The number of times that a part of the history was lost since the start.
    losses: u64,
    pub(super) head: Head,
    pub(in crate::source) epochs: VecDeque<EpochMark>,
    pub(super) unpublished: BacklogBytes,
    pub(super) serving: ServingState,
}

impl SourceState {
    pub(super) fn set_logs(&mut self, branches: Vec<Branches>) {
        self.logs = FailoverLogs::new(branches);
        self.owned_logs = Arc::new(self.logs.only_vbuckets(&self.ownership.owned));
    }

    /// Returns true if any data of the vbucket is stored.
    pub(in crate::source) fn has_data(&self, vbucket: VbucketId) -> bool {
        let has_branches = self.logs.get(vbucket).is_some_and(|branches| !branches.is_empty());
        has_branches || self.durable.get(vbucket).seqno.0 > 0
    }

    /// Sets the last seqno of a vbucket.
    pub(super) fn set_end(&mut self, vbucket: VbucketId, seqno: Seqno) {
        let vbuuid = self.logs.branch_of(vbucket, seqno);
        self.durable.set(vbucket, Position { vbuuid, seqno });
    }
}

impl Bucket {
    /// Creates a bucket from its stored record; `ends` has the last seqno of each vbucket.
    pub fn new(record: BucketRecord, ends: &[Seqno], head_bytes_max: usize) -> Self {
        let BucketRecord { info, branches, ownership, given_up, mut commits } = record;
        commits.drop_pushed_if_planted();
        let mut open = OpenState::default();
        open.count_ages(commits.pushed().map(|commit| CommitId::Pushed(commit.transaction)));
        let positions = ends.iter().zip(&branches).map(|(seqno, branches)| Position {
            vbuuid: branch_of(branches, *seqno),
            seqno: *seqno,
        });
        let state = SourceState {
            bucket: info.id,
            durable: Cut::from_positions(positions.collect()),
            owned_logs: Arc::new(
                FailoverLogs::new(branches.clone()).only_vbuckets(&ownership.owned),
            ),
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

    /// Wakes the followers that wait for a group, if there are any.
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

    /// Returns a receiver that is notified of every change except new mutations, for a stream
    /// that collects mutations for a while.
    pub fn watch_without_mutations(&self) -> watch::Receiver<u64> {
        self.turned.subscribe()
    }

    /// Returns the end of the durable history of all stored vbuckets.
    pub fn durable(&self) -> Cut {
        self.state().durable.clone()
    }

    /// Returns true if any data of the vbucket is stored.
    pub fn has_data(&self, vbucket: VbucketId) -> bool {
        self.state().has_data(vbucket)
    }

    /// Returns true if the stored data of the vbucket is incomplete.
    pub fn is_partial(&self, vbucket: VbucketId) -> bool {
        let state = self.state();
        let end = state.durable.get(vbucket).seqno;
        state.logs.get(vbucket).is_some_and(|branches| is_partial(branches, end))
    }

    /// Returns the vbuckets that have a branch. In a version of a data set, these are the
    /// partitions of which all rows are stored.
    pub fn whole_vbuckets(&self) -> VbucketSet {
        let state = self.state();
        let of = state.logs.iter().filter(|(_, branches)| !branches.is_empty());
        of.map(|(vbucket, _)| vbucket).collect()
    }

    /// Returns the vbuckets whose documents this projector may read: the owned ones, or in a
    /// version of a data set all completely stored partitions, since their documents are equal on
    /// all projectors.
    pub fn readable(&self) -> VbucketSet {
        match self.info.source.reports_position() {
            true => self.ownership().owned.clone(),
            false => self.whole_vbuckets(),
        }
    }

    /// Returns the branches of all stored vbuckets.
    pub fn branches(&self) -> Vec<Branches> {
        self.state().logs.iter().map(|(_, branches)| branches.clone()).collect()
    }

    /// Returns the positions, branches and commits after the last published group.
    pub(in crate::source) fn published(&self) -> Positions {
        let next = self.durable().iter().map(|(_, position)| position).collect();
        Positions { next, branches: self.branches(), commits: self.commits() }
    }

    /// Waits until the group that is being logged is in the log, and then runs `also`. Returns
    /// the history and the commits at that moment, including logged groups that are not
    /// published.
    pub fn logged_with(
        &self,
        also: impl FnOnce() -> Result<()>,
    ) -> Result<(SourceHistory, NewestCommits)> {
        let Positions { next, branches, commits } =
            self.gate.with_logged_positions(|| self.published(), also)?;
        let history = SourceHistory {
            durable: Cut::from_positions(next),
            logs: Arc::new(FailoverLogs::new(branches)),
            kept: VbucketSet::all(self.info.vbuckets),
        };
        Ok((history, commits))
    }

    /// Returns the newest published commits of transactions, as far as the bucket remembers them.
    pub fn commits(&self) -> NewestCommits {
        self.state().commits.clone()
    }

    /// Returns the number of published commits of transactions.
    pub fn commit_count(&self) -> u64 {
        self.state().commits.count()
    }

    /// Returns the large commits after the first `count` of the bucket, as far as it remembers
    /// them, and the number of all large commits so far.
    pub fn large_commits_after(&self, count: u64) -> (Vec<Arc<LargeCommit>>, u64) {
        self.state().large_commits.after(count)
    }

    /// Returns the commit of a transaction, if the bucket remembers it.
    pub fn committed(&self, transaction: TransactionId) -> Option<CommittedTransaction> {
        self.state().commits.find(transaction).cloned()
    }

    /// Returns the outcome of a transaction that is not open. `behind` is the number of commits
    /// that the bucket had when the transaction began.
    pub fn fate(&self, transaction: TransactionId, behind: u64) -> TransactionOutcome {
        self.state().commits.fate(transaction, behind)
    }

    /// Returns the vbuckets that this projector owns.
    pub fn ownership(&self) -> Arc<Ownership> {
        Arc::clone(&self.state().ownership)
    }

    /// Returns the owned vbuckets, and the positions at which they became writable on this
    /// projector if they were not always.
    pub fn joined_at(&self) -> (Arc<Ownership>, JoinedAt) {
        let state = self.state();
        (Arc::clone(&state.ownership), state.joined_at.clone())
    }

    /// Returns the owners of all vbuckets, according to the catalog.
    pub fn assignment(&self) -> Arc<VbucketAssignment> {
        Arc::clone(&self.state().assignment)
    }

    /// Returns, as of one moment, the end of the durable history in the owned vbuckets, the end of
    /// the head, and [`Self::joined_at`].
    pub fn end(&self) -> (Cut, HeadPosition, (Arc<Ownership>, JoinedAt)) {
        let state = self.state();
        let joined_at = (Arc::clone(&state.ownership), state.joined_at.clone());
        (state.durable.only_vbuckets(&state.ownership.owned), state.head.end(), joined_at)
    }

    /// Returns, as of one moment, the branches and the end of the durable history of the owned
    /// vbuckets.
    pub fn history(&self) -> SourceHistory {
        let state = self.state();
        let kept = state.ownership.owned.clone();
        SourceHistory {
            durable: state.durable.only_vbuckets(&kept),
            logs: Arc::clone(&state.owned_logs),
            kept,
        }
    }

    /// Returns the branches of the owned vbuckets, and the number of times that a part of the
    /// history was lost.
    pub fn logs(&self) -> (Arc<FailoverLogs>, u64) {
        let state = self.state();
        (Arc::clone(&state.owned_logs), state.losses)
    }

    /// Returns the record of the bucket in the form in which it is stored.
    pub fn record(&self) -> BucketRecord {
        let state = self.state();
        let branches = state.logs.iter().map(|(_, branches)| branches.clone()).collect();
        let ownership = Ownership::clone(&state.ownership);
        let (given_up, commits) = (state.given_up.clone(), state.commits.clone());
        BucketRecord { info: self.info.clone(), branches, ownership, given_up, commits }
    }

    /// Returns the record of the bucket with these branches and this ownership instead of the
    /// present ones.
    pub fn record_with(&self, branches: Vec<Branches>, ownership: Ownership) -> BucketRecord {
        BucketRecord { branches, ownership, ..self.record() }
    }

    /// Replaces the list of branches that a producer has begun and that have no mutations any
    /// more.
    pub fn set_given_up(&self, given_up: BTreeMap<VbucketId, Branches>) {
        self.state().given_up = given_up;
    }

    /// Publishes a loss of history. Each vbucket in `ends` now ends at the given seqno, and its
    /// new branch begins after it. All streams end.
    pub fn lose_history(&self, branches: Vec<Branches>, ends: &[(VbucketId, Seqno)]) {
        let mut state = self.state();
        state.set_logs(branches);
        for (vbucket, seqno) in ends {
            state.set_end(*vbucket, *seqno);
            state.commits.remove_lost_commits(*vbucket, *seqno);
        }
        state.losses += 1;
        state.open.forget_cuts();
        state.large_commits.clear();
        state.head.clear();
        drop(state);
        self.wake();
    }

    /// Replaces the owned vbuckets, and the catalog's owners of all vbuckets.
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
        state.owned_logs = Arc::new(state.logs.only_vbuckets(&state.ownership.owned));
        drop(state);
        self.wake();
    }

    /// Replaces the branches: by those of a new term, or by those of the leading copy.
    pub fn set_branches(&self, branches: Vec<Branches>) {
        let mut state = self.state();
        state.set_logs(branches);
        let ends: Vec<_> = state.durable.iter().map(|(v, position)| (v, position.seqno)).collect();
        ends.into_iter().for_each(|(vbucket, seqno)| state.set_end(vbucket, seqno));
    }

    /// Adds mutations that the leading copy has numbered, on a follower, which does not serve
    /// reads of them.
    pub fn add_copied_mutations(&self, mutations: &[Arc<Mutation>], commits: &[TransactionEvent]) {
        let mut state = self.state();
        mutations.iter().for_each(|mutation| state.set_end(mutation.vbucket, mutation.seqno));
        state.add_steps(commits);
    }

    /// Adds steps of transactions that were received, together with a vbucket, from its previous
    /// owner.
    pub fn add_events(&self, events: &[TransactionEvent]) {
        let mut state = self.state();
        let SourceState { open, durable, .. } = &mut *state;
        open.record_steps(events, durable);
        events.iter().for_each(|event| state.commits.apply_event(event));
    }

    /// Sets the branches, and the ends of vbuckets that are being copied.
    pub fn set_copied(
        &self,
        branches: Vec<Branches>,
        ends: impl IntoIterator<Item = (VbucketId, Seqno)>,
    ) {
        let mut state = self.state();
        state.set_logs(branches);
        for (vbucket, end) in ends {
            if end < state.durable.get(vbucket).seqno {
                state.commits.remove_lost_commits(vbucket, end);
            }
            state.set_end(vbucket, end);
        }
    }

    /// Reads mutations of the head from a position on: all of them, or about `bytes` bytes but at
    /// least one mutation. Also returns the position after them. `None` if the head no longer has
    /// the mutations at the position.
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
