//! The assignment of a bucket's vbuckets to projectors, and the hand-over of a vbucket from one
//! projector to another.
//!
//! The vbuckets of a bucket may be spread over several projectors; each vbucket has one *owner*.
//! A hand-over transfers a vbucket to another projector, its target:
//!
//! - Step 1: the catalog lists the transfer (`VbucketAssignment::transfers`). The target copies
//!   the vbucket's log from the owner. If the beginning of the log was purged, the target copies
//!   the purge point, the documents, and the log after the purge point.
//! - Step 2: the owner *releases* the vbucket: it durably refuses further mutations of the
//!   vbucket, and its streams end the vbucket with STREAM_END at its last mutation.
//! - Step 3: the target copies the remaining mutations, and requests ownership from the
//!   coordinator.
//! - Step 4: when the catalog names the target as the owner, the target accepts mutations. Its
//!   streams begin the vbucket with STREAM_BEGIN where the old owner's streams ended it. The old
//!   owner removes its copy.
//!
//! At no time do two projectors number the mutations of one vbucket, whichever process crashes. A
//! hand-over that is cancelled before the third step leaves the vbucket complete at its owner,
//! which accepts mutations again. The target receives the vbucket's branches of history: a
//! hand-over begins no new branch.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::model::ids::{NodeId, VbucketId};

/// A set of vbuckets of one bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VbucketSet(Vec<u64>);

impl VbucketSet {
    /// Returns the set of all vbuckets of a bucket.
    pub fn all(vbuckets: u16) -> Self {
        (0..vbuckets).map(VbucketId).collect()
    }

    /// Returns true if the vbucket is in the set.
    pub fn contains(&self, vbucket: VbucketId) -> bool {
        let word = self.0.get(usize::from(vbucket.0 / 64)).copied().unwrap_or(0);
        word >> (vbucket.0 % 64) & 1 == 1
    }

    /// Adds a vbucket.
    pub fn insert(&mut self, vbucket: VbucketId) {
        let word = usize::from(vbucket.0 / 64);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (vbucket.0 % 64);
    }

    /// Removes a vbucket.
    pub fn remove(&mut self, vbucket: VbucketId) {
        if let Some(word) = self.0.get_mut(usize::from(vbucket.0 / 64)) {
            *word &= !(1 << (vbucket.0 % 64));
        }
        // Trailing zeros go, so that equal sets have equal representations.
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    /// Returns the number of vbuckets in the set.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the vbuckets of the set, ascending.
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

/// The transfer of one vbucket to another projector, as the catalog lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOver {
    /// The number of the hand-over, unique in the cluster. A later hand-over has a larger number.
    pub number: u64,
    /// The vbucket that is transferred.
    pub vbucket: VbucketId,
    /// The projector that receives it.
    pub to: NodeId,
}

/// The owner of each vbucket of a bucket, and the transfers in progress.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VbucketAssignment {
    /// The owner of each vbucket, in the order of the vbuckets.
    owners: Vec<NodeId>,
    /// At most one transfer of each vbucket, ordered by vbucket.
    transfers: Vec<HandOver>,
}

impl VbucketAssignment {
    /// Assigns all vbuckets to one projector.
    pub fn single(vbuckets: u16, projector: NodeId) -> Self {
        Self { owners: vec![projector; usize::from(vbuckets)], transfers: Vec::new() }
    }

    /// Assigns the vbuckets to the projectors in turn.
    pub fn round_robin(vbuckets: u16, projectors: &[NodeId]) -> Self {
        let owners = projectors.iter().copied().cycle().take(usize::from(vbuckets)).collect();
        Self { owners, transfers: Vec::new() }
    }

    /// Assigns to each vbucket the projector at its index in `owners`.
    pub fn of_owners(owners: Vec<NodeId>) -> Self {
        Self { owners, transfers: Vec::new() }
    }

    /// Returns the owner of a vbucket; `None` if the bucket lacks that vbucket.
    pub fn owner(&self, vbucket: VbucketId) -> Option<NodeId> {
        self.owners.get(usize::from(vbucket.0)).copied()
    }

    /// Returns the vbuckets that a projector owns.
    pub fn owned_by(&self, projector: NodeId) -> VbucketSet {
        let all = (0..self.owners.len() as u16).map(VbucketId);
        all.filter(|vbucket| self.owner(*vbucket) == Some(projector)).collect()
    }

    /// Returns the projectors that own vbuckets, ascending, each once.
    pub fn projectors(&self) -> Vec<NodeId> {
        self.owners.iter().copied().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Returns the targets of transfers that own no vbucket yet, ascending.
    pub fn joining(&self) -> Vec<NodeId> {
        let targets: BTreeSet<NodeId> = self.transfers.iter().map(|transfer| transfer.to).collect();
        targets.into_iter().filter(|target| !self.owners.contains(target)).collect()
    }

    /// Returns true if a projector owns a vbucket or is the target of a transfer.
    pub fn concerns(&self, projector: NodeId) -> bool {
        self.owners.contains(&projector)
            || self.transfers.iter().any(|transfer| transfer.to == projector)
    }

    /// Returns the transfers in progress.
    pub fn transfers(&self) -> &[HandOver] {
        &self.transfers
    }

    /// Returns the transfer of one vbucket, if it is in progress.
    pub fn transfer_of(&self, vbucket: VbucketId) -> Option<&HandOver> {
        self.transfers.iter().find(|transfer| transfer.vbucket == vbucket)
    }

    /// Adds the transfer of a vbucket to the transfers in progress.
    pub fn begin_transfer(&mut self, transfer: HandOver) {
        let at = self.transfers.partition_point(|known| known.vbucket < transfer.vbucket);
        self.transfers.insert(at, transfer);
    }

    /// Ends a transfer, and makes its target the owner.
    pub fn finish_transfer(&mut self, transfer: HandOver) {
        self.transfers.retain(|known| known.number != transfer.number);
        if let Some(owner) = self.owners.get_mut(usize::from(transfer.vbucket.0)) {
            *owner = transfer.to;
        }
    }

    /// Cancels all transfers of the bucket.
    pub fn cancel_transfers(&mut self) {
        self.transfers.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_contains_inserted_and_not_removed_elements() {
        let mut set: VbucketSet = [3, 64, 200].map(VbucketId).into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [3, 64, 200].map(VbucketId));
        set.remove(VbucketId(200));
        assert_eq!(set, [64, 3].map(VbucketId).into_iter().collect());
        assert!(set.contains(VbucketId(64)) && !set.contains(VbucketId(200)));
        assert_eq!(VbucketSet::all(65).len(), 65);
    }

    #[test]
    fn a_hand_over_changes_the_owner_only_when_it_is_done() {
        let mut assignment = VbucketAssignment::round_robin(4, &[NodeId(1), NodeId(2)]);
        assert_eq!(assignment.owned_by(NodeId(2)), [1, 3].map(VbucketId).into_iter().collect());
        let transfer = HandOver { number: 7, vbucket: VbucketId(1), to: NodeId(3) };
        assignment.begin_transfer(transfer);
        assert_eq!(assignment.owner(VbucketId(1)), Some(NodeId(2)));
        assert!(assignment.concerns(NodeId(3)) && assignment.joining() == [NodeId(3)]);
        assignment.finish_transfer(transfer);
        assert_eq!(assignment.owner(VbucketId(1)), Some(NodeId(3)));
        assert_eq!(assignment.projectors(), [1, 2, 3].map(NodeId));
        assert!(assignment.transfers().is_empty() && assignment.joining().is_empty());
    }
}
