//! The vbuckets of a bucket that a projector owns.

use proto::model::assignment::{VbucketAssignment, VbucketSet};
use proto::model::ids::{NodeId, VbucketId};
use serde::{Deserialize, Serialize};

/// The vbuckets of a bucket that a projector owns, and those that it is handing over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ownership {
    /// The vbuckets that the projector owns.
    pub owned: VbucketSet,
    /// The owned vbuckets that accept no mutations any more, because they are being handed over.
    pub released: VbucketSet,
}

impl Ownership {
    /// Returns the ownership that follows from the catalog's assignment. A released vbucket stays
    /// released as long as its hand-over is pending.
    pub fn with_assignment(&self, assignment: &VbucketAssignment, projector: NodeId) -> Self {
        let owned = assignment.owned_by(projector);
        let is_pending = |vbucket: &VbucketId| {
            owned.contains(*vbucket) && assignment.transfer_of(*vbucket).is_some()
        };
        let released = self.released.iter().filter(is_pending).collect();
        Self { owned, released }
    }

    /// Returns true if the vbucket accepts mutations on this projector.
    pub fn is_writable(&self, vbucket: VbucketId) -> bool {
        self.owned.contains(vbucket) && !self.released.contains(vbucket)
    }
}
