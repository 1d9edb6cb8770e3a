//! Counts how the transactions of a projector have ended, and what the open ones use.

use std::sync::atomic::{AtomicU64, Ordering};

use proto::Result;
use proto::rpc::api::{PushReply, WriteReply};
use serde::Serialize;

/// The numbers of transactions that have ended since the process has started, by outcome.
#[derive(Debug, Default)]
pub struct Counts {
    committed: AtomicU64,
    conflicts: AtomicU64,
    aborted: AtomicU64,
    forgotten: AtomicU64,
}

/// The figures of a projector's transactions: of those that are open now, and of those that have
/// ended since the process has started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TransactionFigures {
    /// Open transactions that have changes.
    pub open: u64,
    /// The time since the first write of the oldest open transaction, in milliseconds; 0 if there
    /// is none.
    pub oldest_age_ms: u64,
    /// The bytes of the changes of open transactions.
    pub bytes: u64,
    /// The number of prepared transactions. Their changes wait for the decision of another
    /// bucket, and their documents are locked.
    pub prepared: u64,
    /// The number of commits over several buckets that no epoch covers yet. Each bucket of such a
    /// commit counts it.
    pub joint_open: u64,
    /// The longest time for which this process has known a prepared transaction or an open commit
    /// over several buckets, in milliseconds; 0 if there is none.
    pub joint_oldest_age_ms: u64,
    /// The number of committed transactions that had changes.
    pub committed: u64,
    /// The number of commits that were refused because another writer had changed a document.
    pub conflicts: u64,
    /// The number of transactions that were rolled back by a call.
    pub aborted: u64,
    /// The number of transactions that were rolled back because no call for them had arrived for
    /// long.
    pub forgotten: u64,
}

impl Counts {
    /// Counts a commit that has ended, by its result.
    pub fn commit_ended(&self, committed: &Result<WriteReply>) {
        match committed {
            Ok(_) => self.committed.fetch_add(1, Ordering::Relaxed),
            Err(error) if error.code.refuses_commit() => {
                self.conflicts.fetch_add(1, Ordering::Relaxed)
            }
            Err(_) => 0,
        };
    }

    /// Counts an attempt to prepare a transaction that has ended, by its result.
    pub fn prepare_ended(&self, prepared: &Result<u64>) {
        if prepared.as_ref().is_err_and(|error| error.code.refuses_commit()) {
            self.conflicts.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a commit of parts of a producer's transaction, by its result.
    pub fn pushed_commit_ended(&self, committed: &Result<PushReply>) {
        if committed.is_ok() {
            self.committed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a transaction that a call has rolled back.
    pub fn add_aborted(&self) {
        self.aborted.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts transactions that were rolled back because no call for them had arrived for long.
    pub fn add_forgotten(&self, count: u64) {
        self.forgotten.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns these counts of ended transactions together with the figures `open` of the open
    /// ones.
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
