//! The epochs below which the scans of a session must not read.
//!
//! Different copies may answer two scans of a session, and one of the copies may lag. The session
//! therefore remembers the newest epoch that it has read of each index (*read floor*), and its
//! writes in each bucket. After a write, the first scan of the bucket asks the coordinators for
//! the oldest epoch that contains the write. This epoch becomes the bucket's *write floor*. Later
//! scans only compare epochs.
//!
//! - *Rollbacks.* The epochs after a rollback have greater numbers than all removed epochs. A
//!   read floor that was removed is therefore satisfied by the first epoch after the rollback. If
//!   a write floor was removed, the coordinators are asked again, since the write may be lost.
//!   The check for removed floors is repeated when the scan has its epoch, since the scan may
//!   have waited for the end of the rollback.
//! - *Open outcomes.* A write whose answer is lost may have been executed, at an unknown
//!   position. The next scan of its bucket therefore reads everything that the projector has.
//!
//! A read floor applies to all generations of its index. After a switch to a new generation, a
//! session therefore reads no older data, but waits until the new generation has reached the
//! floor.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::model::catalog::Catalog;
use proto::model::cut::WritePosition;
use proto::model::ids::{BucketId, Epoch, IndexId};
use proto::model::index::IndexInfo;
use proto::rpc::scan::Consistency;
use proto::{Error, ErrorCode};
use tokio::time::Instant;

/// The number of remembered indexes and buckets above which those that were dropped are
/// forgotten.
const KEPT_MAX: usize = 1_024;
/// The maximum number of positions of one bucket, on different branches, that are remembered.
const BRANCHES_MAX: usize = 4;
/// The time after which a newly pinned moment covers everything that the session has read.
const MOMENT_COVERS: Duration = Duration::from_secs(5);

/// The read floors and the writes of a session.
#[derive(Debug, Default)]
pub(in crate::pg) struct Floors {
    read: BTreeMap<IndexId, IndexRead>,
    written: BTreeMap<BucketId, BucketWrites>,
}

/// The newest epoch that a session has read of an index.
#[derive(Debug)]
struct IndexRead {
    bucket: BucketId,
    epoch: Epoch,
    at: Instant,
}

/// The writes of a session in one bucket.
#[derive(Debug, Default)]
struct BucketWrites {
    /// The positions of the writes. A new position is merged with the last one unless they are on
    /// different branches, because the earlier writes may then be lost.
    positions: Vec<WritePosition>,
    /// True if a write may have been executed at an unknown position.
    is_open: bool,
    /// An epoch that contains the writes with unknown positions, if they were executed.
    seen: Epoch,
    /// The oldest epoch that contains all of the writes; `None` until the coordinators have
    /// answered.
    epoch: Option<Epoch>,
}

/// A record of the state before a write began: true if the outcome of an earlier write was
/// unknown.
#[must_use]
pub(in crate::pg) struct OpenOutcome(bool);

/// Returns true if an error leaves it open whether a write was executed.
pub(in crate::pg) fn leaves_open(error: &Error) -> bool {
    use ErrorCode::{Cancelled, InDoubt, Interrupted, Io};
    // A log that could not be written may have it.
    matches!(error.code, Cancelled | InDoubt | Interrupted | Io)
}

/// Returns true if two positions are on different branches of a vbucket.
fn is_other_branch(one: &WritePosition, other: &WritePosition) -> bool {
    one.positions.iter().any(|(vbucket, at)| {
        let known = other.positions.binary_search_by_key(vbucket, |(vbucket, _)| *vbucket);
        known.is_ok_and(|known| other.positions[known].1.vbuuid != at.vbuuid)
    })
}

impl Floors {
    /// Records the epoch that a scan has read.
    pub(in crate::pg) fn note_scan(
        &mut self,
        index: &IndexInfo,
        consistency: &Consistency,
        epoch: Epoch,
    ) {
        let (bucket, at) = (index.bucket, Instant::now());
        let read = self.read.entry(index.id).or_insert(IndexRead { bucket, epoch, at });
        // Another version of a data set is another bucket, with other epochs. A router's catalog never moves back to an older version.
        let newest = if read.bucket == bucket { read.epoch } else { Epoch(0) };
        *read = IndexRead { bucket, epoch: epoch.max(newest), at };
        if *consistency == Consistency::RequestPlus
            && let Some(written) = self.written.get_mut(&bucket)
        {
            (written.is_open, written.seen) = (false, epoch.max(written.seen));
        }
    }

    /// Forgets dropped indexes and buckets, if more than [`KEPT_MAX`] indexes or buckets are
    /// remembered.
    pub(in crate::pg) fn forget_dropped(
        &mut self,
        catalog: impl FnOnce() -> std::sync::Arc<Catalog>,
    ) {
        if self.read.len().max(self.written.len()) > KEPT_MAX {
            let catalog = catalog();
            self.read.retain(|index, _| catalog.indexes.contains_key(index));
            self.written.retain(|bucket, _| catalog.buckets.contains_key(bucket));
        }
    }

    /// Records that a write begins. Until [`Self::end_write`] is called, its outcome is unknown.
    pub(in crate::pg) fn begin_write(&mut self, bucket: BucketId) -> OpenOutcome {
        let written = self.written.entry(bucket).or_default();
        OpenOutcome(std::mem::replace(&mut written.is_open, true))
    }

