//! The part of a bucket's writer in removing a vbucket: one that has another owner now, an abandoned copy, or one that
//! is copied again.
//!
//! The vbucket loses its branches, its documents and its log in one step.

use proto::model::assignment::VbucketAssignment;
use proto::model::ids::{NodeId, Seqno, VbucketId};
use proto::{Error, Result};

use crate::source::view::bucket::Bucket;
use crate::source::writer::Writer;

/// A vbucket to remove, and the purpose.
#[derive(Clone, Copy, Debug)]
pub struct Removal {
    /// The vbucket to remove.
    pub vbucket: VbucketId,
    /// The node id of this projector.
    pub projector: NodeId,
    /// True to make room for a new copy of a vbucket that is being handed over to this projector; false to clean up.
    /// Each of the two begins only where the other does not.
    pub for_new_copy: bool,
}

impl Removal {
    fn check(&self, bucket: &Bucket) -> Result<()> {
        let Self { vbucket, projector, for_new_copy } = *self;
        let assignment = bucket.assignment();
        let fits = assignment.owner(vbucket).is_some_and(|owner| owner != projector)
            && is_joining(&assignment, vbucket, projector) == for_new_copy;
        if bucket.is_removed() || bucket.ownership().owned.contains(vbucket) || !fits {
            return Err(Error::unavailable(format!("vbucket {vbucket} must not be removed now")));
        }
        Ok(())
    }
}

/// True if the vbucket is being handed over to the projector.
pub fn is_joining(assignment: &VbucketAssignment, vbucket: VbucketId, projector: NodeId) -> bool {
    assignment.transfer_of(vbucket).is_some_and(|transfer| transfer.to == projector)
}

impl Writer {
    /// Removes the vbucket's branches, documents and log, if any of them is stored.
    pub fn remove_vbucket(&self, bucket: &Bucket, removal: Removal) -> Result<()> {
        let _gate = bucket.gate.close();
        removal.check(bucket)?;
        let vbucket = removal.vbucket;
        let mut branches = bucket.branches();
        branches[usize::from(vbucket.0)].clear();
        let mut record = bucket.record_with(branches.clone(), (*bucket.ownership()).clone());
        record.given_up.remove(&vbucket);
        self.store.remove_vbucket(&record, vbucket)?;
        bucket.set_given_up(record.given_up);
        bucket.set_copied(branches, [(vbucket, Seqno(0))]);
        Ok(())
    }
}
