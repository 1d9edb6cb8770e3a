//! Keeps the open transactions of this process open.
//!
//! A projector rolls back a transaction without calls, because the process of its session may have
//! ended. One task renews all transactions, bucket by bucket; most end before their first renewal,
//! so a task for each would be wasteful.

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

/// The interval between two renewals of a transaction: two of them may be late.
const KEEP_EVERY: Duration = Duration::from_millis(TRANSACTION_KEPT_MS / 3);
/// The time limit of a call, less than the interval between two renewals, so that a projector that
/// does not answer delays no other projector.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// The transactions of this process that are open at a projector.
pub(super) struct TransactionKeeper {
    calls: SourceCalls,
    env: Env,
    open: Arc<Mutex<Open>>,
}

/// The transactions of a bucket. The flag of each is set when the projector no longer knows the
/// transaction.
type OfBucket = (Arc<BucketInfo>, BTreeMap<TransactionId, Arc<AtomicBool>>);

#[derive(Default)]
struct Open {
    buckets: BTreeMap<BucketId, OfBucket>,
    /// The task that renews the transactions; it starts with the first one, and ends with this value.
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
                ask_again_and_again(calls.clone(), weak.clone())
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

async fn ask_again_and_again(calls: SourceCalls, open: Weak<Mutex<Open>>) {
    let mut next = Instant::now();
    loop {
        next = (next + KEEP_EVERY).max(Instant::now());
        tokio::time::sleep_until(next).await;
        let Some(open) = open.upgrade() else { return };
        let buckets: Vec<OfBucket> = lock(&open).buckets.values().cloned().collect();
        join_all(buckets.into_iter().map(|of_bucket| ask(&calls, of_bucket))).await;
    }
}

async fn ask(calls: &SourceCalls, (bucket, transactions): OfBucket) {
    let Ok(source) = calls.source(&bucket) else { return };
    let ids = transactions.keys().copied().collect();
    let gone = timeout(ANSWER_WAIT, source.keep_open(bucket.id, ids)).await;
    for id in gone.ok().and_then(Result::ok).into_iter().flatten() {
        if let Some(is_lost) = transactions.get(&id) {
            is_lost.store(true, Ordering::Relaxed);
        }
    }
}
