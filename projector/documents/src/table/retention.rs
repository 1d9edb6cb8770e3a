//! The rule that determines which old versions a merge may drop.
//!
//! A readable state of a vbucket is the state at a seqno `c` at or above the vbucket's *floor*:
//! as the cut of a read, or as the state after a rewind. In this state, a document is the version
//! with the largest place, among its live versions whose seqno is at most `c`. So a version with
//! seqno `s` is needed if there is a `c` at or above the floor with two properties: `s` is at
//! most `c`, and all versions with larger places have seqnos above `c`. A later rewind changes
//! nothing in this rule: a rewind to `c` keeps the versions with a seqno up to `c`, as a read at
//! `c` does. The removal of a vbucket keeps none.
//!
//! In every readable state, a tombstone whose seqno is at or below the floor has the same effect
//! as no version at all. So it is dropped, unless an older table may contain a version that the
//! tombstone hides.

use proto::model::ids::{Seqno, VbucketId};

/// The states of the vbuckets that may still be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// The floor of each vbucket: the smallest seqno that a read or a rewind may still use.
    pub from: Vec<Seqno>,
}

impl Retention {
    /// Returns the floor of a vbucket; 0 (all versions are needed) if it is unknown.
    pub fn floor(&self, vbucket: VbucketId) -> Seqno {
        self.from.get(usize::from(vbucket.0)).copied().unwrap_or_default()
    }
}

/// A filter that determines which versions of one document are still needed. The live versions
/// are passed to it in descending order of their places.
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

    /// Returns true if the next version, with this seqno, is needed.
    pub fn is_needed(&mut self, seqno: Seqno) -> bool {
        let newer_min = self.newer_min;
        self.newer_min = Some(newer_min.map_or(seqno, |min| min.min(seqno)));
        newer_min.is_none_or(|min| seqno.max(self.floor) < min)
    }

    /// Returns true if a tombstone with this seqno has the same effect as no version at all.
    pub fn is_at_or_below_floor(&self, seqno: Seqno) -> bool {
        seqno <= self.floor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns those of the descending seqnos whose versions are needed.
    fn needed(floor: u64, seqnos: &[u64]) -> Vec<u64> {
        let mut needed = NeededVersions::new(Seqno(floor));
        seqnos.iter().copied().filter(|seqno| needed.is_needed(Seqno(*seqno))).collect()
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
