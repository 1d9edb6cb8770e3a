//! The last commits of a bucket, so that a session whose COMMIT got no answer can query the
//! outcome.
//!
//! Each commit is an item of the change log, in one group with its mutations, so that a crash
//! keeps both or neither. The newest commits are also in the bucket's record, which each
//! checkpoint and every copy of the bucket contains.
//!
//! - Commits are counted. A transaction stores the count at its beginning, and its query contains
//!   this count. If all commits since then are still remembered, and the transaction is not among
//!   them, it was never committed.
//! - A rollback of the bucket removes the lost commits.
//!
//! The record also has the commits that an epoch must not split, until an epoch has them
//! ([`super::open_commit`]), and the prepared transactions until their outcome is known.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use super::committed::CommittedTransaction;
use super::ids::{ProducerTransactionId, Seqno, TransactionId, VbucketId};
use super::joint::{JointCommit, PreparedTransaction, holder};
use super::open_commit::{CommitId, OpenCommit};
use super::pushed_commit::{OPEN_MAX, OPEN_PARTS_MAX, PushedCommit};
use crate::plant::{self, Plant};

/// The maximum number of commits that a bucket remembers. Fast writers make so many in less than
/// a second.
const COMMITS_MAX: usize = 1 << 10;
/// The maximum number of positions in all remembered commits: enough for 256 commits that have
/// changed documents of 64 vbuckets each. A position takes some 18 bytes of the bucket's record.
const POSITIONS_MAX: usize = 16 << 10;

/// A step of a transaction, as an item in a bucket's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransactionEvent {
    /// A transaction that has changed only this bucket was committed.
    Committed(CommittedTransaction),
    /// A transaction was prepared.
    Prepared(Arc<PreparedTransaction>),
    /// A prepared transaction was rolled back.
    RolledBack(TransactionId),
    /// The commit of a transaction with parts in several buckets or vbuckets was made, at least
    /// for the parts stored here. The transaction is no longer prepared. The item replaces an
    /// earlier commit of the same producer transaction.
    Opened(OpenCommit),
    /// A commit is no longer open: an epoch has it, or no epoch waits for its missing parts any
    /// more.
    Settled(CommitId),
}

/// The outcome of a transaction that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionOutcome {
    /// The transaction was committed.
    Committed(CommittedTransaction),
    /// The transaction was not committed.
    RolledBack,
    /// Unknown, because the commits of that time are no longer remembered.
    Forgotten,
}

/// The newest commits of a bucket, its prepared transactions and its open commits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewestCommits {
    /// The number of commits so far.
    count: u64,
    /// The number of the last commit that was forgotten because of the limits; zero if none was.
    forgotten_to: u64,
    /// The commits with their numbers, oldest first.
    newest: VecDeque<(u64, CommittedTransaction)>,
    /// The number of positions in all commits of `newest`.
    positions: usize,
    /// The prepared transactions.
    prepared: BTreeMap<TransactionId, Arc<PreparedTransaction>>,
    /// The commits that no epoch has yet, and that no epoch may split.
    open: BTreeMap<CommitId, OpenCommit>,
}

impl NewestCommits {
    /// Returns the number of commits so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Iterates over the prepared transactions, by id.
    pub fn prepared(&self) -> impl ExactSizeIterator<Item = &Arc<PreparedTransaction>> {
        self.prepared.values()
    }

    /// Returns a prepared transaction by its id.
    pub fn find_prepared(&self, transaction: TransactionId) -> Option<&Arc<PreparedTransaction>> {
        self.prepared.get(&transaction)
    }

    /// Returns true if any transaction is prepared.
    pub fn has_prepared(&self) -> bool {
        !self.prepared.is_empty()
    }

    /// Returns the prepared transaction that locks a document.
    pub fn holder(&self, id: &str) -> Option<&Arc<PreparedTransaction>> {
        holder(self.prepared(), id)
    }

    /// Iterates over the open commits, by id.
    pub fn open(&self) -> impl ExactSizeIterator<Item = &OpenCommit> {
        self.open.values()
    }

    /// Returns an open commit by its id.
    pub fn find_open(&self, id: CommitId) -> Option<&OpenCommit> {
        self.open.get(&id)
    }

