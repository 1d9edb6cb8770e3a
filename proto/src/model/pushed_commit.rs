//! Commits of transactions in pushed buckets: *pushed commits*.
//!
//! The producer of a pushed bucket has the data and makes the decision. So its transactions have
//! no conflicts, and their commits have no first phase. The producer numbers its transactions,
//! and in each vbucket the mutations of a transaction, from 1. The owner of the vbucket keeps
//! these mutations as an open transaction. The commit names, for each vbucket, the number of its
//! mutations and the position at which they end: the n-th mutation gets the n-th seqno after the
//! vbucket's present end. So the producer determines the history of a vbucket, even if a document
//! was changed twice.
//!
//! The owners of the vbuckets commit their parts one by one. A pushed commit of several vbuckets
//! is *open* until an epoch covers all of it. Its owners report it in SYNC, with all of its
//! parts, and the leader moves the cut of the next epoch back until it splits no commit
//! ([`avoid_split_commits`]). There is no time limit: while a part is not committed, the epochs of the
//! other vbuckets end before the commit, until the producer commits again. Mutations outside of
//! transactions are independent of each other, so an epoch may end between any two of them.
//!
//! A part is in a cut if its end is in the history of the cut. A seqno alone does not determine
//! that: after a fail-over of the producer, or a loss, another branch of history has the seqno
//! too. A process without the failover log of a vbucket treats a part as published only if the
//! cut is on the branch of the part. A part is *lost* when its vbucket has left its branch before
//! its end. A vbucket begins each branch once, so a lost part never appears. A part on a branch
//! that the vbucket never had is not lost, because the branch may be about to begin.
//!
//! Open pushed commits are in the bucket's record, like joint commits. They are handed over
//! together with the vbucket.
//!
//! Known limits:
//!
//! - The epoch that ends a rollback has all surviving mutations, also those of a commit that was
//!   open.
//! - An owner that has lost its disk does not remember the branches that its vbuckets have left.
//!   The epochs wait for a part on such a branch until the producer commits again, or until
//!   `CANCEL TRANSACTION`.
//! - The owner of a mutation outside of transactions does not know whether it replaces a part of
//!   a commit. So an epoch may have the mutation before the commit is reported to the leader. A
//!   producer that commits again instead splits nothing.
//! - If a projector loses its part after the epoch, readers see only the other parts until the
//!   producer has pushed it again, as after any loss of a pushed bucket.
//! - A producer may commit again at other positions. While one owner has not received that, a
//!   vbucket of the commit is not handed over to another owner with a part of it, unless a part
//!   of the transferred commit is lost at that owner.
//! - While the epochs wait for a commit, a stream to an indexer pauses when the frames after the
//!   commit reach its limit.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cut::{Cut, Position};
use super::history::{Branches, FailoverLogs};
use super::ids::{ProducerTransactionId, Seqno, VbucketId};
use crate::error::{Error, ErrorCode, Result};

/// The maximum number of open pushed commits of a bucket at one projector. So many are made
/// during a few intervals between epochs, or while a producer waits for a projector.
pub const OPEN_MAX: usize = 1 << 10;
/// The maximum number of parts of all open pushed commits. Each takes some 20 bytes in a record
/// and in each SYNC report.
pub const OPEN_PARTS_MAX: usize = 16 << 10;

/// The part of a pushed commit in one vbucket: a range of seqnos on one branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushedPart {
    /// The vbucket of the part.
    pub vbucket: VbucketId,
    /// The seqno before the part's first mutation.
    pub after: Seqno,
    /// The position of the last mutation of the part.
    pub end: Position,
}

impl PushedPart {
    /// Returns the number of mutations of the part.
    pub fn mutations(&self) -> u64 {
        self.end.seqno.0.saturating_sub(self.after.0)
    }

