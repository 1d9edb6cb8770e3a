//! Which cut is promoted next.
//!
//! SYNC brings cuts that are participant-closed: no statement and no transaction has mutations on both
//! sides. They are kept, oldest first, until an epoch covers them; the newest is promoted, so that the
//! epoch holds all that is known to be durable. Two things change the choice:
//!
//! - *A slow indexer.* While some indexer's queue is more than half full, epochs that the slow ones
//!   cannot apply would only make scans wait. Then the mean of the indexers' high watermarks bounds the
//!   choice, moved towards the fastest by as much as the queues are full (what a fast one gathers and
//!   may not apply is memory): the largest closed cut within the bound is promoted, or none for a while.
//! - *A scan that waits.* What it asks for is promoted as soon as SYNC has told of it.
//!
//! All this is the leader's own memory: after a change of leader it is empty, and the projectors, whose
//! reports are whole, fill it again. All cuts of a bucket are places in one history ([`super::rollback`]).

use std::collections::{BTreeMap, VecDeque};

use proto::model::cut::Cut;
use proto::model::ids::BucketId;
use proto::plant::{self, Plant};
use proto::rpc::api::BucketProgress;
use proto::{Error, ErrorCode, Result};

use crate::state::epoch_history::advance;

/// Closed cuts of a bucket that are kept to choose from; when there are more, every other one goes.
const CLOSED_MAX: usize = 64;
/// However slow the indexers are, epochs go on after this long.
const HOLD_MS_MAX: u64 = 500;

/// What SYNC has told, and who waits for what.
#[derive(Debug, Default)]
pub struct Stability {
    buckets: BTreeMap<BucketId, Closed>,
    wants: BTreeMap<u64, (BucketId, Cut)>,
    last_want: u64,
}

#[derive(Debug, Default)]
struct Closed {
    /// Ascending; none of them is covered by an epoch.
    cuts: VecDeque<Cut>,
    held_since_ms: Option<u64>,
}

/// What is to be done about a bucket.
#[derive(Debug, PartialEq)]
pub enum Choice {
    /// Nothing is new.
    Nothing,
    /// Slow indexers are given time.
    Hold,
    /// This is the next cut, when the tick comes.
    Promote(Cut),
    /// This is the next cut, and somebody waits for it.
    PromoteNow(Cut),
}

impl Stability {
    /// SYNC: the durable history of a bucket reaches `cut`. `published` is the cut of its last epoch.
    pub fn report(&mut self, bucket: BucketId, cut: Cut, published: &Cut) -> Result<()> {
        if cut.vbuckets() != published.vbuckets() {
            return Err(Error::new(
                ErrorCode::InvalidParameter,
                format!(
                    "bucket {bucket} has {} vbuckets, the report {}",
                    published.vbuckets(),
                    cut.vbuckets()
                ),
            ));
        }
        let closed = self.buckets.entry(bucket).or_default();
        let newest = closed.cuts.back().unwrap_or(published);
        // A report that was overtaken by a newer one tells nothing.
        let overtaken = cut.iter().any(|(v, position)| position.seqno < newest.get(v).seqno);
        if overtaken || advance(newest, &cut).is_empty() {
            return Ok(());
        }
        closed.cuts.push_back(cut);
        if closed.cuts.len() > CLOSED_MAX {
            let mut odd = false;
            let newest = closed.cuts.pop_back();
            closed.cuts.retain(|_| {
                odd = !odd;
                odd
            });
            closed.cuts.extend(newest);
        }
        Ok(())
    }

    /// The newest closed cut that no epoch covers.
    pub fn newest(&self, bucket: BucketId) -> Option<&Cut> {
        self.buckets.get(&bucket)?.cuts.back()
    }

    /// Somebody waits for an epoch that covers a cut, until [`Stability::unwant`].
    pub fn want(&mut self, bucket: BucketId, cut: Cut) -> u64 {
        self.last_want += 1;
        self.wants.insert(self.last_want, (bucket, cut));
        self.last_want
    }

