//! The work of a bucket's writer when the ownership of vbuckets changes
//! ([`proto::model::assignment`] has the steps of a hand-over).
//!
//! The set of *owned* vbuckets is determined by the catalog alone; for a version of a data set it
//! has the partitions that are complete on this projector. It is durable in the bucket's record, so
//! that a projector that starts without a coordinator continues with its last ownership. A
//! *released* vbucket is the projector's own promise to the target of a hand-over. The release is
//! durable before the promise is given, and is valid while the catalog has the hand-over.
//!
//! A vbucket that is being received (`copying.rs`) is stored like any other, but not visible before
//! it is owned: streams, snapshots and histories cover only owned vbuckets. Abandoned copies, and
//! vbuckets that moved away, are removed when the catalog allows it (`removing.rs`).
//!
//! These changes run exclusively, between two groups of the bucket.

use std::sync::Arc;

use proto::Result;
use proto::model::assignment::{HandOver, VbucketAssignment};
use proto::model::ids::{NodeId, Seqno, VbucketId};

use crate::source::registry::source_of_kind;
use crate::source::view::bucket::Bucket;
use crate::source::writer::Writer;
use documents::ownership::Ownership;
use documents::record::is_partial;

impl Writer {
    /// Applies the vbucket owners in the catalog.
    pub fn change_ownership(
        &self,
        bucket: &Bucket,
        assignment: &Arc<VbucketAssignment>,
        projector: NodeId,
    ) -> Result<()> {
        let _gate = bucket.gate.close();
        self.own(bucket, assignment, projector)
    }

    /// Changes the ownership; the caller has closed the gate.
    pub fn own(
        &self,
        bucket: &Bucket,
        assignment: &Arc<VbucketAssignment>,
        projector: NodeId,
    ) -> Result<()> {
        if bucket.is_removed() {
            return Ok(());
        }
        let before = bucket.ownership();
        let mut ownership = before.with_assignment(assignment, projector);
        let (source, branches) = (source_of_kind(bucket.info.source), bucket.branches());
        let can_serve = |v: &VbucketId| source.can_serve(&branches[usize::from(v.0)]);
        ownership.owned = ownership.owned.iter().filter(can_serve).collect();
        self.empty_parts(bucket, &ownership)?;
        if ownership != *before {
            self.store.put_records(&[bucket.record_with(bucket.branches(), ownership.clone())])?;
        }
        bucket.set_ownership(ownership, Arc::clone(assignment));
        (self.on_change)(bucket.info.id);
        Ok(())
    }

    /// Empties partial vbuckets before they become visible. An owned vbucket is partial only if the
    /// disk is older than the catalog. Then its producer pushes it again.
    fn empty_parts(&self, bucket: &Bucket, ownership: &Ownership) -> Result<()> {
        let (durable, branches) = (bucket.durable(), bucket.branches());
        let part = |vbucket: &VbucketId| {
            is_partial(&branches[usize::from(vbucket.0)], durable.get(*vbucket).seqno)
        };
        let parts: Vec<_> = ownership.owned.iter().filter(part).map(|v| (v, Seqno(0))).collect();
        if parts.is_empty() {
            return Ok(());
        }
        tracing::warn!(bucket = %bucket.info.name, ?parts, "emptied partial vbuckets that this projector owns");
        self.store
            .rewind(&bucket.record_with(branches.clone(), (*bucket.ownership()).clone()), &parts)?;
        bucket.set_copied(branches, parts);
        Ok(())
    }

    /// Makes a vbucket refuse mutations as long as its hand-over lasts.
    pub fn release(&self, bucket: &Bucket, transfer: &HandOver) -> Result<()> {
        let _gate = bucket.gate.close();
        if bucket.is_removed() {
            return Err(bucket.removed_error());
        }
        let mut ownership = Ownership::clone(&bucket.ownership());
        if bucket.assignment().transfer_of(transfer.vbucket) != Some(transfer)
            || !ownership.owned.contains(transfer.vbucket)
        {
            return Err(bucket.not_owned(transfer.vbucket));
        }
        if ownership.released.contains(transfer.vbucket) {
            return Ok(());
        }
        ownership.released.insert(transfer.vbucket);
        self.store.put_records(&[bucket.record_with(bucket.branches(), ownership.clone())])?;
        bucket.set_ownership(ownership, bucket.assignment());
        Ok(())
    }
}
