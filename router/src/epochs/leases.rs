//! Leases keep epochs readable: the epochs that running scans and transactions read, and the
//! epochs that continuation tokens name. A transaction also leases its *moment*, one point in time
//! for all buckets. Such a lease keeps in each bucket the epoch that was the newest at that
//! moment, also in buckets that the transaction has not read yet. The router reports the leases in
//! its heartbeats, and the coordinator keeps the horizon below them.
//!
//! The router does not know whether a token will be used, so a token leases its epoch for a fixed
//! time (`TOKEN_KEPT`). Tokens of the same epoch share one lease.
//!
//! The leader ignores a lease whose epoch was superseded longer ago than [`LEASE_AGE_MS_MAX`]. A
//! heartbeat contains a bounded number of leases, so the router omits those that the leader
//! ignores anyway. For the router an epoch is superseded when a newer one is received, which is
//! never before the leader publishes the newer one; so the router omits no lease that the leader
//! still respects. A new leader counts the age from its election, and would respect such an old
//! lease a little longer, but the heartbeats no longer contain it. The lease of a moment is
//! ignored when the router has reported it for longer than that time, since only the leader knows
//! when the epochs of all buckets were superseded.
//!
//! A lease also keeps the generations of indexes that a scan or transaction began to read: it
//! contains the number of the catalog that named them. The heartbeat reports the oldest of these
//! numbers. A replaced generation is dropped when all routers report a catalog that is newer than
//! the replacement.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use proto::lock::lock;
use proto::model::ids::{BucketId, Epoch};
use proto::model::moment::Moment;
use proto::rpc::api::LEASE_AGE_MS_MAX;
use tokio::time::Instant;

/// The minimum time for which a continuation token is usable: the time that a person needs to read
/// a page.
pub const TOKEN_KEPT: Duration = Duration::from_secs(120);
/// Maximum number of epochs of one bucket that tokens lease. If there are more, the oldest one is
/// released.
const TOKEN_EPOCHS_MAX: usize = 1024;

/// Maximum number of leased epochs of one bucket in a heartbeat.
const HEARTBEAT_LEASES_MAX: usize = 256;
/// Maximum number of leased moments in a heartbeat. The oldest moments are sent, which also
/// protect the newer ones.
const HEARTBEAT_MOMENTS_MAX: usize = 256;

/// The minimum time between two published epochs whose times are remembered; with it, some
/// hundreds are remembered for each bucket.
const SEEN_EVERY: Duration = Duration::from_secs(1);

/// The leases of a router.
#[derive(Clone, Default)]
pub struct Leases(Arc<Mutex<LeaseTable>>);

/// The leased epochs, moments and catalogs.
#[derive(Default)]
struct LeaseTable {
    /// For each epoch, the number of running scans and transactions that lease it.
    running: BTreeMap<(BucketId, Epoch), usize>,
    /// For each epoch that tokens lease, the time at which its newest token expires.
    tokens: BTreeMap<BucketId, BTreeMap<Epoch, Instant>>,
    /// For each leased moment, the number of transactions that lease it, and the time at which the
    /// lease began.
    moments: BTreeMap<Moment, (usize, Instant)>,
    /// For each catalog number, the number of running scans and transactions that began with this
    /// catalog.
    catalogs: BTreeMap<u64, usize>,
    /// For each catalog with which a scan began that tokens continue, the time at which the last
    /// token expires.
    token_catalogs: BTreeMap<u64, Instant>,
    /// For each bucket with leases, the times at which its epochs were published.
    published: BTreeMap<BucketId, PublishedEpochs>,
}

/// The times at which this router first received the epochs of a bucket.
#[derive(Default)]
struct PublishedEpochs {
    seen: VecDeque<(Epoch, Instant)>,
    counts_from: Epoch,
}

impl PublishedEpochs {
    /// Records a newest epoch, and forgets epochs that the leader no longer protects.
    fn note(&mut self, newest: Epoch, now: Instant) {
        let is_new = |(last, at): &(Epoch, Instant)| *last < newest && *at + SEEN_EVERY <= now;
        if self.seen.back().is_none_or(is_new) {
            self.seen.push_back((newest, now));
        }
        let age_max = Duration::from_millis(LEASE_AGE_MS_MAX);
        while let Some((epoch, at)) = self.seen.front()
            && *at + age_max < now
        {
            self.counts_from = *epoch;
            self.seen.pop_front();
        }
    }
}

