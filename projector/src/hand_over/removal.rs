//! The step of a bucket's writer that removes a vbucket: because another projector owns it,
//! because its copy was abandoned, or because it is copied again.
//!
//! The vbucket loses its branches, its documents and its log in one step.

use proto::model::assignment::VbucketAssignment;
use proto::model::ids::{NodeId, Seqno, VbucketId};
use proto::{Error, Result};

use crate::source::view::bucket::Bucket;
use crate::source::writer::Writer;

/// A vbucket to remove, and the reason for that.
#[derive(Clone, Copy, Debug)]
pub struct Removal {
    /// The vbucket to remove.
    pub vbucket: VbucketId,
    /// The node id of this projector.
    pub projector: NodeId,
    /// True if the vbucket is removed because it is copied again in a hand-over to this
    /// projector. False if it is removed because it is not needed. The first is allowed only
    /// during such a hand-over, the second only without one.
    pub for_new_copy: bool,
}

impl Removal {
    /// Returns an error if the vbucket must not be removed for this reason.
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

/// Returns true if the vbucket is being handed over to the projector.
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
