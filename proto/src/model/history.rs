//! The history of a source: for each vbucket the branches of its mutations, newest first.
//!
//! A branch begins after a seqno, with a new vbuuid. All older branches end at this seqno: their
//! later mutations belong to another history, which was lost when the source continued on the new
//! branch. So a position (vbuuid, seqno) is in this history if and only if the seqno is on the
//! branch with this vbuuid.
//!
//! Two positions of one history are compared by their seqnos alone, whatever their branches.
//!
//! If a bucket is at several projectors, each has the history of its vbuckets. The fingerprint of
//! the complete history is the sum of their fingerprints.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::assignment::VbucketSet;
use crate::model::cut::{Cut, Position};
use crate::model::ids::{Seqno, VbucketId, Vbuuid};
use crate::plant::{self, Plant};

/// The branches of one vbucket, newest first: the vbuuid of each, and the seqno after which it
/// began. Empty before the first mutation of a pushed vbucket.
pub type Branches = Vec<(Vbuuid, u64)>;

/// Maximum number of branches that are remembered for a vbucket. A position on an older branch
/// counts as lost, and a copy at such a position is rebuilt.
pub const BRANCHES_MAX: usize = 24;

/// Returns the branch that a seqno is on.
pub fn branch_of(branches: &Branches, seqno: Seqno) -> Vbuuid {
    let off_by_one = u64::from(plant::is(Plant::BranchOffByOne));
    let branch = branches.iter().find(|(_, began)| *began < seqno.0 + off_by_one);
    branch.map_or(Vbuuid(0), |(vbuuid, _)| *vbuuid)
}

/// Begins a branch after `seqno`. Older branches end at this seqno. A branch that then has no
/// mutation is removed.
pub fn begin_branch(branches: &mut Branches, vbuuid: Vbuuid, seqno: Seqno) {
    branches.retain(|(_, began)| *began < seqno.0);
    branches.insert(0, (vbuuid, seqno.0));
    branches.truncate(BRANCHES_MAX);
}

/// Returns the last seqno of the history that both lists of branches have in common. The actual
/// end of either history is not considered.
pub fn common_end(one: &Branches, other: &Branches) -> Seqno {
    let end = |branches: &Branches, at: usize| match at.checked_sub(1) {
        Some(next) => branches[next].1,
        None => u64::MAX,
    };
    let in_both = |(at, branch): (usize, &(Vbuuid, u64))| {
        let there = other.iter().position(|known| known == branch)?;
        Some(end(one, at).min(end(other, there)))
    };
    Seqno(one.iter().enumerate().find_map(in_both).unwrap_or_default())
}

/// Returns the hash of one vbucket's branches; zero if there are none.
fn hash(vbucket: u64, branches: &Branches) -> u64 {
    if branches.is_empty() {
        return 0;
    }
    let mut bytes = Vec::from(vbucket.to_le_bytes());
    for (vbuuid, began) in branches {
        bytes.extend(vbuuid.0.to_le_bytes());
        bytes.extend(began.to_le_bytes());
    }
    xxhash_rust::xxh3::xxh3_64(&bytes)
}

/// The failover logs of a bucket: the branches of each vbucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailoverLogs {
    branches: Vec<Branches>,
    /// The fingerprint of the history: the sum of the hashes of all vbuckets' branches.
    fingerprint: u64,
}

impl FailoverLogs {
    /// Creates the logs from the branches of each vbucket, in the order of the vbuckets.
    pub fn new(branches: Vec<Branches>) -> Self {
        let of_each = branches.iter().enumerate().map(|(n, branches)| hash(n as u64, branches));
        let fingerprint = of_each.fold(0, u64::wrapping_add);
        Self { branches, fingerprint }
    }

    /// Returns the logs in which only the vbuckets of a set have branches.
    pub fn only_vbuckets(&self, vbuckets: &VbucketSet) -> Self {
        let of_each = self.iter().map(|(vbucket, branches)| match vbuckets.contains(vbucket) {
            true => branches.clone(),
            false => Branches::new(),
        });
        Self::new(of_each.collect())
    }

