//! The parts of producers' commits that other owners of vbuckets wait for, according to their
//! queries. (A commit has a part in each vbucket that it changes.)
//!
//! A query is remembered for [`AWAITED_FOR`]: an owner that still waits repeats it sooner.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::model::ids::{ProducerTransactionId, Seqno, VbucketId};
use proto::model::pushed_commit::OPEN_MAX;
use tokio::time::Instant;

/// The time for which another owner counts as waiting after its query.
const AWAITED_FOR: Duration = Duration::from_secs(5);
/// The limit of remembered transactions that other owners wait for: the open commits of a few
/// owners.
const AWAITED_MAX: usize = 4 * OPEN_MAX;

/// The parts and transactions that other owners of vbuckets wait for.
#[derive(Default)]
pub(in crate::source) struct AwaitedParts {
    /// For each vbucket, the last seqno that an owner waits for, and the time of the last query.
    ends: BTreeMap<VbucketId, (Seqno, Instant)>,
    /// The transactions that owners wait for, each with the time of the last query.
    transactions: BTreeMap<ProducerTransactionId, Instant>,
}

impl AwaitedParts {
    /// Records that another owner waits for a part of a commit, which ends at the seqno `end` of
    /// a vbucket. Returns false if a recent query already waits for that seqno or a later one.
    pub fn wait_for(&mut self, vbucket: VbucketId, end: Seqno, now: Instant) -> bool {
        let before = self.awaited_end(vbucket, now).unwrap_or_default();
        self.ends.insert(vbucket, (before.max(end), now));
        before < end
    }

    /// Returns the seqno up to which other owners wait for mutations of a vbucket.
    fn awaited_end(&self, vbucket: VbucketId, now: Instant) -> Option<Seqno> {
        let (end, queried_at) = self.ends.get(&vbucket)?;
        (now.duration_since(*queried_at) < AWAITED_FOR).then_some(*end)
    }

    /// Iterates over the vbuckets that other owners wait for, each with the last seqno that they
    /// need.
    pub fn awaited_ends(&self, now: Instant) -> impl Iterator<Item = (VbucketId, Seqno)> {
        self.ends.keys().filter_map(move |of| Some((*of, self.awaited_end(*of, now)?)))
    }

    /// Records that another owner waits for a transaction. Returns true if there was no recent
    /// query for it. If `AWAITED_MAX` transactions are recorded, records nothing: the owner will
    /// repeat its query.
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

    /// Returns true if another owner has recently asked about a transaction.
    pub fn has_transaction(&self, transaction: ProducerTransactionId, now: Instant) -> bool {
        let queried_at = self.transactions.get(&transaction);
        queried_at.is_some_and(|queried_at| now.duration_since(*queried_at) < AWAITED_FOR)
    }
}
