//! The writer's part in removing a vbucket: one that has another owner now, an abandoned copy, or one that is copied
//! again.
//!
//! First the vbucket durably loses its branches. From then on it is partial
//! ([`is_partial`](documents::record::is_partial)), whatever crashes, until its last entry is gone. Then its
//! documents and its log are removed in small batches; writers commit their groups between them.

use proto::model::assignment::VbucketAssignment;
use proto::model::ids::{NodeId, Seqno, VbucketId};
use proto::{Error, Result};

use crate::source::bucket::Bucket;
use crate::source::writer::Writer;

/// Documents that one batch looks at: a few milliseconds.
const LOOK_AT: usize = 4096;
/// Log entries that one batch removes: a millisecond of work.
const ENTRIES: u64 = 2048;

/// A vbucket to remove, and the purpose.
#[derive(Clone, Copy, Debug)]
pub struct Removal {
    /// The vbucket.
    pub vbucket: VbucketId,
    /// This projector.
    pub projector: NodeId,
    /// True to make room for a new copy of a vbucket that is on its way here; false to clean up. Each of the two
    /// begins only where the other does not.
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

/// True if the vbucket is on its way to the projector.
pub fn is_joining(assignment: &VbucketAssignment, vbucket: VbucketId, projector: NodeId) -> bool {
    assignment.transfer_of(vbucket).is_some_and(|transfer| transfer.to == projector)
}

impl Writer {
    /// Makes the vbucket partial. Returns false if nothing of it is stored.
    pub fn begin_removal(&self, bucket: &Bucket, removal: Removal) -> Result<bool> {
        let _gate = self.lock_gate();
        removal.check(bucket)?;
        let vbucket = removal.vbucket;
        let end = bucket.durable().get(vbucket).seqno;
        let mut branches = bucket.branches();
        let mut given_up = bucket.record().given_up;
        let had_branches = !std::mem::take(&mut branches[usize::from(vbucket.0)]).is_empty();
        if had_branches | given_up.remove(&vbucket).is_some() {
            let mut record = bucket.record_with(branches.clone(), (*bucket.ownership()).clone());
            record.given_up.clone_from(&given_up);
            self.store.put_records(&[record])?;
            bucket.set_given_up(given_up);
            bucket.set_copied(branches, (vbucket, end));
        }
        Ok(end.0 > 0)
    }

    /// Removes some of its documents after an id. Returns the id to continue after; `None` at the end.
    pub fn remove_documents(
        &self,
        bucket: &Bucket,
        removal: Removal,
        after: Option<&str>,
    ) -> Result<Option<String>> {
        let _gate = self.lock_gate();
        removal.check(bucket)?;
        self.store.remove_documents(bucket.info.id, removal.vbucket, after, LOOK_AT)
    }

    /// Removes some of its log after all its documents. Returns true at the end.
    pub fn remove_log(&self, bucket: &Bucket, removal: Removal) -> Result<bool> {
        let _gate = self.lock_gate();
        removal.check(bucket)?;
        let is_gone = self.store.remove_log(bucket.info.id, removal.vbucket, ENTRIES)?;
        if is_gone {
            bucket.set_copied(bucket.branches(), (removal.vbucket, Seqno(0)));
        }
        Ok(is_gone)
    }
}
