//! The transactions that were committed last, so that a session whose COMMIT had no answer can ask for the outcome.
//!
//! Each commit is an item of the change log, in the group that has its mutations: so a crash keeps both or neither. The
//! newest commits are part of the bucket's record, which is in each checkpoint and in every copy.
//!
//! - Commits are counted. A transaction learns the count when it begins, and asks with it. If all later commits are still known, a
//!   transaction that is not among them was never committed. - A bucket that is rolled back forgets the commits that it loses.
//!
//! Commits over several buckets ([`super::joint`]), and those of producers ([`super::pushed_commit`]), are remembered too, until an epoch has
//! them.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use super::committed::Committed;
use super::ids::{ProducerTransactionId, Seqno, TransactionId, VbucketId};
use super::joint::{JointCommit, JointCommits, Prepared};
use super::pushed_commit::{OpenCommits, PushedCommit};

/// Commits that a bucket remembers. Those of less than a second, if writers commit as fast as they can.
const COMMITS_MAX: usize = 1 << 10;
/// Positions that it remembers of them all: of 256 commits that have changed documents of 64 vbuckets. A record has some 18 bytes for
/// each.
const POSITIONS_MAX: usize = 16 << 10;

/// A step of a transaction in the log of a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransactionEvent {
    /// A transaction was committed that has changed only this bucket.
    Committed(Committed),
    /// A transaction was prepared.
    Prepared(Arc<Prepared>),
    /// A transaction over several buckets was committed, and is no longer prepared.
    Joint(JointCommit),
    /// A prepared transaction was rolled back.
    RolledBack(TransactionId),
    /// An epoch has it, so it is open no longer.
    Settled(TransactionId),
    /// A producer has committed a transaction in several vbuckets, of which some are here. A later commit of the
    /// transaction replaces it.
    Pushed(PushedCommit),
    /// An epoch has a producer's commit, or its missing parts are no longer waited for.
    PushedSettled(ProducerTransactionId),
}

/// The fate of a transaction that is not open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The transaction was committed.
    Committed(Committed),
    /// The transaction was not committed.
    RolledBack,
    /// Too many others were committed since it began.
    Forgotten,
}

/// The newest commits of a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewestCommits {
    /// The number of commits so far.
    count: u64,
    /// The number of the last commit that was forgotten at the size limit; zero if none was.
    forgotten_to: u64,
    /// The commits with their numbers, oldest first.
    newest: VecDeque<(u64, Committed)>,
    /// Positions of all these.
    positions: usize,
    /// The prepared transactions and the open joint commits.
    joint: JointCommits,
    /// The open commits of producers.
    pushed: OpenCommits,
}

impl NewestCommits {
    /// The number of commits so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The prepared transactions and the open joint commits.
    pub fn joint(&self) -> &JointCommits {
        &self.joint
    }

    /// The open commits of producers.
    pub fn pushed(&self) -> &OpenCommits {
        &self.pushed
    }

    /// Adds a step that the log has.
    pub fn add(&mut self, event: &TransactionEvent) {
        match event {
            TransactionEvent::Committed(committed) => self.add_commit(committed),
            TransactionEvent::Prepared(prepared) => self.joint.prepare(prepared),
            TransactionEvent::Joint(joint) => {
                self.add_commit(&joint.committed);
                self.joint.commit(joint);
            }
            TransactionEvent::RolledBack(transaction) => self.joint.roll_back(*transaction),
            TransactionEvent::Settled(transaction) => self.joint.settle(*transaction),
            TransactionEvent::Pushed(commit) => self.pushed.add(commit),
            TransactionEvent::PushedSettled(transaction) => self.pushed.settle(*transaction),
        }
    }

    /// A copy of the commits in which `with` has replaced each prepared transaction.
    pub fn with_prepared(&self, with: impl FnMut(&Arc<Prepared>) -> Option<Arc<Prepared>>) -> Self {
        let mut commits = self.clone();
        commits.joint.replace_prepared(with);
        commits
    }

    /// Forgets the open commits of producers ([`Plant::PushedForgotten`](crate::plant::Plant)).
    pub fn forget_pushed(&mut self) {
        self.pushed = OpenCommits::default();
    }

    /// True if any transaction is prepared.
    pub fn has_prepared(&self) -> bool {
        self.joint.prepared().next().is_some()
    }