    /// Returns true if a cut includes the complete part: the ends of both are in the history with
    /// these failover logs, and the part does not end after the cut. Seqnos alone are not
    /// sufficient, because another branch may have them too.
    pub fn is_in(&self, cut: &Cut, logs: &FailoverLogs) -> bool {
        let at = cut.get(self.vbucket);
        at.seqno >= self.end.seqno
            && logs.includes(self.vbucket, at)
            && logs.includes(self.vbucket, self.end)
    }

    /// Returns true if a cut is on the part's branch and includes its end. The failover logs are
    /// not needed. A false result proves nothing: a cut on a later branch may include the part
    /// too.
    pub fn is_in_cut_on_its_branch(&self, cut: &Cut) -> bool {
        let at = cut.get(self.vbucket);
        at.vbuuid == self.end.vbuuid && at.seqno >= self.end.seqno
    }

    /// Returns true if a cut includes the first mutation of the part. `logs` are the branches of
    /// the cut's history. All mutations of a part are on one branch.
    fn is_begun_in(&self, cut: &Cut, logs: &FailoverLogs) -> bool {
        let first = Seqno(self.after.0.saturating_add(1));
        cut.get(self.vbucket).seqno >= first
            && logs.branch_of(self.vbucket, first) == self.end.vbuuid
    }

    /// Returns true if the vbucket has left the part's branch before the part's end, so that the
    /// part can never be stored. `given_up` are earlier branches of the vbucket without remaining
    /// mutations. A vbucket begins each branch once, so none of these can return. A branch that
    /// the vbucket never had may still begin.
    pub fn is_lost(&self, branches: &Branches, given_up: &Branches) -> bool {
        let Position { vbuuid, seqno } = self.end;
        match branches.iter().position(|(known, _)| *known == vbuuid) {
            Some(at) => at.checked_sub(1).is_some_and(|next| branches[next].1 < seqno.0),
            None => given_up.iter().any(|(known, _)| *known == vbuuid),
        }
    }

    /// Returns true if the part is lost according to the failover logs, without the branches that
    /// were given up.
    fn is_lost_in(&self, logs: &FailoverLogs) -> bool {
        logs.get(self.vbucket).is_some_and(|known| self.is_lost(known, &Branches::new()))
    }
}

/// A commit of a producer's transaction: the parts in all vbuckets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushedCommit {
    /// The id of the transaction, assigned by its producer.
    pub transaction: ProducerTransactionId,
    /// The parts of the commit, ascending by vbucket, each vbucket once.
    pub parts: Vec<PushedPart>,
}

impl PushedCommit {
    /// Creates a commit from parts in any order. Returns an error if a part has no mutations, or
    /// a vbucket has two parts.
    pub fn new(transaction: ProducerTransactionId, mut parts: Vec<PushedPart>) -> Result<Self> {
        let bad = |what: String| {
            let what = format!("the commit of transaction {transaction} {what}");
            Err(Error::new(ErrorCode::InvalidParameter, what))
        };
        if transaction.0 == 0 {
            return bad("must name the transaction: a number above 0".into());
        }
        if parts.is_empty() {
            return bad("names no vbucket".into());
        }
        parts.sort_unstable_by_key(|part| part.vbucket);
        if let Some(pair) = parts.windows(2).find(|pair| pair[0].vbucket == pair[1].vbucket) {
            return bad(format!("names vbucket {} twice", pair[0].vbucket));
        }
        match parts.iter().find(|part| part.end.seqno <= part.after) {
            Some(part) => bad(format!("names no mutations of vbucket {}", part.vbucket)),
            None => Ok(Self { transaction, parts }),
        }
    }

    /// Returns the part in a vbucket, if there is one.
    pub fn part_of(&self, vbucket: VbucketId) -> Option<&PushedPart> {
        let at = self.parts.binary_search_by_key(&vbucket, |part| part.vbucket);
        at.ok().map(|at| &self.parts[at])
    }

    /// Returns true if a cut includes a mutation of the commit. `logs` are the branches of the
    /// cut's history.
    fn is_begun_in(&self, cut: &Cut, logs: &FailoverLogs) -> bool {
        self.parts.iter().any(|part| part.is_begun_in(cut, logs))
    }