    /// Returns the fingerprint of the history. Equal fingerprints mean equal histories.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Returns the branches of one vbucket; `None` for an unknown vbucket.
    pub fn get(&self, vbucket: VbucketId) -> Option<&Branches> {
        self.branches.get(usize::from(vbucket.0))
    }

    /// Returns the branches of all vbuckets, in the order of the vbuckets.
    pub fn iter(&self) -> impl Iterator<Item = (VbucketId, &Branches)> {
        self.branches.iter().enumerate().map(|(n, branches)| (VbucketId(n as u16), branches))
    }

    /// Returns the branch that a seqno of a vbucket is on; zero if there is none.
    pub fn branch_of(&self, vbucket: VbucketId, seqno: Seqno) -> Vbuuid {
        self.get(vbucket).map_or(Vbuuid(0), |branches| branch_of(branches, seqno))
    }

    /// Returns true if a position is in the history; the zero position always is.
    pub fn includes(&self, vbucket: VbucketId, position: Position) -> bool {
        position.seqno.0 == 0
            || (position.vbuuid.0 != 0
                && self.branch_of(vbucket, position.seqno) == position.vbuuid)
    }

    /// Returns true if a cut's positions of all vbuckets in the set are in the history.
    pub fn includes_vbuckets(&self, vbuckets: &VbucketSet, cut: &Cut) -> bool {
        vbuckets.iter().all(|vbucket| self.includes(vbucket, cut.get(vbucket)))
    }

    /// Returns true if every position of the cut is in the history.
    pub fn includes_cut(&self, cut: &Cut) -> bool {
        cut.iter().all(|(vbucket, position)| self.includes(vbucket, position))
    }
}

/// The end of a source's durable history, with only the fingerprint of that history, in few
/// bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourcePlace {
    /// The end of the durable history. No statement and no transaction of the source has
    /// mutations on both sides of this cut.
    pub durable: Cut,
    /// [`FailoverLogs::fingerprint`] of the history that the cut belongs to.
    pub history: u64,
    /// The vbuckets that the answer covers. All others are at zero in `durable`, and have no
    /// branches.
    pub kept: VbucketSet,
}

impl SourcePlace {
    /// Returns a fingerprint of the vbuckets, of the history and of its durable end. A vbucket
    /// without mutations counts as at zero, whatever its branch.
    pub fn fingerprint(&self) -> u64 {
        let mut bytes = Vec::with_capacity(8 + self.kept.len() * 18);
        bytes.extend(self.history.to_le_bytes());
        for vbucket in self.kept.iter() {
            let Position { vbuuid, seqno } = self.durable.get(vbucket);
            let branch = if seqno.0 == 0 { 0 } else { vbuuid.0 };
            bytes.extend(vbucket.0.to_le_bytes());
            bytes.extend(branch.to_le_bytes());
            bytes.extend(seqno.0.to_le_bytes());
        }
        xxhash_rust::xxh3::xxh3_64(&bytes)
    }
}

/// The end of a source's durable history, with the branches of that history at the same moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceHistory {
    /// The end of the durable history. No statement and no transaction of the source has
    /// mutations on both sides of this cut.
    pub durable: Cut,
    /// The branches of each vbucket.
    pub logs: Arc<FailoverLogs>,
    /// The vbuckets that the answer covers. All others are at zero in `durable`, and have no
    /// branches.
    pub kept: VbucketSet,
}

/// A vbucket whose last mutations are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingEnd {
    /// The vbucket with the loss.
    pub vbucket: VbucketId,
    /// The last seqno that the source still has.
    pub has: Seqno,
    /// The last seqno that the source had before the loss.
    pub had: Seqno,
}

