//! The damaged buckets of a projector. The files of such a bucket stay on disk, and the bucket is
//! excluded from all calls, reports and copies. All other buckets are served. A damaged bucket
//! that has another copy is recreated from that copy (`crate::copies`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use documents::document_store::{DamagedBucket, DamagedFiles};
use proto::lock::lock;
use proto::model::copies::Copies;
use proto::model::ids::BucketId;
use proto::{Error, ErrorCode};

/// The damaged buckets of a projector, and the buckets that were recreated in their place.
#[derive(Default)]
pub(crate) struct DamagedBuckets {
    damaged: Mutex<BTreeMap<BucketId, DamagedBucket>>,
    /// The recreated buckets whose old, damaged files still exist.
    replaced: Mutex<BTreeSet<BucketId>>,
    /// The damaged buckets that are no longer needed, but have data that their leaders lack.
    kept: Mutex<BTreeSet<BucketId>>,
    /// True if a recreated bucket has missed stability timestamps, which arrived before it was
    /// created.
    lacks_epochs: AtomicBool,
}

impl DamagedBuckets {
    /// Creates the lists for a store that was just opened, from the damaged buckets that it has
    /// found.
    pub(crate) fn new(
        damaged: BTreeMap<BucketId, DamagedBucket>,
        replaced: BTreeSet<BucketId>,
    ) -> Self {
        for (bucket, damaged) in &damaged {
            tracing::error!(%bucket, error = %damaged.error, "a bucket is damaged and not served; its files are kept");
        }
        let (damaged, replaced) = (Mutex::new(damaged), Mutex::new(replaced));
        Self { damaged, replaced, ..Self::default() }
    }

    /// Returns the ids of the damaged buckets.
    pub(crate) fn ids(&self) -> BTreeSet<BucketId> {
        lock(&self.damaged).keys().copied().collect()
    }

    /// Returns the damage of a bucket; `None` if it is not damaged.
    pub(crate) fn get(&self, bucket: BucketId) -> Option<DamagedBucket> {
        lock(&self.damaged).get(&bucket).cloned()
    }

    /// Returns the recreated buckets whose new copies are not complete yet.
    pub(crate) fn recreated(&self) -> BTreeSet<BucketId> {
        lock(&self.replaced).clone()
    }

    /// Records that a damaged bucket was recreated, empty. `files` says whether its damaged files
    /// are removed later or kept.
    pub(crate) fn record_recreated(&self, bucket: BucketId, files: DamagedFiles) {
        lock(&self.damaged).remove(&bucket);
        if files == DamagedFiles::UntilComplete {
            lock(&self.replaced).insert(bucket);
        }
        self.lacks_epochs.store(true, Ordering::Relaxed);
    }

    /// Returns true if a bucket was recreated since the last call of this function. The stability
    /// timestamps of such a bucket arrived before it existed on this projector, so they must be
    /// requested again.
    pub(crate) fn take_missed_epochs(&self) -> bool {
        self.lacks_epochs.swap(false, Ordering::Relaxed)
    }

    /// Records that the damaged files of a bucket are kept for an operator, because they have
    /// data that the leader lacks. Returns true at the first call for the bucket.
    pub(crate) fn record_files_kept(&self, bucket: BucketId) -> bool {
        lock(&self.kept).insert(bucket)
    }

    /// Records that the damaged files of a bucket were removed.
    pub(crate) fn record_files_removed(&self, bucket: BucketId) {
        lock(&self.damaged).remove(&bucket);
        lock(&self.replaced).remove(&bucket);
    }

    /// Returns the error for callers of a damaged bucket; `None` if it is not damaged.
    pub(crate) fn refusal_error(&self, bucket: BucketId, copies: Option<&Copies>) -> Option<Error> {
        let damage = self.get(bucket)?.error.message;
        let what = format!("{damage}: the bucket is damaged and not served");
        Some(match copies.is_some_and(|copies| copies.in_sync.len() > 1) {
            true => Error::unavailable(what)
                .with_hint("another copy of the bucket takes over in some seconds; try again"),
            false => Error::new(ErrorCode::Corrupt, what).with_hint(
                "stop the projector, and restore its data directory from a copy, or make the bucket again from what is whole with `sextant source recover --accept-loss`",
            ),
        })
    }
}