    /// Nobody waits any more.
    pub fn unwant(&mut self, want: u64) {
        self.wants.remove(&want);
    }

    /// The cuts of a bucket are of a history that is no more.
    pub fn forget(&mut self, bucket: BucketId) {
        self.buckets.remove(&bucket);
    }

    /// Forgets the buckets that are gone.
    pub fn retain(&mut self, exists: impl Fn(BucketId) -> bool) {
        self.buckets.retain(|bucket, _| exists(*bucket));
    }

    /// Chooses for a bucket, given the cut of its last epoch and what its indexers say.
    pub fn choose(
        &mut self,
        bucket: BucketId,
        published: &Cut,
        indexers: &[&BucketProgress],
        now_ms: u64,
    ) -> Choice {
        let Some(closed) = self.buckets.get_mut(&bucket) else { return Choice::Nothing };
        while closed.cuts.front().is_some_and(|cut| advance(published, cut).is_empty()) {
            closed.cuts.pop_front();
        }
        let Some(newest) = closed.cuts.back() else {
            closed.held_since_ms = None;
            return Choice::Nothing;
        };
        if plant::is(Plant::StatementSplit)
            && let [first, _, ..] = newest.delta_from(published)[..]
        {
            return Choice::PromoteNow(published.with(&[first]));
        }
        let waited_for = |(wanted_bucket, cut): &(BucketId, Cut)| {
            *wanted_bucket == bucket && newest.reaches(cut) && !published.reaches(cut)
        };
        if self.wants.values().any(waited_for) {
            closed.held_since_ms = None;
            return Choice::PromoteNow(newest.clone());
        }
        let Some(bound) = bound(newest, indexers) else {
            closed.held_since_ms = None;
            return Choice::Promote(newest.clone());
        };
        let within = |cut: &&Cut| {
            cut.iter().zip(&bound).all(|((v, position), seqno_max)| {
                position.seqno.0 <= *seqno_max || position == published.get(v)
            })
        };
        if let Some(cut) = closed.cuts.iter().rev().find(within) {
            closed.held_since_ms = None;
            return Choice::Promote(cut.clone());
        }
        let held_since_ms = *closed.held_since_ms.get_or_insert(now_ms);
        if now_ms.saturating_sub(held_since_ms) < HOLD_MS_MAX {
            return Choice::Hold;
        }
        closed.held_since_ms = None;
        Choice::Promote(newest.clone())
    }
}

/// For each vbucket the largest seqno that the indexers are ready for; `None` while none is slow.
fn bound(newest: &Cut, indexers: &[&BucketProgress]) -> Option<Vec<u64>> {
    let slow = |indexer: &&BucketProgress| {
        indexer.queue_bytes_max > 0 && indexer.queue_bytes > indexer.queue_bytes_max / 2
    };
    if !indexers.iter().any(slow) {
        return None;
    }
    let count = indexers.len() as u128;
    let bytes: u128 = indexers.iter().map(|indexer| u128::from(indexer.queue_bytes)).sum();
    let bytes_max: u128 = indexers.iter().map(|indexer| u128::from(indexer.queue_bytes_max)).sum();
    let (bytes, bytes_max) = (bytes.min(bytes_max), bytes_max.max(1));
    let of_vbucket = |vbucket| {
        let seqnos = indexers.iter().map(|i| u128::from(i.high_watermark.get(vbucket).seqno.0));
        let fastest = seqnos.clone().max().unwrap_or(0);
        let mean = seqnos.sum::<u128>() / count;
        (mean + (fastest - mean) * bytes / bytes_max) as u64
    };
    Some(newest.iter().map(|(vbucket, _)| of_vbucket(vbucket)).collect())
}

#[cfg(test)]
#[path = "stability_tests.rs"]
mod tests;
