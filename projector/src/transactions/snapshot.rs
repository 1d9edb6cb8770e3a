//! The moment that a transaction reads.

use std::sync::Arc;

use proto::model::ids::{Epoch, Seqno, VbucketId};

/// The documents of an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The epoch that the snapshot reads.
    pub epoch: Epoch,
    /// The end of each vbucket.
    pub seqnos: Arc<[Seqno]>,
}

impl Snapshot {
    /// The last seqno of a vbucket that it has.
    pub fn end(&self, vbucket: VbucketId) -> Seqno {
        self.seqnos.get(usize::from(vbucket.0)).copied().unwrap_or_default()
    }
}
