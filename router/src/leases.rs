//! Leases: the epochs that running scans and transactions read. The router reports the oldest of each
//! bucket with its heartbeats, and the coordinator keeps the horizon below it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use proto::ids::{BucketId, Epoch};

/// How many hold each epoch.
#[derive(Clone, Default)]
pub struct Leases(Arc<Mutex<BTreeMap<(BucketId, Epoch), usize>>>);

/// Keeps an epoch readable until it is dropped.
pub struct EpochLease {
    leases: Leases,
    bucket: BucketId,
    epoch: Epoch,
}

impl Leases {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<(BucketId, Epoch), usize>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Leases an epoch.
    pub fn take(&self, bucket: BucketId, epoch: Epoch) -> EpochLease {
        *self.lock().entry((bucket, epoch)).or_default() += 1;
        EpochLease { leases: self.clone(), bucket, epoch }
    }

    /// The oldest leased epoch of each bucket.
    pub fn oldest(&self) -> Vec<(BucketId, Epoch)> {
        let mut oldest: Vec<(BucketId, Epoch)> = self.lock().keys().copied().collect();
        oldest.dedup_by_key(|(bucket, _)| *bucket);
        oldest
    }
}

impl EpochLease {
    /// The epoch.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The bucket that the epoch is counted in.
    pub fn bucket(&self) -> BucketId {
        self.bucket
    }
}

impl Drop for EpochLease {
    fn drop(&mut self) {
        let mut leases = self.leases.lock();
        if let Some(holders) = leases.get_mut(&(self.bucket, self.epoch)) {
            *holders -= 1;
            if *holders == 0 {
                leases.remove(&(self.bucket, self.epoch));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_epoch_is_held_until_its_last_holder_goes() {
        let leases = Leases::default();
        let first = leases.take(BucketId(1), Epoch(5));
        let second = leases.take(BucketId(1), Epoch(5));
        let newer = leases.take(BucketId(1), Epoch(9));
        drop(first);
        assert_eq!(leases.oldest(), [(BucketId(1), Epoch(5))]);
        drop(second);
        assert_eq!(leases.oldest(), [(BucketId(1), Epoch(9))]);
        drop(newer);
        assert!(leases.oldest().is_empty());
    }
}
