//! The parts of a producer's commits that other owners wait for, according to their queries.
//!
//! A query counts for [`AWAITED_FOR`]: an owner that still waits repeats it sooner.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::model::ids::{ProducerTransactionId, Seqno, VbucketId};
use proto::model::pushed_commit::OPEN_MAX;
use tokio::time::Instant;

/// The time for which a query counts as a wait.
const AWAITED_FOR: Duration = Duration::from_secs(5);
/// The limit of transactions that other owners wait for: the open commits of a few owners.
const AWAITED_MAX: usize = 4 * OPEN_MAX;

/// The waits of other owners.
#[derive(Default)]
pub(in crate::source) struct AwaitedParts {
    /// The ends of missing parts, each with the time of its last query.
    ends: BTreeMap<VbucketId, (Seqno, Instant)>,
    /// The awaited transactions, each with the time of its last query.
    transactions: BTreeMap<ProducerTransactionId, Instant>,
}

impl AwaitedParts {
    /// Records that another owner waits for a part. Returns true unless a recent wait already
    /// covers as much of the vbucket.
    pub fn wait_for(&mut self, vbucket: VbucketId, end: Seqno, now: Instant) -> bool {
        let before = self.end(vbucket, now).unwrap_or_default();
        self.ends.insert(vbucket, (before.max(end), now));
        before < end
    }

    /// Returns the seqno up to which other owners wait for mutations of a vbucket.
    fn end(&self, vbucket: VbucketId, now: Instant) -> Option<Seqno> {
        let (end, queried_at) = self.ends.get(&vbucket)?;
        (now.duration_since(*queried_at) < AWAITED_FOR).then_some(*end)
    }

    /// Iterates over the vbuckets that other owners wait for, each with the last seqno that they
    /// need.
    pub fn ends(&self, now: Instant) -> impl Iterator<Item = (VbucketId, Seqno)> {
        self.ends.keys().filter_map(move |of| Some((*of, self.end(*of, now)?)))
    }

    /// Records that another owner waits for a transaction. Returns true if there was no recent wait
    /// for it. Beyond `AWAITED_MAX` nothing is recorded: the owner will repeat its query.
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

    /// Returns true if another owner has recently queried a transaction.
    pub fn has_transaction(&self, transaction: ProducerTransactionId, now: Instant) -> bool {
        let queried_at = self.transactions.get(&transaction);
        queried_at.is_some_and(|queried_at| now.duration_since(*queried_at) < AWAITED_FOR)
    }
}