/// A lease of an epoch: the epoch can be read until this value is dropped.
pub struct EpochLease {
    leases: Leases,
    bucket: BucketId,
    epoch: Epoch,
    hold: CatalogLease,
}

/// A lease of the generations of indexes that a catalog names. They are retained until this value
/// is dropped. No epoch is leased.
pub(crate) struct CatalogLease {
    leases: Leases,
    catalog_cas: u64,
}

/// A lease of a moment: in each bucket, the epoch that was the newest at the moment can be read
/// until this value is dropped.
pub(crate) struct MomentLease {
    leases: Leases,
    moment: Moment,
}

impl Leases {
    fn lock(&self) -> MutexGuard<'_, LeaseTable> {
        lock(&self.0)
    }

    /// Leases an epoch, and the generations of indexes that the catalog with the number
    /// `catalog_cas` names. Zero retains all generations, including replaced ones.
    pub fn lease_epoch(&self, bucket: BucketId, epoch: Epoch, catalog_cas: u64) -> EpochLease {
        let hold = self.lease_catalog(catalog_cas);
        *self.lock().running.entry((bucket, epoch)).or_default() += 1;
        EpochLease { leases: self.clone(), bucket, epoch, hold }
    }

    /// Removes expired tokens, and returns the number of the oldest catalog that a lease has;
    /// `None` if there is no lease.
    pub fn oldest_catalog(&self, now: Instant) -> Option<u64> {
        let mut held = self.lock();
        held.token_catalogs.retain(|_, until| now < *until);
        let oldest = [held.catalogs.keys().next(), held.token_catalogs.keys().next()];
        oldest.into_iter().flatten().min().copied()
    }

    /// Leases the generations that a catalog names, without an epoch, until the guard is dropped.
    /// Used while the epoch of a scan is not chosen yet.
    pub(crate) fn lease_catalog(&self, catalog_cas: u64) -> CatalogLease {
        *self.lock().catalogs.entry(catalog_cas).or_default() += 1;
        CatalogLease { leases: self.clone(), catalog_cas }
    }

    /// Leases a moment from `now` on.
    pub(crate) fn lease_moment(&self, moment: Moment, now: Instant) -> MomentLease {
        self.lock().moments.entry(moment).or_insert((0, now)).0 += 1;
        MomentLease { leases: self.clone(), moment }
    }

    /// Returns the leased moments for a heartbeat: ascending, at most [`HEARTBEAT_MOMENTS_MAX`].
    pub(crate) fn moments_for_heartbeat(&self, now: Instant) -> Vec<Moment> {
        let age_max = Duration::from_millis(LEASE_AGE_MS_MAX);
        let held = self.lock();
        let counts = held.moments.iter().filter(|(_, (_, since))| now <= *since + age_max);
        counts.map(|(moment, _)| *moment).take(HEARTBEAT_MOMENTS_MAX).collect()
    }

    /// Records the newest epoch of each bucket that is known to be published, to find out when
    /// leased epochs were superseded.
    pub fn note_published(
        &self,
        newest: impl IntoIterator<Item = (BucketId, Epoch)>,
        now: Instant,
    ) {
        let mut held = self.lock();
        let LeaseTable { running, tokens, published, .. } = &mut *held;
        let is_leased = |bucket: BucketId| {
            let all = (bucket, Epoch(0))..=(bucket, Epoch(u64::MAX));
            tokens.contains_key(&bucket) || running.range(all).next().is_some()
        };
        published.retain(|bucket, _| is_leased(*bucket));
        for (bucket, epoch) in newest.into_iter().filter(|(bucket, _)| is_leased(*bucket)) {
            published.entry(bucket).or_default().note(epoch, now);
        }
    }

    /// Returns the leased epochs for a heartbeat: by bucket, the oldest first, at most
    /// [`HEARTBEAT_LEASES_MAX`] of each bucket. Removes expired tokens.
    pub fn for_heartbeat(&self, now: Instant) -> Vec<(BucketId, Epoch)> {
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
        told.retain(|(bucket, epoch)| {
            held.published.get(bucket).is_none_or(|published| published.counts_from <= *epoch)
        });
        told.sort_unstable();
        told.dedup();
        let (mut of, mut count) = (None, 0);
        told.retain(|(bucket, _)| {
            count = if of == Some(*bucket) { count + 1 } else { 1 };
            of = Some(*bucket);
            count <= HEARTBEAT_LEASES_MAX
        });
        told
    }
}

