//! What the engine shares with its background work, and the memory that it takes.

use std::sync::{Arc, Mutex};

use proto::env::Env;
use proto::model::ids::{BucketId, Epoch, NodeId};
use tokio::sync::Notify;

use crate::files::data_files::Files;
use crate::index::local_index::Slot;
use crate::lock::lock;
use crate::log::commit_log::CommitLog;
use crate::node::background::Background;
use crate::node::log_order::Order;
use crate::node::state::State;
use crate::options::StoreOptions;

/// What the store shares with its background work.
pub(crate) struct Inner {
    pub env: Env,
    /// Told with the numbers of files, which are of this opening of the store only.
    pub opening: u64,
    pub node: NodeId,
    pub options: StoreOptions,
    pub files: Files,
    pub log: CommitLog,
    pub state: Arc<State>,
    /// Holds the order of the log and of what is said about it together.
    pub order: tokio::sync::Mutex<Order>,
    pub background: Mutex<Background>,
    /// Memory was given back.
    pub room: Notify,
}

impl Inner {
    /// Bytes of memory that wait to be written to fragments.
    pub fn unwritten_bytes(&self) -> u64 {
        self.state.slots().iter().map(|slot| slot.memory_bytes()).sum()
    }

    /// Bytes of backfills that wait to be written.
    pub fn bulk_bytes(&self) -> u64 {
        let bytes = |slot: &Arc<Slot>| slot.bulk_bytes.load(std::sync::atomic::Ordering::Relaxed);
        self.state.slots().iter().map(bytes).sum()
    }

    /// Bytes of the fragments' indexes and filters, and of work under way.
    pub fn resident_bytes(&self) -> u64 {
        self.state.slots().iter().map(|slot| slot.resident_bytes()).sum()
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> u64 {
        let written = self.resident_bytes() + self.files.cache_bytes();
        self.unwritten_bytes() + self.bulk_bytes() + written
    }

    /// Above this, epochs wait. What stays resident, what work under way holds, and what the log has yet
    /// to write leave less, but never so little that nothing goes on.
    pub fn room_bytes(&self) -> u64 {
        let stop = self.options.stop_bytes();
        let taken = self.resident_bytes() + self.log.pending_bytes();
        stop.saturating_sub(taken).max(stop / 4)
    }

    /// Is there room for an epoch?
    pub fn has_room(&self) -> bool {
        self.unwritten_bytes() < self.room_bytes()
            && !self.state.slots().iter().any(|slot| slot.figures.is_full())
    }

    /// The newest epoch of a bucket that scans see.
    pub fn committed(&self, bucket: BucketId) -> Epoch {
        let buckets = lock(&self.state.buckets);
        let applied = buckets.get(&bucket).and_then(|progress| progress.applied.as_ref());
        applied.map_or(Epoch(0), |mark| mark.epoch)
    }

    /// Remembers the buckets' newest epochs at the end of the log, unless that was done a little
    /// before.
    pub fn checkpoint(&self, order: &mut Order, at_least_bytes: u64) {
        let end = self.log.end();
        if order.checkpoints.back().is_some_and(|(last, _)| end < last + at_least_bytes) {
            return;
        }
        order.checkpoints.push_back((end, self.state.logged()));
    }
}
