//! Retention: which versions of an entry a read can still need (I5).
//!
//! All versions above the horizon are retained. At or below the horizon, scans can read only the
//! horizon itself, and rollbacks only the rollback points. Of the versions between two such
//! *retained* epochs only the newest is visible. So a version is retained if a retained epoch is at
//! or above the version's epoch and below the epoch of the next newer version.
//!
//! A merge whose inputs include the oldest rows of a list is *at the bottom*: no older rows exist
//! below its output. Such a merge drops a tombstone that would be the oldest version, and it may
//! round an epoch down to the smallest epoch at which the version is visible to the same retained
//! epochs, which compresses better. Two things are forbidden. An epoch is never rounded up,
//! because an old row would outrank a newer tombstone that is stored in another table. And a merge
//! that is not at the bottom never rounds an epoch, because a newer tombstone would fall below an
//! older row.

use proto::model::cut::EpochMark;
use proto::model::ids::Epoch;
use proto::plant::{self, Plant};
use serde::{Deserialize, Serialize};

/// The epochs that can still be read, by scans or after a rollback: all epochs above the horizon,
/// the horizon itself, and the rollback points.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetainedEpochs {
    /// The oldest epoch that scans can read.
    pub horizon: Epoch,
    /// Rollback points below the horizon, ascending.
    pub points: Vec<Epoch>,
}

impl RetainedEpochs {
    /// Returns the epochs that can be read according to the mark of an epoch.
    pub fn from_mark(mark: &EpochMark) -> Self {
        let points = match plant::is(Plant::PointsForgotten) {
            true => Vec::new(),
            false => mark.points.to_vec(),
        };
        Self { horizon: mark.horizon, points }
    }

    /// Returns true if all versions visible at an epoch are retained.
    pub fn retains(&self, epoch: Epoch) -> bool {
        epoch >= self.horizon || self.points.contains(&epoch)
    }

    /// Removes the epochs above the one that the bucket is rolled back to.
    pub fn roll_back_to(&mut self, epoch: Epoch) {
        self.horizon = self.horizon.min(epoch);
        self.points.retain(|point| *point < epoch);
    }

    /// Returns the epochs that are retained by both `self` and `other`.
    pub fn intersection(&self, other: &Self) -> Self {
        let horizon = self.horizon.max(other.horizon);
        let both =
            |epoch: &Epoch| *epoch < horizon && self.retains(*epoch) && other.retains(*epoch);
        let mut points: Vec<Epoch> =
            self.points.iter().chain(&other.points).copied().filter(both).collect();
        points.sort_unstable();
        points.dedup();
        Self { horizon, points }
    }

    /// Returns the smallest retained epoch at or above `epoch`; `epoch` must be at or below the
    /// horizon.
    fn at_or_above(&self, epoch: Epoch) -> Epoch {
        let at = self.points.partition_point(|point| *point < epoch);
        self.points.get(at).copied().unwrap_or(self.horizon)
    }

    /// Returns true if some retained epoch sees the version of `epoch`; `newer` is the epoch of
    /// the entry's next newer version, if there is one.
    pub fn is_needed(&self, epoch: Epoch, newer: Option<Epoch>) -> bool {
        epoch > self.horizon || newer.is_none_or(|newer| self.at_or_above(epoch) < newer)
    }

    /// Returns the smallest epoch that a version of `epoch` can get without a change of what the
    /// retained epochs see.
    pub fn rounded_down(&self, epoch: Epoch) -> Epoch {
        if epoch > self.horizon {
            return epoch;
        }
        let below = self.points.partition_point(|point| *point < epoch);
        below.checked_sub(1).map_or(Epoch(0), |at| Epoch(self.points[at].0 + 1))
    }

    /// Removes the versions of one entry that no retained epoch sees; at the bottom, removes
    /// tombstones without older versions too. `versions` has the newest first; `of` returns a
    /// version's epoch and tombstone flag.
    pub fn retain<V>(
        &self,
        versions: &mut Vec<V>,
        at_bottom: bool,
        of: impl Fn(&V) -> (Epoch, bool),
    ) {
        let is_same = |one: &V, other: &V| of(one).0 != of(other).0 || of(one).1 == of(other).1;
        debug_assert!(versions.is_sorted_by(is_same), "an epoch has a row and a tombstone");
        let mut newer = None;
        versions.retain(|version| {
            let epoch = of(version).0;
            // An epoch has one version of an entry, but a merge can read it twice.
            let keep = newer != Some(epoch) && self.is_needed(epoch, newer);
            newer = Some(epoch);
            keep
        });
        while at_bottom && versions.last().is_some_and(|oldest| of(oldest).1) {
            versions.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the epoch of the version that is visible at `epoch`: the newest one at or below it;
    /// `None` if that is a tombstone.
    fn shown(versions: &[(Epoch, bool)], epoch: Epoch) -> Option<Epoch> {
        let newest = versions.iter().filter(|version| version.0 <= epoch).max();
        newest.filter(|version| !version.1).map(|version| version.0)
    }

    proptest! {
        #[test]
        fn retain_keeps_visible_versions(
            versions in proptest::collection::btree_map(0..40u64, any::<bool>(), 0..12),
            points in proptest::collection::btree_set(0..30u64, 0..4),
            horizon in 0..40u64,
            at_bottom: bool,
        ) {
            let horizon = Epoch(horizon);
            let points = points.into_iter().map(Epoch).filter(|point| *point < horizon).collect();
            let retained = RetainedEpochs { horizon, points };
            let all: Vec<_> = versions.iter().rev().map(|(e, t)| (Epoch(*e), *t)).collect();
            let mut kept = all.clone();
            retained.retain(&mut kept, at_bottom, |version| *version);
            let asked: Vec<Epoch> = retained.points.iter().copied()
                .chain((horizon.0..41).map(Epoch)).collect();
            for epoch in &asked {
                prop_assert_eq!(shown(&kept, *epoch), shown(&all, *epoch));
                let round = |v: &(Epoch, bool)| (retained.rounded_down(v.0), v.1);
                let rounded: Vec<_> = kept.iter().map(round).collect();
                prop_assert_eq!(shown(&rounded, *epoch).is_some(), shown(&all, *epoch).is_some());
            }
            for gone in 0..kept.len() {
                let mut less = kept.clone();
                let version = less.remove(gone);
                // A tombstone may hide older versions elsewhere, so its removal proves nothing
                // here.
                if !version.1 {
                    prop_assert!(asked.iter().any(|e| shown(&less, *e) != shown(&all, *e)));
                }
            }
        }
    }

    #[test]
    fn an_epoch_is_never_rounded_up() {
        // An old put, the newest input of its merge, and a newer tombstone that is stored
        // elsewhere.
        let retained = RetainedEpochs { horizon: Epoch(9), points: vec![Epoch(3)] };
        assert_eq!(retained.rounded_down(Epoch(5)), Epoch(4));
        assert_eq!(retained.rounded_down(Epoch(3)), Epoch(0));
        assert_eq!(retained.rounded_down(Epoch(10)), Epoch(10));
    }
}
