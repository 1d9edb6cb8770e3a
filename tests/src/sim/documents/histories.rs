//! The histories of a projector's buckets, for the judge: the present one, and those that were left.

use std::sync::Arc;

use projector::testing::Mutation;
use proto::model::cut::Position;
use proto::model::history::branch_of;
use proto::model::ids::{BucketId, VbucketId};

use super::contents::Change;
use super::mirror::{Mirror, State};
use crate::sim::statements::History;
use crate::sim::truth::Readable;

impl State {
    fn present(&self, bucket: BucketId) -> Option<History> {
        let contents = self.known.buckets.get(&bucket)?;
        Some((contents.record.branches.clone(), contents.log.clone()))
    }

    fn past_of(&self, bucket: BucketId) -> &[History] {
        self.past.get(&bucket).map_or(&[], Vec::as_slice)
    }

    /// Calls `take` with the branches and the log of a vbucket in the history that has a position. The present history comes first.
    fn in_history<T>(
        &self,
        bucket: BucketId,
        vbucket: VbucketId,
        position: Position,
        take: impl FnOnce(&proto::model::history::Branches, &[Arc<Mutation>]) -> T,
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
    /// The mutations of a vbucket up to a position, in the present history or in a lost one that has the position.
    pub fn log_at(
        &self,
        bucket: BucketId,
        vbucket: VbucketId,
        position: Position,
    ) -> Option<Vec<Arc<Mutation>>> {
        let upto = |log: &[Arc<Mutation>]| log[..position.seqno.0 as usize].to_vec();
        self.state().in_history(bucket, vbucket, position, |_, log| upto(log))
    }

    /// The mutations of a vbucket up to a position, in the present history only.
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
        let branch = branch_of(&contents.record.branches[at], position.seqno);
        (branch == position.vbuuid).then(|| log.to_vec())
    }

    /// All histories of a bucket: its branches and its log, by vbucket; the present history first, then the lost ones.
    pub fn histories(&self, bucket: BucketId) -> Vec<History> {
        let state = self.state();
        let past = state.past_of(bucket).iter().cloned();
        state.present(bucket).into_iter().chain(past).collect()
    }

    /// The log of a vbucket, with mutations that are being committed, and the part of it that every reader sees.
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
        Some(Readable { log, from, lost: 1 + state.past_of(bucket).len() as u64 })
    }

    /// True if a position is at or before `end` in the history that has `end`.
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
