//! Moments: which epoch of a bucket was in force at an index of the log ([`proto::model::moment`]).
//!
//! Each bucket has the index at which each of its retained epochs was published. An epoch is in force from there until the next one is
//! published. Where the next one is not retained any more, nobody can tell which of the two was in force, so the answer is an error and
//! never a guess. The numbers are small, so more of them are kept than cuts. A rollback begins a bucket's list anew, because nobody reads
//! an epoch from before it.
//!
//! A state of an earlier build has no moments. Its last epoch counts as published with the last command of that state: it was in force
//! then, and any earlier moment is unknown.

use std::collections::VecDeque;

use proto::model::bucket::BucketInfo;
use proto::model::ids::{BucketId, Epoch};
use proto::model::moment::Moment;
use proto::rpc::api::LEASE_AGE_MS_MAX;
use proto::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};

use super::bucket::BucketState;
use super::context::StateContext;
use super::limits::{MOMENTS_EACH_MIN, MOMENTS_MAX};

/// The number of epochs of a bucket whose moments are kept at most: more than a minute of epochs.
const MOMENTS_EACH_MAX: usize = 4096;

/// The log indexes at which the epochs of a bucket were published, ascending; never empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochMoments(VecDeque<(Epoch, u64)>);

/// The epoch of a bucket at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InForce {
    /// It is known.
    Epoch(Epoch),
    /// The bucket is younger.
    BeforeFirst,
    /// The oldest retained epoch is younger.
    BeforeOldest,
    /// The epochs of that time were dropped from the middle of the list.
    Dropped,
}

impl EpochMoments {
    /// The moments of a bucket whose epoch `epoch` is published at `at`, and whose older ones are not known.
    pub(super) fn new(epoch: Epoch, at: u64) -> Self {
        Self(VecDeque::from([(epoch, at)]))
    }

    /// Notes that an epoch is published at `at`, and forgets those below `oldest`.
    fn publish(&mut self, epoch: Epoch, at: u64, oldest: Epoch) {
        while self.0.front().is_some_and(|(known, _)| *known < oldest) {
            self.0.pop_front();
        }
        self.0.push_back((epoch, at));
    }

    /// Drops the oldest surplus epochs, as it is done with their marks: the very oldest and its successor stay.
    fn thin(&mut self, each_max: usize) {
        let surplus = self.0.len().saturating_sub(each_max);
        if surplus > 0 {
            self.0.drain(2..2 + surplus);
        }
    }

    /// The number of known epochs that were published at or before an index.
    fn until(&self, at: u64) -> usize {
        self.0.partition_point(|(_, published)| *published <= at)
    }

    fn oldest(&self) -> Epoch {
        self.0.front().map_or(Epoch(0), |(epoch, _)| *epoch)
    }

    fn in_force(&self, at: u64) -> InForce {
        let after = self.until(at);
        let Some((epoch, _)) = after.checked_sub(1).map(|before| self.0[before]) else {
            return match self.oldest() {
                Epoch(1) => InForce::BeforeFirst,
                _ => InForce::BeforeOldest,
            };
        };
        match self.0.get(after) {
            Some((next, _)) if next.0 != epoch.0 + 1 => InForce::Dropped,
            _ => InForce::Epoch(epoch),
        }
    }

    /// The newest known epoch that was published at or before an index.
    pub fn newest_until(&self, at: u64) -> Option<Epoch> {
        self.until(at).checked_sub(1).map(|before| self.0[before].0)
    }

    /// The index next to `at` at which an epoch is in force; `None` if that is not known.
    fn nearest(&self, epoch: Epoch, at: u64) -> Option<u64> {
        let place = self.0.binary_search_by_key(&epoch, |(known, _)| *known).ok()?;
        let from = self.0[place].1;
        match self.0.get(place + 1) {
            None => Some(at.max(from)),
            Some((next, until)) if next.0 == epoch.0 + 1 => {
                Some(at.min(until.saturating_sub(1)).max(from))
            }
            Some(_) => None,
        }
    }

    /// True if the list has a place for the newest epoch and its numbers grow.
    pub(super) fn fits(&self, newest: Epoch, position: u64) -> bool {
        let grows =
            |pair: (&(Epoch, u64), &(Epoch, u64))| pair.0.0 < pair.1.0 && pair.0.1 <= pair.1.1;
        self.0.back().is_some_and(|(epoch, at)| *epoch == newest && *at <= position)
            && self.0.iter().zip(self.0.iter().skip(1)).all(grows)
    }
}

