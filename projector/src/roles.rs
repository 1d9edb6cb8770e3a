//! The projector's knowledge of the copies of embedded buckets: the newest configurations, the
//! terms in which this process has compared its copy with the leader's, and the times of the
//! leaders' last answers.

use std::collections::BTreeMap;
use std::sync::Mutex;

use proto::lock::lock;
use proto::model::copies::Copies;
use proto::model::ids::BucketId;
use tokio::sync::watch;
use tokio::time::Instant;

/// The configurations of the embedded buckets, and this process's contacts with their leaders.
pub(crate) struct Roles {
    /// The newest configuration of each bucket.
    copies: Mutex<BTreeMap<BucketId, Copies>>,
    /// Incremented at each change of a configuration.
    changed: watch::Sender<u64>,
    /// For each bucket, the last term in which this process has compared its copy with the
    /// leader's.
    compared: Mutex<BTreeMap<BucketId, u64>>,
    /// The time of the last answer of each bucket's leader.
    heard: Mutex<BTreeMap<BucketId, Instant>>,
    /// The start of this process.
    pub(crate) began: Instant,
}

impl Roles {
    pub(crate) fn new() -> Self {
        let (changed, _) = watch::channel(0);
        let (copies, compared, heard) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { copies, changed, compared, heard, began: Instant::now() }
    }

    /// Returns a receiver that is notified of each change of a configuration.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Returns the last term in which this process has compared its copy of a bucket with the
    /// leader's, and had all mutations of the leader.
    pub(crate) fn compared_in(&self, bucket: BucketId) -> Option<u64> {
        lock(&self.compared).get(&bucket).copied()
    }

    /// Records that this process has compared its copy with the leader's in a term.
    pub(crate) fn record_compared(&self, bucket: BucketId, term: u64) {
        lock(&self.compared).insert(bucket, term);
    }

    /// Records that the copy must be compared with the leader's again, because the bucket was
    /// recreated or lacks mutations that are still being copied.
    pub(crate) fn forget_compared(&self, bucket: BucketId) {
        lock(&self.compared).remove(&bucket);
    }

    /// Returns the last time at which this process has granted a lease to the bucket's leader. If
    /// there was none, returns the start of the process, because a previous process may have
    /// granted one.
    pub(crate) fn last_answer_at(&self, bucket: BucketId) -> Instant {
        lock(&self.heard).get(&bucket).copied().unwrap_or(self.began)
    }

    /// Records that the bucket's leader has answered now.
    pub(crate) fn record_answer(&self, bucket: BucketId) {
        lock(&self.heard).insert(bucket, Instant::now());
    }

    /// Returns the newest known configuration of an embedded bucket's copies; `None` before the
    /// first catalog.
    pub(crate) fn newest(&self, bucket: BucketId) -> Option<Copies> {
        lock(&self.copies).get(&bucket).cloned()
    }

    /// Stores a configuration of a bucket's copies, and returns true. Returns false if the stored
    /// one is at least as new. After true the caller must call [`Self::wake_watchers`].
    pub(crate) fn store_if_newer(&self, bucket: BucketId, copies: &Copies) -> bool {
        let mut known = lock(&self.copies);
        if known.get(&bucket).is_some_and(|known| known.revision >= copies.revision) {
            return false;
        }
        known.insert(bucket, copies.clone());
        true
    }

    /// Removes all that is recorded about the buckets for which `is_kept` returns false.
    pub(crate) fn retain_buckets(&self, is_kept: impl Fn(BucketId) -> bool) {
        lock(&self.copies).retain(|bucket, _| is_kept(*bucket));
        lock(&self.compared).retain(|bucket, _| is_kept(*bucket));
        lock(&self.heard).retain(|bucket, _| is_kept(*bucket));
    }

    /// Wakes the tasks that wait for a change of the configurations.
    pub(crate) fn wake_watchers(&self) {
        self.changed.send_modify(|count| *count += 1);
    }
}
