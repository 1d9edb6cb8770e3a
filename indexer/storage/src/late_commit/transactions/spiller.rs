//! Spilling: keeps the memory and disk of all open transactions within their limits.
//!
//! Above half of the memory limit the largest part of the largest transaction is written to disk,
//! then the next, until a quarter of the limit is in use. One spill at a time runs on a blocking
//! thread. At the limit itself the streams wait for the spill, for a bounded time. If a spill does
//! not help, the transaction with the largest share of the short resource (memory or disk) is given
//! up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proto::env::{Bulk, Env, TaskPolicy};
use tokio::sync::watch;

use crate::files::data_files::DataFiles;
use crate::late_commit::changes::part::OwnPart;
use crate::late_commit::changes::usage::{Limits, Usage};
use crate::late_commit::transactions::buckets::Buckets;
use crate::late_commit::transactions::open::{GivenUp, OpenTransaction};

/// Keeps the open transactions within their limits.
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
    /// Creates a spiller that writes into `files`.
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

    /// The limits that apply at present.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns true if `bytes` further bytes fit in memory.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.usage.memory_bytes().saturating_add(bytes) <= self.limits.memory_bytes
    }

    /// Waits, for at most `wait_max`, until `bytes` further bytes fit in memory or no more memory
    /// can be spilled.
    pub async fn room(self: &Arc<Self>, bytes: u64, wait_max: Duration) {
        let mut ended = self.ended.subscribe();
        let wait = async {
            while !self.has_room(bytes) && self.start(bytes) {
                if ended.changed().await.is_err() {
                    return;
                }
            }
        };
        // After the time-out the changes are taken all the same, if need be by giving a transaction up.
        let _ = tokio::time::timeout(wait_max, wait).await;
    }

    /// Starts a spill if the limit would be exceeded by `more` further bytes. Returns true if a
    /// spill runs, or has run inside this call.
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

    fn has_work(&self, more: u64) -> bool {
        let bytes = self.usage.memory_bytes();
        let is_over = bytes > self.limits.memory_bytes;
        let is_wanted = self.limits.are_neared(bytes) || !self.has_room(more);
        is_over && self.largest(OpenTransaction::row_bytes).is_some()
            || is_wanted && self.choose(more).is_some()
    }

    /// Writes parts to disk until memory is low enough. Blocks the thread.
    fn spill(&self, more: u64) {
        loop {
            let bytes = self.usage.memory_bytes();
            if bytes <= self.limits.spill_to(more) {
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

    /// Chooses the transaction with the most writable memory, and its largest part that can be written.
    fn choose(&self, more: u64) -> Option<(Arc<OpenTransaction>, Arc<OwnPart>)> {
        if self.limits.disk_bytes == 0 {
            return None;
        }
        let least = self.limits.piece_least(self.usage.memory_bytes().saturating_add(more));
        let can_spill = |part: &Arc<OwnPart>| part.spillable_bytes() >= least;
        let spillable = |transaction: &OpenTransaction| -> u64 {
            let parts = transaction.parts();
            parts.iter().filter(|part| can_spill(part)).map(|part| part.spillable_bytes()).sum()
        };
        let transaction = self.largest(spillable)?;
        let parts = transaction.parts().into_iter().filter(can_spill);
        let part = parts.max_by_key(|part| part.spillable_bytes())?;
        Some((transaction, part))
    }

    /// Gives up the transaction that uses the most memory or disk; returns false if no transaction
    /// uses any.
    pub fn give_up_largest(&self, why: GivenUp) -> bool {
        let found = match why {
            GivenUp::Memory => self.largest(OpenTransaction::row_bytes),
            GivenUp::Disk | GivenUp::DiskFailed => self.largest(OpenTransaction::disk_bytes),
        };
        found.is_some_and(|transaction| transaction.give_up(why))
    }

    /// Drops a value: on a blocking thread if files exist, since the value may own some.
    pub fn dispose<T: Send + 'static>(&self, what: T) {
        if self.usage.disk_bytes() > 0 || self.usage.prepared.load(Ordering::Relaxed) > 0 {
            let delete = move || drop(what);
            self.env.spawn_blocking("late-commit-delete", TaskPolicy::Request, delete);
        }
    }

    /// Returns the transaction with the largest result of `bytes`; `None` if all results are zero.
    fn largest(&self, bytes: impl Fn(&OpenTransaction) -> u64) -> Option<Arc<OpenTransaction>> {
        let open = self.buckets.open().into_iter();
        let sized = open.map(|transaction| (bytes(&transaction), transaction));
        let found = sized.filter(|(bytes, _)| *bytes > 0).max_by_key(|(bytes, _)| *bytes);
        found.map(|(_, transaction)| transaction)
    }
}
