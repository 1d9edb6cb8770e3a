//! Collects the commits over several buckets that the readable ranges of a log contain, for a
//! recovery that loses some of them.

use std::collections::VecDeque;

use proto::model::commits::TransactionEvent;
use proto::model::ids::{BucketId, Seqno, TransactionId, VbucketId};
use proto::model::open_commit::OpenCommit;
use storage::log::Lsn;

/// The number of remembered commits. The newest ones are remembered, since a damaged log usually
/// loses its end.
const SEEN_MAX: usize = 1 << 10;

/// The newest step, in a log, of a commit over several buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenJointStep {
    /// The id of the transaction.
    pub transaction: TransactionId,
    /// All buckets that the transaction has changed.
    pub participants: Vec<BucketId>,
    /// The last seqno of each vbucket of this bucket that the commit has changed; `None` if the
    /// transaction is only prepared.
    pub committed: Option<Vec<(VbucketId, Seqno)>>,
    /// The LSN of the step.
    pub at: Lsn,
}

/// The newest steps of commits over several buckets, in the order of the log.
#[derive(Debug, Default)]
pub struct SeenCommits(VecDeque<SeenJointStep>);

impl SeenCommits {
    /// Records a step of a transaction, if its commit is over several buckets.
    pub fn record_step(&mut self, event: &TransactionEvent, at: Lsn) {
        let (transaction, participants, committed) = match event {
            TransactionEvent::Prepared(prepared) => {
                (prepared.transaction, prepared.participants.clone(), None)
            }
            TransactionEvent::Opened(OpenCommit::Joint(joint)) => {
                let committed = &joint.committed;
                let ends = committed.positions.iter().map(|(vbucket, end)| (*vbucket, end.seqno));
                (committed.transaction, joint.participants.clone(), Some(ends.collect()))
            }
            TransactionEvent::RolledBack(transaction) => return self.forget(*transaction),
            // An epoch has it, which is no reason to lose it.
            TransactionEvent::Settled(_) | TransactionEvent::Committed(_) => return,
            // A producer has the data, and commits again.
            TransactionEvent::Opened(OpenCommit::Pushed(_)) => return,
        };
        self.forget(transaction);
        self.0.push_back(SeenJointStep { transaction, participants, committed, at });
        if self.0.len() > SEEN_MAX {
            self.0.pop_front();
        }
    }

    fn forget(&mut self, transaction: TransactionId) {
        // A commit is soon after what it ends.
        if let Some(at) = self.0.iter().rposition(|seen| seen.transaction == transaction) {
            self.0.remove(at);
        }
    }

    /// Returns the newest step of each commit.
    pub fn into_inner(self) -> Vec<SeenJointStep> {
        self.0.into()
    }
}
