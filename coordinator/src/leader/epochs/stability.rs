//! Chooses the cut that the next epoch ends at.
//!
//! The projectors' reports (SYNC) contain participant-closed cuts: no statement and no
//! transaction has mutations on both sides of one. The leader keeps them, oldest first, until an
//! epoch covers them. It promotes the newest, so that the epoch contains everything that is known
//! to be durable. Two things change the choice:
//!
//! - *A slow indexer.* While some indexer's queue is more than half full, epochs that slow
//!   indexers cannot apply would only make scans wait. (The size of a queue counts up to the
//!   limit at which a stream pauses.) Then the mean of the indexers' high watermarks bounds the
//!   choice. The bound moves towards the fastest indexer as the queues fill, because a fast
//!   indexer holds in memory what it may not apply yet. The leader promotes the largest closed
//!   cut within the bound, or waits for a while if there is none.
//! - *A waiting scan.* The cut that a scan waits for is promoted as soon as SYNC has reported it.
//!
//! A commit of several parts ([`crate::leader::copies::keep_whole`]) may move a chosen cut back,
//! perhaps to the last epoch. Then the bucket waits as for a slow indexer, and its waiting time
//! is not reset ([`EpochCutChooser::hold`]). So the newest cut is chosen in the end. Otherwise an older
//! cut within the bound would be chosen again and again, and would always be moved back.
//!
//! Only the leader has this information. It is lost with a change of leader, and the projectors'
//! next reports, which are complete, provide it again. All cuts of a bucket lie in one history
//! ([`crate::leader::epochs::sources`]).

use std::collections::{BTreeMap, VecDeque};

use proto::model::assignment::VbucketSet;
use proto::model::cut::Cut;
use proto::model::ids::BucketId;
use proto::model::open_commit::OpenCommit;
use proto::plant::{self, Plant};
use proto::rpc::api::BucketProgress;
use proto::rpc::mutation::FRAMES_AHEAD_BYTES_MAX;
use proto::{Error, ErrorCode, Result};

use crate::leader::copies::open_commits::OpenCommits;
use crate::state::epochs::history::advanced_positions;

/// The limit of closed cuts per bucket that wait for an epoch. Beyond it every second cut is
/// dropped.
const CLOSED_MAX: usize = 64;
/// The longest delay of an epoch for the sake of slow indexers, in ms.
const HOLD_MS_MAX: u64 = 500;

/// The closed cuts that the projectors reported (SYNC) and that no epoch covers yet, and the
/// callers that wait for an epoch. A closed cut splits no statement and no transaction.
#[derive(Debug, Default)]
pub struct EpochCutChooser {
    buckets: BTreeMap<BucketId, ClosedCuts>,
    waiters: BTreeMap<u64, (BucketId, Cut)>,
    last_waiter: u64,
    /// The number of epochs of each bucket that slow indexers could not delay any longer: they
    /// were chosen beyond the bound after a wait of [`HOLD_MS_MAX`].
    past_slow: BTreeMap<BucketId, u64>,
}

/// The closed cuts of a bucket that no epoch covers yet, and its open commits.
#[derive(Debug, Default)]
struct ClosedCuts {
    /// The closed cuts (which split no statement and no transaction), ascending; no epoch covers
    /// any of them.
    cuts: VecDeque<Cut>,
    held_since_ms: Option<u64>,
    /// True if the last choice exceeded the bound of slow indexers, because the wait had ended.
    is_past_slow: bool,
    /// The open commits, as the newest reports contain them.
    open: OpenCommits,
}

/// The decision about the next epoch of a bucket.
#[derive(Debug, PartialEq)]
pub enum CutChoice {
    /// There is no new cut to promote.
    Nothing,
    /// Promote nothing yet, to give slow indexers time.
    Hold,
    /// Promote this cut at the next tick.
    Promote(Cut),
    /// Promote this cut without waiting for the tick, because a caller waits for it.
    PromoteNow(Cut),
}

