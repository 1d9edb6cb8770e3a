//! The work of a bucket's writer when it removes a vbucket: one with another owner, an abandoned
//! copy, or one that is copied again.
//!
//! The vbucket loses its branches, its documents and its log in one step.

use proto::model::assignment::VbucketAssignment;
use proto::model::ids::{NodeId, Seqno, VbucketId};
use proto::{Error, Result};

use crate::source::view::bucket::Bucket;
use crate::source::writer::Writer;

/// A vbucket to remove, and the reason.
#[derive(Clone, Copy, Debug)]
pub struct Removal {
    /// The vbucket to remove.
    pub vbucket: VbucketId,
    /// The node id of this projector.
    pub projector: NodeId,
    /// True if the vbucket is removed for a new copy that is being handed over to this projector;
    /// false for a clean-up. A clean-up does not begin during a hand-over, and a new copy only
    /// then.
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
    /// Removes the vbucket's branches, documents and log, if it has any.
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