impl EpochLease {
    /// Leases the epoch for `TOKEN_KEPT`, because a token with this epoch is sent to the client.
    pub fn keep_for_token(&self, now: Instant) {
        let mut held = self.leases.lock();
        let epochs = held.tokens.entry(self.bucket).or_default();
        epochs.insert(self.epoch, now + TOKEN_KEPT);
        if epochs.len() > TOKEN_EPOCHS_MAX {
            epochs.pop_first();
        }
        held.token_catalogs.insert(self.hold.catalog_cas, now + TOKEN_KEPT);
    }

    /// Returns the leased epoch.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Returns the bucket of the epoch.
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

impl Drop for CatalogLease {
    fn drop(&mut self) {
        let mut held = self.leases.lock();
        if let Some(holders) = held.catalogs.get_mut(&self.catalog_cas) {
            *holders -= 1;
            if *holders == 0 {
                held.catalogs.remove(&self.catalog_cas);
            }
        }
    }
}

impl MomentLease {
    /// Returns the leased moment.
    pub(crate) fn moment(&self) -> Moment {
        self.moment
    }
}

impl Drop for MomentLease {
    fn drop(&mut self) {
        let mut held = self.leases.lock();
        if let Some((holders, _)) = held.moments.get_mut(&self.moment) {
            *holders -= 1;
            if *holders == 0 {
                held.moments.remove(&self.moment);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_reported_while_leased() {
        let (leases, start) = (Leases::default(), Instant::now());
        let second = Duration::from_secs(1);
        let own = Moment { at: 3, of: Some((BucketId(1), Epoch(5))) };
        let first = leases.lease_moment(Moment::at(7), start);
        let again = leases.lease_moment(Moment::at(7), start + second);
        let _older = leases.lease_moment(own, start + second);
        let told = |now| leases.moments_for_heartbeat(now);
        assert_eq!(told(start + second), [own, Moment::at(7)], "the oldest first");
        drop(first);
        let last = start + Duration::from_millis(LEASE_AGE_MS_MAX);
        assert_eq!(told(last), [own, Moment::at(7)]);
        assert_eq!(told(last + second), [own], "its first holder took it a second before");
        assert!(told(last + 2 * second).is_empty());
        drop(again);
        assert_eq!(told(start), [own]);
    }

    #[test]
    fn the_oldest_moments_are_sent() {
        let (leases, now) = (Leases::default(), Instant::now());
        let taken = (1..=HEARTBEAT_MOMENTS_MAX as u64 + 1).rev();
        let _taken: Vec<_> = taken.map(|at| leases.lease_moment(Moment::at(at), now)).collect();
        let told = leases.moments_for_heartbeat(now);
        assert_eq!((told[0], told.len()), (Moment::at(1), HEARTBEAT_MOMENTS_MAX));
    }

    #[test]
    fn an_epoch_is_leased_until_all_drop() {
        let leases = Leases::default();
        let first = leases.lease_epoch(BucketId(1), Epoch(5), 1);
        let second = leases.lease_epoch(BucketId(1), Epoch(5), 1);
        let newer = leases.lease_epoch(BucketId(1), Epoch(9), 1);
        drop(first);
        let told = || leases.for_heartbeat(Instant::now());
        assert_eq!(told(), [(BucketId(1), Epoch(5)), (BucketId(1), Epoch(9))]);
        drop(second);
        assert_eq!(told(), [(BucketId(1), Epoch(9))]);
        drop(newer);
        assert!(told().is_empty());
    }

    #[test]
    fn a_token_leases_its_epoch() {
        let leases = Leases::default();
        let (bucket, start, second) = (BucketId(1), Instant::now(), Duration::from_secs(1));
        let scan = leases.lease_epoch(bucket, Epoch(5), 1);
        scan.keep_for_token(start);
        scan.keep_for_token(start + second);
        drop(scan);
        let _newer = leases.lease_epoch(bucket, Epoch(9), 1);
        let _other = leases.lease_epoch(BucketId(2), Epoch(1), 1);
        let (newer, other) = ((bucket, Epoch(9)), (BucketId(2), Epoch(1)));
        let before = leases.for_heartbeat(start + TOKEN_KEPT);
        assert_eq!(before, [(bucket, Epoch(5)), newer, other], "from the last one on");
        assert_eq!(leases.for_heartbeat(start + TOKEN_KEPT + second), [newer, other]);
        assert!(leases.lock().tokens.is_empty());
    }

    #[test]
    fn the_oldest_token_epoch_is_released() {
        let leases = Leases::default();
        let now = Instant::now();
        let epochs = 1..=TOKEN_EPOCHS_MAX as u64 + 1;
        epochs.for_each(|n| leases.lease_epoch(BucketId(1), Epoch(n), 1).keep_for_token(now));
        let told = leases.for_heartbeat(now);
        assert_eq!((told[0], told.len()), ((BucketId(1), Epoch(2)), HEARTBEAT_LEASES_MAX));
    }

    #[test]
    fn ignored_leases_are_not_sent() {
        let leases = Leases::default();
        let (bucket, start, second) = (BucketId(1), Instant::now(), Duration::from_secs(1));
        let old = 1..=HEARTBEAT_LEASES_MAX as u64 + 1;
        let _old: Vec<_> = old.map(|n| leases.lease_epoch(bucket, Epoch(n), 1)).collect();
        let see = |epoch, now| leases.note_published([(bucket, Epoch(epoch))], now);
        see(300, start);
        let live = leases.lease_epoch(bucket, Epoch(301), 1);
        see(301, start + second);
        let last = start + Duration::from_millis(LEASE_AGE_MS_MAX);
        see(400, last);
        assert_eq!(leases.for_heartbeat(last)[0], (bucket, Epoch(1)), "they count until then");
        see(400, last + second);
        assert_eq!(leases.for_heartbeat(last + second), [(bucket, Epoch(301))]);
        drop(live);
        see(400, last + 2 * second);
        assert!(leases.for_heartbeat(last + 2 * second).is_empty());
    }

    #[test]
    fn a_newest_epoch_is_always_sent() {
        let leases = Leases::default();
        let (bucket, start) = (BucketId(1), Instant::now());
        let _scan = leases.lease_epoch(bucket, Epoch(5), 1);
        let later = start + Duration::from_millis(3 * LEASE_AGE_MS_MAX);
        leases.note_published([(bucket, Epoch(5))], start);
        leases.note_published([(bucket, Epoch(5))], later);
        assert_eq!(leases.for_heartbeat(later), [(bucket, Epoch(5))]);
        leases.note_published([(bucket, Epoch(6))], later);
        assert_eq!(leases.for_heartbeat(later), [(bucket, Epoch(5))], "it was superseded just now");
    }

    #[test]
    fn the_oldest_catalog_is_that_of_a_running_scan_or_of_a_token_that_has_not_expired() {
        let (leases, start) = (Leases::default(), Instant::now());
        assert_eq!(leases.oldest_catalog(start), None);
        let newer = leases.lease_epoch(BucketId(1), Epoch(9), 70);
        let older = leases.lease_epoch(BucketId(2), Epoch(9), 50);
        assert_eq!(leases.oldest_catalog(start), Some(50));
        older.keep_for_token(start);
        drop(older);
        let last = start + TOKEN_KEPT;
        assert_eq!(leases.oldest_catalog(last - Duration::from_secs(1)), Some(50));
        assert_eq!(leases.oldest_catalog(last), Some(70));
        drop(newer);
        assert_eq!(leases.oldest_catalog(last), None);
    }
}
