//! Commits of transactions in pushed buckets: *pushed commits*.
//!
//! The producer of a pushed bucket has the data and makes the decision, so a transaction there has no conflicts, and its commit no first
//! phase. The producer numbers its transactions, and the mutations of each one from 1 in each vbucket. The owner of a vbucket keeps them as
//! an open transaction. The commit names, for each vbucket, the position that it ends at and the number of its mutations: the mutation
//! with the number n gets the n-th seqno behind those that the vbucket has. So the history of a vbucket is what its producer says, also
//! where a document was changed twice.
//!
//! The owners commit their parts one by one. A pushed commit of several vbuckets is *open* until an epoch has all of it. Its owners name it in
//! SYNC, with all of its parts, and the leader lets cuts fall until none is split ([`keep_whole`]). There is no time limit: a part that was
//! not committed holds the epochs of the other vbuckets before the commit, and its producer commits again. Mutations of a pushed
//! vbucket are independent of each other otherwise, so an epoch may end anywhere else.
//!
//! A part is in a cut if its end lies in the history of the cut. A seqno alone says nothing: behind a fail-over of the producer, or a loss, another branch
//! has it too. Whoever lacks the failover log of a vbucket takes a part for shown only where the cut is on the branch of the part. A part is
//! *lost* when its vbucket has left its branch before its end. A vbucket begins each branch once, so a lost part never comes. A branch that the
//! vbucket does not know says nothing: it may be about to begin.
//!
//! Open pushed commits are in the bucket's record, like joint commits. They go along with a vbucket that is handed over.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cut::{Cut, Position};
use super::history::{Branches, FailoverLogs};
use super::ids::{ProducerTransactionId, Seqno, VbucketId};
use crate::error::{Error, ErrorCode, Result};

/// Open pushed commits of a bucket at one projector: those of a few ticks of the coordinator, or of a producer that waits for a projector.
pub const OPEN_MAX: usize = 1 << 10;
/// Parts of all these. A record and each SYNC have some 20 bytes for each.
pub const OPEN_PARTS_MAX: usize = 16 << 10;

/// The part of a pushed commit in one vbucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushedPart {
    /// The vbucket.
    pub vbucket: VbucketId,
    /// The seqno before its first mutation.
    pub after: Seqno,
    /// The position of its last one.
    pub end: Position,
}

impl PushedPart {
    /// The number of its mutations.
    pub fn mutations(&self) -> u64 {
        self.end.seqno.0.saturating_sub(self.after.0)
    }

    /// True if a cut has it: both places lie in the history with these failover logs, and the part does not end behind the cut. A seqno alone
    /// says nothing, because another branch may have it too.
    pub fn is_in(&self, cut: &Cut, logs: &FailoverLogs) -> bool {
        let at = cut.get(self.vbucket);
        at.seqno >= self.end.seqno
            && logs.includes(self.vbucket, at)
            && logs.includes(self.vbucket, self.end)
    }

    /// True if a cut has it whatever the failover logs are: the cut is on the same branch. A part on an earlier branch may be there too.
    pub fn is_on_branch_of(&self, cut: &Cut) -> bool {
        let at = cut.get(self.vbucket);
        at.vbuuid == self.end.vbuuid && at.seqno >= self.end.seqno
    }

    /// True if a cut of the history with these failover logs has some mutation of it. All of them are on one branch.
    fn is_begun_in(&self, cut: &Cut, logs: &FailoverLogs) -> bool {
        let first = Seqno(self.after.0.saturating_add(1));
        cut.get(self.vbucket).seqno >= first
            && logs.branch_of(self.vbucket, first) == self.end.vbuuid
    }

    /// True if the vbucket has left its branch before its end: it will never be there. `given_up` are branches that the vbucket has had and
    /// of which nothing is left. Each branch is begun once, so none of them comes back. A branch that the vbucket never had may be about to
    /// begin.
    pub fn is_lost(&self, branches: &Branches, given_up: &Branches) -> bool {
        let Position { vbuuid, seqno } = self.end;
        match branches.iter().position(|(known, _)| *known == vbuuid) {
            Some(at) => at.checked_sub(1).is_some_and(|next| branches[next].1 < seqno.0),
            None => given_up.iter().any(|(known, _)| *known == vbuuid),
        }
    }

    /// The same as far as failover logs tell.
    fn is_lost_in(&self, logs: &FailoverLogs) -> bool {
        logs.get(self.vbucket).is_some_and(|known| self.is_lost(known, &Branches::new()))
    }
}

