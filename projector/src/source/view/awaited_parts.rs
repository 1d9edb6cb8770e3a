//! The parts of a producer's commits that other owners wait for, as their queries name them.
//!
//! A query counts for [`AWAITED_FOR`]: an owner that still waits repeats it sooner.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::model::ids::{ProducerTransactionId, Seqno, VbucketId};
use proto::model::pushed_commit::OPEN_MAX;
use tokio::time::Instant;

/// The time for which a query counts as a wait.
const AWAITED_FOR: Duration = Duration::from_secs(5);
/// Transactions that other owners wait for: the open commits of a few of them.
const AWAITED_MAX: usize = 4 * OPEN_MAX;

/// The waits of other owners.
#[derive(Default)]
pub(in crate::source) struct AwaitedParts {
    /// The ends of missing parts, and the times of their queries.
    ends: BTreeMap<VbucketId, (Seqno, Instant)>,
    /// The transactions, and the times of their queries.
    transactions: BTreeMap<ProducerTransactionId, Instant>,
}

impl AwaitedParts {
    /// Records that another owner waits for a part. Returns true if no recent wait covers as much of the vbucket.
    pub fn wait_for(&mut self, vbucket: VbucketId, end: Seqno, now: Instant) -> bool {
        let before = self.end(vbucket, now).unwrap_or_default();
        self.ends.insert(vbucket, (before.max(end), now));
        before < end
    }

    /// The end up to which another owner waits for mutations of a vbucket.
    fn end(&self, vbucket: VbucketId, now: Instant) -> Option<Seqno> {
        let (end, queried_at) = self.ends.get(&vbucket)?;
        (now.duration_since(*queried_at) < AWAITED_FOR).then_some(*end)
    }

    /// The ends up to which other owners wait for mutations of vbuckets.
    pub fn ends(&self, now: Instant) -> impl Iterator<Item = (VbucketId, Seqno)> {
        self.ends.keys().filter_map(move |of| Some((*of, self.end(*of, now)?)))
    }

    /// Records that another owner waits for a transaction. Returns true if there was no recent wait for it. Beyond the
    /// bound it is not recorded: the owner will repeat its query.
    pub fn wait_for_transaction(
        &mut self,
        transaction: ProducerTransactionId,
        now: Instant,
    ) -> bool {
        let is_known = self.has_transaction(transaction, now);
        let awaited = &mut self.transactions;
        if awaited.len() >= AWAITED_MAX {
            awaited.retain(|_, queried_at| now.duration_since(*queried_at) < AWAITED_FOR);
        }
        if is_known || awaited.len() < AWAITED_MAX {
            awaited.insert(transaction, now);
        }
        !is_known
    }

    /// True if another owner has queried a transaction lately.
    pub fn has_transaction(&self, transaction: ProducerTransactionId, now: Instant) -> bool {
        let queried_at = self.transactions.get(&transaction);
        queried_at.is_some_and(|queried_at| now.duration_since(*queried_at) < AWAITED_FOR)
    }
}
