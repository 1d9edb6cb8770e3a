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

/// The maximum number of open transactions in this process: as many as a bucket allows.
pub(super) const OPEN_MAX: usize = 1_000;
/// The maximum number of ended transactions that are remembered. The reply of each commit has a
/// position for each vbucket that it changed.
const ENDED_MAX: usize = 256;
/// The interval between two searches for idle transactions: much shorter than a sensible time-out.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// The default idle time-out of a transaction, equal to that of SQL sessions.
const IDLE_DEFAULT: Duration = Duration::from_secs(300);
/// The maximum idle time-out, since a transaction holds an epoch and memory.
const IDLE_MAX: Duration = Duration::from_secs(3600);

/// The transactions that gRPC clients have begun in this process.
pub(super) struct Transactions {
    known: Arc<Mutex<KnownTransaction>>,
    /// The task that ends idle transactions.
    _sweeper: Task,
}

#[derive(Default)]
struct KnownTransaction {
    all: BTreeMap<TransactionId, Arc<OpenTransaction>>,
    /// The numbers of the remembered ended transactions, oldest first.
    ended: VecDeque<TransactionId>,
    open_max: usize,
}

impl Transactions {
    /// Returns a set without transactions, for at most `open_max` open ones.
    pub(super) fn new(env: &Env, open_max: usize) -> Self {
        let known =
            Arc::new(Mutex::new(KnownTransaction { open_max, ..KnownTransaction::default() }));
        let swept = Arc::clone(&known);
        let sweep = move || {
            let swept = Arc::clone(&swept);
            async move {
                loop {
                    tokio::time::sleep(SWEEP_EVERY).await;
                    lock(&swept).sweep(Instant::now());
                }
            }
        };
        Self { known, _sweeper: env.spawn_restarted("idle transactions", sweep) }
    }

    /// Remembers a transaction that begins. `principal` is the sender, with a text about it for
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

    /// Returns the transaction of a principal with this number. It may have ended a short time ago.
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

    /// Records that a transaction has ended, if it has. An ended transaction is forgotten when
    /// [`ENDED_MAX`] others have ended later.
    pub(super) fn note_end(&self, transaction: &OpenTransaction) {
        if transaction.has_ended() {
            lock(&self.known).ended(transaction.number());
        }
    }
}

impl KnownTransaction {
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

    fn sweep(&mut self, now: Instant) {
        let open = self.all.values();
        open.clone().for_each(|transaction| transaction.end_if_idle(now));
        let ended: Vec<_> = open.filter(|one| one.has_ended()).map(|one| one.number()).collect();
        ended.into_iter().for_each(|number| self.ended(number));
    }

    fn ended(&mut self, number: TransactionId) {
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

/// Returns the idle time-out of a request; an error if it is too long.
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
