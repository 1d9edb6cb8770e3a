//! The transactions that were committed last, so that a session whose COMMIT had no answer can ask what became of it.
//!
//! Each commit is an item of the change log, in the group that has its mutations: so either both are there or neither. The
//! newest commits are part of the bucket's record, which a checkpoint has and every copy takes over.
//!
//! - Commits are counted. A transaction learns the count when it begins, and asks with it. If everything that was
//!   committed since is still known, a transaction that is not among it was never committed.
//! - A bucket that goes back forgets the commits that it loses.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::cut::Position;
use super::ids::{Seqno, TransactionId, VbucketId};

/// Commits that a bucket remembers. Those of less than a second, if writers commit as fast as they can.
const COMMITS_MAX: usize = 1 << 10;
/// Positions that it remembers of them all: of 256 commits that have changed documents of 64 vbuckets. A record has some 18 bytes for
/// each.
const POSITIONS_MAX: usize = 16 << 10;

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    /// The transaction.
    pub transaction: TransactionId,
    /// The number of documents created, replaced or removed.
    pub affected: u64,
    /// The end of the vbuckets that it has changed.
    pub positions: Vec<(VbucketId, Position)>,
}

/// The fate of a transaction that is not open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was committed.
    Committed(Committed),
    /// It was not committed.
    RolledBack,
    /// Too many others were committed since it began.
    Forgotten,
}

/// The newest commits of a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewestCommits {
    /// The number of commits so far.
    count: u64,
    /// The number of the last commit that was forgotten for want of room; zero if none was.
    forgotten_to: u64,
    /// The commits with their numbers, oldest first.
    newest: VecDeque<(u64, Committed)>,
    /// Positions of all these.
    positions: usize,
}

impl NewestCommits {
    /// The number of commits so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds a commit.
    pub fn add(&mut self, committed: &Committed) {
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
        newest.find(|committed| committed.transaction == transaction)
    }

    /// The fate of a transaction that began behind so many commits.
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
        let is_lost = |(_, committed): &(u64, Committed)| {
            committed.positions.iter().any(|(of, end)| *of == vbucket && end.seqno > to)
        };
        self.newest.retain(|commit| !is_lost(commit));
        self.positions = self.newest.iter().map(|(_, kept)| kept.positions.len()).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::Vbuuid;

    fn commit(n: u64, vbuckets: u16) -> Committed {
        let position = Position { vbuuid: Vbuuid(1), seqno: Seqno(n) };
        let positions = (0..vbuckets).map(|vbucket| (VbucketId(vbucket), position)).collect();
        Committed { transaction: TransactionId(n), affected: 1, positions }
    }

    fn after(commits: impl IntoIterator<Item = Committed>) -> NewestCommits {
        let mut newest = NewestCommits::default();
        commits.into_iter().for_each(|commit| newest.add(&commit));
        newest
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
        newest.add(&commit(6, 2));
        assert_eq!(newest.count(), 6, "numbers are never used twice");
    }
}
