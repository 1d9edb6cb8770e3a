//! Cuts and epochs. A *cut* is a position in the history of all vbuckets of a bucket; an *epoch*
//! is the number of a cut that the coordinator has published.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorCode, Result};
use crate::model::assignment::VbucketSet;
use crate::model::ids::{BucketId, Epoch, Seqno, VbucketId, Vbuuid};

/// A position in the history of one vbucket.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Position {
    /// The branch of history that the position is on.
    pub vbuuid: Vbuuid,
    /// The last mutation that the position includes; zero includes none.
    pub seqno: Seqno,
}

/// A position in the history of a bucket: one position for each vbucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut(Vec<Position>);

impl Cut {
    /// Creates the cut at the beginning of a bucket's history, before the first mutation of any
    /// vbucket.
    pub fn zero(vbuckets: u16) -> Self {
        Self(vec![Position::default(); usize::from(vbuckets)])
    }

    /// Builds a cut from one position for each vbucket, in their order.
    pub fn from_positions(positions: Vec<Position>) -> Self {
        Self(positions)
    }

    /// Returns the number of vbuckets.
    pub fn vbuckets(&self) -> u16 {
        self.0.len() as u16
    }

    /// Returns the position of a vbucket; the zero position if the cut does not have the vbucket.
    pub fn get(&self, vbucket: VbucketId) -> Position {
        self.0.get(usize::from(vbucket.0)).copied().unwrap_or_default()
    }

    /// Sets the position of a vbucket. Does nothing if the cut does not have the vbucket.
    pub fn set(&mut self, vbucket: VbucketId, position: Position) {
        if let Some(slot) = self.0.get_mut(usize::from(vbucket.0)) {
            *slot = position;
        }
    }

    /// Returns all positions, by vbucket.
    pub fn iter(&self) -> impl Iterator<Item = (VbucketId, Position)> + '_ {
        self.0.iter().enumerate().map(|(n, position)| (VbucketId(n as u16), *position))
    }

    /// Returns true if this cut includes every mutation that `other` includes. Both must be in
    /// one history ([`crate::model::history`]), because only their seqnos are compared.
    pub fn reaches(&self, other: &Cut) -> bool {
        other.iter().all(|(vbucket, position)| self.get(vbucket).seqno >= position.seqno)
    }

    /// Returns the number of mutations between `older` and this cut.
    pub fn distance_from(&self, older: &Cut) -> u64 {
        self.iter().map(|(v, p)| p.seqno.0.saturating_sub(older.get(v).seqno.0)).sum()
    }

    /// Returns the positions that differ from `older`. A replicated log stores these instead of
    /// the cut.
    pub fn delta_from(&self, older: &Cut) -> Vec<(VbucketId, Position)> {
        self.iter().filter(|(v, p)| older.get(*v) != *p).collect()
    }

    /// Returns a copy of the cut in which all vbuckets that are not in the set are at zero.
    pub fn only_vbuckets(&self, vbuckets: &VbucketSet) -> Self {
        let of_each = self.iter().map(|(vbucket, position)| match vbuckets.contains(vbucket) {
            true => position,
            false => Position::default(),
        });
        Self(of_each.collect())
    }

    /// Returns a copy of the cut in which the vbuckets of a set have their positions in `other`.
    pub fn with_vbuckets_of(&self, vbuckets: &VbucketSet, other: &Cut) -> Self {
        let mut next = self.clone();
        vbuckets.iter().for_each(|vbucket| next.set(vbucket, other.get(vbucket)));
        next
    }

    /// Returns a copy of the cut with some positions replaced.
    pub fn with(&self, changes: &[(VbucketId, Position)]) -> Self {
        let mut next = self.clone();
        for (vbucket, position) in changes {
            next.set(*vbucket, *position);
        }
        next
    }
}