    /// Returns true if a cut includes a mutation of the commit and lacks another one that may
    /// still appear. Lost parts do not count. The owners of vbuckets have already removed the
    /// parts on branches that were given up.
    fn is_split_by(&self, cut: &Cut, logs: &FailoverLogs) -> bool {
        let lacks = |part: &PushedPart| !part.is_in(cut, logs) && !part.is_lost_in(logs);
        self.is_begun_in(cut, logs) && self.parts.iter().any(lacks)
    }
}

/// Moves a cut back until it splits no pushed commit, but never below `published`. A commit with
/// a mutation in `published` is ignored, because it is already visible. All cuts are positions of
/// the history with these failover logs. The function ends because cuts only move back.
///
/// A larger cut never leads to a smaller result than a smaller cut does: parts in the smaller cut
/// are in the larger one too. So if the newest cut moves back to `published`, older ones need not
/// be tried.
///
/// After a commit was removed from the cut, the cut includes no mutation of it. So each commit is
/// removed once, and each part is visited once. The cost is linear in the number of parts,
/// however the commits depend on each other.
pub fn avoid_split_commits<'c>(
    commits: impl Iterator<Item = &'c PushedCommit>,
    (published, logs): (&Cut, &FailoverLogs),
    cut: &mut Cut,
) {
    let commits: Vec<_> = commits.filter(|commit| !commit.is_begun_in(published, logs)).collect();
    let is_split = |at: &usize| commits[*at].is_split_by(cut, logs);
    let mut left: Vec<_> = (0..commits.len()).filter(is_split).collect();
    if left.is_empty() {
        return;
    }
    let mut passed = PendingParts::new(&commits);
    while let Some(at) = left.pop() {
        for part in &commits[at].parts {
            if move_cut_before(part, (published, logs), cut) {
                passed.remove_above(part.vbucket, cut.get(part.vbucket).seqno, |at, part| {
                    if !part.is_lost_in(logs) {
                        left.push(at);
                    }
                });
            }
        }
    }
}

/// The parts that a cut still includes while it moves back. For each vbucket: the parts with the
/// index of their commit, ascending by their ends.
struct PendingParts<'c>(BTreeMap<VbucketId, Vec<(&'c PushedPart, usize)>>);

impl<'c> PendingParts<'c> {
    fn new(commits: &[&'c PushedCommit]) -> Self {
        let mut parts = BTreeMap::<_, Vec<_>>::new();
        for (at, commit) in commits.iter().enumerate() {
            commit
                .parts
                .iter()
                .for_each(|part| parts.entry(part.vbucket).or_default().push((part, at)));
        }
        for of_vbucket in parts.values_mut() {
            of_vbucket.sort_by_key(|(part, _)| part.end.seqno);
        }
        Self(parts)
    }

    /// Removes the parts of a vbucket that a cut no longer includes when it moves back to `to`.
    /// Calls `each` for each of them.
    fn remove_above(
        &mut self,
        vbucket: VbucketId,
        to: Seqno,
        mut each: impl FnMut(usize, &PushedPart),
    ) {
        let Some(parts) = self.0.get_mut(&vbucket) else { return };
        while let Some((part, at)) = parts.pop_if(|(part, _)| part.end.seqno > to) {
            each(at, part);
        }
    }
}

/// Moves a cut back to before a part, but not below `published`. Returns false if the cut already
/// includes no mutation of the part.
fn move_cut_before(
    part: &PushedPart,
    (published, logs): (&Cut, &FailoverLogs),
    cut: &mut Cut,
) -> bool {
    let (at, last) = (cut.get(part.vbucket), published.get(part.vbucket));
    let to = match part.after > last.seqno {
        true => Position { vbuuid: logs.branch_of(part.vbucket, part.after), seqno: part.after },
        false => last,
    };
    let falls = part.is_begun_in(cut, logs) && to.seqno < at.seqno;
    if falls {
        cut.set(part.vbucket, to);
    }
    falls
}

#[cfg(test)]
#[path = "pushed_commit_tests.rs"]
mod tests;
