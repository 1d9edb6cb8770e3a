//! The newest large commits of a bucket, for its streams.
//!
//! A stream that has already sent all changes of the transaction sends a marker instead of the
//! mutations (`feed/markers.rs`). The stream must know of the commit before it reaches the
//! mutations, so both are published in one step. Only a few commits are remembered; a stream that
//! does not find a commit sends its mutations.

use std::collections::VecDeque;
use std::sync::Arc;

use proto::model::cut::Position;
use proto::model::ids::{TransactionId, TransactionPlace};
use proto::rpc::api::WriteReply;
use proto::rpc::mutation::CommitRange;

use crate::transactions::committing::CommitInProgress;

/// The number of large commits that a bucket remembers.
const COMMITS_MAX: usize = 16;

/// The facts about a large commit that streams need.
#[derive(Debug)]
pub struct LargeCommit {
    /// The id of the committed transaction.
    pub transaction: TransactionId,
    /// The number of the transaction among the bucket's transactions in this process, since a
    /// session may reuse an id.
    pub number: u64,
    /// The last place of the transaction: the number of its changes and rollbacks.
    pub place: TransactionPlace,
    /// The ranges of seqnos of the commit's mutations, one per vbucket, ascending.
    pub ranges: Vec<CommitRange>,
}

impl LargeCommit {
    /// Describes a commit whose mutations were numbered after the positions `before`.
    pub fn new(committing: &CommitInProgress, before: &[Position], reply: &WriteReply) -> Self {
        let range = |(vbucket, end): &(_, Position)| CommitRange {
            vbucket: *vbucket,
            after: before[usize::from(vbucket.0)].seqno,
            to: end.seqno,
        };
        let ranges = reply.position.positions.iter().map(range).collect();
        let (transaction, place) = (committing.transaction, committing.place);
        Self { transaction, number: committing.number(), place, ranges }
    }
}

/// The newest large commits of a bucket, and the number of all so far.
#[derive(Default)]
pub(super) struct LargeCommits {
    newest: VecDeque<Arc<LargeCommit>>,
    /// The number of large commits so far.
    count: u64,
}

impl LargeCommits {
    /// Adds commits, in the order of the log.
    pub fn add(&mut self, commits: Vec<Arc<LargeCommit>>) {
        self.count += commits.len() as u64;
        self.newest.extend(commits);
        let too_many = self.newest.len().saturating_sub(COMMITS_MAX);
        self.newest.drain(..too_many);
    }

    /// Forgets all commits, because a part of the history was lost.
    pub fn clear(&mut self) {
        self.newest.clear();
    }

    /// Returns the commits after the first `count`, as far as they are remembered, and the number
    /// of all so far.
    pub fn after(&self, count: u64) -> (Vec<Arc<LargeCommit>>, u64) {
        let new = usize::try_from(self.count.saturating_sub(count)).unwrap_or(usize::MAX);
        let skip = self.newest.len().saturating_sub(new);
        (self.newest.iter().skip(skip).cloned().collect(), self.count)
    }
}