    /// Iterates over the open joint commits, by transaction.
    pub fn joint(&self) -> impl Iterator<Item = &JointCommit> {
        self.open().filter_map(OpenCommit::joint)
    }

    /// Returns the open joint commit of a transaction.
    pub fn find_joint(&self, transaction: TransactionId) -> Option<&JointCommit> {
        self.find_open(CommitId::Joint(transaction)).and_then(OpenCommit::joint)
    }

    /// Iterates over the open commits of a producer, by transaction.
    pub fn pushed(&self) -> impl Iterator<Item = &PushedCommit> {
        self.open().filter_map(OpenCommit::pushed)
    }

    /// Returns the open commit of a producer's transaction.
    pub fn find_pushed(&self, transaction: ProducerTransactionId) -> Option<&PushedCommit> {
        self.find_open(CommitId::Pushed(transaction)).and_then(OpenCommit::pushed)
    }

    /// Returns true if the limits of open commits allow another one of a producer, after the
    /// commits in `without` are removed.
    pub fn can_open(&self, commit: &PushedCommit, without: &[CommitId]) -> bool {
        let stays = |open: &&OpenCommit| without.binary_search(&open.id()).is_err();
        let open = self.open().filter(stays).filter_map(OpenCommit::pushed);
        let parts = open.map(|open| open.parts.len());
        let (count, parts) = parts.fold((0, 0), |(count, all), parts| (count + 1, all + parts));
        count == 0 || count < OPEN_MAX && parts + commit.parts.len() <= OPEN_PARTS_MAX
    }

    /// Applies a step from the bucket's log.
    pub fn apply_event(&mut self, event: &TransactionEvent) {
        match event {
            TransactionEvent::Committed(committed) => self.add_commit(committed),
            TransactionEvent::Prepared(prepared) => {
                self.prepared.insert(prepared.transaction, Arc::clone(prepared));
            }
            TransactionEvent::RolledBack(transaction) => {
                self.prepared.remove(transaction);
            }
            TransactionEvent::Opened(commit) => {
                if let OpenCommit::Joint(JointCommit { committed, .. }) = commit {
                    self.add_commit(committed);
                    self.prepared.remove(&committed.transaction);
                }
                self.open.insert(commit.id(), commit.clone());
            }
            TransactionEvent::Settled(id) => {
                self.open.remove(id);
            }
        }
    }

    /// Returns a copy in which each prepared transaction is replaced by the result of `with`;
    /// `None` removes it.
    pub fn with_prepared(
        &self,
        with: impl FnMut(&Arc<PreparedTransaction>) -> Option<Arc<PreparedTransaction>>,
    ) -> Self {
        let prepared = self.prepared().filter_map(with);
        let prepared = prepared.map(|prepared| (prepared.transaction, prepared)).collect();
        Self { prepared, ..self.clone() }
    }

    /// Drops the open commits of producers, if the known bug `PushedForgotten` is switched on.
    pub fn drop_pushed_if_planted(&mut self) {
        if plant::is(Plant::PushedForgotten) {
            self.open.retain(|_, commit| commit.pushed().is_none());
        }
    }

    /// Adds a commit, and forgets the oldest ones above the limits.
    fn add_commit(&mut self, committed: &CommittedTransaction) {
        self.count += 1;
        self.positions += committed.positions.len();
        self.newest.push_back((self.count, committed.clone()));
        let is_over = |this: &Self| {
            this.newest.len() > COMMITS_MAX
                || this.positions > POSITIONS_MAX && this.newest.len() > 1
        };
        while is_over(self)
            && let Some((number, oldest)) = self.newest.pop_front()
        {
            self.positions -= oldest.positions.len();
            self.forgotten_to = number;
        }
    }

    /// Returns the commit of a transaction, if it is remembered.
    pub fn find(&self, transaction: TransactionId) -> Option<&CommittedTransaction> {
        let mut newest = self.newest.iter().rev().map(|(_, committed)| committed);
        let newest = newest.find(|committed| committed.transaction == transaction);
        newest.or_else(|| self.find_joint(transaction).map(|joint| &joint.committed))
    }

