//! A task that keeps the open transactions of this process open.
//!
//! A projector rolls back a transaction that gets no calls for some time, because the process of
//! its session may have ended. One task renews all transactions, bucket by bucket. Most
//! transactions end before their first renewal, so a task for each would be wasteful.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures::future::join_all;
use proto::env::{Env, Task};
use proto::lock::lock;
use proto::model::bucket::BucketInfo;
use proto::model::ids::{BucketId, TransactionId};
use proto::rpc::api::TRANSACTION_KEPT_MS;
use tokio::time::{Instant, timeout};

use super::source_calls::SourceCalls;

/// The interval between two renewals of a transaction: a third of the time after which a
/// projector rolls it back, so two renewals may be late.
const KEEP_EVERY: Duration = Duration::from_millis(TRANSACTION_KEPT_MS / 3);
/// The time limit of a renewal. It is less than the interval between two renewals, so a projector
/// that does not answer delays no other projector.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// The renewal of the transactions of this process that are open at a projector.
pub(super) struct TransactionKeeper {
    calls: SourceCalls,
    env: Env,
    open: Arc<Mutex<OpenTransactions>>,
}

/// The open transactions of a bucket. The flag of a transaction is set when the projector no
/// longer knows the transaction.
type BucketTransactions = (Arc<BucketInfo>, BTreeMap<TransactionId, Arc<AtomicBool>>);

/// The open transactions, and the task that renews them.
#[derive(Default)]
struct OpenTransactions {
    buckets: BTreeMap<BucketId, BucketTransactions>,
    /// The task that renews the transactions. It starts with the first transaction, and ends when
    /// this value is dropped.
    keeper: Option<Task>,
}

impl TransactionKeeper {
    /// Creates a keeper without transactions.
    pub fn new(calls: SourceCalls, env: Env) -> Self {
        Self { calls, env, open: Arc::default() }
    }

    /// Renews a transaction from now on. `is_lost` becomes true when its projector no longer knows
    /// the transaction.
    pub fn keep(&self, bucket: &Arc<BucketInfo>, id: TransactionId, is_lost: &Arc<AtomicBool>) {
        let mut open = lock(&self.open);
        let of_bucket = open.buckets.entry(bucket.id);
        let of_bucket = of_bucket.or_insert_with(|| (Arc::clone(bucket), BTreeMap::new()));
        of_bucket.1.entry(id).or_insert_with(|| Arc::clone(is_lost));
        if open.keeper.is_none() {
            let (calls, weak) = (self.calls.clone(), Arc::downgrade(&self.open));
            let keeper = self.env.spawn_restarted("open transactions", move || {
                renew_periodically(calls.clone(), weak.clone())
            });
            open.keeper = Some(keeper);
        }
    }

    /// Ends the renewal of a transaction.
    pub fn release(&self, bucket: BucketId, id: TransactionId) {
        let mut open = lock(&self.open);
        let Some((_, of_bucket)) = open.buckets.get_mut(&bucket) else { return };
        of_bucket.remove(&id);
        if of_bucket.is_empty() {
            open.buckets.remove(&bucket);
        }
    }
}

/// Renews all open transactions at regular intervals until their keeper is dropped.
async fn renew_periodically(calls: SourceCalls, open: Weak<Mutex<OpenTransactions>>) {
    let mut next = Instant::now();
    loop {
        next = (next + KEEP_EVERY).max(Instant::now());
        tokio::time::sleep_until(next).await;
        let Some(open) = open.upgrade() else { return };
        let buckets: Vec<BucketTransactions> = lock(&open).buckets.values().cloned().collect();
        join_all(buckets.into_iter().map(|of_bucket| renew_transactions(&calls, of_bucket))).await;
    }
}

/// Renews the transactions of one bucket, and sets the flags of those that the projector no
/// longer knows.
async fn renew_transactions(calls: &SourceCalls, (bucket, transactions): BucketTransactions) {
    let Ok(source) = calls.source(&bucket) else { return };
    let ids = transactions.keys().copied().collect();
    let gone = timeout(ANSWER_WAIT, source.keep_open(bucket.id, ids)).await;
    for id in gone.ok().and_then(Result::ok).into_iter().flatten() {
        if let Some(is_lost) = transactions.get(&id) {
            is_lost.store(true, Ordering::Relaxed);
        }
    }
}