    /// Records that the outcome of a write is known. `before` is the result of
    /// [`Self::begin_write`].
    pub(in crate::pg) fn end_write(&mut self, bucket: BucketId, before: OpenOutcome) {
        if let Some(written) = self.written.get_mut(&bucket) {
            written.is_open = before.0;
        }
    }

    /// Records the position of a write.
    pub(super) fn note_write(&mut self, position: WritePosition) {
        if position.positions.is_empty() {
            return;
        }
        let written = self.written.entry(position.bucket).or_default();
        written.epoch = None;
        match written.positions.last_mut() {
            Some(last) if !is_other_branch(&position, last) => last.merge(&position),
            _ => written.positions.push(position),
        }
        if written.positions.len() > BRANCHES_MAX {
            written.positions.remove(0);
        }
    }

    /// Returns the session's writes in a bucket if the oldest epoch that contains them is not
    /// known.
    pub(super) fn writes_without_epoch(
        &self,
        bucket: BucketId,
        catalog: &Catalog,
    ) -> Option<&[WritePosition]> {
        let written = self.written.get(&bucket).filter(|written| !written.positions.is_empty())?;
        let is_settled = written.epoch.is_some_and(|epoch| !is_dead(catalog, bucket, epoch));
        (!is_settled).then_some(&written.positions)
    }

    /// Returns true if a rollback has removed the epoch that contained the session's writes.
    pub(super) fn is_rolled_back(&self, bucket: BucketId, catalog: &Catalog) -> bool {
        let written = self.written.get(&bucket).filter(|written| !written.positions.is_empty());
        let epoch = written.and_then(|written| written.epoch);
        epoch.is_some_and(|epoch| is_dead(catalog, bucket, epoch))
    }

    /// Records the oldest epoch that contains all writes of the session in a bucket.
    pub(super) fn set_write_epoch(&mut self, bucket: BucketId, epoch: Epoch) {
        if let Some(written) = self.written.get_mut(&bucket) {
            written.epoch = Some(epoch);
            // All positions are in one history, so the last ones determine the end.
            while written.positions.len() > 1 {
                let first = written.positions.remove(0);
                let mut merged = first;
                merged.merge(&written.positions[0]);
                written.positions[0] = merged;
            }
        }
    }

    /// Forgets the writes in a bucket after an error that some of them are lost, because it is
    /// unknown which of them.
    pub(super) fn forget_writes(&mut self, bucket: BucketId) {
        let lost = BucketWrites { is_open: true, ..BucketWrites::default() };
        self.written.insert(bucket, lost);
    }

    /// Returns true if the next scan of a bucket must read everything that the projector has.
    pub(super) fn is_open(&self, bucket: BucketId) -> bool {
        self.written.get(&bucket).is_some_and(|written| written.is_open)
    }

    /// Returns true if the session has written in a bucket.
    pub(super) fn has_written(&self, bucket: BucketId) -> bool {
        self.written.contains_key(&bucket)
    }

    /// Returns the last known position of the session's writes in a bucket.
    pub(super) fn last_write(&self, bucket: BucketId) -> Option<&WritePosition> {
        self.written.get(&bucket)?.positions.last()
    }

    /// Returns the oldest epoch that a scan of an index may read.
    pub(super) fn floor_of_index(&self, bucket: BucketId, index: IndexId) -> Epoch {
        let read = self.read.get(&index).filter(|read| read.bucket == bucket);
        let read = read.map_or(Epoch(0), |read| read.epoch);
        read.max(self.floor_of_writes(bucket))
    }

    /// Returns the oldest epoch that a transaction may read in a bucket, through any index.
    pub(super) fn floor_of_bucket(&self, bucket: BucketId) -> Epoch {
        let read = self.read.values().filter(|read| read.bucket == bucket).map(|read| read.epoch);
        read.max().unwrap_or_default().max(self.floor_of_writes(bucket))
    }

    /// Returns the oldest epoch that contains the session's writes in a bucket; 0 if it is
    /// unknown.
    fn floor_of_writes(&self, bucket: BucketId) -> Epoch {
        let floor = |written: &BucketWrites| written.epoch.unwrap_or_default().max(written.seen);
        self.written.get(&bucket).map_or(Epoch(0), floor)
    }

    /// Returns true if the session has read other buckets within the last [`MOMENT_COVERS`].
    pub(super) fn has_read_others(&self, bucket: BucketId) -> bool {
        let now = Instant::now();
        self.read.values().any(|read| read.bucket != bucket && now < read.at + MOMENT_COVERS)
    }
}

/// Returns true if a rollback has removed an epoch.
fn is_dead(catalog: &Catalog, bucket: BucketId, epoch: Epoch) -> bool {
    catalog.buckets.get(&bucket).is_some_and(|bucket| bucket.is_dead(epoch))
}

/// Returns the consistency of a scan that reads no epoch before `floor`; zero means no floor.
pub(super) fn at_least(floor: Epoch) -> Consistency {
    match floor {
        Epoch(0) => Consistency::Any,
        floor => Consistency::AtLeast(floor),
    }
}

#[cfg(test)]
#[path = "floors_tests.rs"]
mod tests;
