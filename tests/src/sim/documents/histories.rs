//! The histories of a projector's buckets, for the judge: the present history and lost ones.

use std::sync::Arc;

use projector::testing::Mutation;
use proto::model::cut::Position;
use proto::model::history::{Branches, branch_of};
use proto::model::ids::{BucketId, VbucketId};

use super::contents::{Change, Contents};
use super::mirror::{Mirror, State};
use crate::sim::judge::statements::History;
use crate::sim::judge::truth::Readable;

impl State {
    fn present(&self, bucket: BucketId) -> Option<History> {
        let contents = self.known.buckets.get(&bucket)?;
        Some((contents.record.branches.clone(), contents.log.clone()))
    }

    /// Returns a history with the mutations that this copy never had, from the ledger. A vbucket
    /// with missing mutations is omitted.
    fn whole(&self, bucket: BucketId, (branches, mut logs): History) -> History {
        for ((vbucket, log), branches) in (0..).map(VbucketId).zip(&mut logs).zip(&branches) {
            let is_part = branches.is_empty();
            let known = self.ledger.completed((bucket, vbucket), branches, log);
            *log = known.filter(|_| !is_part).unwrap_or_default();
        }
        (branches, logs)
    }

    fn past_of(&self, bucket: BucketId) -> &[History] {
        self.past.get(&bucket).map_or(&[], Vec::as_slice)
    }

    /// Calls `take` with the branches and the log of a vbucket in the history that contains a
    /// position; the present history is tried first. `None` if none contains it.
    fn in_history<T>(
        &self,
        bucket: BucketId,
        vbucket: VbucketId,
        position: Position,
        take: impl FnOnce(&Branches, &[Arc<Mutation>]) -> T,
    ) -> Option<T> {
        let at = usize::from(vbucket.0);
        let present = self.known.buckets.get(&bucket);
        let present = present.map(|contents| (&contents.record.branches, &contents.log));
        let past = self.past_of(bucket).iter().rev().map(|(branches, log)| (branches, log));
        let mut all = present.into_iter().chain(past);
        let (branches, log) = all.find(|(branches, log)| {
            log[at].len() as u64 >= position.seqno.0
                && (position.seqno.0 == 0
                    || branch_of(&branches[at], position.seqno) == position.vbuuid)
        })?;
        Some(take(&branches[at], &log[at]))
    }
}

impl Mirror {
    /// Returns the mutations of a vbucket up to a position, in the present history or in a lost one
    /// that contains the position.
    pub fn log_at(
        &self,
        bucket: BucketId,
        vbucket: VbucketId,
        position: Position,
    ) -> Option<Vec<Arc<Mutation>>> {
        let state = self.state();
        let upto = |branches: &Branches, log: &[Arc<Mutation>]| {
            let log = &log[..position.seqno.0 as usize];
            state.ledger.completed((bucket, vbucket), branches, log)
        };
        state.in_history(bucket, vbucket, position, upto)?
    }

    /// Returns the mutations of a vbucket up to a position, in the present history only.
    pub fn present_log(
        &self,
        bucket: BucketId,
        vbucket: VbucketId,
        position: Position,
    ) -> Option<Vec<Arc<Mutation>>> {
        let state = self.state();
        let contents = state.known.buckets.get(&bucket)?;
        let at = usize::from(vbucket.0);
        let log = contents.log[at].get(..position.seqno.0 as usize)?;
        let branches = &contents.record.branches[at];
        let is_here = branch_of(branches, position.seqno) == position.vbuuid;
        is_here.then(|| state.ledger.completed((bucket, vbucket), branches, log))?
    }

    /// True if the store has a bucket.
    pub fn knows(&self, bucket: BucketId) -> bool {
        let state = self.state();
        state.known.buckets.contains_key(&bucket) && !state.damaged.contains(&bucket)
    }

    /// True if the store keeps a damaged bucket, or files of one.
    pub fn keeps_damaged(&self) -> bool {
        let state = self.state();
        state.keeps_files || !state.damaged.is_empty()
    }

    /// Records that damaged files are kept for the operator.
    pub(super) fn keep_damaged(&self) {
        self.state().keeps_files = true;
    }

    /// True if a position is in the present history.
    pub fn has(&self, bucket: BucketId, vbucket: VbucketId, position: Position) -> bool {
        self.present_log(bucket, vbucket, position).is_some()
    }

    /// Returns a text about a difference between this store's bucket and that of another store;
    /// `None` if they are equal.
    pub fn differs_from(&self, other: &Self, bucket: BucketId) -> Option<String> {
        let contents = |mirror: &Self| mirror.state().known.buckets.get(&bucket).cloned();
        let (Some(mine), Some(theirs)) = (contents(self), contents(other)) else {
            return Some("one of them does not have the bucket".into());
        };
        let ends = |of: &Contents| of.log.iter().map(Vec::len).collect::<Vec<_>>();
        if ends(&mine) != ends(&theirs) {
            return Some(format!("the logs end at {:?}, not {:?}", ends(&mine), ends(&theirs)));
        }
        if mine.record.branches != theirs.record.branches {
            let (mine, theirs) = (mine.record.branches, theirs.record.branches);
            return Some(format!("the branches are {mine:?}, not {theirs:?}"));
        }
        let all = mine.documents.keys().chain(theirs.documents.keys());
        let mut differing = all.filter(|id| mine.documents.get(*id) != theirs.documents.get(*id));
        let id = differing.next()?;
        let (mine, theirs) = (mine.documents.get(id), theirs.documents.get(id));
        Some(format!("document {id} is {mine:?}, not {theirs:?}"))
    }

    /// Returns all histories of a bucket, each with its branches and its log by vbucket; the
    /// present history first, then the lost ones.
    pub fn histories(&self, bucket: BucketId) -> Vec<History> {
        let state = self.state();
        let past = state.past_of(bucket).iter().cloned();
        let all = state.present(bucket).into_iter().chain(past);
        all.map(|history| state.whole(bucket, history)).collect()
    }

    /// Returns the log of a vbucket, including mutations that are being committed, and the length
    /// that every reader sees.
    pub fn readable(&self, bucket: BucketId, vbucket: VbucketId) -> Option<Readable> {
        let state = self.state();
        let contents = state.known.buckets.get(&bucket)?;
        let mut log = contents.log[usize::from(vbucket.0)].clone();
        let from = log.len();
        for change in state.doubts_of(bucket) {
            if let Change::Commit { mutations, .. } = change {
                let mine = mutations.iter().filter(|mutation| mutation.vbucket == vbucket);
                log.extend(mine.cloned());
            }
        }
        let branches = &contents.record.branches[usize::from(vbucket.0)];
        let logs = vec![state.ledger.completed((bucket, vbucket), branches, &log)?];
        Some(Readable { logs, from, lost: 1 + state.past_of(bucket).len() as u64 })
    }

    /// True if a position is at or before `end` in the history that contains `end`.
    pub fn is_before(
        &self,
        bucket: BucketId,
        vbucket: VbucketId,
        position: Position,
        end: Position,
    ) -> bool {
        let branch = |seqno| {
            self.state().in_history(bucket, vbucket, end, |branches, _| branch_of(branches, seqno))
        };
        position.seqno <= end.seqno && branch(position.seqno) == Some(position.vbuuid)
    }
}
