//! Which vbuckets of a bucket a projector keeps.

use proto::model::homes::{Homes, VbucketSet};
use proto::model::ids::{NodeId, VbucketId};
use serde::{Deserialize, Serialize};

/// What a projector keeps of a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ownership {
    /// The vbuckets whose home it is.
    pub owned: VbucketSet,
    /// Of these, those that take no more mutations: they are being handed over.
    pub released: VbucketSet,
}

impl Ownership {
    /// What is kept when the homes are these.
    pub fn with_homes(&self, homes: &Homes, projector: NodeId) -> Self {
        let owned = homes.kept_by(projector);
        let is_pending =
            |vbucket: &VbucketId| owned.contains(*vbucket) && homes.handing_of(*vbucket).is_some();
        let released = self.released.iter().filter(is_pending).collect();
        Self { owned, released }
    }

    /// Does a vbucket take mutations?
    pub fn is_writable(&self, vbucket: VbucketId) -> bool {
        self.owned.contains(vbucket) && !self.released.contains(vbucket)
    }
}
