//! The mutations that the epochs of a pushed bucket wait for, as far as this projector knows: the
//! missing parts of its open commits ([`super::parts`]), and the parts that other owners have
//! queried lately. (A commit has a part in each vbucket that it changes.) Such mutations are
//! always accepted (`service/room.rs`).

use std::collections::BTreeMap;

use proto::model::assignment::VbucketSet;
use proto::model::ids::{ProducerTransactionId, Seqno, VbucketId};
use proto::model::open_commit::PartState;
use proto::model::pushed_commit::{PushedCommit, PushedPart};
use tokio::time::Instant;

use crate::source::view::bucket::Bucket;

impl Bucket {
    /// Answers another owner's query about the parts of a commit in these vbuckets. Records that
    /// the other owner waits for the parts that are missing in this bucket, and also for the
    /// transaction: its producer may commit it again at other positions.
    pub fn look_at_pushed(
        &self,
        commit: &PushedCommit,
        wanted: &VbucketSet,
    ) -> Vec<(VbucketId, PartState)> {
        let (mut state, now) = (self.state(), Instant::now());
        let mut found = Vec::new();
        let mut is_new = state.open.awaited.wait_for_transaction(commit.transaction, now);
        let is_here = |part: &&PushedPart| {
            wanted.contains(part.vbucket) && part.vbucket.0 < self.info.vbuckets
        };
        for part in commit.parts.iter().filter(is_here) {
            if !state.ownership.owned.contains(part.vbucket) {
                continue;
            }
            let part_state = state.own_part_state(part);
            if part_state == PartState::Missing {
                is_new |= state.open.awaited.wait_for(part.vbucket, part.end.seqno, now);
            }
            found.push((part.vbucket, part_state));
        }
        drop(state);
        if is_new {
            self.wake();
        }
        found
    }

    /// Returns true if another owner has recently asked about a producer's transaction.
    pub fn awaits_transaction(&self, transaction: ProducerTransactionId) -> bool {
        self.state().open.awaited.has_transaction(transaction, Instant::now())
    }

    /// Returns true if epochs may wait for a commit of a producer: another owner waits for its
    /// transaction, or for a part of the commit in these vbuckets.
    pub fn awaits_commit(&self, commit: &PushedCommit, wanted: &VbucketSet) -> bool {
        if self.awaits_transaction(commit.transaction) {
            return true;
        }
        let ends = self.awaited_ends();
        let is_awaited =
            |part: &PushedPart| ends.get(&part.vbucket).is_some_and(|end| part.end.seqno <= *end);
        commit.parts.iter().filter(|part| wanted.contains(part.vbucket)).any(is_awaited)
    }

    /// Returns the vbuckets with missing mutations that open commits of this bucket or other
    /// owners wait for, each with the last seqno that is waited for. The commits are read once,
    /// whatever the number of vbuckets.
    pub fn awaited_ends(&self) -> BTreeMap<VbucketId, Seqno> {
        let state = self.state();
        let mut ends: BTreeMap<_, _> = state.open.awaited.awaited_ends(Instant::now()).collect();
        for part in state.open_pushed().flat_map(|commit| &commit.parts) {
            let is_owned = state.ownership.owned.contains(part.vbucket);
            if is_owned && state.own_part_state(part) == PartState::Missing {
                let end = ends.entry(part.vbucket).or_default();
                *end = part.end.seqno.max(*end);
            }
        }
        ends.retain(|vbucket, end| *end > state.durable.get(*vbucket).seqno);
        ends
    }
}
