//! Large commits in a stream: a marker instead of the mutations, if the stream has sent all changes
//! of the transaction as bodies.
//!
//! A stream receives the notice of a large commit before it reaches the first of its mutations, and
//! stops there. Then it decides:
//!
//! - If it has sent all bodies, it sends the marker, and covers the seqnos of the mutations with
//!   empty frames, in each vbucket when it reaches them.
//! - If it has not sent all bodies yet, it sends only bodies until it has. They are as long as the
//!   mutations would be.
//! - If it cannot send all bodies, because it began after the end of the transaction or received
//!   the notice too late, it sends the mutations.
//!
//! No index joins from the marker until all its seqnos are covered. So a commit has one set of
//! indexes in all vbuckets.

use std::collections::BTreeSet;
use std::sync::Arc;

use proto::model::assignment::VbucketSet;
use proto::model::cut::Cut;
use proto::model::ids::{Seqno, TransactionId, VbucketId};
use proto::rpc::mutation::{BodiesDigest, CommitMarker};

use crate::source::view::bucket::Bucket;
use crate::source::view::large_commits::LargeCommit;

/// How much of a transaction's changes a stream has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SentPart {
    /// All changes; contains their digest.
    Whole(BodiesDigest),
    /// Not all changes yet.
    Partly,
    /// Not all changes, and the others can no longer be read.
    Lost,
}

/// A large commit that the stream has not passed.
struct Ahead {
    commit: Arc<LargeCommit>,
    /// True once the commit's marker was sent.
    is_marked: bool,
}

/// The large commits ahead of a stream.
#[derive(Default)]
pub(super) struct Markers {
    ahead: Vec<Ahead>,
    /// The number of the bucket's large commits that the stream has been notified of.
    known: u64,
}

impl Markers {
    /// Adds new commits whose mutations are all ahead of the stream, in vbuckets that it carries.
    pub fn follow(&mut self, bucket: &Bucket, (at, vbuckets): (&Cut, &VbucketSet)) {
        let (new, count) = bucket.large_commits_after(self.known);
        self.known = count;
        let is_ahead = |commit: &Arc<LargeCommit>| {
            commit.ranges.iter().all(|range| {
                vbuckets.contains(range.vbucket) && at.get(range.vbucket).seqno <= range.after
            })
        };
        let new = new.into_iter().filter(is_ahead);
        self.ahead.extend(new.map(|commit| Ahead { commit, is_marked: false }));
    }

    /// Returns true if the bodies of an ended transaction must still be sent for a marker.
    pub fn awaits(&self, transaction: TransactionId, number: u64) -> bool {
        let of = |ahead: &Ahead| (ahead.commit.transaction, ahead.commit.number);
        self.ahead.iter().any(|ahead| !ahead.is_marked && of(ahead) == (transaction, number))
    }

    /// Returns true while a marker was sent whose seqnos are not all covered.
    pub fn is_passing(&self) -> bool {
        self.ahead.iter().any(|ahead| ahead.is_marked)
    }

    /// Returns true if there are no large commits, so that no mutation must be checked.
    pub fn is_empty(&self) -> bool {
        self.ahead.is_empty()
    }

    /// Returns the first mutation of each commit in each vbucket.
    pub fn stops(&self) -> BTreeSet<(VbucketId, Seqno)> {
        let ranges = self.ahead.iter().flat_map(|ahead| &ahead.commit.ranges);
        ranges.map(|range| (range.vbucket, Seqno(range.after.0 + 1))).collect()
    }

    /// Returns the commit to decide on, if the stream has reached a mutation of an undecided one.
    /// It is the first undecided commit, since markers are sent in the order of the log.
    pub fn undecided(&self, at: &Cut) -> Option<Arc<LargeCommit>> {
        let mut unmarked = self.ahead.iter().filter(|ahead| !ahead.is_marked);
        let is_due = unmarked.clone().any(|ahead| stands_before(ahead, at));
        unmarked.next().filter(|_| is_due).map(|first| Arc::clone(&first.commit))
    }

    /// Decides that the marker of a commit is sent, and returns it.
    pub fn mark(&mut self, commit: &Arc<LargeCommit>, digest: BodiesDigest) -> CommitMarker {
        let found = self.ahead.iter_mut().find(|ahead| Arc::ptr_eq(&ahead.commit, commit));
        found.into_iter().for_each(|ahead| ahead.is_marked = true);
        let LargeCommit { transaction, place, ranges, .. } = &**commit;
        CommitMarker { transaction: *transaction, place: *place, digest, ranges: ranges.clone() }
    }

    /// Decides that the mutations of a commit are sent.
    pub fn send_mutations(&mut self, commit: &Arc<LargeCommit>) {
        self.ahead.retain(|ahead| !Arc::ptr_eq(&ahead.commit, commit));
    }

    /// Returns the ranges of marked commits that a stream has reached and not covered yet: vbucket,
    /// seqno before the range, last seqno.
    pub fn to_pass(&self, at: &Cut) -> Vec<(VbucketId, Seqno, Seqno)> {
        let marked = self.ahead.iter().filter(|ahead| ahead.is_marked);
        let ranges = marked.flat_map(|ahead| &ahead.commit.ranges);
        let here = ranges.filter(|range| at.get(range.vbucket).seqno == range.after);
        here.map(|range| (range.vbucket, range.after, range.to)).collect()
    }

    /// Removes the commits that a stream has passed.
    pub fn forget_passed(&mut self, at: &Cut) {
        self.ahead.retain(|ahead| {
            let mut ranges = ahead.commit.ranges.iter();
            ranges.any(|range| at.get(range.vbucket).seqno < range.to)
        });
    }
}

fn stands_before(ahead: &Ahead, at: &Cut) -> bool {
    ahead.commit.ranges.iter().any(|range| at.get(range.vbucket).seqno == range.after)
}