/// A published epoch: its number, the cut at which it ends, and the older epochs that are still
/// needed. Messages call it a stability timestamp.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochMark {
    /// The bucket that the epoch belongs to.
    pub bucket: BucketId,
    /// The number of the epoch.
    pub epoch: Epoch,
    /// The preceding epoch; zero for the first. If a copy applies this epoch directly after
    /// another one than `parent`, it lacks the epochs in between, so this epoch becomes its
    /// oldest readable one.
    pub parent: Epoch,
    /// The cut at which the epoch ends.
    pub cut: Arc<Cut>,
    /// The oldest epoch that a scan may still read; versions needed only by older epochs may be dropped.
    pub horizon: Epoch,
    /// Older epochs to which a rollback may return (rollback points), all below the horizon,
    /// ascending.
    pub points: Arc<Vec<Epoch>>,
}

/// The positions of a writer's last mutations, one for each changed vbucket. The text for `SHOW
/// write_position` and `SET at_plus` is `bucket:vbucket/vbuuid/seqno,…`, with decimal numbers and
/// hexadecimal branches (vbuuids).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WritePosition {
    /// The bucket that was written to.
    pub bucket: BucketId,
    /// The last position of each changed vbucket, by vbucket.
    pub positions: Vec<(VbucketId, Position)>,
}

impl WritePosition {
    /// Merges later positions in the same bucket into these.
    pub fn merge(&mut self, later: &WritePosition) {
        for (vbucket, position) in &later.positions {
            match self.positions.binary_search_by_key(vbucket, |(v, _)| *v) {
                Ok(at) => self.positions[at].1 = *position,
                Err(at) => self.positions.insert(at, (*vbucket, *position)),
            }
        }
    }
}

impl fmt::Display for WritePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.bucket)?;
        for (n, (vbucket, position)) in self.positions.iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            write!(f, "{comma}{vbucket}/{:x}/{}", position.vbuuid.0, position.seqno)?;
        }
        Ok(())
    }
}

impl FromStr for WritePosition {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            Error::new(ErrorCode::InvalidParameter, "at_plus is not a write position")
                .with_hint("use the value that SHOW write_position printed after a write")
        };
        let (bucket, rest) = text.trim().split_once(':').ok_or_else(bad)?;
        let bucket = BucketId(bucket.parse().map_err(|_| bad())?);
        let mut positions = Vec::new();
        for part in rest.split(',').filter(|part| !part.is_empty()) {
            let mut fields = part.split('/');
            let mut next = || fields.next().ok_or_else(bad);
            let vbucket = VbucketId(next()?.parse().map_err(|_| bad())?);
            let vbuuid = Vbuuid(u64::from_str_radix(next()?, 16).map_err(|_| bad())?);
            let seqno = Seqno(next()?.parse().map_err(|_| bad())?);
            positions.push((vbucket, Position { vbuuid, seqno }));
        }
        positions.sort_by_key(|(vbucket, _)| *vbucket);
        if positions.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(bad());
        }
        Ok(Self { bucket, positions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(vbuuid: u64, seqno: u64) -> Position {
        Position { vbuuid: Vbuuid(vbuuid), seqno: Seqno(seqno) }
    }

    #[test]
    fn a_cut_reaches_positions_without_a_larger_seqno() {
        let cut = Cut::from_positions(vec![at(7, 5), at(8, 0)]);
        assert!(cut.reaches(&Cut::from_positions(vec![at(7, 5), at(0, 0)])));
        assert!(!cut.reaches(&Cut::from_positions(vec![at(7, 6), at(0, 0)])));
        assert!(cut.reaches(&Cut::from_positions(vec![at(6, 4), at(0, 0)])), "an older branch");
    }

    #[test]
    fn a_write_position_survives_its_text() {
        let position = WritePosition {
            bucket: BucketId(3),
            positions: vec![(VbucketId(1), at(0xabc, 9)), (VbucketId(60), at(u64::MAX, 1))],
        };
        assert_eq!(position.to_string().parse::<WritePosition>().unwrap(), position);
        for bad in ["", "x", "1", "1:2", "1:2/3", "1:2/z/3", "1:1/1/1,1/1/2", "1:99999999/1/1"] {
            assert!(bad.parse::<WritePosition>().is_err(), "{bad:?} must be refused");
        }
    }
}
