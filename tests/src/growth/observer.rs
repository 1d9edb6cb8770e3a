//! The times at which stability timestamps are reported, published and received by the indexers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Mutex;

use proto::lock::lock;
use proto::model::cut::{Cut, EpochMark};
use proto::model::ids::{BucketId, Epoch, NodeId};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// The times of the epochs since the last [`Observer::take`].
#[derive(Debug, Default)]
pub struct Observer(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// The SYNCs that no epoch covers yet: the number of mutations, and the time of arrival at the
    /// leader.
    syncs: BTreeMap<BucketId, VecDeque<(u64, Instant)>>,
    published: BTreeMap<(BucketId, Epoch), Published>,
    until_published_ms: Vec<u64>,
    until_everywhere_ms: Vec<u64>,
}

#[derive(Debug)]
struct Published {
    at: Instant,
    /// The indexers that have not received the epoch yet; empty before it was sent.
    missing: BTreeSet<NodeId>,
}

/// A summary of durations: count, median and maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// The number of times.
    pub count: u64,
    /// The median, in milliseconds.
    pub median_ms: u64,
    /// The maximum, in milliseconds.
    pub longest_ms: u64,
}

impl Times {
    fn of(mut times_ms: Vec<u64>) -> Self {
        times_ms.sort_unstable();
        Self {
            count: times_ms.len() as u64,
            median_ms: times_ms.get(times_ms.len() / 2).copied().unwrap_or_default(),
            longest_ms: times_ms.last().copied().unwrap_or_default(),
        }
    }
}

/// The times of epochs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochTimes {
    /// The times from the arrival of a SYNC at the leader to the publication of the first epoch
    /// that covers it; for each epoch and bucket the longest.
    pub until_published: Times,
    /// The times from the publication of an epoch to its arrival at the last indexer.
    pub until_everywhere: Times,
    /// The number of epochs that some indexer had not received at the end.
    pub on_their_way: u64,
}

fn mutations(cut: &Cut) -> u64 {
    cut.distance_from(&Cut::default())
}

impl Observer {
    /// Records the arrival of a SYNC at the leader.
    pub fn sync(&self, bucket: BucketId, cut: &Cut) {
        let at = (mutations(cut), Instant::now());
        lock(&self.0).syncs.entry(bucket).or_default().push_back(at);
    }

    /// Records the publication of an epoch by the leader.
    pub fn published(&self, mark: &EpochMark) {
        let (mut seen, now, covered) = (lock(&self.0), Instant::now(), mutations(&mark.cut));
        let Seen { syncs, published, until_published_ms, .. } = &mut *seen;
        let syncs = syncs.entry(mark.bucket).or_default();
        let after = syncs.partition_point(|(mutations, _)| *mutations <= covered);
        // The first SYNC that the epoch covers has waited longest.
        let first = syncs.drain(..after).next();
        until_published_ms.extend(first.map(|(_, at)| (now - at).as_millis() as u64));
        published
            .insert((mark.bucket, mark.epoch), Published { at: now, missing: BTreeSet::new() });
    }

    /// Records that a projector sends an epoch to indexers.
    pub fn sent(&self, bucket: BucketId, epoch: Epoch, indexers: &BTreeSet<NodeId>) {
        if let Some(published) = lock(&self.0).published.get_mut(&(bucket, epoch)) {
            published.missing = indexers.clone();
        }
    }

    /// Records the arrival of an epoch at an indexer.
    pub fn arrived(&self, bucket: BucketId, epoch: Epoch, indexer: NodeId) {
        let mut seen = lock(&self.0);
        let Seen { published, until_everywhere_ms, .. } = &mut *seen;
        let Some(known) = published.get_mut(&(bucket, epoch)) else { return };
        // An indexer that begins to follow the bucket receives the newest epoch again.
        if known.missing.remove(&indexer) && known.missing.is_empty() {
            until_everywhere_ms.push(known.at.elapsed().as_millis() as u64);
            published.remove(&(bucket, epoch));
        }
    }

    /// Returns the times and resets them.
    pub fn take(&self) -> EpochTimes {
        let seen = std::mem::take(&mut *lock(&self.0));
        EpochTimes {
            until_published: Times::of(seen.until_published_ms),
            until_everywhere: Times::of(seen.until_everywhere_ms),
            on_their_way: seen.published.len() as u64,
        }
    }
}
