//! Which vbuckets of a bucket a projector keeps.

use proto::model::homes::{Homes, VbucketSet};
use proto::model::ids::{NodeId, VbucketId};
use serde::{Deserialize, Serialize};

/// What a projector keeps of a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keeping {
    /// The vbuckets whose home it is.
    pub kept: VbucketSet,
    /// Of these, those that take no more mutations: they are being handed over.
    pub released: VbucketSet,
}

impl Keeping {
    /// What is kept when the homes are these.
    pub fn with_homes(&self, homes: &Homes, projector: NodeId) -> Self {
        let kept = homes.kept_by(projector);
        let is_pending =
            |vbucket: &VbucketId| kept.contains(*vbucket) && homes.handing_of(*vbucket).is_some();
        let released = self.released.iter().filter(is_pending).collect();
        Self { kept, released }
    }

    /// Does a vbucket take mutations?
    pub fn takes(&self, vbucket: VbucketId) -> bool {
        self.kept.contains(vbucket) && !self.released.contains(vbucket)
    }
}
