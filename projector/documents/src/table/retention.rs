//! The rule by which merges drop versions.
//!
//! A readable state of a vbucket is the state at a seqno `c` at or above the vbucket's *floor*: as the
//! cut of a read, or as the state after a rewind. Of the versions of a document that are not dead, the one with the
//! largest place among those with a seqno up to `c` decides. So a version with seqno `s` is needed if there is such a
//! `c` with `s <= c`, and below the seqnos of all versions with larger places. A later rewind that kills newer versions makes no
//! difference: a rewind to `c` leaves the versions with a seqno up to `c`, as the cut does. The removal of a vbucket leaves none.
//!
//! In every such state, a tombstone with a seqno up to the floor means the same as the lack of a version. So it is
//! dropped where no older table can hold a version that it hides.

use proto::model::ids::{Seqno, VbucketId};

/// The states of vbuckets that can still be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Floor of each vbucket: its smallest seqno that a read or a rewind can still name.
    pub from: Vec<Seqno>,
}

impl Retention {
    /// The floor of a vbucket; 0, which needs every version, if none is given.
    pub fn floor(&self, vbucket: VbucketId) -> Seqno {
        self.from.get(usize::from(vbucket.0)).copied().unwrap_or_default()
    }
}

/// The versions of one document that are needed. Versions are passed from the largest place to the smallest, without dead ones.
#[derive(Debug)]
pub(super) struct NeededVersions {
    floor: Seqno,
    /// The smallest seqno of the versions passed so far.
    newer_min: Option<Seqno>,
}

impl NeededVersions {
    pub fn new(floor: Seqno) -> Self {
        Self { floor, newer_min: None }
    }

    /// True if the next version is needed.
    pub fn takes(&mut self, seqno: Seqno) -> bool {
        let newer_min = self.newer_min;
        self.newer_min = Some(newer_min.map_or(seqno, |min| min.min(seqno)));
        newer_min.is_none_or(|min| seqno.max(self.floor) < min)
    }

    /// True if a tombstone means no more than the lack of a version.
    pub fn is_past(&self, seqno: Seqno) -> bool {
        seqno <= self.floor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of the versions that are needed, of versions from the largest place to the smallest.
    fn needed(floor: u64, seqnos: &[u64]) -> Vec<u64> {
        let mut needed = NeededVersions::new(Seqno(floor));
        seqnos.iter().copied().filter(|seqno| needed.takes(Seqno(*seqno))).collect()
    }

    #[test]
    fn the_version_at_the_floor_and_all_newer_ones_are_needed() {
        assert_eq!(needed(5, &[9, 7, 4, 2]), [9, 7, 4]);
        assert_eq!(needed(7, &[9, 7, 4, 2]), [9, 7]);
        assert_eq!(needed(10, &[9, 7, 4, 2]), [9]);
        assert_eq!(needed(0, &[9, 7, 4, 2]), [9, 7, 4, 2]);
        assert_eq!(needed(0, &[3, 3, 4]), [3], "a version that no seqno shows");
        assert_eq!(needed(0, &[]), [0; 0]);
    }
}
