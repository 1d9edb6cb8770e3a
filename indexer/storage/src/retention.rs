//! Which versions of an entry somebody can still ask for (I5).
//!
//! All versions above the horizon stay. At or below it, scans can ask for the horizon alone, and a
//! rollback for one of the rollback points; of the versions between two such *protected* epochs only
//! the newest can be seen. So a version stays if a protected epoch lies at or above it and below the
//! next newer version.
//!
//! Where a merge takes in the oldest rows there are (it is *at the bottom*), nothing older can shine
//! through: a tombstone that would be the oldest version goes, and an epoch may be written as the
//! smallest that the same protected epochs see, which leaves less to store. Never upwards: an old put
//! would outrank a newer tombstone that is stored elsewhere. And never away from the bottom: a newer
//! tombstone would sink below an older put.

use proto::model::cut::EpochMark;
use proto::model::ids::Epoch;
use proto::plant::{self, Plant};
use serde::{Deserialize, Serialize};

/// The epochs that can be asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protected {
    /// No scan asks for an epoch below it.
    pub horizon: Epoch,
    /// Below the horizon, ascending: where a rollback may go back to.
    pub points: Vec<Epoch>,
}

impl Protected {
    /// What an epoch says of it.
    pub fn of(mark: &EpochMark) -> Self {
        let points = match plant::is(Plant::PointsForgotten) {
            true => Vec::new(),
            false => mark.points.to_vec(),
        };
        Self { horizon: mark.horizon, points }
    }

    /// Is all that an epoch shows kept?
    pub fn keeps(&self, epoch: Epoch) -> bool {
        epoch >= self.horizon || self.points.contains(&epoch)
    }

    /// The same below an epoch, to which everything goes back.
    pub fn go_back(&mut self, epoch: Epoch) {
        self.horizon = self.horizon.min(epoch);
        self.points.retain(|point| *point < epoch);
    }

    /// What remains when merges have kept only what another one protects.
    pub fn and(&self, other: &Self) -> Self {
        let horizon = self.horizon.max(other.horizon);
        let both = |epoch: &Epoch| *epoch < horizon && self.keeps(*epoch) && other.keeps(*epoch);
        let mut points: Vec<Epoch> =
            self.points.iter().chain(&other.points).copied().filter(both).collect();
        points.sort_unstable();
        points.dedup();
        Self { horizon, points }
    }

    /// The smallest protected epoch at or above `epoch`, which is at or below the horizon.
    fn at_or_above(&self, epoch: Epoch) -> Epoch {
        let at = self.points.partition_point(|point| *point < epoch);
        self.points.get(at).copied().unwrap_or(self.horizon)
    }

    /// Can a version be seen, if the next newer one is `newer`?
    pub fn needs(&self, epoch: Epoch, newer: Option<Epoch>) -> bool {
        epoch > self.horizon || newer.is_none_or(|newer| self.at_or_above(epoch) < newer)
    }

    /// The smallest epoch that the same protected epochs see.
    pub fn rounded_down(&self, epoch: Epoch) -> Epoch {
        if epoch > self.horizon {
            return epoch;
        }
        let below = self.points.partition_point(|point| *point < epoch);
        below.checked_sub(1).map_or(Epoch(0), |at| Epoch(self.points[at].0 + 1))
    }

    /// Takes what nobody can ask for out of the versions of one entry, the newest first.
    pub fn retain<V>(
        &self,
        versions: &mut Vec<V>,
        at_bottom: bool,
        of: impl Fn(&V) -> (Epoch, bool),
    ) {
        let mut newer = None;
        versions.retain(|version| {
            let epoch = of(version).0;
            // An epoch has one version of an entry; a merge may meet it twice.
            let keep = newer != Some(epoch) && self.needs(epoch, newer);
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

    /// What an epoch shows: the newest version at or below it, unless that is a tombstone.
    fn shown(versions: &[(Epoch, bool)], epoch: Epoch) -> Option<Epoch> {
        let newest = versions.iter().filter(|version| version.0 <= epoch).max();
        newest.filter(|version| !version.1).map(|version| version.0)
    }

    proptest! {
        #[test]
        fn every_protected_epoch_shows_the_same_and_nothing_else_stays(
            versions in proptest::collection::btree_map(0..40u64, any::<bool>(), 0..12),
            points in proptest::collection::btree_set(0..30u64, 0..4),
            horizon in 0..40u64,
            at_bottom: bool,
        ) {
            let horizon = Epoch(horizon);
            let points = points.into_iter().map(Epoch).filter(|point| *point < horizon).collect();
            let protected = Protected { horizon, points };
            let all: Vec<_> = versions.iter().rev().map(|(e, t)| (Epoch(*e), *t)).collect();
            let mut kept = all.clone();
            protected.retain(&mut kept, at_bottom, |version| *version);
            let asked: Vec<Epoch> = protected.points.iter().copied()
                .chain((horizon.0..41).map(Epoch)).collect();
            for epoch in &asked {
                prop_assert_eq!(shown(&kept, *epoch), shown(&all, *epoch));
                let round = |v: &(Epoch, bool)| (protected.rounded_down(v.0), v.1);
                let rounded: Vec<_> = kept.iter().map(round).collect();
                prop_assert_eq!(shown(&rounded, *epoch).is_some(), shown(&all, *epoch).is_some());
            }
            for gone in 0..kept.len() {
                let mut less = kept.clone();
                let version = less.remove(gone);
                // A tombstone is needed for what may lie below; it cannot be judged by itself.
                if !version.1 {
                    prop_assert!(asked.iter().any(|e| shown(&less, *e) != shown(&all, *e)));
                }
            }
        }
    }

    #[test]
    fn an_epoch_is_never_rounded_up() {
        // An old put, the newest input of its merge, and a newer tombstone that is stored elsewhere.
        let protected = Protected { horizon: Epoch(9), points: vec![Epoch(3)] };
        assert_eq!(protected.rounded_down(Epoch(5)), Epoch(4));
        assert_eq!(protected.rounded_down(Epoch(3)), Epoch(0));
        assert_eq!(protected.rounded_down(Epoch(10)), Epoch(10));
    }
}
