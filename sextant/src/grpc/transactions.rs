//! The transactions that gRPC clients have begun in this process.
//!
//! Only the principal that has begun a transaction can use it, by its number. A transaction without
//! a call for its idle time-out is rolled back. The most recently ended transactions are
//! remembered, so that a late or repeated call gets the outcome of its transaction.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::env::{Env, Task};
use proto::lock::lock;
use proto::model::bucket::BucketInfo;
use proto::model::ids::TransactionId;
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use super::open_transaction::OpenTransaction;
use crate::access::BucketTransaction;
use crate::principal::Principal;

/// The maximum number of open transactions in this process, which is also the maximum of a
/// bucket.
pub(super) const OPEN_MAX: usize = 1_000;
/// The maximum number of ended transactions that are remembered. The limit is low because the
/// reply of a commit has a position for each changed vbucket.
const ENDED_MAX: usize = 256;
/// The interval between two searches for idle transactions. It is much shorter than a sensible
/// time-out.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// The default idle time-out of a transaction, the same as for SQL sessions.
const IDLE_DEFAULT: Duration = Duration::from_secs(300);
/// The maximum idle time-out of a transaction. It is limited because a transaction keeps an epoch
/// readable and takes memory.
const IDLE_MAX: Duration = Duration::from_secs(3600);

/// The transactions that gRPC clients have begun in this process.
pub(super) struct Transactions {
    known: Arc<Mutex<KnownTransactions>>,
    /// The task that ends idle transactions.
    _sweeper: Task,
}

/// The open and the remembered transactions by number.
#[derive(Default)]
struct KnownTransactions {
    all: BTreeMap<TransactionId, Arc<OpenTransaction>>,
    /// The numbers of the remembered ended transactions, oldest first.
    ended: VecDeque<TransactionId>,
    open_max: usize,
}

impl Transactions {
    /// Returns an empty set for at most `open_max` open transactions.
    pub(super) fn new(env: &Env, open_max: usize) -> Self {
        let known =
            Arc::new(Mutex::new(KnownTransactions { open_max, ..KnownTransactions::default() }));
        let swept = Arc::clone(&known);
        let sweep = move || {
            let swept = Arc::clone(&swept);
            async move {
                loop {
                    tokio::time::sleep(SWEEP_EVERY).await;
                    lock(&swept).end_idle(Instant::now());
                }
            }
        };
        Self { known, _sweeper: env.spawn_restarted("idle transactions", sweep) }
    }

    /// Creates and stores a new transaction. `principal` is the sender, with a text about it for
    /// people.
    pub(super) fn begin(
        &self,
        principal: (Principal, String),
        changes: Arc<dyn BucketTransaction>,
        bucket: Arc<BucketInfo>,
        idle_max: Duration,
    ) -> Result<Arc<OpenTransaction>> {
        let begun = Arc::new(OpenTransaction::new(principal, changes, bucket, idle_max));
        lock(&self.known).add(Arc::clone(&begun))?;
        Ok(begun)
    }

    /// Returns the transaction with a number if it belongs to a principal. It may have ended a
    /// short time ago.
    pub(super) fn find(
        &self,
        number: TransactionId,
        principal: &Principal,
    ) -> Result<Arc<OpenTransaction>> {
        let found = lock(&self.known).all.get(&number).cloned();
        found.filter(|found| found.belongs_to(principal)).ok_or_else(|| {
            let what = format!(
                "transaction {number} is not open in this process: it ended long ago, was begun at another router, \
                 or its router was restarted"
            );
            let hint = "send all calls of a transaction to the router that began it, or begin it again";
            Error::new(ErrorCode::NoTransaction, what).with_hint(hint)
        })
    }

    /// Records the end of a transaction if it has ended. An ended transaction is forgotten after
    /// [`ENDED_MAX`] others have ended.
    pub(super) fn note_end(&self, transaction: &OpenTransaction) {
        if transaction.has_ended() {
            lock(&self.known).remember_ended(transaction.number());
        }
    }
}

impl KnownTransactions {
    /// Adds a transaction; an error if too many are open.
    fn add(&mut self, begun: Arc<OpenTransaction>) -> Result<()> {
        if self.all.len() - self.ended.len() >= self.open_max {
            let what = format!(
                "{} transactions of gRPC clients are open in this process, which is the limit",
                self.open_max
            );
            return Err(Error::new(ErrorCode::TooBusy, what)
                .with_hint("try again when others have ended, or at another router"));
        }
        let number = begun.number();
        if self.all.contains_key(&number) {
            return Err(Error::internal(format!("transaction number {number} was drawn twice")));
        }
        self.all.insert(number, begun);
        Ok(())
    }

    /// Rolls back idle transactions, and adds all that have ended to the remembered ones.
    fn end_idle(&mut self, now: Instant) {
        let open = self.all.values();
        open.clone().for_each(|transaction| transaction.end_if_idle(now));
        let ended: Vec<_> = open.filter(|one| one.has_ended()).map(|one| one.number()).collect();
        ended.into_iter().for_each(|number| self.remember_ended(number));
    }

    /// Adds a transaction to the remembered ended ones, and forgets the oldest if there are too
    /// many.
    fn remember_ended(&mut self, number: TransactionId) {
        if !self.all.contains_key(&number) || self.ended.contains(&number) {
            return;
        }
        self.ended.push_back(number);
        if self.ended.len() > ENDED_MAX {
            let oldest = self.ended.pop_front();
            oldest.map(|oldest| self.all.remove(&oldest));
        }
    }
}

/// Returns the idle time-out of a request: `ms`, or the default for 0. Returns an error if it is
/// too long.
pub(super) fn idle_timeout(ms: u64) -> Result<Duration> {
    match Duration::from_millis(ms) {
        Duration::ZERO => Ok(IDLE_DEFAULT),
        asked if asked <= IDLE_MAX => Ok(asked),
        _ => {
            let most = IDLE_MAX.as_millis();
            let what = format!("idle_timeout_ms is {ms}, and must be at most {most}");
            Err(Error::new(ErrorCode::InvalidParameter, what))
        }
    }
}

#[cfg(test)]
#[path = "transactions_tests.rs"]
mod tests;
