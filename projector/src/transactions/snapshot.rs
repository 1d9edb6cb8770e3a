//! The snapshot of a bucket that a transaction reads.

use std::sync::Arc;

use proto::model::ids::{Epoch, Seqno, VbucketId};

/// The documents of a bucket as of an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The epoch that the snapshot reads.
    pub epoch: Epoch,
    /// The last seqno of each vbucket in the snapshot.
    pub seqnos: Arc<[Seqno]>,
}

impl Snapshot {
    /// Returns the last seqno of a vbucket that belongs to the snapshot.
    pub fn end(&self, vbucket: VbucketId) -> Seqno {
        self.seqnos.get(usize::from(vbucket.0)).copied().unwrap_or_default()
    }
}