impl EpochCutChooser {
    /// Records a report of SYNC: the durable history of a bucket reaches `cut`. `published` is
    /// the cut of its last epoch. Returns false if a newer report has overtaken this one.
    pub fn report(&mut self, bucket: BucketId, cut: Cut, published: &Cut) -> Result<bool> {
        if cut.vbuckets() != published.vbuckets() {
            return Err(Error::new(
                ErrorCode::InvalidParameter,
                format!(
                    "bucket {bucket} has {} vbuckets, the report has {}",
                    published.vbuckets(),
                    cut.vbuckets()
                ),
            ));
        }
        let closed = self.buckets.entry(bucket).or_default();
        let newest = closed.cuts.back().unwrap_or(published);
        let overtaken = cut.iter().any(|(v, position)| position.seqno < newest.get(v).seqno);
        if overtaken || advanced_positions(newest, &cut).is_empty() {
            return Ok(!overtaken);
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
        Ok(true)
    }

    /// Records the open commits that a projector has reported for its vbuckets `kept`, up to the
    /// bucket's newest closed cut.
    pub fn set_open(
        &mut self,
        bucket: BucketId,
        kept: &VbucketSet,
        open: Vec<OpenCommit>,
        now_ms: u64,
    ) {
        self.buckets.entry(bucket).or_default().open.report(kept, open, now_ms);
    }

    /// Returns the open commits of a bucket.
    pub(in crate::leader) fn open_commits(&self, bucket: BucketId) -> Option<&OpenCommits> {
        self.buckets.get(&bucket).map(|closed| &closed.open)
    }

    /// Returns true if any bucket has open joint commits.
    pub fn has_joint(&self) -> bool {
        self.buckets.values().any(|closed| closed.open.joint().next().is_some())
    }

    /// Iterates over the closed cuts of a bucket (those that split no transaction) that no epoch
    /// covers, ascending.
    pub fn closed_cuts(&self, bucket: BucketId) -> impl DoubleEndedIterator<Item = &Cut> {
        self.buckets.get(&bucket).into_iter().flat_map(|closed| &closed.cuts)
    }

    /// Returns the newest closed cut of a bucket (one that splits no transaction) that no epoch
    /// covers.
    pub fn newest_closed_cut(&self, bucket: BucketId) -> Option<&Cut> {
        self.buckets.get(&bucket)?.cuts.back()
    }

    /// Registers a caller that waits for an epoch that covers the cut, until
    /// [`EpochCutChooser::remove_waiter`]. Returns the number of the waiter.
    pub fn add_waiter(&mut self, bucket: BucketId, cut: Cut) -> u64 {
        self.last_waiter += 1;
        self.waiters.insert(self.last_waiter, (bucket, cut));
        self.last_waiter
    }

    /// Removes a waiting caller.
    pub fn remove_waiter(&mut self, waiter: u64) {
        self.waiters.remove(&waiter);
    }

    /// Returns true if a caller waits for an epoch.
    pub fn has_waiters(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// Returns true if a caller waits for a cut of the bucket that `cut` covers and `published`,
    /// the cut of the last epoch, does not cover.
    pub fn awaits(&self, bucket: BucketId, published: &Cut, cut: &Cut) -> bool {
        awaits(&self.waiters, bucket, (published, cut))
    }

    /// Drops the closed cuts of a bucket, because its history has changed.
    pub fn drop_closed_cuts(&mut self, bucket: BucketId) {
        self.buckets.remove(&bucket);
    }

    /// Drops the cuts of the buckets for which `exists` returns false.
    pub fn retain(&mut self, exists: impl Fn(BucketId) -> bool) {
        self.buckets.retain(|bucket, _| exists(*bucket));
        self.past_slow.retain(|bucket, _| exists(*bucket));
    }

    /// Chooses the cut of a bucket's next epoch, given the cut of its last epoch and the progress
    /// of its indexers.
    pub fn choose(
        &mut self,
        bucket: BucketId,
        published: &Cut,
        indexers: &[&BucketProgress],
        now_ms: u64,
    ) -> CutChoice {
        let Some(closed) = self.buckets.get_mut(&bucket) else { return CutChoice::Nothing };
        closed.is_past_slow = false;
        while closed.cuts.front().is_some_and(|cut| advanced_positions(published, cut).is_empty()) {
            closed.cuts.pop_front();
        }
        let Some(newest) = closed.cuts.back() else {
            closed.held_since_ms = None;
            return CutChoice::Nothing;
        };
        if plant::is(Plant::StatementSplit)
            && let [first, _, ..] = newest.delta_from(published)[..]
        {
            return CutChoice::PromoteNow(published.with(&[first]));
        }
        if awaits(&self.waiters, bucket, (published, newest)) {
            return CutChoice::PromoteNow(newest.clone());
        }
        let Some(bound) = slow_indexer_bound(newest, indexers) else {
            return CutChoice::Promote(newest.clone());
        };
        tracing::debug!(%bucket, "slow indexers bound the next epoch");
        let has_waited = |since_ms: u64| now_ms.saturating_sub(since_ms) >= HOLD_MS_MAX;
        if closed.held_since_ms.is_some_and(has_waited) {
            closed.is_past_slow = true;
            return CutChoice::Promote(newest.clone());
        }
        let within = |cut: &&Cut| {
            cut.iter().zip(&bound).all(|((v, position), seqno_max)| {
                position.seqno.0 <= *seqno_max || position == published.get(v)
            })
        };
        if let Some(cut) = closed.cuts.iter().rev().find(within) {
            return CutChoice::Promote(cut.clone());
        }
        closed.held_since_ms.get_or_insert(now_ms);
        CutChoice::Hold
    }

    /// Records that a bucket gets no epoch now, because the cut chosen for it has moved back to
    /// its last epoch. Its waiting time begins, unless it is running.
    pub fn begin_wait(&mut self, bucket: BucketId, now_ms: u64) {
        if let Some(closed) = self.buckets.get_mut(&bucket) {
            closed.held_since_ms.get_or_insert(now_ms);
        }
    }

    /// Records that a bucket gets an epoch, which ends its waiting time.
    pub fn end_wait(&mut self, bucket: BucketId) {
        if let Some(closed) = self.buckets.get_mut(&bucket) {
            closed.held_since_ms = None;
            if std::mem::take(&mut closed.is_past_slow) {
                *self.past_slow.entry(bucket).or_default() += 1;
            }
        }
    }

    /// Returns for each bucket the number of epochs in this term that slow indexers could not
    /// delay any longer.
    pub fn epochs_past_slow_indexers(&self) -> Vec<(BucketId, u64)> {
        self.past_slow.iter().map(|(bucket, count)| (*bucket, *count)).collect()
    }
}

/// Returns true if some caller waits for a cut of the bucket that `cut` covers and `published`
/// does not.
fn awaits(
    waiters: &BTreeMap<u64, (BucketId, Cut)>,
    bucket: BucketId,
    (published, cut): (&Cut, &Cut),
) -> bool {
    let is_reached = |(of, wanted): &(BucketId, Cut)| {
        *of == bucket && cut.reaches(wanted) && !published.reaches(wanted)
    };
    waiters.values().any(is_reached)
}

/// Returns for each vbucket the largest seqno that the next epoch may have, so that slow indexers
/// can follow; `None` if no indexer is slow.
fn slow_indexer_bound(newest: &Cut, indexers: &[&BucketProgress]) -> Option<Vec<u64>> {
    // A stream pauses at this limit beyond the newest epoch. Half of an indexer's own limit, which is larger by default,
    // would never be reached.
    let room =
        |indexer: &BucketProgress| indexer.queue_bytes_max.min(FRAMES_AHEAD_BYTES_MAX as u64);
    let slow = |indexer: &&BucketProgress| {
        indexer.queue_bytes_max > 0 && indexer.queue_bytes > room(indexer) / 2
    };
    if !indexers.iter().any(slow) {
        return None;
    }
    let count = indexers.len() as u128;
    let bytes: u128 = indexers.iter().map(|indexer| u128::from(indexer.queue_bytes)).sum();
    let bytes_max: u128 = indexers.iter().map(|indexer| u128::from(room(indexer))).sum();
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
