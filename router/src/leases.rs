//! Leases: the epochs that running scans and transactions read, and those that continuation tokens name.
//! The router reports them with its heartbeats, and the coordinator keeps the horizon
//! below it.
//!
//! A token may come back or not, so it holds its epoch by time: for [`TOKEN_KEPT`] after it was handed
//! out. Tokens of the same epoch share a lease.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use proto::ids::{BucketId, Epoch};
use tokio::time::Instant;

/// How long a token can be gone on with at least: what a reader of a page needs.
pub const TOKEN_KEPT: Duration = Duration::from_secs(120);
/// Epochs of a bucket that tokens hold; of more, the oldest is given up.
const TOKEN_EPOCHS_MAX: usize = 1024;

/// Epochs of a bucket that are told in a heartbeat.
const TOLD_MAX: usize = 256;

/// Who holds each epoch.
#[derive(Clone, Default)]
pub struct Leases(Arc<Mutex<Held>>);

#[derive(Default)]
struct Held {
    /// How many running scans and transactions hold each epoch.
    running: BTreeMap<(BucketId, Epoch), usize>,
    /// Until when tokens hold each epoch.
    tokens: BTreeMap<BucketId, BTreeMap<Epoch, Instant>>,
}

/// Keeps an epoch readable until it is dropped.
pub struct EpochLease {
    leases: Leases,
    bucket: BucketId,
    epoch: Epoch,
}

impl Leases {
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Leases an epoch.
    pub fn take(&self, bucket: BucketId, epoch: Epoch) -> EpochLease {
        *self.lock().running.entry((bucket, epoch)).or_default() += 1;
        EpochLease { leases: self.clone(), bucket, epoch }
    }

    /// The leased epochs of each bucket, the oldest first and a bounded number of them; forgets the tokens
    /// whose time is over. All are told, since the coordinator passes over one that has been held for too
    /// long, and must know of the next.
    pub fn told(&self, now: Instant) -> Vec<(BucketId, Epoch)> {
        let mut held = self.lock();
        held.tokens.retain(|_, epochs| {
            epochs.retain(|_, until| now < *until);
            !epochs.is_empty()
        });
        let tokens = held
            .tokens
            .iter()
            .flat_map(|(bucket, epochs)| epochs.keys().map(|epoch| (*bucket, *epoch)));
        let mut told: Vec<_> = held.running.keys().copied().chain(tokens).collect();
        told.sort_unstable();
        told.dedup();
        let (mut of, mut count) = (None, 0);
        told.retain(|(bucket, _)| {
            count = if of == Some(*bucket) { count + 1 } else { 1 };
            of = Some(*bucket);
            count <= TOLD_MAX
        });
        told
    }
}

impl EpochLease {
    /// Keeps the epoch readable for a while after this lease: a token that names it is handed out.
    pub fn keep_for_token(&self, now: Instant) {
        let mut held = self.leases.lock();
        let epochs = held.tokens.entry(self.bucket).or_default();
        epochs.insert(self.epoch, now + TOKEN_KEPT);
        if epochs.len() > TOKEN_EPOCHS_MAX {
            epochs.pop_first();
        }
    }

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
        let mut held = self.leases.lock();
        if let Some(holders) = held.running.get_mut(&(self.bucket, self.epoch)) {
            *holders -= 1;
            if *holders == 0 {
                held.running.remove(&(self.bucket, self.epoch));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_held_until_its_last_holder_goes() {
        let leases = Leases::default();
        let first = leases.take(BucketId(1), Epoch(5));
        let second = leases.take(BucketId(1), Epoch(5));
        let newer = leases.take(BucketId(1), Epoch(9));
        drop(first);
        let told = || leases.told(Instant::now());
        assert_eq!(told(), [(BucketId(1), Epoch(5)), (BucketId(1), Epoch(9))]);
        drop(second);
        assert_eq!(told(), [(BucketId(1), Epoch(9))]);
        drop(newer);
        assert!(told().is_empty());
    }

    #[test]
    fn a_token_holds_its_epoch_for_a_while_after_it_was_handed_out() {
        let leases = Leases::default();
        let (bucket, start, second) = (BucketId(1), Instant::now(), Duration::from_secs(1));
        let scan = leases.take(bucket, Epoch(5));
        scan.keep_for_token(start);
        scan.keep_for_token(start + second);
        drop(scan);
        let _newer = leases.take(bucket, Epoch(9));
        let _other = leases.take(BucketId(2), Epoch(1));
        let (newer, other) = ((bucket, Epoch(9)), (BucketId(2), Epoch(1)));
        let before = leases.told(start + TOKEN_KEPT);
        assert_eq!(before, [(bucket, Epoch(5)), newer, other], "from the last one on");
        assert_eq!(leases.told(start + TOKEN_KEPT + second), [newer, other]);
        assert!(leases.lock().tokens.is_empty());
    }

    #[test]
    fn of_too_many_tokens_the_oldest_epoch_is_given_up() {
        let leases = Leases::default();
        let now = Instant::now();
        let epochs = 1..=TOKEN_EPOCHS_MAX as u64 + 1;
        epochs.for_each(|n| leases.take(BucketId(1), Epoch(n)).keep_for_token(now));
        let told = leases.told(now);
        assert_eq!((told[0], told.len()), ((BucketId(1), Epoch(2)), TOLD_MAX));
    }
}
