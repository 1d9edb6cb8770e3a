//! Which projector keeps which vbucket of a bucket, and how one is handed over to another.
//!
//! A bucket's vbuckets may be spread over several projectors; each vbucket has one *home*. A hand-over
//! (the seed's kv-rebalance, 003 "kv-rebalance") takes it to another:
//!
//! 1. the catalog names it (`Homes::handing`), and its target copies the vbucket's log from the home; where the log was
//!    purged, the purge point, the documents, and the log behind the point;
//! 2. the home *releases* the vbucket: durably, it takes no more mutations, and its streams end the vbucket with
//!    STREAM_END where it ends;
//! 3. the target copies the rest, and then asks for the catalog to name it as the home;
//! 4. when that is so it takes mutations, and its streams begin the vbucket with STREAM_BEGIN where the other
//!    ended; the old home removes its copy.
//!
//! So of a vbucket no mutation is ever numbered in two places, whoever crashes: a hand-over that is cancelled before
//! the third step finds the vbucket whole at its home, which takes mutations again. Its branches go with
//! it: a hand-over begins none.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::model::ids::{NodeId, VbucketId};

/// A set of the vbuckets of one bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VbucketSet(Vec<u64>);

impl VbucketSet {
    /// All of a bucket's.
    pub fn all(vbuckets: u16) -> Self {
        (0..vbuckets).map(VbucketId).collect()
    }

    /// Is it in the set?
    pub fn contains(&self, vbucket: VbucketId) -> bool {
        let word = self.0.get(usize::from(vbucket.0 / 64)).copied().unwrap_or(0);
        word >> (vbucket.0 % 64) & 1 == 1
    }

    /// Puts one in.
    pub fn insert(&mut self, vbucket: VbucketId) {
        let word = usize::from(vbucket.0 / 64);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (vbucket.0 % 64);
    }

    /// Takes one out.
    pub fn remove(&mut self, vbucket: VbucketId) {
        if let Some(word) = self.0.get_mut(usize::from(vbucket.0 / 64)) {
            *word &= !(1 << (vbucket.0 % 64));
        }
        // Equal sets look alike.
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All that are in it, ascending.
    pub fn iter(&self) -> impl Iterator<Item = VbucketId> + '_ {
        (0..(self.0.len() * 64) as u16).map(VbucketId).filter(|vbucket| self.contains(*vbucket))
    }
}

impl FromIterator<VbucketId> for VbucketSet {
    fn from_iter<I: IntoIterator<Item = VbucketId>>(vbuckets: I) -> Self {
        let mut set = Self::default();
        vbuckets.into_iter().for_each(|vbucket| set.insert(vbucket));
        set
    }
}

/// A vbucket that is on its way to another projector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOver {
    /// Tells the hand-overs of a cluster apart; it grows.
    pub number: u64,
    /// The vbucket.
    pub vbucket: VbucketId,
    /// Where it goes.
    pub to: NodeId,
}

/// The homes of a bucket's vbuckets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Homes {
    /// By vbucket.
    of: Vec<NodeId>,
    /// At most one of each vbucket, by vbucket.
    handing: Vec<HandOver>,
}

impl Homes {
    /// All vbuckets at one projector.
    pub fn one(vbuckets: u16, projector: NodeId) -> Self {
        Self { of: vec![projector; usize::from(vbuckets)], handing: Vec::new() }
    }

    /// Vbuckets dealt out to projectors, in turn.
    pub fn dealt(vbuckets: u16, projectors: &[NodeId]) -> Self {
        let of = projectors.iter().copied().cycle().take(usize::from(vbuckets)).collect();
        Self { of, handing: Vec::new() }
    }

    /// The home of a vbucket, if the bucket has it.
    pub fn home(&self, vbucket: VbucketId) -> Option<NodeId> {
        self.of.get(usize::from(vbucket.0)).copied()
    }

    /// The vbuckets whose home a projector is.
    pub fn kept_by(&self, projector: NodeId) -> VbucketSet {
        let all = (0..self.of.len() as u16).map(VbucketId);
        all.filter(|vbucket| self.home(*vbucket) == Some(projector)).collect()
    }

    /// The homes, ascending, each once.
    pub fn projectors(&self) -> Vec<NodeId> {
        self.of.iter().copied().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Projectors that keep nothing yet and to which a vbucket goes, ascending.
    pub fn coming(&self) -> Vec<NodeId> {
        let targets: BTreeSet<NodeId> = self.handing.iter().map(|handing| handing.to).collect();
        targets.into_iter().filter(|target| !self.of.contains(target)).collect()
    }

    /// Does a projector keep a vbucket, or will it?
    pub fn concerns(&self, projector: NodeId) -> bool {
        self.of.contains(&projector) || self.handing.iter().any(|handing| handing.to == projector)
    }

    /// The hand-overs under way.
    pub fn handing(&self) -> &[HandOver] {
        &self.handing
    }

    /// The hand-over of a vbucket that is under way.
    pub fn handing_of(&self, vbucket: VbucketId) -> Option<&HandOver> {
        self.handing.iter().find(|handing| handing.vbucket == vbucket)
    }

    /// A hand-over begins.
    pub fn begin(&mut self, handing: HandOver) {
        let at = self.handing.partition_point(|known| known.vbucket < handing.vbucket);
        self.handing.insert(at, handing);
    }

    /// A hand-over is done: its target is the home now.
    pub fn finish(&mut self, handing: HandOver) {
        self.handing.retain(|known| known.number != handing.number);
        if let Some(home) = self.of.get_mut(usize::from(handing.vbucket.0)) {
            *home = handing.to;
        }
    }

    /// All hand-overs are given up.
    pub fn cancel(&mut self) {
        self.handing.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_in_and_not_taken_out() {
        let mut set: VbucketSet = [3, 64, 200].map(VbucketId).into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [3, 64, 200].map(VbucketId));
        set.remove(VbucketId(200));
        assert_eq!(set, [64, 3].map(VbucketId).into_iter().collect());
        assert!(set.contains(VbucketId(64)) && !set.contains(VbucketId(200)));
        assert_eq!(VbucketSet::all(65).len(), 65);
    }

    #[test]
    fn a_hand_over_changes_the_home_when_it_is_done_and_not_before() {
        let mut homes = Homes::dealt(4, &[NodeId(1), NodeId(2)]);
        assert_eq!(homes.kept_by(NodeId(2)), [1, 3].map(VbucketId).into_iter().collect());
        let handing = HandOver { number: 7, vbucket: VbucketId(1), to: NodeId(3) };
        homes.begin(handing);
        assert_eq!(homes.home(VbucketId(1)), Some(NodeId(2)));
        assert!(homes.concerns(NodeId(3)) && homes.coming() == [NodeId(3)]);
        homes.finish(handing);
        assert_eq!(homes.home(VbucketId(1)), Some(NodeId(3)));
        assert_eq!(homes.projectors(), [1, 2, 3].map(NodeId));
        assert!(homes.handing().is_empty() && homes.coming().is_empty());
    }
}