    /// Returns the outcome of a transaction that began when the bucket had made `behind` commits.
    pub fn fate(&self, transaction: TransactionId, behind: u64) -> TransactionOutcome {
        match self.find(transaction) {
            Some(committed) => TransactionOutcome::Committed(committed.clone()),
            // A count that is larger than ours is of a history that is lost.
            None if behind > self.count || self.forgotten_to > behind => {
                TransactionOutcome::Forgotten
            }
            None => TransactionOutcome::RolledBack,
        }
    }

    /// Removes the commits with a mutation that is lost because a vbucket returns to an earlier
    /// seqno.
    pub fn remove_lost_commits(&mut self, vbucket: VbucketId, to: Seqno) {
        self.newest.retain(|(_, committed)| !committed.changed_after(vbucket, to));
        self.open.retain(|_, commit| {
            commit.joint().is_none_or(|joint| !joint.committed.changed_after(vbucket, to))
        });
        self.positions = self.newest.iter().map(|(_, kept)| kept.positions.len()).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cut::Position;
    use crate::model::ids::{BucketId, Vbuuid};
    use crate::model::joint::PreparedChange;
    use crate::model::pushed_commit::PushedPart;

    fn commit(n: u64, vbuckets: u16) -> CommittedTransaction {
        let position = Position { vbuuid: Vbuuid(1), seqno: Seqno(n) };
        let positions = (0..vbuckets).map(|vbucket| (VbucketId(vbucket), position)).collect();
        CommittedTransaction { transaction: TransactionId(n), affected: 1, positions }
    }

    fn after(commits: impl IntoIterator<Item = CommittedTransaction>) -> NewestCommits {
        let mut newest = NewestCommits::default();
        let events = commits.into_iter().map(TransactionEvent::Committed);
        events.for_each(|event| newest.apply_event(&event));
        newest
    }

    fn joint(n: u64) -> TransactionEvent {
        let participants = vec![BucketId(1), BucketId(2)];
        let joint = JointCommit { committed: commit(n, 2), participants };
        TransactionEvent::Opened(OpenCommit::Joint(joint))
    }

    fn prepared(n: u64) -> TransactionEvent {
        let change = |id: &str| PreparedChange { id: id.into(), document: None };
        TransactionEvent::Prepared(Arc::new(PreparedTransaction {
            transaction: TransactionId(n),
            participants: vec![BucketId(1), BucketId(2)],
            changes: vec![change("a"), change("b")],
        }))
    }

    fn pushed_commit() -> PushedCommit {
        let end = Position { vbuuid: Vbuuid(1), seqno: Seqno(9) };
        let part = |vbucket| PushedPart { vbucket: VbucketId(vbucket), after: Seqno(7), end };
        PushedCommit::new(ProducerTransactionId(3), vec![part(0), part(1)]).unwrap()
    }

    #[test]
    fn an_open_commit_of_a_producer_stays_until_it_is_settled_and_a_later_one_replaces_it() {
        let mut newest = NewestCommits::default();
        newest.apply_event(&TransactionEvent::Opened(OpenCommit::Pushed(pushed_commit())));
        let mut again = pushed_commit();
        again.parts[1].end.vbuuid = Vbuuid(2);
        newest.apply_event(&TransactionEvent::Opened(OpenCommit::Pushed(again.clone())));
        newest.remove_lost_commits(VbucketId(0), Seqno(0));
        assert_eq!(newest.pushed().collect::<Vec<_>>(), [&again]);
        newest.apply_event(&TransactionEvent::Settled(CommitId::Pushed(again.transaction)));
        assert_eq!(newest.open().len(), 0);
    }

    #[test]
    fn a_prepared_transaction_holds_its_documents_until_its_outcome_is_known() {
        let mut newest = NewestCommits::default();
        [prepared(1), prepared(2)].iter().for_each(|event| newest.apply_event(event));
        assert!(newest.holder("a").is_some() && newest.holder("c").is_none());
        newest.apply_event(&TransactionEvent::RolledBack(TransactionId(1)));
        newest.apply_event(&joint(2));
        assert!(newest.holder("a").is_none());
        assert_eq!(newest.fate(TransactionId(1), 0), TransactionOutcome::RolledBack);
        assert_eq!(newest.fate(TransactionId(2), 0), TransactionOutcome::Committed(commit(2, 2)));
    }

    #[test]
    fn an_open_joint_commit_is_never_forgotten() {
        let mut newest = NewestCommits::default();
        newest.apply_event(&joint(1));
        let others =
            (2..=COMMITS_MAX as u64 + 10).map(|n| TransactionEvent::Committed(commit(n, 1)));
        others.for_each(|event| newest.apply_event(&event));
        assert_eq!(newest.fate(TransactionId(1), 0), TransactionOutcome::Committed(commit(1, 2)));
        newest.apply_event(&TransactionEvent::Settled(CommitId::Joint(TransactionId(1))));
        assert_eq!(newest.fate(TransactionId(1), 0), TransactionOutcome::Forgotten);
        newest.apply_event(&joint(2_000_000));
        newest.remove_lost_commits(VbucketId(0), Seqno(1));
        assert_eq!(newest.open().len(), 0);
    }

    #[test]
    fn a_transaction_that_is_not_among_all_commits_since_it_began_was_rolled_back() {
        let newest = after((1..=5).map(|n| commit(n, 1)));
        assert_eq!(newest.fate(TransactionId(3), 0), TransactionOutcome::Committed(commit(3, 1)));
        assert_eq!(newest.fate(TransactionId(9), 0), TransactionOutcome::RolledBack);
        assert_eq!(
            newest.fate(TransactionId(9), 6),
            TransactionOutcome::Forgotten,
            "of a lost history"
        );
    }

    #[test]
    fn a_forgotten_commit_is_not_rolled_back() {
        let most = COMMITS_MAX as u64;
        let newest = after((1..=most + 10).map(|n| commit(n, 1)));
        assert_eq!(newest.fate(TransactionId(10), 9), TransactionOutcome::Forgotten);
        assert_eq!(newest.fate(TransactionId(11), 9), TransactionOutcome::Committed(commit(11, 1)));
        assert_eq!(newest.fate(TransactionId(0), 10), TransactionOutcome::RolledBack);
    }

    #[test]
    fn positions_are_bounded_and_the_last_commit_stays() {
        let newest = after((1..=100).map(|n| commit(n, 1_000)));
        assert_eq!(newest.newest.len(), POSITIONS_MAX / 1_000);
        let large = after([commit(1, 1), commit(2, u16::MAX)]);
        assert_eq!(
            large.fate(TransactionId(2), 1),
            TransactionOutcome::Committed(commit(2, u16::MAX))
        );
    }

    #[test]
    fn a_rewind_removes_the_lost_commits() {
        let mut newest = after((1..=5).map(|n| commit(n, 2)));
        newest.remove_lost_commits(VbucketId(1), Seqno(3));
        assert_eq!(newest.fate(TransactionId(4), 0), TransactionOutcome::RolledBack);
        assert_eq!(newest.fate(TransactionId(3), 0), TransactionOutcome::Committed(commit(3, 2)));
        newest.apply_event(&TransactionEvent::Committed(commit(6, 2)));
        assert_eq!(newest.count(), 6, "numbers are never used twice");
    }

    #[test]
    fn a_bucket_takes_a_bounded_number_of_a_producers_commits_and_always_one() {
        let of = |n: u64, vbuckets: u16| {
            let end = Position { vbuuid: Vbuuid(1), seqno: Seqno(n + 1) };
            let part = |vbucket| PushedPart { vbucket: VbucketId(vbucket), after: Seqno(n), end };
            PushedCommit::new(ProducerTransactionId(n), (0..vbuckets).map(part).collect()).unwrap()
        };
        for (most, vbuckets) in [(OPEN_PARTS_MAX / 1024, 1024), (OPEN_MAX, 1)] {
            let mut newest = NewestCommits::default();
            for n in 1..=most as u64 {
                assert!(newest.can_open(&of(n, vbuckets), &[]), "{n}");
                newest.apply_event(&TransactionEvent::Opened(OpenCommit::Pushed(of(n, vbuckets))));
            }
            assert!(!newest.can_open(&of(9_999, 1), &[]), "as many as there may be");
            let settled = [CommitId::Pushed(ProducerTransactionId(1))];
            assert!(newest.can_open(&of(9_999, 1), &settled));
        }
    }
}