impl StateContext {
    /// The log position of the last command: the present moment.
    pub fn position(&self) -> u64 {
        self.position
    }

    fn moments_each_max(&self) -> usize {
        (MOMENTS_MAX / self.buckets.len().max(1)).clamp(MOMENTS_EACH_MIN, MOMENTS_EACH_MAX)
    }

    /// Notes that the command publishes the newest epoch of a bucket.
    pub(super) fn note_published(&mut self, bucket: BucketId) {
        let (at, each_max) = (self.position, self.moments_each_max());
        let Some(known) = self.buckets.get(&bucket) else { return };
        let (newest, oldest) = (known.epochs.last().epoch, known.epochs.oldest());
        let is_first = known.info.readable_from() == Some(newest);
        let moments = self.moments.entry(bucket).or_insert_with(|| EpochMoments::new(newest, at));
        if is_first {
            *moments = EpochMoments::new(newest, at);
        } else if moments.newest_until(u64::MAX) != Some(newest) {
            moments.publish(newest, at, oldest);
            moments.thin(each_max);
        }
    }

    /// Makes room for the moments of a new bucket.
    pub(super) fn thin_moments(&mut self) {
        let each_max = self.moments_each_max();
        self.moments.values_mut().for_each(|moments| moments.thin(each_max));
    }

    /// Gives each bucket of an earlier build the moment that is known of it.
    pub(crate) fn begin_moments(&mut self) {
        let newest = |(id, bucket): (&BucketId, &BucketState)| {
            (*id, EpochMoments::new(bucket.epochs.last().epoch, self.position))
        };
        self.moments = self.buckets.iter().map(newest).collect();
    }

    /// The moments of a bucket.
    pub fn moments(&self, bucket: BucketId) -> Option<&EpochMoments> {
        self.moments.get(&bucket)
    }

    /// The log index of a moment; `None` if that is not known.
    pub fn index_of(&self, moment: &Moment) -> Option<u64> {
        match moment.of {
            None => Some(moment.at),
            Some((bucket, epoch)) => self.moments.get(&bucket)?.nearest(epoch, moment.at),
        }
    }

    /// The epoch in force in a bucket at a moment; `None` if this state has not come to the moment.
    pub fn epoch_at(&self, bucket: BucketId, moment: &Moment) -> Result<Option<Epoch>> {
        let is_ahead = |(of, epoch): (BucketId, Epoch)| {
            self.buckets.get(&of).is_some_and(|known| known.epochs.last().epoch < epoch)
        };
        if moment.at > self.position || moment.of.is_some_and(is_ahead) {
            return Ok(None);
        }
        let (Some(known), Some(moments)) = (self.buckets.get(&bucket), self.moments.get(&bucket))
        else {
            let what = format!("bucket {bucket} does not exist");
            return Err(Error::new(ErrorCode::Unknown, what));
        };
        let Some(at) = self.index_of(moment) else {
            let of = moment.of.and_then(|(of, _)| self.buckets.get(&of));
            return Err(lapsed(of.map_or(&known.info, |of| &of.info)));
        };
        match (moments.in_force(at), known.info.readable_from()) {
            (InForce::Epoch(epoch), Some(from)) if from <= epoch => Ok(Some(epoch)),
            (InForce::BeforeFirst, _) => {
                Err(too_old(&known.info, "it was created after the moment that is read"))
            }
            (InForce::Dropped, _) => {
                let what = "so many epochs followed the moment that is read that the one of that time was dropped";
                Err(too_old(&known.info, what))
            }
            // A rollback begins the list anew.
            (InForce::BeforeOldest, from) if from != Some(moments.oldest()) => {
                Err(lapsed(&known.info))
            }
            _ => Err(too_old(&known.info, "it was rolled back after the moment that is read")),
        }
    }
}

fn lapsed(bucket: &BucketInfo) -> Error {
    let minutes = LEASE_AGE_MS_MAX / 60_000;
    let what = format!(
        "its epoch of the moment that is read is not kept any more: it stays readable for {minutes} minutes at most (LEASE_AGE_MS_MAX)"
    );
    too_old(bucket, &what)
}

fn too_old(bucket: &BucketInfo, what: &str) -> Error {
    let what = format!("bucket \"{}\": {what}", bucket.name);
    Error::new(ErrorCode::SnapshotTooOld, what).with_hint("begin the transaction again")
}

#[cfg(test)]
#[path = "moments_tests.rs"]
mod tests;
