//! Lost histories. A source may come back from an older copy of its disk. The newer data is kept here for the judge
//! of a simulation, which must know what a scan from before the loss has to show. The product never reads it.

use std::sync::Arc;

use proto::model::cut::Position;
use proto::model::history::{Branches, branch_of};
use proto::model::ids::{BucketId, Seqno, VbucketId, Vbuuid};

use super::contents::{Contents, Log};
use super::store::MemoryStore;
use crate::mutation::Mutation;

impl Contents {
    /// The log of a vbucket in the history that has a position. The present history comes first.
    fn log_with(&self, vbucket: VbucketId, position: Position) -> Option<&[Arc<Mutation>]> {
        let (_, log) = self.history_with(vbucket, position)?;
        Some(&log[usize::from(vbucket.0)][..position.seqno.0 as usize])
    }

    /// The branch of a seqno in the history that has a position.
    fn branch_before(
        &self,
        vbucket: VbucketId,
        position: Position,
        seqno: Seqno,
    ) -> Option<Vbuuid> {
        let (branches, _) = self.history_with(vbucket, position)?;
        Some(branch_of(&branches[usize::from(vbucket.0)], seqno))
    }

    fn history_with(
        &self,
        vbucket: VbucketId,
        position: Position,
    ) -> Option<(&Vec<Branches>, &Log)> {
        let at = usize::from(vbucket.0);
        let present = std::iter::once((&self.record.branches, &self.log));
        let past = self.past.iter().rev().map(|(branches, log)| (branches, log));
        let has = |(branches, log): &(&Vec<Branches>, &Log)| {
            log[at].len() as u64 >= position.seqno.0
                && (position.seqno.0 == 0
                    || branch_of(&branches[at], position.seqno) == position.vbuuid)
        };
        present.chain(past).find(has)
    }
}

impl MemoryStore {
    /// The mutations of a vbucket up to a position, in the present history or in a lost one that has the position.
    pub fn log_at(
        &self,
        bucket: BucketId,
        vbucket: VbucketId,
        position: Position,
    ) -> Option<Vec<Arc<Mutation>>> {
        let state = self.state();
        Some(state.buckets.get(&bucket)?.log_with(vbucket, position)?.to_vec())
    }

    /// The mutations of a vbucket up to a position, in the present history only.
    pub fn present_log(
        &self,
        bucket: BucketId,
        vbucket: VbucketId,
        position: Position,
    ) -> Option<Vec<Arc<Mutation>>> {
        let state = self.state();
        let contents = state.buckets.get(&bucket)?;
        let branches = &contents.record.branches[usize::from(vbucket.0)];
        let log = contents.log[usize::from(vbucket.0)].get(..position.seqno.0 as usize)?;
        let is_there = branch_of(branches, position.seqno) == position.vbuuid;
        is_there.then(|| log.to_vec())
    }

    /// All histories of a bucket: its branches and its log, by vbucket; the present history first, then the lost ones.
    pub fn histories(&self, bucket: BucketId) -> Vec<(Vec<Branches>, Log)> {
        let state = self.state();
        let Some(contents) = state.buckets.get(&bucket) else { return Vec::new() };
        let present = (contents.record.branches.clone(), contents.log.clone());
        std::iter::once(present).chain(contents.past.iter().cloned()).collect()
    }

    /// True if a position is at or before `end` in the history that has `end`.
    pub fn is_before(
        &self,
        bucket: BucketId,
        vbucket: VbucketId,
        position: Position,
        end: Position,
    ) -> bool {
        let state = self.state();
        let Some(contents) = state.buckets.get(&bucket) else { return false };
        position.seqno <= end.seqno
            && contents.branch_before(vbucket, end, position.seqno) == Some(position.vbuuid)
    }

    /// Restores the source from an older copy: `keep` returns the new end of each vbucket. The branches stay as they
    /// were; the process that opens the store begins new ones for embedded buckets. Returns the vbuckets that have
    /// lost something, and their new ends.
    pub fn restore_older(
        &self,
        bucket: BucketId,
        mut keep: impl FnMut(u64) -> u64,
    ) -> Vec<(VbucketId, Seqno)> {
        let mut state = self.state();
        let Some(contents) = state.buckets.get_mut(&bucket) else { return Vec::new() };
        contents.keep_history();
        let mut lost = Vec::new();
        for at in 0..contents.log.len() {
            let (vbucket, end) = (VbucketId(at as u16), contents.log[at].len() as u64);
            let kept = keep(end).min(end);
            // No log has the documents from before a copy.
            if kept <= contents.absent[at].0 && kept > 0
                || contents.rewind(vbucket, Seqno(kept)).is_err()
            {
                continue;
            }
            if kept < end {
                lost.push((vbucket, Seqno(kept)));
            }
            // An older copy does not have branches that began later.
            contents.record.branches[at].retain(|(_, began)| *began < kept.max(1));
        }
        lost
    }
}
