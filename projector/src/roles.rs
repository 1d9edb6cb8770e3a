//! The projector's information about the copies of embedded buckets: the newest configurations, the
//! terms in which this process has compared its copy with the leader, and the times of the leaders'
//! answers.

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
    /// For each bucket, the last term in which this process has compared its copy with the leader.
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

    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Returns the last term in which this process had all mutations of the leader.
    pub(crate) fn compared_in(&self, bucket: BucketId) -> Option<u64> {
        lock(&self.compared).get(&bucket).copied()
    }

    pub(crate) fn compared(&self, bucket: BucketId, term: u64) {
        lock(&self.compared).insert(bucket, term);
    }

    /// Records that the bucket must be compared with its leader again, because the bucket was
    /// recreated or changes piece by piece.
    pub(crate) fn not_compared(&self, bucket: BucketId) {
        lock(&self.compared).remove(&bucket);
    }

    /// Returns the last time at which this process, or possibly a previous one, has granted a lease
    /// to the bucket's leader.
    pub(crate) fn heard_at(&self, bucket: BucketId) -> Instant {
        lock(&self.heard).get(&bucket).copied().unwrap_or(self.began)
    }

    pub(crate) fn heard(&self, bucket: BucketId) {
        lock(&self.heard).insert(bucket, Instant::now());
    }

    /// The newest known configuration of an embedded bucket; `None` before the first catalog.
    pub(crate) fn newest(&self, bucket: BucketId) -> Option<Copies> {
        lock(&self.copies).get(&bucket).cloned()
    }

    /// Stores a configuration, and returns true; returns false if the stored one is at least as
    /// new. After true the caller must call [`Self::look_again`].
    pub(crate) fn learn(&self, bucket: BucketId, copies: &Copies) -> bool {
        let mut known = lock(&self.copies);
        if known.get(&bucket).is_some_and(|known| known.revision >= copies.revision) {
            return false;
        }
        known.insert(bucket, copies.clone());
        true
    }

    /// Removes the buckets for which `is_kept` returns false.
    pub(crate) fn keep(&self, is_kept: impl Fn(BucketId) -> bool) {
        lock(&self.copies).retain(|bucket, _| is_kept(*bucket));
        lock(&self.compared).retain(|bucket, _| is_kept(*bucket));
        lock(&self.heard).retain(|bucket, _| is_kept(*bucket));
    }

    /// Wakes the tasks that wait for a change of the configurations.
    pub(crate) fn look_again(&self) {
        self.changed.send_modify(|count| *count += 1);
    }
}