    fn add_commit(&mut self, committed: &Committed) {
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

    /// The commit of a transaction, if it is remembered.
    pub fn find(&self, transaction: TransactionId) -> Option<&Committed> {
        let mut newest = self.newest.iter().rev().map(|(_, committed)| committed);
        let newest = newest.find(|committed| committed.transaction == transaction);
        newest.or_else(|| self.joint.find_open(transaction).map(|joint| &joint.committed))
    }

    /// The fate of a transaction that began after this many commits.
    pub fn fate(&self, transaction: TransactionId, behind: u64) -> Fate {
        match self.find(transaction) {
            Some(committed) => Fate::Committed(committed.clone()),
            // A count that is larger than ours is of a history that is lost.
            None if behind > self.count || self.forgotten_to > behind => Fate::Forgotten,
            None => Fate::RolledBack,
        }
    }

    /// Forgets the commits that a vbucket loses by going back.
    pub fn go_back(&mut self, vbucket: VbucketId, to: Seqno) {
        self.newest.retain(|(_, committed)| !committed.reaches_behind(vbucket, to));
        self.joint.go_back(vbucket, to);
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

    fn commit(n: u64, vbuckets: u16) -> Committed {
        let position = Position { vbuuid: Vbuuid(1), seqno: Seqno(n) };
        let positions = (0..vbuckets).map(|vbucket| (VbucketId(vbucket), position)).collect();
        Committed { transaction: TransactionId(n), affected: 1, positions }
    }

    fn after(commits: impl IntoIterator<Item = Committed>) -> NewestCommits {
        let mut newest = NewestCommits::default();
        let events = commits.into_iter().map(TransactionEvent::Committed);
        events.for_each(|event| newest.add(&event));
        newest
    }

    fn joint(n: u64) -> TransactionEvent {
        let participants = vec![BucketId(1), BucketId(2)];
        TransactionEvent::Joint(JointCommit { committed: commit(n, 2), participants })
    }

    fn prepared(n: u64) -> TransactionEvent {
        let change = |id: &str| PreparedChange { id: id.into(), document: None };
        TransactionEvent::Prepared(Arc::new(Prepared {
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
        newest.add(&TransactionEvent::Pushed(pushed_commit()));
        let mut again = pushed_commit();
        again.parts[1].end.vbuuid = Vbuuid(2);
        newest.add(&TransactionEvent::Pushed(again.clone()));
        newest.go_back(VbucketId(0), Seqno(0));
        assert_eq!(newest.pushed().iter().collect::<Vec<_>>(), [&again]);
        newest.add(&TransactionEvent::PushedSettled(again.transaction));
        assert!(newest.pushed().is_empty());
    }

    #[test]
    fn a_prepared_transaction_holds_its_documents_until_its_outcome_is_known() {
        let mut newest = NewestCommits::default();
        [prepared(1), prepared(2)].iter().for_each(|event| newest.add(event));
        assert!(newest.joint().holder("a").is_some() && newest.joint().holder("c").is_none());
        newest.add(&TransactionEvent::RolledBack(TransactionId(1)));
        newest.add(&joint(2));
        assert!(newest.joint().holder("a").is_none());
        assert_eq!(newest.fate(TransactionId(1), 0), Fate::RolledBack);
        assert_eq!(newest.fate(TransactionId(2), 0), Fate::Committed(commit(2, 2)));
    }

    #[test]
    fn an_open_joint_commit_is_remembered_behind_any_number_of_others() {
        let mut newest = NewestCommits::default();
        newest.add(&joint(1));
        let others =
            (2..=COMMITS_MAX as u64 + 10).map(|n| TransactionEvent::Committed(commit(n, 1)));
        others.for_each(|event| newest.add(&event));
        assert_eq!(newest.fate(TransactionId(1), 0), Fate::Committed(commit(1, 2)));
        newest.add(&TransactionEvent::Settled(TransactionId(1)));
        assert_eq!(newest.fate(TransactionId(1), 0), Fate::Forgotten);
        newest.add(&joint(2_000_000));
        newest.go_back(VbucketId(0), Seqno(1));
        assert!(newest.joint().is_empty());
    }

    #[test]
    fn a_transaction_that_is_not_among_all_commits_since_it_began_was_rolled_back() {
        let newest = after((1..=5).map(|n| commit(n, 1)));
        assert_eq!(newest.fate(TransactionId(3), 0), Fate::Committed(commit(3, 1)));
        assert_eq!(newest.fate(TransactionId(9), 0), Fate::RolledBack);
        assert_eq!(newest.fate(TransactionId(9), 6), Fate::Forgotten, "of a lost history");
    }

    #[test]
    fn what_was_forgotten_is_never_said_to_be_rolled_back() {
        let most = COMMITS_MAX as u64;
        let newest = after((1..=most + 10).map(|n| commit(n, 1)));
        assert_eq!(newest.fate(TransactionId(10), 9), Fate::Forgotten);
        assert_eq!(newest.fate(TransactionId(11), 9), Fate::Committed(commit(11, 1)));
        assert_eq!(newest.fate(TransactionId(0), 10), Fate::RolledBack);
    }

    #[test]
    fn the_room_is_bounded_by_positions_too_and_the_last_commit_is_always_known() {
        let newest = after((1..=100).map(|n| commit(n, 1_000)));
        assert_eq!(newest.newest.len(), POSITIONS_MAX / 1_000);
        let large = after([commit(1, 1), commit(2, u16::MAX)]);
        assert_eq!(large.fate(TransactionId(2), 1), Fate::Committed(commit(2, u16::MAX)));
    }

    #[test]
    fn a_bucket_that_goes_back_forgets_what_it_loses() {
        let mut newest = after((1..=5).map(|n| commit(n, 2)));
        newest.go_back(VbucketId(1), Seqno(3));
        assert_eq!(newest.fate(TransactionId(4), 0), Fate::RolledBack);
        assert_eq!(newest.fate(TransactionId(3), 0), Fate::Committed(commit(3, 2)));
        newest.add(&TransactionEvent::Committed(commit(6, 2)));
        assert_eq!(newest.count(), 6, "numbers are never used twice");
    }
}
