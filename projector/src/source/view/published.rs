//! Publishes a group, so that readers see it. The sums and ends of the group are computed before
//! the bucket's lock is taken: otherwise a large group would delay all readers, including those
//! of other buckets.

use std::sync::Arc;

use documents::mutation::Mutation;
use proto::model::commits::TransactionEvent;
use proto::model::history::Branches;

use super::backlog::{GroupEnds, ends_of};
use super::bucket::{Bucket, SourceState};
use super::large_commits::LargeCommit;

/// A group's mutations, prepared for their publication.
pub struct PublishedGroup {
    /// For each vbucket that the group changes, the last seqno and the bytes of the mutations.
    pub(super) ends: GroupEnds,
    /// The newest mutations of the group, in order: no more than the head of the bucket can keep.
    pub(super) newest: Vec<Arc<Mutation>>,
    /// The number of mutations before those in `newest`.
    pub(super) older: usize,
}

impl PublishedGroup {
    /// Prepares the mutations of a group for a head of `head_bytes_max` bytes.
    pub fn of(mutations: &[Arc<Mutation>], head_bytes_max: usize) -> Self {
        let ends = ends_of(mutations);
        let mut left = head_bytes_max;
        let kept = mutations.iter().rev().take_while(|mutation| {
            let bytes = mutation.bytes();
            let fits = bytes <= left;
            left -= if fits { bytes } else { 0 };
            fits
        });
        let older = mutations.len() - kept.count();
        Self { ends, newest: mutations[older..].to_vec(), older }
    }
}

impl Bucket {
    /// Prepares the mutations of a group for [`Self::publish`].
    pub fn to_publish(&self, mutations: &[Arc<Mutation>]) -> PublishedGroup {
        PublishedGroup::of(mutations, self.head_bytes_max)
    }

    /// Publishes a group that is in the log, so that readers see it.
    pub fn publish(
        &self,
        published: PublishedGroup,
        branches: Option<Vec<Branches>>,
        (commits, large): (&[TransactionEvent], Vec<Arc<LargeCommit>>),
    ) {
        let PublishedGroup { ends, newest, older } = published;
        let mut state = self.state();
        let SourceState { open, durable, .. } = &mut *state;
        open.record_steps(commits, durable);
        if let Some(branches) = branches {
            state.set_logs(branches);
        }
        for (vbucket, (seqno, _)) in &ends {
            state.set_end(*vbucket, *seqno);
        }
        state.unpublished.add(ends);
        state.head.add(older, newest);
        state.add_steps(commits);
        state.large_commits.add(large);
        drop(state);
        self.changed.send_modify(|count| *count += 1);
    }
}
