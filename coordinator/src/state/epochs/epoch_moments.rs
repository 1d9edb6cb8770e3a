//! The log indexes at which the epochs of one bucket were published ([`crate::state::epochs::moments`] explains moments).

use std::collections::VecDeque;

use proto::model::ids::Epoch;
use serde::{Deserialize, Serialize};

/// The limit of epochs of a bucket whose moments (log indexes) are stored: more than a minute of
/// epochs.
pub(in crate::state) const MOMENTS_EACH_MAX: usize = 4096;

/// The log indexes at which the epochs of a bucket were published, ascending; never empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochMoments(VecDeque<(Epoch, u64)>);

/// The epoch in force in a bucket at a moment, or why it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::state) enum InForce {
    /// The epoch in force is known.
    Epoch(Epoch),
    /// The moment is before the first epoch of the bucket.
    BeforeFirst,
    /// The moment is before the oldest retained epoch.
    BeforeOldest,
    /// The epochs around the moment were dropped from the middle of the list.
    Dropped,
}

impl EpochMoments {
    /// Creates the list of a bucket whose epoch `epoch` is published at the log index `at`, and
    /// whose older epochs are not known.
    pub(in crate::state) fn new(epoch: Epoch, at: u64) -> Self {
        Self(VecDeque::from([(epoch, at)]))
    }

    /// Adds an epoch that is published at the log index `at`, and removes the epochs below
    /// `oldest`.
    pub(in crate::state) fn publish(&mut self, epoch: Epoch, at: u64, oldest: Epoch) {
        while self.0.front().is_some_and(|(known, _)| *known < oldest) {
            self.0.pop_front();
        }
        self.0.push_back((epoch, at));
    }

    /// Drops old epochs until at most `each_max` remain, in the same way as their marks: the
    /// oldest and its successor stay.
    pub(in crate::state) fn thin(&mut self, each_max: usize) {
        let surplus = self.0.len().saturating_sub(each_max);
        if surplus > 0 {
            self.0.drain(2..2 + surplus);
        }
    }

    /// Returns the number of known epochs that were published at or before the log index `at`.
    fn count_until(&self, at: u64) -> usize {
        self.0.partition_point(|(_, published)| *published <= at)
    }

    pub(in crate::state) fn oldest(&self) -> Epoch {
        self.0.front().map_or(Epoch(0), |(epoch, _)| *epoch)
    }

    /// Returns the epoch that is in force at the log index `at`.
    pub(in crate::state) fn in_force(&self, at: u64) -> InForce {
        let after = self.count_until(at);
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

    /// Returns the newest known epoch that was published at or before the log index `at`.
    pub fn newest_until(&self, at: u64) -> Option<Epoch> {
        self.count_until(at).checked_sub(1).map(|before| self.0[before].0)
    }

    /// Returns the log index closest to `at` at which an epoch is in force; `None` if the list
    /// does not tell.
    pub(in crate::state) fn nearest(&self, epoch: Epoch, at: u64) -> Option<u64> {
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

    /// Returns true if the list is valid: it ends with the epoch `newest`, at or before the log
    /// index `position`, and its numbers grow.
    pub(in crate::state) fn is_valid(&self, newest: Epoch, position: u64) -> bool {
        let grows =
            |pair: (&(Epoch, u64), &(Epoch, u64))| pair.0.0 < pair.1.0 && pair.0.1 <= pair.1.1;
        self.0.back().is_some_and(|(epoch, at)| *epoch == newest && *at <= position)
            && self.0.iter().zip(self.0.iter().skip(1)).all(grows)
    }
}
