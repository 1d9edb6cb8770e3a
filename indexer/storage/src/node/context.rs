//! The shared context of the engine and its background work, with the accounting of memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use proto::env::Env;
use proto::lock::lock;
use proto::model::ids::{BucketId, Epoch, NodeId};
use tokio::sync::Notify;

use crate::files::data_files::DataFiles;
use crate::index::local_index::LocalIndex;
use crate::log::commit_log::CommitLog;
use crate::node::background::Background;
use crate::node::checkpoints::LogCheckpoints;
use crate::node::state::NodeState;
use crate::options::StoreOptions;

/// State that the engine shares with its background work.
pub(crate) struct EngineContext {
    pub env: Env,
    /// A random number of this opening of the store. File numbers sent to other nodes are valid
    /// only together with it.
    pub opening: u64,
    pub node: NodeId,
    pub options: StoreOptions,
    pub files: Arc<DataFiles>,
    pub log: CommitLog,
    pub state: Arc<NodeState>,
    /// Checkpoints of the log. The lock is also held during each append to the log, so that
    /// checkpoints are in log order.
    pub order: tokio::sync::Mutex<LogCheckpoints>,
    pub background: Mutex<Background>,
    /// Notified when memory was freed.
    pub room: Notify,
    /// Bytes of the changes of open transactions.
    pub open_transactions_bytes: Arc<AtomicU64>,
}

impl EngineContext {
    /// Returns the bytes of memory that flushes would free.
    pub fn unwritten_bytes(&self) -> u64 {
        self.state.indexes_and_rebuilds().iter().map(|index| index.memory_bytes()).sum()
    }

    /// Returns the bytes of backfills that are gathered in memory.
    pub fn backfill_bytes(&self) -> u64 {
        let bytes = |index: &Arc<LocalIndex>| {
            index.backfill_bytes.load(std::sync::atomic::Ordering::Relaxed)
        };
        self.state.indexes_and_rebuilds().iter().map(bytes).sum()
    }

    /// Returns the bytes of the fragments' indexes and filters, of work in progress, and of open
    /// transactions.
    pub fn resident_bytes(&self) -> u64 {
        let of_indexes: u64 =
            self.state.indexes_and_rebuilds().iter().map(|index| index.resident_bytes()).sum();
        of_indexes + self.open_transactions_bytes.load(Ordering::Relaxed)
    }

    /// Returns the memory use in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let written = self.resident_bytes() + self.files.cache_bytes();
        self.unwritten_bytes() + self.backfill_bytes() + written
    }

    /// Returns the limit of unflushed memory above which epochs wait, in bytes. Other memory use
    /// (sparse indexes and filters, work in progress, pending log records) reduces this limit, but
    /// never so much that no work can progress.
    pub fn unflushed_bytes_max(&self) -> u64 {
        let stop = self.options.stop_bytes();
        let taken = self.resident_bytes() + self.log.pending_bytes();
        stop.saturating_sub(taken).max(stop / 4)
    }

    /// Returns true if there is memory for another epoch.
    pub fn has_memory(&self) -> bool {
        self.unwritten_bytes() < self.unflushed_bytes_max()
            && !self.state.indexes_and_rebuilds().iter().any(|index| index.stats.is_full())
    }

    /// Returns true if the log is longer than its limit.
    pub fn is_log_long(&self) -> bool {
        self.log.retained_bytes() > self.options.log_bytes
    }

    /// Returns the newest epoch of a bucket that scans see.
    pub fn committed(&self, bucket: BucketId) -> Epoch {
        let buckets = lock(&self.state.buckets);
        let applied = buckets.get(&bucket).and_then(|progress| progress.applied.as_ref());
        applied.map_or(Epoch(0), |mark| mark.epoch)
    }

    /// Adds a checkpoint: the buckets' newest epochs at the end of the log. Does nothing if the
    /// log has grown by less than `at_least_bytes` since the last checkpoint.
    pub fn checkpoint(&self, order: &mut LogCheckpoints, at_least_bytes: u64) {
        let end = self.log.end();
        if order.checkpoints.back().is_some_and(|(last, _)| end < last + at_least_bytes) {
            return;
        }
        order.checkpoints.push_back((end, self.state.logged()));
    }
}
