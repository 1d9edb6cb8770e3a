//! The commits over several buckets that the readable parts of a log name, for a recovery that loses some of them.

use std::collections::VecDeque;

use proto::model::commits::TransactionEvent;
use proto::model::ids::{BucketId, Seqno, TransactionId, VbucketId};
use storage::log::Lsn;

/// The number of remembered commits. The newest ones are kept, since a log loses its end first.
const SEEN_MAX: usize = 1 << 10;

/// The newest step of a commit over several buckets that a log has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JointSeen {
    /// The id of the transaction.
    pub transaction: TransactionId,
    /// All buckets that it has changed.
    pub participants: Vec<BucketId>,
    /// The end of the vbuckets that it has changed here; `None` if it is only prepared.
    pub committed: Option<Vec<(VbucketId, Seqno)>>,
    /// The place of the step.
    pub at: Lsn,
}

/// The steps of a log, in their order.
#[derive(Debug, Default)]
pub struct SeenCommits(VecDeque<JointSeen>);

impl SeenCommits {
    /// Records a step.
    pub fn note(&mut self, event: &TransactionEvent, at: Lsn) {
        let (transaction, participants, committed) = match event {
            TransactionEvent::Prepared(prepared) => {
                (prepared.transaction, prepared.participants.clone(), None)
            }
            TransactionEvent::Joint(joint) => {
                let committed = &joint.committed;
                let ends = committed.positions.iter().map(|(vbucket, end)| (*vbucket, end.seqno));
                (committed.transaction, joint.participants.clone(), Some(ends.collect()))
            }
            TransactionEvent::RolledBack(transaction) => return self.forget(*transaction),
            // An epoch has it, which is no reason to lose it.
            TransactionEvent::Settled(_) | TransactionEvent::Committed(_) => return,
            // A producer has the data, and commits again.
            TransactionEvent::Pushed(_) | TransactionEvent::PushedSettled(_) => return,
        };
        self.forget(transaction);
        self.0.push_back(JointSeen { transaction, participants, committed, at });
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

    /// The commits.
    pub fn into_inner(self) -> Vec<JointSeen> {
        self.0.into()
    }
}