/// A pushed commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushedCommit {
    /// The transaction, as its producer numbers it.
    pub transaction: ProducerTransactionId,
    /// Its parts in all vbuckets, ascending, each vbucket once.
    pub parts: Vec<PushedPart>,
}

impl PushedCommit {
    /// A commit with parts in any order. Each must have mutations, and each vbucket one part.
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

    /// The part in a vbucket.
    pub fn part_of(&self, vbucket: VbucketId) -> Option<&PushedPart> {
        let at = self.parts.binary_search_by_key(&vbucket, |part| part.vbucket);
        at.ok().map(|at| &self.parts[at])
    }

    /// True if a cut of the history with these failover logs has some mutation of it.
    fn is_begun_in(&self, cut: &Cut, logs: &FailoverLogs) -> bool {
        self.parts.iter().any(|part| part.is_begun_in(cut, logs))
    }

    /// True if a cut has some mutation of it and lacks another one that may come. What the vbucket has given up, only its owner knows: it
    /// names that part no longer.
    fn is_split_by(&self, cut: &Cut, logs: &FailoverLogs) -> bool {
        let lacks = |part: &PushedPart| !part.is_in(cut, logs) && !part.is_lost_in(logs);
        self.is_begun_in(cut, logs) && self.parts.iter().any(lacks)
    }
}

/// Lets a cut fall until it splits no pushed commit, but never below `published`. What that has begun is not hidden any more: a
/// part was lost, or is not waited for. All cuts are places in the history with these failover logs. Cuts only fall, so that ends.
///
/// A larger cut never falls to less than a smaller one: what a commit has in the smaller one it has in the larger one too. So if the newest cut
/// falls to `published`, no older one is worth a look.
///
/// A commit that was taken out is not begun any more, so each one is taken out once, and each part is passed by its vbucket once. The cost is that of
/// a look at all parts, however the commits hang together.
pub fn keep_whole<'c>(
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
    let mut passed = Passed::new(&commits);
    while let Some(at) = left.pop() {
        for part in &commits[at].parts {
            if fall(part, (published, logs), cut) {
                passed.pass(part.vbucket, cut.get(part.vbucket).seqno, |at, part| {
                    if !part.is_lost_in(logs) {
                        left.push(at);
                    }
                });
            }
        }
    }
}

/// The parts that a falling cut has not passed yet: for each vbucket their ends, ascending, with the place of the commit.
struct Passed<'c>(BTreeMap<VbucketId, Vec<(&'c PushedPart, usize)>>);

impl<'c> Passed<'c> {
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

    /// Calls for each part that a vbucket has no longer when its cut falls to a seqno, once.
    fn pass(&mut self, vbucket: VbucketId, to: Seqno, mut each: impl FnMut(usize, &PushedPart)) {
        let Some(parts) = self.0.get_mut(&vbucket) else { return };
        while let Some((part, at)) = parts.pop_if(|(part, _)| part.end.seqno > to) {
            each(at, part);
        }
    }
}

/// Takes a cut back to before a part, unless it has nothing of the part.
fn fall(part: &PushedPart, (published, logs): (&Cut, &FailoverLogs), cut: &mut Cut) -> bool {
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

/// The open pushed commits of a bucket at one projector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenCommits(BTreeMap<ProducerTransactionId, PushedCommit>);

impl OpenCommits {
    /// The commits, by transaction.
    pub fn iter(&self) -> impl Iterator<Item = &PushedCommit> {
        self.0.values()
    }

    /// The open commit of a transaction.
    pub fn find(&self, transaction: ProducerTransactionId) -> Option<&PushedCommit> {
        self.0.get(&transaction)
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if a bucket takes another open commit beside these.
    pub fn has_room(&self, commit: &PushedCommit) -> bool {
        let parts: usize = self.iter().map(|open| open.parts.len()).sum();
        self.0.is_empty() || self.0.len() < OPEN_MAX && parts + commit.parts.len() <= OPEN_PARTS_MAX
    }

    /// These without some of them.
    pub fn without(&self, transactions: &[ProducerTransactionId]) -> Self {
        let mut rest = self.clone();
        transactions.iter().for_each(|transaction| rest.settle(*transaction));
        rest
    }

    pub(super) fn add(&mut self, commit: &PushedCommit) {
        self.0.insert(commit.transaction, commit.clone());
    }

    pub(super) fn settle(&mut self, transaction: ProducerTransactionId) {
        self.0.remove(&transaction);
    }
}

#[cfg(test)]
#[path = "pushed_tests.rs"]
mod tests;
