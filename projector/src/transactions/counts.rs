//! Counters of the outcomes of a projector's transactions, and of the resources of open ones.

use std::sync::atomic::{AtomicU64, Ordering};

use proto::Result;
use proto::rpc::api::{PushReply, WriteReply};
use serde::Serialize;

/// Counters of the ends of transactions since the process has started.
#[derive(Debug, Default)]
pub struct Counts {
    committed: AtomicU64,
    conflicts: AtomicU64,
    aborted: AtomicU64,
    forgotten: AtomicU64,
}

/// The transactions of a projector: figures of those that are open now, and counts of ends since
/// the process has started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TransactionFigures {
    /// Open transactions that have changes.
    pub open: u64,
    /// The time since the first write of the oldest open transaction, in milliseconds; 0 if there is none.
    pub oldest_age_ms: u64,
    /// Bytes of the changes of open transactions.
    pub bytes: u64,
    /// Number of prepared transactions: their changes wait for the decision of another bucket, and
    /// lock their documents.
    pub prepared: u64,
    /// Commits over several buckets that no epoch covers, counted in each bucket.
    pub joint_open: u64,
    /// The longest time for which this process has known a prepared transaction or an open commit
    /// over several buckets, in milliseconds; 0 if there is none.
    pub joint_oldest_age_ms: u64,
    /// Commits of changes.
    pub committed: u64,
    /// Commits that were refused because another writer had changed a document.
    pub conflicts: u64,
    /// Transactions that were rolled back by a call.
    pub aborted: u64,
    /// Transactions that were rolled back because no router had made a call for them.
    pub forgotten: u64,
}

impl Counts {
    /// Counts the end of a commit.
    pub fn commit_ended(&self, committed: &Result<WriteReply>) {
        match committed {
            Ok(_) => self.committed.fetch_add(1, Ordering::Relaxed),
            Err(error) if error.code.refuses_commit() => {
                self.conflicts.fetch_add(1, Ordering::Relaxed)
            }
            Err(_) => 0,
        };
    }

    /// Counts the end of an attempt to prepare a transaction.
    pub fn prepare_ended(&self, prepared: &Result<u64>) {
        if prepared.as_ref().is_err_and(|error| error.code.refuses_commit()) {
            self.conflicts.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts the commit of the parts of a producer's transaction.
    pub fn pushed_commit_ended(&self, committed: &Result<PushReply>) {
        if committed.is_ok() {
            self.committed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a transaction that a call has rolled back.
    pub fn add_aborted(&self) {
        self.aborted.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts transactions that were rolled back because no router had made a call for them.
    pub fn add_forgotten(&self, count: u64) {
        self.forgotten.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns the counts together with the figures of open transactions.
    pub fn with_open(&self, open: TransactionFigures) -> TransactionFigures {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TransactionFigures {
            committed: count(&self.committed),
            conflicts: count(&self.conflicts),
            aborted: count(&self.aborted),
            forgotten: count(&self.forgotten),
            ..open
        }
    }
}

impl TransactionFigures {
    /// Returns the sum of the figures of several buckets' open transactions.
    pub fn sum(open: impl IntoIterator<Item = Self>) -> Self {
        open.into_iter().fold(Self::default(), |sum, one| Self {
            open: sum.open + one.open,
            oldest_age_ms: sum.oldest_age_ms.max(one.oldest_age_ms),
            bytes: sum.bytes + one.bytes,
            prepared: sum.prepared + one.prepared,
            joint_open: sum.joint_open + one.joint_open,
            joint_oldest_age_ms: sum.joint_oldest_age_ms.max(one.joint_oldest_age_ms),
            ..sum
        })
    }
}