impl SourceHistory {
    /// Returns the vbuckets in which the source lacks mutations that a cut includes. `known` has
    /// the branches of the cut's history.
    pub fn missing_ends(&self, cut: &Cut, known: &FailoverLogs) -> Vec<MissingEnd> {
        let end = |(vbucket, at): (VbucketId, Position)| {
            let durable = self.durable.get(vbucket).seqno;
            let includes = self.logs.includes(vbucket, at);
            let common = match includes {
                true => at.seqno,
                false => common_end(self.logs.get(vbucket)?, known.get(vbucket)?),
            };
            let has = common.min(durable).min(at.seqno);
            (!includes || has < at.seqno).then_some(MissingEnd { vbucket, has, had: at.seqno })
        };
        cut.iter().filter_map(end).collect()
    }

    /// Returns true if the source still has every mutation that the cut includes.
    pub fn has(&self, cut: &Cut) -> bool {
        self.logs.includes_cut(cut) && self.durable.reaches(cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(vbuuid: u64, seqno: u64) -> Position {
        Position { vbuuid: Vbuuid(vbuuid), seqno: Seqno(seqno) }
    }

    #[test]
    fn a_position_is_in_the_history_where_its_branch_has_its_seqno() {
        let logs = FailoverLogs::new(vec![vec![(Vbuuid(3), 20), (Vbuuid(1), 0)], vec![]]);
        for (position, included) in [
            (at(1, 20), true),
            (at(1, 21), false),
            (at(3, 21), true),
            (at(3, 20), false),
            (at(2, 5), false),
            (at(9, 0), true),
        ] {
            assert_eq!(logs.includes(VbucketId(0), position), included, "{position:?}");
        }
        assert!(!logs.includes(VbucketId(1), at(0, 5)), "an empty log has nothing");
        assert!(!logs.includes(VbucketId(2), at(1, 5)), "the vbucket does not exist");
    }

    #[test]
    fn missing_mutations_begin_at_the_common_end() {
        let logs = |branches: &[(u64, u64)]| {
            FailoverLogs::new(vec![branches.iter().map(|(v, s)| (Vbuuid(*v), *s)).collect()])
        };
        let known = logs(&[(2, 90), (1, 0)]);
        for (branches, end, cut, expected) in [
            (&[(3, 36), (1, 0)][..], 36, at(1, 42), Some((36, 42))),
            (&[(3, 100), (2, 90), (1, 0)], 100, at(2, 100), None),
            // Another history that is longer.
            (&[(5, 150), (4, 80), (1, 0)], 150, at(2, 100), Some((80, 100))),
            (&[(9, 0)], 200, at(2, 100), Some((0, 100))),
            (&[(2, 90), (1, 0)], 95, at(2, 100), Some((95, 100))),
        ] {
            let durable = Cut::from_positions(vec![at(0, end)]);
            let kept = VbucketSet::all(1);
            let history = SourceHistory { durable, logs: Arc::new(logs(branches)), kept };
            let missing = history.missing_ends(&Cut::from_positions(vec![cut]), &known);
            let found = missing.first().map(|end| (end.has.0, end.had.0));
            assert_eq!(found, expected, "{branches:?}");
        }
    }

    #[test]
    fn a_new_branch_ends_the_others_and_replaces_those_without_mutations() {
        let mut branches = vec![(Vbuuid(3), 20), (Vbuuid(1), 0)];
        begin_branch(&mut branches, Vbuuid(4), Seqno(20));
        assert_eq!(branches, [(Vbuuid(4), 20), (Vbuuid(1), 0)], "branch 3 has nothing");
        begin_branch(&mut branches, Vbuuid(5), Seqno(7));
        assert_eq!(branches, [(Vbuuid(5), 7), (Vbuuid(1), 0)], "later positions are gone");
        begin_branch(&mut branches, Vbuuid(6), Seqno(0));
        assert_eq!(branches, [(Vbuuid(6), 0)]);
        (1..1_000).for_each(|n| begin_branch(&mut branches, Vbuuid(n), Seqno(n)));
        assert_eq!(branches.len(), BRANCHES_MAX);
    }
}
