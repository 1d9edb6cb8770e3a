//! Decides how a stream sends large commits. If the stream has sent all changes of the
//! transaction in advance, as bodies, it sends a marker; otherwise it sends the mutations.
//!
//! A stream receives the notice of a large commit before it reaches the first of its mutations,
//! and stops there. Then it decides:
//!
//! - If it has sent all bodies, it sends the marker, and covers the seqnos of the mutations with
//!   empty frames, in each vbucket when it reaches them.
//! - If it has not sent all bodies yet, it first sends the missing bodies and nothing else. They
//!   are not longer than the mutations would be.
//! - If it cannot send all bodies, because it began after the end of the transaction or received
//!   the notice too late, it sends the mutations.
//!
//! From the marker on, no index joins the stream until all seqnos of the commit are covered. So
//! the commit applies to the same indexes in all vbuckets.

use std::collections::BTreeSet;
use std::sync::Arc;

use proto::model::assignment::VbucketSet;
use proto::model::cut::Cut;
use proto::model::ids::{Seqno, TransactionId, VbucketId};
use proto::rpc::mutation::{ChangesDigest, CommitMarker};

use crate::source::view::bucket::Bucket;
use crate::source::view::large_commits::LargeCommit;

/// The share of a transaction's changes that a stream has sent as bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SentPart {
    /// All changes were sent; contains their digest.
    Whole(ChangesDigest),
    /// Some changes are not sent yet.
    Partly,
    /// Some changes were not sent, and can no longer be read.
    Lost,
}

/// A large commit whose mutations the stream has not passed yet.
struct CommitAhead {
    commit: Arc<LargeCommit>,
    /// True once the commit's marker was sent.
    is_marked: bool,
}

/// The large commits whose mutations are ahead of a stream's position.
#[derive(Default)]
pub(super) struct Markers {
    ahead: Vec<CommitAhead>,
    /// The number of large commits of the bucket of which the stream was notified so far.
    known: u64,
}

impl Markers {
    /// Adds the bucket's new large commits, except those that the stream cannot replace by a
    /// marker: their mutations are partly passed, or in vbuckets that the stream does not carry.
    pub fn follow(&mut self, bucket: &Bucket, (at, vbuckets): (&Cut, &VbucketSet)) {
        let (new, count) = bucket.large_commits_after(self.known);
        self.known = count;
        let is_ahead = |commit: &Arc<LargeCommit>| {
            commit.ranges.iter().all(|range| {
                vbuckets.contains(range.vbucket) && at.get(range.vbucket).seqno <= range.after
            })
        };
        let new = new.into_iter().filter(is_ahead);
        self.ahead.extend(new.map(|commit| CommitAhead { commit, is_marked: false }));
    }

    /// Returns true if the bodies of a transaction that has ended are still needed, because the
    /// marker of its commit was not sent yet.
    pub fn needs_bodies(&self, transaction: TransactionId, number: u64) -> bool {
        let of = |ahead: &CommitAhead| (ahead.commit.transaction, ahead.commit.number);
        self.ahead.iter().any(|ahead| !ahead.is_marked && of(ahead) == (transaction, number))
    }

    /// Returns true while the stream has sent a marker and has not covered all its seqnos.
    pub fn has_uncovered_marker(&self) -> bool {
        self.ahead.iter().any(|ahead| ahead.is_marked)
    }

    /// Returns true if no large commit is ahead of the stream, so that the stream need not look
    /// for their mutations.
    pub fn is_empty(&self) -> bool {
        self.ahead.is_empty()
    }

    /// Returns the first mutation of each large commit in each vbucket. The stream must stop
    /// before these.
    pub fn first_mutations(&self) -> BTreeSet<(VbucketId, Seqno)> {
        let ranges = self.ahead.iter().flat_map(|ahead| &ahead.commit.ranges);
        ranges.map(|range| (range.vbucket, Seqno(range.after.0 + 1))).collect()
    }

    /// Returns the large commit that the stream must decide on now: it has reached a mutation of
    /// a commit that is not decided. The returned commit is the first undecided one, since
    /// markers are sent in the order of the log.
    pub fn undecided(&self, at: &Cut) -> Option<Arc<LargeCommit>> {
        let mut unmarked = self.ahead.iter().filter(|ahead| !ahead.is_marked);
        let is_due = unmarked.clone().any(|ahead| is_directly_before(ahead, at));
        unmarked.next().filter(|_| is_due).map(|first| Arc::clone(&first.commit))
    }

    /// Decides to send the marker of a commit, and returns the marker.
    pub fn decide_marker(
        &mut self,
        commit: &Arc<LargeCommit>,
        digest: ChangesDigest,
    ) -> CommitMarker {
        let found = self.ahead.iter_mut().find(|ahead| Arc::ptr_eq(&ahead.commit, commit));
        found.into_iter().for_each(|ahead| ahead.is_marked = true);
        let LargeCommit { transaction, place, ranges, .. } = &**commit;
        CommitMarker { transaction: *transaction, place: *place, digest, ranges: ranges.clone() }
    }

    /// Decides to send the mutations of a commit, without a marker.
    pub fn send_mutations(&mut self, commit: &Arc<LargeCommit>) {
        self.ahead.retain(|ahead| !Arc::ptr_eq(&ahead.commit, commit));
    }

    /// Returns the seqnos that the stream must cover with empty frames now, because a marker
    /// replaces their mutations. Each range has the vbucket, the seqno before the range, and the
    /// last seqno.
    pub fn ranges_to_cover(&self, at: &Cut) -> Vec<(VbucketId, Seqno, Seqno)> {
        let marked = self.ahead.iter().filter(|ahead| ahead.is_marked);
        let ranges = marked.flat_map(|ahead| &ahead.commit.ranges);
        let here = ranges.filter(|range| at.get(range.vbucket).seqno == range.after);
        here.map(|range| (range.vbucket, range.after, range.to)).collect()
    }

    /// Removes the commits whose mutations the stream has passed.
    pub fn forget_passed(&mut self, at: &Cut) {
        self.ahead.retain(|ahead| {
            let mut ranges = ahead.commit.ranges.iter();
            ranges.any(|range| at.get(range.vbucket).seqno < range.to)
        });
    }
}

/// Returns true if the stream's position is directly before a mutation range of the commit.
fn is_directly_before(ahead: &CommitAhead, at: &Cut) -> bool {
    ahead.commit.ranges.iter().any(|range| at.get(range.vbucket).seqno == range.after)
}
