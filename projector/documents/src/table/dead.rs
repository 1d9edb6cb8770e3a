//! The *dead list*: versions of documents that a rewind or a removal of a vbucket has made
//! invalid.
//!
//! A rewind does not change rows. It adds an entry to the dead list, and every read skips the
//! versions that an entry selects. A merge removes them permanently. An entry is removed from the
//! list when neither memory nor a fragment can contain such a version any more. For that purpose
//! each entry has a *number*, and each fragment has the number up to which it was *cleaned*.
//!
//! An entry *covers* another entry of its vbucket if it selects all versions that the other one
//! selects. The list contains no covered entries.

use std::collections::{BTreeMap, BTreeSet};

use proto::model::ids::{Seqno, VbucketId};
use serde::{Deserialize, Serialize};

/// A set of invalid versions of a vbucket: those before a place whose seqno is larger than a
/// limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadVersions {
    /// The vbucket of the versions.
    pub vbucket: VbucketId,
    /// The place of the rewind in the order of versions: all invalid versions are before it.
    pub before: u64,
    /// The seqno to which the vbucket was rewound; 0 if the vbucket was removed. All invalid
    /// versions have a larger seqno.
    pub after: Seqno,
}

/// An entry of the dead list; its vbucket is the key in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DeadEntry {
    pub before: u64,
    pub after: Seqno,
    /// The number of the entry, counted from 1 and never reused.
    pub number: u64,
}

impl DeadEntry {
    fn covers(&self, other: &Self) -> bool {
        self.before >= other.before && self.after <= other.after
    }
}

/// The invalid (dead) versions that the tables may still contain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DeadList {
    /// The entries of each vbucket, by place. No entry covers another one, so their seqnos ascend
    /// too.
    vbuckets: BTreeMap<VbucketId, Vec<DeadEntry>>,
    /// Number of the newest entry.
    newest: u64,
}

impl DeadList {
    /// Returns true if no version is dead.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.vbuckets.is_empty()
    }

    /// Returns the number of the newest entry that was ever added.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// Returns true if a version with this place and seqno is dead.
    #[inline]
    pub fn has(&self, vbucket: VbucketId, place: u64, seqno: Seqno) -> bool {
        if self.vbuckets.is_empty() {
            return false;
        }
        let Some(entries) = self.vbuckets.get(&vbucket) else { return false };
        // Of the entries after the place, the first one has the smallest seqno.
        let behind = entries.partition_point(|entry| entry.before <= place);
        entries.get(behind).is_some_and(|entry| seqno > entry.after)
    }

    /// Adds an entry, unless an entry of the list already selects all its versions.
    pub fn add(&mut self, dead: &DeadVersions) {
        let entry = DeadEntry { before: dead.before, after: dead.after, number: self.newest + 1 };
        let entries = self.vbuckets.entry(dead.vbucket).or_default();
        if entries.iter().any(|other| other.covers(&entry)) {
            return;
        }
        entries.retain(|other| !entry.covers(other));
        let at = entries.partition_point(|other| other.before < entry.before);
        entries.insert(at, entry);
        debug_assert!(entries.is_sorted_by_key(|entry| entry.after));
        self.newest = entry.number;
    }

    /// Removes the entries for which `is_needed` returns false.
    pub fn retain(&mut self, is_needed: impl Fn(&DeadEntry) -> bool) {
        self.vbuckets.retain(|_, entries| {
            entries.retain(&is_needed);
            !entries.is_empty()
        });
    }

    /// All entries of the dead list.
    pub fn entries(&self) -> impl Iterator<Item = &DeadEntry> {
        self.vbuckets.values().flatten()
    }

    /// Returns the vbuckets that were rewound or removed after a place, ascending.
    pub fn vbuckets_rewound_after(&self, place: u64) -> BTreeSet<VbucketId> {
        let is_behind = |entries: &[DeadEntry]| entries.iter().any(|entry| entry.before > place);
        let behind = self.vbuckets.iter().filter(|(_, entries)| is_behind(entries));
        behind.map(|(vbucket, _)| *vbucket).collect()
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.vbuckets.values().map(Vec::len).sum()
    }

    /// Returns the places of the rewinds, ascending. Entries with the same place were added
    /// together.
    pub fn places(&self) -> BTreeSet<u64> {
        self.entries().map(|entry| entry.before).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(before: u64, after: u64) -> DeadVersions {
        DeadVersions { vbucket: VbucketId(3), before, after: Seqno(after) }
    }

    #[test]
    fn a_version_is_dead_before_the_place_and_above_the_seqno() {
        let mut list = DeadList::default();
        list.add(&dead(100, 7));
        assert!(list.has(VbucketId(3), 99, Seqno(8)));
        assert!(!list.has(VbucketId(3), 100, Seqno(8)));
        assert!(!list.has(VbucketId(3), 99, Seqno(7)));
        assert!(!list.has(VbucketId(2), 99, Seqno(8)));
    }

    #[test]
    fn among_several_entries_the_right_one_is_found() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..300 {
            let mut list = DeadList::default();
            let entries: Vec<_> =
                (0..8).map(|_| dead(random.u64(0..20), random.u64(0..20))).collect();
            entries.iter().for_each(|entry| list.add(entry));
            for (place, seqno) in (0..20).flat_map(|place| (0..20).map(move |seqno| (place, seqno)))
            {
                let is_dead =
                    entries.iter().any(|dead| place < dead.before && Seqno(seqno) > dead.after);
                assert_eq!(list.has(VbucketId(3), place, Seqno(seqno)), is_dead);
            }
        }
    }

    #[test]
    fn covered_entries_leave_the_list_and_do_not_enter_it() {
        let mut list = DeadList::default();
        list.add(&dead(100, 7));
        list.add(&dead(100, 7));
        list.add(&dead(90, 8));
        assert_eq!((list.len(), list.newest()), (1, 1));
        list.add(&dead(200, 9));
        assert_eq!((list.len(), list.newest()), (2, 2));
        list.add(&dead(200, 0));
        assert_eq!((list.len(), list.newest()), (1, 3));
        list.retain(|entry| entry.number > 3);
        assert!(list.is_empty());
        assert_eq!(list.newest(), 3, "numbers are never used twice");
    }
}
