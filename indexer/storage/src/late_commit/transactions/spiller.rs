//! Spilling: keeps the memory and disk of all open transactions within their limits.
//!
//! Above half of the memory limit, the changes in one index of the transaction with the most
//! memory are written to disk, then the next, until a quarter of the limit is in use. One spill at
//! a time runs on a blocking thread. At the limit itself the streams wait for the spill, for a
//! bounded time. If a spill does not help, the transaction that uses most of the short resource
//! (memory or disk) is *given up*: its changes are dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proto::env::{Bulk, Env, TaskPolicy};
use tokio::sync::watch;

use crate::files::data_files::DataFiles;
use crate::late_commit::changes::part::TransactionChanges;
use crate::late_commit::changes::usage::{Limits, Usage};
use crate::late_commit::transactions::buckets::Buckets;
use crate::late_commit::transactions::open::{GivenUp, OpenTransaction};

/// The enforcement of the memory and disk limits of open transactions: writes changes to disk, or
/// drops them.
pub struct Spiller {
    env: Env,
    files: Arc<DataFiles>,
    limits: Limits,
    usage: Arc<Usage>,
    buckets: Arc<Buckets>,
    is_running: AtomicBool,
    /// Incremented at the end of each spill.
    ended: watch::Sender<u64>,
}

impl Spiller {
    /// Creates a spiller that writes changes into `files`.
    pub fn new(
        env: &Env,
        files: &Arc<DataFiles>,
        limits: Limits,
        usage: &Arc<Usage>,
        buckets: &Arc<Buckets>,
    ) -> Self {
        let (env, files) = (env.clone(), Arc::clone(files));
        let (usage, buckets) = (Arc::clone(usage), Arc::clone(buckets));
        let (is_running, ended) = (AtomicBool::new(false), watch::Sender::new(0));
        Self { env, files, limits, usage, buckets, is_running, ended }
    }

    /// Returns the limits of all transactions together.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns true if `bytes` further bytes fit in memory.
    pub fn has_memory_for(&self, bytes: u64) -> bool {
        self.usage.memory_bytes().saturating_add(bytes) <= self.limits.memory_bytes
    }

    /// Waits, for at most `wait_max`, until `bytes` further bytes fit in memory or no more changes
    /// can be written to disk.
    pub async fn wait_for_memory(self: &Arc<Self>, bytes: u64, wait_max: Duration) {
        let mut ended = self.ended.subscribe();
        let wait = async {
            while !self.has_memory_for(bytes) && self.start(bytes) {
                if ended.changed().await.is_err() {
                    return;
                }
            }
        };
        // After the time-out the changes are taken all the same, if need be by giving a transaction up.
        let _ = tokio::time::timeout(wait_max, wait).await;
    }

    /// Starts writing changes to disk if `more` further bytes need it. Returns true if such a
    /// spill is running, or has run during this call.
    pub fn start(self: &Arc<Self>, more: u64) -> bool {
        if !self.has_work(more) {
            return self.is_running.load(Ordering::Acquire);
        }
        if self.is_running.swap(true, Ordering::AcqRel) {
            return true;
        }
        let spiller = Arc::clone(self);
        // A panic leaves a part that is set aside for ever.
        let what = ("late-commit-spill", Bulk::AtOnce);
        self.env.spawn_bulk(what, TaskPolicy::EndProcess, move || {
            let mut more = more;
            loop {
                spiller.spill(more);
                spiller.is_running.store(false, Ordering::Release);
                spiller.ended.send_modify(|count| *count += 1);
                // Changes that arrived at the end of the spill did not start another one.
                more = 0;
                if !spiller.has_work(0) || spiller.is_running.swap(true, Ordering::AcqRel) {
                    return;
                }
            }
        });
        true
    }

    /// Returns true if changes should be written to disk or dropped, given that `more` further
    /// bytes will be added.
    fn has_work(&self, more: u64) -> bool {
        let bytes = self.usage.memory_bytes();
        let is_over = bytes > self.limits.memory_bytes;
        let is_wanted = self.limits.is_spill_due(bytes) || !self.has_memory_for(more);
        is_over && self.largest(OpenTransaction::row_bytes).is_some()
            || is_wanted && self.choose(more).is_some()
    }

    /// Writes changes to disk until memory use is low enough for `more` further bytes. Blocks the
    /// thread.
    fn spill(&self, more: u64) {
        loop {
            let bytes = self.usage.memory_bytes();
            if bytes <= self.limits.spill_target(more) {
                return;
            }
            let Some((transaction, part)) = self.choose(more) else {
                if bytes > self.limits.memory_bytes && self.give_up_largest(GivenUp::Memory) {
                    continue;
                }
                return;
            };
            match part.spill(&self.files, &self.usage) {
                Ok(()) => {
                    transaction.recount();
                    tracing::debug!(bytes, disk = self.usage.disk_bytes(), "spilled a part");
                }
                Err(error) => transaction.fail(&error),
            }
            if self.usage.disk_bytes() > self.limits.disk_bytes {
                self.give_up_largest(GivenUp::Disk);
            }
        }
    }

    /// Chooses the transaction with the most memory that can be written to disk, and its largest
    /// changes in one index.
    fn choose(&self, more: u64) -> Option<(Arc<OpenTransaction>, Arc<TransactionChanges>)> {
        if self.limits.disk_bytes == 0 {
            return None;
        }
        let least = self.limits.piece_bytes_min(self.usage.memory_bytes().saturating_add(more));
        let can_spill = |part: &Arc<TransactionChanges>| part.spillable_bytes() >= least;
        let spillable = |transaction: &OpenTransaction| -> u64 {
            let parts = transaction.parts();
            parts.iter().filter(|part| can_spill(part)).map(|part| part.spillable_bytes()).sum()
        };
        let transaction = self.largest(spillable)?;
        let parts = transaction.parts().into_iter().filter(can_spill);
        let part = parts.max_by_key(|part| part.spillable_bytes())?;
        Some((transaction, part))
    }

    /// Drops the changes of the transaction that uses the most memory or disk. Returns false if no
    /// transaction uses any.
    pub fn give_up_largest(&self, why: GivenUp) -> bool {
        let found = match why {
            GivenUp::Memory => self.largest(OpenTransaction::row_bytes),
            GivenUp::Disk | GivenUp::DiskFailed => self.largest(OpenTransaction::disk_bytes),
        };
        found.is_some_and(|transaction| transaction.give_up(why))
    }

    /// Drops a value. If transactions have files, it is dropped on a blocking thread, because it
    /// may own some.
    pub fn drop_off_thread<T: Send + 'static>(&self, what: T) {
        if self.usage.disk_bytes() > 0 || self.usage.prepared.load(Ordering::Relaxed) > 0 {
            let delete = move || drop(what);
            self.env.spawn_blocking("late-commit-delete", TaskPolicy::Request, delete);
        }
    }

    /// Returns the transaction for which `bytes` returns the largest number; `None` if all numbers
    /// are zero.
    fn largest(&self, bytes: impl Fn(&OpenTransaction) -> u64) -> Option<Arc<OpenTransaction>> {
        let open = self.buckets.open().into_iter();
        let sized = open.map(|transaction| (bytes(&transaction), transaction));
        let found = sized.filter(|(bytes, _)| *bytes > 0).max_by_key(|(bytes, _)| *bytes);
        found.map(|(_, transaction)| transaction)
    }
}
